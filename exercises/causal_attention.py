"""Unit 5, causal attention: hide the tokens still to come.

A model that learns to predict the next token must not see it. Here you build the mask that hides
the future, use it inside the softmax, add dropout, and assemble a causal attention layer.

Masks in this kit are boolean, and True where a query may NOT look: this is what `masked_fill`
wants. In `F.scaled_dot_product_attention` True means the opposite; remember that when you read
other people's code.
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

    Rows are queries, columns are keys. A token may look at itself and at everything before it.
    So one token alone has nothing to hide: `causal_mask(1)` holds a single False.

    Why: in training, all tokens of a sentence are in one tensor, the right answers included.
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
        scores: (..., queries, keys), numbers between -1000 and 1000, hidden ones too.
        mask: bool (...), broadcasting to the scores: (queries, keys), (batch, 1, keys), …;
            True where a query may not look.

    Returns:
        (..., queries, keys): the weights.

    Rules:
        leading: The scores may have any number of leading dimensions, or none, and the mask
            broadcasts to them.
        empty: A query that may see nothing gets a row of zeros, never NaN, and all gradients stay
            finite.
        large: Scores may be as large as ±1000.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: The weights keep the dtype of the scores, to its full precision.
        unchanged: `scores` and `mask` stay as they were.
        gradients: Gradients flow back to the scores.

    Example: the large score 9 is hidden from the first two queries, everything from the third.

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

    Why: it gives the same numbers as hiding the scores before the softmax. A softmax is a ratio of
    exponentials, and the part of the future in the denominator cancels. Compare both ways on the
    same scores.

    Takes:
        weights: (tokens, tokens), a softmax's result: each row sums to one over *all* tokens, and
            no weight is below 1e-6.

    Returns:
        (tokens, tokens): the causal weights.

    Rules:
        dtype: The result keeps the dtype of the weights, to its full precision.
        unchanged: `weights` stays as it was.
        gradients: Gradients flow back to the weights, through the sums too.

    Example: the second row holds 0.2 and 0.6 up to its own token, 0.8 together: 1/4 and 3/4.

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
    """Apply dropout to weights, given which of them are kept.

        result = weights / (1 - p)   where keep is True
        result = 0                   where keep is False

    Dropout is random. Here the random choice is given: `keep` says which entries survive, and p is
    the probability with which an entry was *dropped*.

    Why: when a share p of the entries is gone, the others must grow, so that the *expected* weight
    stays the same. Then nothing has to change when dropout is off. This is inverted dropout, and
    `nn.Dropout` does the same.

    Takes:
        weights: (...), any numbers.
        keep: bool (...), the same shape; True where an entry is kept. It is not an attention mask.
        p: float, 0 ≤ p < 1.

    Returns:
        (...): the weights after dropout; rows need not sum to one.

    Rules:
        leading: `weights` and `keep` may have any number of dimensions.
        dtype: The result keeps the dtype of the weights, to its full precision.
        unchanged: `weights` and `keep` stay as they were.
        gradients: Gradients flow back to the weights that are kept.

    Example: with p = 0.2, what is kept is divided by 0.8.

    >>> weights = torch.tensor([[0.50, 0.50], [0.25, 0.75]])
    >>> keep = torch.tensor([[True, False], [False, True]])
    >>> apply_dropout(weights, keep, 0.2)
    tensor([[0.6250, 0.0000],
            [0.0000, 0.9375]])

    Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from
    Overfitting", section 10, https://jmlr.org/papers/v15/srivastava14a.html (its p is the
    probability of being kept).
    """
    raise NotImplementedError


class CausalAttention(nn.Module):
    """Compute causal attention over a batch of sentences, with dropout on the weights.

        queries, keys, values = W_query(x), W_key(x), W_value(x)
        weights = masked_softmax(queries · keysᵀ / √d_out, causal mask)
        output  = dropout(weights) · values

    W_query, W_key and W_value are linear layers. This is the self-attention of unit 4 with three
    additions: it takes a batch, no token sees a later one, and some weights are dropped in
    training. Your own earlier answers are welcome. Names and initial values of parameters are free.
    Bare parameters, or one fused layer, are welcome too.

    Why: dropout acts on the *weights*. Then a token cannot depend on a single other token, because
    that token is missing now and then.

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
        shorter: Sentences may have fewer tokens than `context_length`, and another number in each
            call.
        batch: Sentences of a batch never see one another.
        dropout: In training, weights are dropped after the softmax and before the values, each by
            itself, and the others grow by 1 / (1 - dropout); judged by its statistics, never by the
            random numbers behind it; without this, at most half of the points.
        eval: After `.eval()` nothing is dropped, and two calls agree.
        bias: All three linear layers have a bias if `qkv_bias` is True, and none has one otherwise.
            Nothing else is learned.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        device: The mask is on the module's device: a buffer, or built on the input's device.
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
