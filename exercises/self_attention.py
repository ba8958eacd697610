"""Unit 4, self-attention: each token gets a query, a key and a value.

Unit 3 compared tokens as they were. Now three learned matrices give each token a query (what am I
looking for?), a key (what do I have?) and a value (what do I pass on?). With these matrices, the
model can learn what to pay attention to.

In this unit, and in all that follow:

- A boolean mask is True where a query may NOT look, as `masked_fill` expects.
  `F.scaled_dot_product_attention` uses the opposite: there, True means that a query may look.
- "Ready-made attention functions" are `F.scaled_dot_product_attention`, `nn.MultiheadAttention`
  and similar functions of torch. You may call torch's softmax and your own earlier answers.
- The tests pass constructor arguments by position, in the order given here. You may choose the
  names and the initial values of your layers and parameters. The tests find the weights of queries,
  keys and values in your module, and replace them.
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

        y[o] = Σᵢ weight[o, i] · x[i] + bias[o]

    Torch stores the weight as (d_out, d_in), one row for each *output* feature, and so do we. In
    the formula, x and y are one vector each; a tensor holds many of them.

    Why: nearly every number in a transformer comes out of a linear layer. A linear layer changes
    only the last dimension. So one function serves a vector, a sentence and a batch of sentences.

    Takes:
        x: (..., d_in), the input features.
        weight: (d_out, d_in).
        bias: (d_out,) or None. It is always passed.

    Returns:
        (..., d_out): the output features.

    Rules:
        leading: `x` may have any number of leading dimensions, or none.
        bias: With a bias of None, nothing is added.
        forbidden: Torch's own linear functions and convolutions are off limits (`nn.Linear`,
            `F.linear`, `F.bilinear`, `F.conv1d`); matrix products are welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x`, `weight` and `bias` stay as they were.
        gradients: Gradients flow back to `x`, `weight` and `bias`.

    Example: two input features become three output features: the first, the second, and their sum.
    The biases add 10, 20 and 30.

    >>> x = torch.tensor([1.0, 2.0])
    >>> weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> linear_by_hand(x, weight, torch.tensor([10.0, 20.0, 30.0]))
    tensor([11., 22., 33.])

    Source: torch's documentation of `nn.Linear`,
    https://pytorch.org/docs/stable/generated/torch.nn.Linear.html.
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
    """Compute a query, a key and a value for every token.

        queries = inputs · W_query
        keys    = inputs · W_key
        values  = inputs · W_value

    Tokens are *rows* of the inputs. Be careful when d_in equals d_out: a product with a transposed
    matrix then has the right shape and the wrong numbers.

    Why: a token has three roles. It searches (with its query), it is found (by its key), and it
    passes something on (its value). A matrix for each role lets the model learn all three.

    Takes:
        inputs: (..., tokens, d_in), one row for each token.
        W_query: (d_in, d_out).
        W_key: (d_in, d_out).
        W_value: (d_in, d_out).

    Returns:
        queries (..., tokens, d_out), keys (..., tokens, d_out) and values (..., tokens, d_out), in
        that order, as a tuple or a list.

    Rules:
        leading: `inputs` may have any number of leading dimensions, or none.
        dtype: float64 in, float64 out, in full precision.
        unchanged: The inputs and the matrices stay as they were.
        gradients: Gradients flow back to the inputs and to all three matrices.

    Example: the first matrix swaps the two features, the second doubles them, the third adds them.

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

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


def scaled_scores(
    queries: Float[Tensor, "... queries d_k"], keys: Float[Tensor, "... keys d_k"]
) -> Float[Tensor, "... queries keys"]:
    """Compare every query with every key, and keep the variance of the scores independent of d_k.

        scores[i, j] = (queries[i] · keys[j]) / √d_k

    Row i holds the scores of query i, one for each key. There is no softmax yet.

    Why: a dot product is a sum of d_k products, so its variance grows with d_k. Large scores make
    the softmax nearly all or nothing, and its gradients nearly zero. If queries and keys are
    independent, with mean 0 and variance 1, the scores have variance 1, whatever d_k is. Try it!

    Takes:
        queries: (..., queries, d_k).
        keys: (..., keys, d_k). There may be more or fewer keys than queries.

    Returns:
        (..., queries, keys): the scores.

    Rules:
        leading: There may be any number of leading dimensions, or none.
        forbidden: Ready-made attention functions are off limits.
        dtype: float64 in, float64 out, in full precision, though the root may be
            taken in float32.
        unchanged: `queries` and `keys` stay as they were.
        gradients: Gradients flow back to `queries` and `keys`.

    Example: one query, two keys, d_k = 4. The dot products are 4 and 2, and √4 is 2.

    >>> queries = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
    >>> keys = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0]])
    >>> scaled_scores(queries, keys)
    tensor([[2., 1.]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 and its footnote 4,
    https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


def scaled_dot_product_attention(
    queries: Float[Tensor, "... queries d_k"],
    keys: Float[Tensor, "... keys d_k"],
    values: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Mix the values for each query, weighted by how well the query matches each key.

        output = softmax(queries · keysᵀ / √d_k) · values

    The softmax runs over the keys: the weights of each query sum to one. If there is a mask, the
    softmax leaves out the hidden keys. The paper calls the whole computation Attention(Q, K, V).

    Why: this is *the* formula of the transformer. Most of this course prepares the inputs of this
    formula, or computes it faster.

    Takes:
        queries: (..., queries, d_k).
        keys: (..., keys, d_k).
        values: (..., keys, d_v), one for each key; d_v may differ from d_k.
        mask: bool (..., queries, keys) or None; True where a query may not look. Every query sees
            at least one key. None hides nothing.

    Returns:
        (..., queries, d_v): for each query, the sum of the values times its weights.

    Rules:
        leading: There may be any number of leading dimensions, or none.
        batch: Sentences of a batch never see one another.
        broadcast: A mask of shape (queries, keys) applies to every row of a batch.
        hidden: A hidden key gets no weight at all, even where all visible scores are near -1000;
            hidden scores are at most 80 higher than visible ones.
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        dtype: float64 in, float64 out, in full precision, though the root may be taken in float32.
        unchanged: `queries`, `keys`, `values` and `mask` stay as they were.
        gradients: Gradients flow back to `queries`, `keys` and `values`.

    Example: queries of zeros match all keys equally well. The first query may not see the second
    key, so it gets the whole first value. The second query gets half of each value.

    >>> queries = torch.zeros(2, 4)
    >>> keys = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> values = torch.tensor([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]])
    >>> mask = torch.tensor([[False, True], [False, False]])
    >>> scaled_dot_product_attention(queries, keys, values, mask)
    tensor([[10.,  0.,  0.],
            [ 5.,  5.,  0.]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1, equation 1, and section
    3.2.3 for the mask, https://arxiv.org/abs/1706.03762.
    """
    raise NotImplementedError


class SelfAttention_v1(nn.Module):
    """Build a self-attention layer from three weight matrices.

        output = Attention(x W_query, x W_key, x W_value)

    Attention is that of `scaled_dot_product_attention`, without a mask: every token sees every
    token. Create three `nn.Parameter` of shape (d_in, d_out), with random numbers. We call them
    `W_query`, `W_key` and `W_value`. You may initialise them in any way. Matrices of shape
    (d_out, d_in), used transposed, are accepted as well.

    Why: torch trains the parameters of a module. An `nn.Parameter` that you put on `self` is found
    by `.parameters()`, moves with `.to()`, and is saved with the model. A plain tensor gets none of
    this.

    Made with:
        d_in: int, the width of the tokens.
        d_out: int, the width of queries, keys and values.

    Takes:
        x: (tokens, d_in), one sentence without a batch.

    Returns:
        (tokens, d_out): a context vector for each token.

    Rules:
        lengths: One layer takes sentences of different lengths, a single token included.
        bias: There are no biases: the three matrices are all that the layer learns.
        forbidden: Ready-made attention functions are off limits; your own earlier answers are
            welcome.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every weight matrix is the identity, so tokens are compared as they are. The second
    token, [0, 2], has nothing in common with the first and much with the third.

    >>> attention = SelfAttention_v1(2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> attention(x).detach()
    tensor([[1.4359, 1.4320],
            [1.0000, 1.9426],
            [1.8765, 1.9732]])

    Source: Raschka, "Build a Large Language Model (From Scratch)", section 3.4.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        raise NotImplementedError


class SelfAttention_v2(nn.Module):
    """Build the same self-attention layer from `nn.Linear`.

        output = Attention(linear_query(x), linear_key(x), linear_value(x))

    Attention is the same as in v1: scaled scores, and every token sees every token. Make the layers
    in `__init__`. A layer that is made in `forward` is new at every call, and learns nothing.

    Why: `nn.Linear` draws its first weights around zero, and smaller weights for a larger d_in.
    `torch.rand` gives only positive numbers, from 0 to 1, so sums grow with d_in. Training starts
    better with `nn.Linear`, and most published code uses it.

    Made with:
        d_in: int, the width of the tokens.
        d_out: int, the width of queries, keys and values.
        qkv_bias: bool, whether the three layers have a bias.

    Takes:
        x: (tokens, d_in), one sentence without a batch.

    Returns:
        (tokens, d_out): a context vector for each token.

    Rules:
        lengths: One layer takes sentences of different lengths, a single token included.
        bias: All three layers have a bias if `qkv_bias` is True, and no layer has a bias if it is
            False, the default. Nothing else is learned.
        forbidden: Ready-made attention functions are off limits; your own earlier answers are
            welcome.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every weight matrix is the identity, and there is no bias. The result is that of v1.

    >>> attention = SelfAttention_v2(2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> attention(x).detach()
    tensor([[1.4359, 1.4320],
            [1.0000, 1.9426],
            [1.8765, 1.9732]])

    Source: Raschka, "Build a Large Language Model (From Scratch)", section 3.4.2,
    https://github.com/rasbt/LLMs-from-scratch.
    """

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        raise NotImplementedError


def v1_weights_from_v2(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert the weights of a SelfAttention_v2 for a SelfAttention_v1 with the same output.

        result["W_query"] = state["W_query.weight"]ᵀ
        result["W_key"]   = state["W_key.weight"]ᵀ
        result["W_value"] = state["W_value.weight"]ᵀ

    Here the names matter: use exactly these, whatever your own classes use. Gradients are not
    tested.

    Why: the two versions keep the same matrix in different layouts. v1 computes `x @ W`; in v2,
    `nn.Linear` stores one row for each output feature. Be careful when d_in = d_out: a wrong layout
    then loads without an error, and only the outputs are wrong.

    Takes:
        state: the `state_dict()` of a SelfAttention_v2 without biases: a dict with the keys
            `W_query.weight`, `W_key.weight` and `W_value.weight`, each (d_out, d_in).

    Returns:
        a dict with the keys `W_query`, `W_key` and `W_value`, each (d_in, d_out), which a
        SelfAttention_v1 can load.

    Rules:
        order: The entries of `state` may come in any order.
        dtype: The matrices keep their dtype.
        unchanged: `state` and its matrices stay as they were.

    Example: with d_in = 3 and d_out = 2, a v2 has (2, 3) matrices, and a v1 has (3, 2) matrices.

    >>> weight = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> state = {"W_query.weight": weight, "W_key.weight": weight, "W_value.weight": weight}
    >>> new_state = v1_weights_from_v2(state)
    >>> sorted(new_state)
    ['W_key', 'W_query', 'W_value']
    >>> new_state["W_query"]
    tensor([[1., 4.],
            [2., 5.],
            [3., 6.]])

    Source: Raschka, "Build a Large Language Model (From Scratch)", exercise 3.1,
    https://github.com/rasbt/LLMs-from-scratch.
    """
    raise NotImplementedError


class CausalHead(nn.Module):
    """Build one attention head in which no token sees a later one.

        score[t, s]   = query[t] · key[s] / √head_size      not divided if scaled is False
        weights[t, s] = exp(score[t, s]) / Σᵤ exp(score[t, u])   where s ≤ t, summed over u ≤ t
        weights[t, s] = 0                                        where s > t
        output[t]     = Σₛ weights[t, s] · value[s]

    Three linear layers, d_in to head_size, compute keys, queries and values; ours are called `key`,
    `query` and `value`. Hide later tokens as in `running_mean_softmax`; unit 5 explains the mask.
    Compare the weights with and without the scaling: a scaled head spreads its attention over more
    tokens.

    Why: this is the head of a small GPT. The output at one time step does not depend on later
    tokens. So the model can learn to predict the next token without having seen it.

    Made with:
        d_in: int, the width of the tokens.
        head_size: int, the width of queries, keys and values.
        scaled: bool, whether scores are divided by √head_size.

    Takes:
        x: (batch, time, d_in), a batch of sentences.

    Returns:
        (batch, time, head_size): a context vector for each token.

    Rules:
        batch: Sentences of a batch never see one another.
        lengths: One head takes sentences of different lengths, from a single token to 100.
        bias: None of the three layers has a bias. Nothing else is learned.
        forbidden: Ready-made attention functions are off limits; your own earlier answers are
            welcome.
        dtype: After `.double()`, everything is computed in float64, though the root may be taken
            in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every weight matrix is the identity. The first token sees only itself.

    >>> x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])
    >>> head = CausalHead(2, 2)
    >>> for weight in head.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> head(x).detach()
    tensor([[[1.0000, 0.0000],
             [0.0558, 1.8884],
             [1.8765, 1.9732]]])

    Source: Karpathy, "Let's build GPT", https://github.com/karpathy/ng-video-lecture; Vaswani et
    al. 2017, "Attention Is All You Need", sections 3.2.1 and 3.2.3,
    https://arxiv.org/abs/1706.03762.
    """

    def __init__(self, d_in: int, head_size: int, scaled: bool = True) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Float[Tensor, "batch time d_in"]) -> Float[Tensor, "batch time head_size"]:
        raise NotImplementedError
