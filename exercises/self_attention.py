"""Unit 4, self-attention: every token asks, offers and answers with vectors of its own.

Unit 3 compared tokens as they were. Now three learned matrices give each token a query (what am I
looking for?), a key (what do I have?) and a value (what will I tell you?). From here on the model
can learn what to pay attention to.

Masks in this kit are boolean and True where a query may NOT look, just as `masked_fill` wants
them. `F.scaled_dot_product_attention` means the opposite by True.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


def linear_by_hand(
    x: Float[Tensor, "... d_in"],
    weight: Float[Tensor, "d_out d_in"],
    bias: Float[Tensor, " d_out"] | None,
) -> Float[Tensor, "... d_out"]:
    """Compute what `nn.Linear` computes, from its weight and its bias.

    Every output feature is a weighted sum of the d_in input features, plus its bias if there is
    one. Torch stores the weight as (d_out, d_in), one row for each *output* feature, and so do we.

    Why: nearly every number in a transformer comes out of a linear layer. It works on the last
    dimension alone, and leaves all those in front as they are: one vector, a sentence, a batch of
    sentences, all go through the same function.

    `x` has shape (..., d_in), with any number of leading dimensions, even none; the answer has
    shape (..., d_out). `bias` is always passed; it is None or has shape (d_out,). The dtype of `x`
    is kept, and gradients flow to `x`, `weight` and `bias`.

    `nn.Linear` and `F.linear` are off limits: the exercise is to write them.

    Two features in, three out: the first, the second, and their sum, plus 10, 20 and 30:

    >>> x = torch.tensor([1.0, 2.0])
    >>> weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> linear_by_hand(x, weight, torch.tensor([10.0, 20.0, 30.0]))
    tensor([11., 22., 33.])
    """
    raise NotImplementedError


def project_qkv(
    inputs: Float[Tensor, "... tokens d_in"],
    W_query: Float[Tensor, "d_in d_out"],
    W_key: Float[Tensor, "d_in d_out"],
    W_value: Float[Tensor, "d_in d_out"],
) -> tuple[
    Float[Tensor, "... tokens d_out"],
    Float[Tensor, "... tokens d_out"],
    Float[Tensor, "... tokens d_out"],
]:
    """Give every token its query, its key and its value.

    Each of the three is the token's vector times one matrix. Return queries, keys and values in
    that order, as a tuple or a list.

    Why three: a token that searches plays another part than a token that is found, and what it
    is found *by* need not be what it has to say. Three matrices let the model learn all three.

    `inputs` has shape (..., tokens, d_in), one *row* per token, with any leading dimensions. The
    matrices are (d_in, d_out), and each of the three results is (..., tokens, d_out). Watch out:
    when d_in equals d_out, a product the wrong way round has the right shape and wrong numbers.

    The first matrix swaps the two features, the second doubles them, the third adds them up:

    >>> inputs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> W_query = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> W_key = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> W_value = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> queries, keys, values = project_qkv(inputs, W_query, W_key, W_value)
    >>> queries
    tensor([[2., 1.],
            [4., 3.]])
    >>> keys
    tensor([[2., 4.],
            [6., 8.]])
    >>> values
    tensor([[3., 0.],
            [7., 0.]])
    """
    raise NotImplementedError


def scaled_scores(
    queries: Float[Tensor, "... queries d_k"], keys: Float[Tensor, "... keys d_k"]
) -> Float[Tensor, "... queries keys"]:
    """Compare every query with every key, and keep the scores at a sensible size.

    A score is the dot product of one query and one key, divided by the square root of their
    length d_k. Row i holds the scores of query i, one for each key.

    Why divide: a dot product of two random vectors is a sum of d_k terms, so its variance grows
    with d_k. Large scores turn the softmax into an on-off switch with next to no gradient. After
    the division, queries and keys of variance 1 give scores of variance 1, whatever d_k is. Try it!

    `queries` is (..., queries, d_k), `keys` is (..., keys, d_k), and the scores are (..., queries,
    keys). There may be more keys than queries, or fewer. Leading dimensions are a batch: its rows
    never meet. No softmax yet. Keep the dtype.

    One query, two keys, d_k = 4: the dot products are 4 and 2, and the root of 4 is 2.

    >>> queries = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
    >>> keys = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0]])
    >>> scaled_scores(queries, keys)
    tensor([[2., 1.]])
    """
    raise NotImplementedError


def scaled_dot_product_attention(
    queries: Float[Tensor, "... queries d_k"],
    keys: Float[Tensor, "... keys d_k"],
    values: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Mix the values, each query in its own proportions.

    Scores become weights: each query shares out a total of one over the keys. Its answer is the
    sum of the values with those weights. If there is a mask, keys marked True must get no weight.

    Why: this is *the* formula, softmax(QKᵀ/√d_k)V, of "Attention Is All You Need" (2017). All the
    rest of this course decides what goes into it, or computes it faster.

    `queries` is (..., queries, d_k), `keys` is (..., keys, d_k), and `values` is (..., keys, d_v):
    one value for each key, of whatever length. The answer is (..., queries, d_v). `mask`, if not
    None, is boolean with the two last dimensions (queries, keys), and every query may see at least
    one key. Inputs stay as they were, and gradients flow to all three.

    Keep the dtype. Torch's softmax is welcome; torch's function of this name and its relatives are
    off limits.

    Queries of zeros like all keys equally well. The first may not see the second key, so it gets
    the first value whole; the second gets half of each:

    >>> queries = torch.zeros(2, 4)
    >>> keys = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> values = torch.tensor([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]])
    >>> mask = torch.tensor([[False, True], [False, False]])
    >>> scaled_dot_product_attention(queries, keys, values, mask)
    tensor([[10.,  0.,  0.],
            [ 5.,  5.,  0.]])
    """
    raise NotImplementedError


class SelfAttention_v1(nn.Module):
    """Build a self-attention layer from three bare weight matrices.

    A layer is the last exercises plus a memory: it holds the three matrices that make queries,
    keys and values out of `x`, so that they can be trained. Scores are scaled, every token sees
    every token, and (tokens, d_in) becomes (tokens, d_out).

    Why: torch trains what it can find. A matrix in an `nn.Parameter`, put on `self`, is found by
    `.parameters()`, moves with `.to()`, and is saved with the model; a plain tensor is none of it.

    Fine print. Make three parameters of shape (d_in, d_out), drawn at random. We call them
    `W_query`, `W_key` and `W_value`; your names, your layout and your way of drawing are free, and
    a grader brings weights of its own. The input has two dimensions, one sentence without a batch.
    In float64, after `.double()`, it takes and gives float64. Arguments come by position.
    Ready-made attention functions are off limits; your own earlier answers are not.

    With every weight matrix the identity, tokens meet as they are. The second token, [0, 2], has
    nothing in common with the first and much with the third:

    >>> attention = SelfAttention_v1(2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> attention(x).detach()
    tensor([[1.4359, 1.4320],
            [1.0000, 1.9426],
            [1.8765, 1.9732]])
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        raise NotImplementedError


class SelfAttention_v2(nn.Module):
    """Build the same layer from `nn.Linear`.

    Queries, keys and values now come from three linear layers, which have a bias if `qkv_bias` is
    True and none if it is False. All else is as in v1: scaled scores, every token sees every
    token, (tokens, d_in) becomes (tokens, d_out).

    Why: `nn.Linear` starts from small weights around zero that suit its size, where `torch.rand`
    gives numbers between 0 and 1 that only ever add up. Training starts better, and code that
    others write looks like this.

    Fine print. The input has two dimensions, as in v1. Mind where the layers are made: a layer made
    inside `forward` is new at every call, and learns nothing. Names are free, and so is how weights
    are drawn. In float64, after `.double()`, it takes and gives float64. Arguments come by
    position. Ready-made attention functions are off limits; your own earlier answers are not.

    With every weight matrix the identity, and no bias, it says what v1 said:

    >>> attention = SelfAttention_v2(2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> attention(x).detach()
    tensor([[1.4359, 1.4320],
            [1.0000, 1.9426],
            [1.8765, 1.9732]])
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        raise NotImplementedError


def v1_weights_from_v2(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Carry the weights of a v2 over to a v1, so that both give the same output.

    `state` is what `state_dict()` of a SelfAttention_v2 without biases returns: a dict with the
    keys `W_query.weight`, `W_key.weight` and `W_value.weight`. Return a dict with the keys
    `W_query`, `W_key` and `W_value` that a SelfAttention_v1 can load.

    Why: the two versions keep the same matrix in different layouts. v1 computes `x @ W`; look up
    what `nn.Linear` does with its weight, and the shapes will tell you the rest. Be careful when
    d_in = d_out: then shapes tell you nothing, and a wrong answer loads without a word.

    Here the names do matter, for they are the contract: use these, whatever your own classes say.
    `state` stays as it was. Gradients are not asked for.

    A v2 with d_in = 3 and d_out = 2 keeps (2, 3) matrices, a v1 keeps (3, 2):

    >>> weight = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> state = {"W_query.weight": weight, "W_key.weight": weight, "W_value.weight": weight}
    >>> new_state = v1_weights_from_v2(state)
    >>> sorted(new_state)
    ['W_key', 'W_query', 'W_value']
    >>> new_state["W_query"]
    tensor([[1., 4.],
            [2., 5.],
            [3., 6.]])
    """
    raise NotImplementedError


class CausalHead(nn.Module):
    """Build one attention head that never looks ahead.

    Three linear layers without bias, d_in to head_size, make keys, queries and values. A token
    attends to itself and to the tokens before it; a token that comes later gets no weight at
    all. (batch, time, d_in) becomes (batch, time, head_size).

    Why: this is the head of a small GPT. Every sentence of the batch is on its own, and what comes
    out at one time step depends on nothing that comes after it. That is what lets a model guess the
    next token honestly. Unit 5 looks at the mask more closely.

    Scores are divided by the square root of head_size, unless `scaled` is False: then they are
    used as they are. Compare the two, and see how the scaled head spreads its attention.

    Fine print. `time` may differ between calls, and may be 1. Names are free (ours are `key`,
    `query` and `value`), and so is how weights are drawn. In float64, after `.double()`, it takes
    and gives float64. Arguments come by position. Ready-made attention functions are off limits.

    With every weight matrix the identity. The first token can only answer with itself:

    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> head = CausalHead(2, 2)
    >>> for weight in head.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> head(x).detach()
    tensor([[[1.0000, 0.0000],
             [0.0558, 1.8884],
             [1.8765, 1.9732]]])
    """

    def __init__(self, d_in: int, head_size: int, scaled: bool = True) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch time d_in"]) -> Float[Tensor, "batch time head_size"]:
        raise NotImplementedError
