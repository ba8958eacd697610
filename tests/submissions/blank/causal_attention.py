"""Unit 5, causal attention: no peeking at the tokens still to come.

A model that learns to guess the next token must not see it. Here you build the mask that hides
the future, put it to work inside the softmax, add dropout, and assemble a causal attention layer.

Masks in this kit are boolean and True where a query may NOT look, just as `masked_fill` wants
them. `F.scaled_dot_product_attention` means the opposite by True; keep that in mind when you read
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

    Rows are the tokens that ask (queries), columns the tokens that could be looked at (keys).
    An entry is True where the query may NOT look. A token may look at itself and at everything
    before it; whatever comes later is hidden.

    Why: while training, all tokens of a sentence sit in one tensor, the right answers included.
    This little triangle is all that stands between your model and cheating.

    The answer is boolean and square, (num_tokens, num_tokens). One token alone has nothing to
    hide: `causal_mask(1)` holds a single False.

    Three tokens; the first one sees only itself, the last one sees all:

    >>> causal_mask(3)
    tensor([[False,  True,  True],
            [False, False,  True],
            [False, False, False]])
    """
    raise NotImplementedError


def masked_softmax(
    scores: Float[Tensor, "... queries keys"], mask: Bool[Tensor, " ..."]
) -> Float[Tensor, "... queries keys"]:
    """Turn scores into weights that give nothing to the hidden keys.

    Each row of `scores` belongs to one query. Its weights sum to one over the keys that the query
    may see; every hidden key (mask True) weighs exactly 0. Only one thing differs from a plain
    softmax: a hidden key must count as if it were not there at all, whatever its score.

    Why: zeroing weights after the softmax leaves rows that no longer sum to one, since the hidden
    keys already took their share. Hide first, then share out.

    `scores` has shape (..., queries, keys), with any leading dimensions. `mask` has the same
    shape, or one that broadcasts to it: (queries, keys) for all batch rows, or (batch, 1, keys).
    The weights keep the shape and dtype of the scores, and `scores` itself stays as it was.

    Fine print: a query that may see nothing at all gets a row of zeros, not NaN, and the gradients
    stay finite even then. Torch's softmax is welcome here; ready-made attention functions are not.

    The large score 9 is hidden from the first two queries, and everything from the third:

    >>> scores = torch.tensor([[0.0, 9.0, 9.0], [1.0, 1.0, 9.0], [1.0, 2.0, 3.0]])
    >>> mask = torch.tensor([[False, True, True], [False, False, True], [True, True, True]])
    >>> masked_softmax(scores, mask)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    raise NotImplementedError


def renormalized_causal_weights(
    weights: Float[Tensor, "tokens tokens"],
) -> Float[Tensor, "tokens tokens"]:
    """Take the future out of finished weights, and make every row sum to one again.

    This is the other road to causal weights. `weights` is (tokens, tokens), it has been through a
    softmax already, and each row sums to one over *all* tokens. Drop what lies in the future, then
    let each row share out its whole attention among what is left.

    Why: it arrives at the same numbers as hiding the scores before the softmax. Softmax is a ratio
    of exponentials, and the part that the future added to the denominator cancels. Once you have
    both roads, compare them on the same scores!

    The answer has the shape and dtype of `weights`, which stays as it was. Gradients flow.

    The second row holds 0.2 and 0.6 up to its own token, 0.8 together, so it becomes 1/4 and 3/4:

    >>> weights = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> renormalized_causal_weights(weights)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.2500, 0.7500, 0.0000],
            [0.1000, 0.2000, 0.7000]])
    """
    raise NotImplementedError


def apply_dropout(
    weights: Float[Tensor, " ..."], keep: Bool[Tensor, " ..."], p: float
) -> Float[Tensor, " ..."]:
    """Apply dropout to the weights with a keep mask that is given.

    Dropout usually throws dice. Here the dice have been thrown for you: `keep` says which entries
    survive, and `p` is the probability with which an entry was *dropped*. What is dropped becomes
    0; what survives is divided by the chance of surviving.

    Why the division: with a share p of the entries gone, the rest must grow so that the *expected*
    weight is what it was. Then nothing has to change when dropout is off. This is called inverted
    dropout, and it is what `nn.Dropout` does.

    `weights` and `keep` have the same shape, any number of dimensions; the answer has that shape
    and the dtype of `weights`. Gradients flow to the weights that survive. 0 ≤ p < 1.

    Fine print: `keep` is not an attention mask. True means *kept* here, and rows need not sum to
    one afterwards.

    With p = 0.2 the survivors are divided by 0.8:

    >>> weights = torch.tensor([[0.50, 0.50], [0.25, 0.75]])
    >>> keep = torch.tensor([[True, False], [False, True]])
    >>> apply_dropout(weights, keep, 0.2)
    tensor([[0.6250, 0.0000],
            [0.0000, 0.9375]])
    """
    raise NotImplementedError


class CausalAttention(nn.Module):
    """Build a causal attention layer: batched, masked, with dropout.

    The self-attention of unit 4 grows up. It takes a batch of sentences, no token looks ahead,
    and some attention weights are dropped while training.

    The steps: queries, keys and values, each from its own linear layer (with a bias only if
    `qkv_bias`); scores, divided by the square root of d_out; the future hidden; softmax over the
    keys; dropout; values mixed. (batch, num_tokens, d_in) comes in, (batch, num_tokens, d_out)
    goes out. Sentences of a batch never see one another.

    Why dropout on the *weights*: a token that now and then loses its favourite neighbour learns
    not to depend on it. Dropout comes after the softmax and before the values, in training only;
    after `.eval()` two calls agree to the last bit.

    Fine print. `context_length` is the longest sentence that the layer must take; shorter ones come
    too, longer ones are not tested. The mask belongs where the module and its input are: register
    it as a buffer, or build it in `forward` on the input's device. Names of parameters are free,
    and so is how you draw them. We judge dropout by its statistics, never by the random numbers
    behind it. In float64, after `.double()`, it takes and gives float64. Arguments come by
    position, in the order below. Ready-made attention functions are off limits; your own earlier
    answers are not.

    With every weight matrix the identity, queries, keys and values are the tokens themselves. The
    first token sees only itself, so it comes out as it went in:

    >>> attention = CausalAttention(2, 2, 4, 0.0)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> attention(x).detach()
    tensor([[[1.0000, 0.0000],
             [0.0558, 1.8884],
             [1.8765, 1.9732]]])
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
