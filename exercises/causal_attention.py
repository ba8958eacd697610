"""Unit 5, causal attention: hide the tokens still to come.

A model that learns to predict the next token must not see that token. Here you build the mask that
hides the future, use it inside the softmax, add dropout, and assemble a causal attention layer.

Masks in this kit are boolean and True where a query may NOT look, as `masked_fill` expects.
`F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


def causal_mask(num_tokens: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    """Build the mask that hides the future from every token.

        mask[i, j] = True    for j > i: key j comes after query i, and is hidden
        mask[i, j] = False   for j ≤ i

    Rows are queries, columns are keys. A token may look at itself and at every token before it.
    So `causal_mask(1)`, for a single token, holds a single False.

    Why: in training, all tokens of a sentence are in one tensor, also the tokens to predict.
    Without this mask, the model would copy the next token and learn nothing.

    Takes:
        num_tokens: int, 1 or more.

    Returns:
        bool (num_tokens, num_tokens): True where the query may not look.

    Example: three tokens. The first sees only itself, the last sees all.

    >>> causal_mask(3)
    tensor([[False,  True,  True],
            [False, False,  True],
            [False, False, False]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3,
    https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


def masked_softmax(
    scores: Float[Tensor, "... queries keys"], mask: Bool[Tensor, " ..."]
) -> Float[Tensor, "... queries keys"]:
    """Turn scores into weights that give nothing to hidden keys.

        weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])   over visible k
        weights[i, j] = 0                                  where key j is hidden

    A hidden key counts as if it were not there, whatever its score.

    Why: zeroing weights after the softmax leaves rows that no longer sum to one, because the
    hidden keys already took their share.

    Takes:
        scores: (..., queries, keys), all between -1000 and 1000, also the hidden scores.
        mask: bool (...), broadcasting to the scores: (queries, keys), (batch, 1, keys), …;
            True where a query may not look.

    Returns:
        (..., queries, keys): the weights.

    Rules:
        leading: The scores may have any number of leading dimensions, or none, and the mask
            broadcasts to them.
        empty: A query that may see no key gets a row of zeros, never NaN, and all gradients stay
            finite.
        large: Scores may be as large as ±1000.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: The weights keep the dtype of the scores, in full precision.
        unchanged: `scores` and `mask` stay as they were.
        gradients: Gradients flow back to the scores.

    Example: the first two queries may not see the keys with the large score 9. The third query may
    see no key at all.

    >>> scores = torch.tensor([[0.0, 9.0, 9.0], [1.0, 1.0, 9.0], [1.0, 2.0, 3.0]])
    >>> mask = torch.tensor([[False, True, True], [False, False, True], [True, True, True]])
    >>> masked_softmax(scores, mask)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3,
    https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


def renormalized_causal_weights(
    weights: Float[Tensor, "tokens tokens"],
) -> Float[Tensor, "tokens tokens"]:
    """Take the future out of finished weights, and make every row sum to one again.

        result[i, j] = weights[i, j] / Σₖ weights[i, k]   for j ≤ i; sum over k ≤ i
        result[i, j] = 0                                  for j > i

    This is the second way to causal weights. Here the softmax comes first, and the mask after it.

    Why: this way gives the same numbers as hiding the scores before the softmax. The softmax has
    divided all weights of a row by the same sum of exponentials, and that sum cancels when you
    divide by the sum of the visible weights. Compare both ways on the same scores.

    Takes:
        weights: (tokens, tokens), a softmax's result: each row sums to one over *all* tokens, and
            no weight is below 1e-6.

    Returns:
        (tokens, tokens): the causal weights.

    Rules:
        dtype: The result keeps the dtype of the weights, in full precision.
        unchanged: `weights` stays as it was.
        gradients: Gradients flow back to the weights, through the sums too.

    Example: the second row keeps the weights 0.2 and 0.6. Their sum is 0.8, so they become 1/4 and
    3/4.

    >>> weights = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> renormalized_causal_weights(weights)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.2500, 0.7500, 0.0000],
            [0.1000, 0.2000, 0.7000]])

    Source: Raschka 2024, "Build a Large Language Model (From Scratch)", section 3.5.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


def apply_dropout(
    weights: Float[Tensor, " ..."], keep: Bool[Tensor, " ..."], p: float
) -> Float[Tensor, " ..."]:
    """Apply dropout to weights, with a given choice of the weights to keep.

        result = weights / (1 - p)   where keep is True
        result = 0                   where keep is False

    Dropout is random. Here the random choice is given: `keep` says which entries are kept, and p is
    the probability with which an entry was *dropped*.

    Why: a share p of the entries becomes 0, so the others must grow to keep the *expected* weight
    the same. Then the weights need no correction when dropout is off. This is inverted dropout, and
    `nn.Dropout` does the same.

    Takes:
        weights: (...), any numbers.
        keep: bool (...), the same shape; True where an entry is kept. It is not an attention mask.
        p: float, 0 ≤ p < 1.

    Returns:
        (...): the weights after dropout; rows need not sum to one.

    Rules:
        leading: `weights` and `keep` may have any number of dimensions.
        dtype: The result keeps the dtype of the weights, in full precision.
        unchanged: `weights` and `keep` stay as they were.
        gradients: Gradients flow back to the weights that are kept.

    Example: with p = 0.2, the kept weights are divided by 0.8.

    >>> weights = torch.tensor([[0.50, 0.50], [0.25, 0.75]])
    >>> keep = torch.tensor([[True, False], [False, True]])
    >>> apply_dropout(weights, keep, 0.2)
    tensor([[0.6250, 0.0000],
            [0.0000, 0.9375]])

    Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting", section 10, https://jmlr.org/papers/v15/srivastava14a.html. There, p is the
    probability that an entry is kept.
    """
    raise NotImplementedError


class CausalAttention(nn.Module):
    """Compute causal attention over a batch of sentences, with dropout on the weights.

        queries, keys, values = W_query(x), W_key(x), W_value(x)
        weights = masked_softmax(queries · keysᵀ / √d_out, causal mask)
        output  = dropout(weights) · values

    W_query, W_key and W_value are linear layers. This is the self-attention of unit 4 with three
    additions: it takes a batch, no token sees later tokens, and some weights are dropped in
    training. Your own earlier answers are welcome. Names and initial values of parameters are free.
    Bare parameters, or one fused layer, are welcome too.

    Why: with dropout on the *weights*, a token cannot rely on a single other token, because that
    token is sometimes missing.

    Made with:
        d_in: int, the width of a token.
        d_out: int, the width of queries, keys, values and output.
        context_length: int, the number of tokens of the longest sentence.
        dropout: float, the probability with which a weight is dropped, 0 ≤ dropout < 1.
        qkv_bias: bool, whether queries, keys and values have a bias.

    Takes:
        x: (batch, num_tokens, d_in), with num_tokens ≤ context_length.

    Returns:
        (batch, num_tokens, d_out): a context vector for each token.

    Rules:
        shorter: Sentences may have fewer tokens than `context_length`, and each call may have
            another number of tokens.
        batch: Sentences of a batch never see one another.
        dropout: In training, each weight is dropped by itself, after the softmax and before the
            product with the values, and kept weights are divided by 1 - `dropout`. Tests judge the
            statistics, not your random numbers. An answer that breaks this rule gets at most half
            of the points.
        eval: After `.eval()` nothing is dropped, and two calls give the same result.
        bias: All three linear layers have a bias if `qkv_bias` is True, and no layer has a bias
            otherwise. Nothing else is learned.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every weight matrix is the identity, so queries, keys and values are the tokens
    themselves. The first token sees only itself, and comes out as it went in.

    >>> attention = CausalAttention(2, 2, 4, 0.0)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> attention(x).detach()
    tensor([[[1.0000, 0.0000],
             [0.0558, 1.8884],
             [1.8765, 1.9732]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 (scale) and 3.2.3
    (mask), https://arxiv.org/abs/1706.03762; dropout on the weights: Raschka 2024, "Build a Large
    Language Model (From Scratch)", section 3.5, https://github.com/rasbt/LLMs-from-scratch.
    """

    def __init__(
        self, d_in: int, d_out: int, context_length: int, dropout: float, qkv_bias: bool = False
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_in"]
    ) -> Float[Tensor, "batch num_tokens d_out"]:
        raise NotImplementedError
