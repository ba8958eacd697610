"""Unit 13, a look inside, and the parts wired together.

First you look into a layer of attention: at the weights of each head, and at what its matrices do
once they are multiplied with each other. Then you wire up parts that you have written before, as
the models of today do: a cache that holds latents, and heads whose queries and keys are rotated.

This holds for everything in this unit. Heads are neighbouring features: head h has the features
h · head_dim to (h + 1) · head_dim - 1, where head_dim is d_out / num_heads. There is no dropout.
Arguments come by position, in the order of the signature. You may use your own earlier answers. In
modules, names and initial values of parameters are free, projections may share one layer, and
layers may be bare parameters.

Functions take matrices of shape (d_in, d_out), on the right of the tokens: x · W. `nn.Linear`
stores the same numbers transposed, as (d_out, d_in): for a layer, pass `layer.weight.T`.

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


def head_weights(
    x: Float[Tensor, "batch tokens d_in"],
    W_query: Float[Tensor, "d_in d_out"],
    W_key: Float[Tensor, "d_in d_out"],
    num_heads: int,
) -> Float[Tensor, "batch num_heads tokens tokens"]:
    """Compute the attention weights of every head of a causal layer, to look at them.

        queries = x · W_query      keys = x · W_key      both cut into heads
        weights[h] = softmax(queries[h] · keys[h]ᵀ / √head_dim)      over keys j ≤ i

    Row i of a head says how token i shares out its attention. It sums to one, and keys that come
    after the token get a weight of exactly 0. head_dim is d_out / num_heads.

    Why: a layer returns only the mix of values, and the weights are gone. To see what a head has
    learned, compute them again: no values are needed for that, and no output layer. Each head has
    weights of its own, so look at them one by one: the average over the heads hides what they do.

    Takes:
        x: (batch, tokens, d_in), sentences of any length.
        W_query: (d_in, d_out). `nn.Linear` stores its matrix transposed, as (d_out, d_in): of a
            layer, this is `layer.weight.T`.
        W_key: (d_in, d_out), stored in the same way.
        num_heads: int, how many heads the d_out features are cut into. It divides d_out.

    Returns:
        (batch, num_heads, tokens, tokens): heads, then queries, then keys.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        dtype: float64 in, float64 out, though the root may be taken in float32.
        unchanged: `x` and both matrices stay as they were.
        gradients: Gradients flow back to `x` and to both matrices.

    Example: identity matrices, and two heads of two features. The second token scores the first
    with 0 in head 0, and with 1 in head 1.

    >>> x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])
    >>> head_weights(x, torch.eye(4), torch.eye(4), 2)
    tensor([[[[1.0000, 0.0000],
              [0.0558, 0.9442]],
    <BLANKLINE>
             [[1.0000, 0.0000],
              [0.3302, 0.6698]]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762; its last figures show such weights, of an encoder.
    """
    raise NotImplementedError


def bilinear_form(
    W_query: Float[Tensor, "d_in d_out"], W_key: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "d_in d_in"]:
    """Multiply the two matrices of a head into one matrix that compares tokens directly.

        form = W_query · W_keyᵀ

    Then x · form · xᵀ are the scores of the tokens before they are scaled: rows are queries,
    columns are keys. Entry (i, j) says how much feature i of the query and feature j of the key add
    to a score, per unit of both.

    Why: a model could learn this one matrix, without queries and keys. But it has d_in · d_in
    numbers, and the two matrices together have 2 · d_in · d_out: with d_in = 768 and heads of 64
    features, 589,824 against 98,304. The product of the two has rank d_out at most: it compares
    tokens in at most d_out ways. And queries and keys of d_out features are cheap to compare, and
    small enough to keep in a cache.

    Takes:
        W_query: (d_in, d_out), of one head, so d_out is its head_dim. Of an `nn.Linear`, this is
            `layer.weight.T`.
        W_key: (d_in, d_out), of the same head.

    Returns:
        (d_in, d_in): the form, features of the query down and of the key across.

    Rules:
        forbidden: Ready-made attention functions are off limits; you will not miss them here.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: Both matrices stay as they were.
        gradients: Gradients flow back to both matrices.

    Example: three features, compared in two ways. Feature 0 searches for feature 1, and feature 1
    for feature 2. Feature 2 searches for nothing.

    >>> W_query = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> W_key = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> bilinear_form(W_query, W_key)
    tensor([[0., 1., 0.],
            [0., 0., 1.],
            [0., 0., 0.]])

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", on the QK
    circuit, https://transformer-circuits.pub/2021/framework. Tokens are columns there.
    """
    raise NotImplementedError


def absorb_keys(
    W_query: Float[Tensor, "d_in d_out"],
    W_up_key: Float[Tensor, "d_latent d_out"],
    num_heads: int,
) -> Float[Tensor, "num_heads d_in d_latent"]:
    """Multiply queries' and keys' matrices head by head, so that tokens meet latents directly.

        absorbed[h] = W_query[:, head h] · W_up_key[:, head h]ᵀ

    "Head h" are its columns, h · head_dim to (h + 1) · head_dim - 1, where head_dim is
    d_out / num_heads. In `LatentAttention`, keys are latent · W_up_key. So the scores of head h,
    before they are divided by √head_dim, are x · absorbed[h] · latentᵀ, and no key is ever made. It
    is `bilinear_form` for each head, with latents on the side of the keys.

    Why: a model that writes keeps one latent for each token of the past. To unpack it into keys at
    every step is work that grows with the past. This matrix is made once, before the first step,
    and from then on queries are compared with the latents as they are.

    The heads must stay apart. The product of both matrices as a whole, W_query · W_up_keyᵀ, is the
    sum of all heads: one table of scores for all of them, where each head needs its own.

    Takes:
        W_query: (d_in, d_out). Of an `nn.Linear`, this is `layer.weight.T`.
        W_up_key: (d_latent, d_out), which unpacks a latent into the keys of all heads. Of an
            `nn.Linear`, this is `layer.weight.T` as well.
        num_heads: int, how many heads the d_out features are cut into. It divides d_out.

    Returns:
        (num_heads, d_in, d_latent): one matrix for each head.

    Rules:
        forbidden: Ready-made attention functions are off limits; you will not miss them here.
        dtype: float64 in, float64 out, to its full precision.
        unchanged: Both matrices stay as they were.
        gradients: Gradients flow back to both matrices.

    Example: two heads of one feature each, tokens of two features, latents of three.

    >>> W_query = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    >>> W_up_key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> absorb_keys(W_query, W_up_key, 2)
    tensor([[[1., 0., 1.],
             [0., 0., 0.]],
    <BLANKLINE>
            [[0., 0., 0.],
             [0., 2., 2.]]])

    Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.2, https://arxiv.org/abs/2405.04434.
    """
    raise NotImplementedError


class LatentCachedAttention(nn.Module):
    """Compute causal multi-head attention for new tokens, whose past comes as a cache of latents.

        latents = the latents of the cache, then W_down(x)
        queries = W_query(x)
        keys    = W_up_key(latents)      values = W_up_value(latents)
        head[h][i] = Σⱼ weights[h][i, j] · values[h][j]      over j ≤ seen + i
        weights[h][i, j] ∝ exp(queries[h][i] · keys[h][j] / √head_dim), with sum 1 over j ≤ seen + i
        out     = W_out(head[0], head[1], …)

    `seen` counts the tokens in the cache, 0 without one. W_down maps d_in to d_latent, W_up_key and
    W_up_value map d_latent to d_out. This is `LatentAttention`, fed as `CachedAttention` is: one
    token at a time, or in chunks of any size, every token gets the output that it gets when all
    tokens come at once. `causal_mask_after` builds the right mask.

    Keys and values are never kept. You may unpack them from the latents at every step, or compare
    queries and latents directly, with the matrices of `absorb_keys`: the numbers are the same, and
    the scale is √head_dim in both cases.

    Why: this is what the latent was for. The cache holds d_latent numbers for a token instead of
    2 · d_out, and yet every head has keys and values of its own.

    Made with:
        d_in: int, features of a token that comes in.
        d_out: int, features of a token that goes out, a multiple of num_heads.
        num_heads: int, heads of queries, of keys and of values.
        d_latent: int, numbers in the latent of a token; any number, small or large.

    Takes:
        x: (batch, tokens, d_in), the new tokens, any number of them; 256 with the past at most.
        cache: (batch, seen, d_latent) as an earlier call returned it, or None if there is no past.

    Returns:
        A pair (out, cache). `out` is (batch, tokens, d_out), for the new tokens only. The new cache
        is one tensor for all tokens so far, total = seen + tokens of them:
        (batch, total, d_latent).

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        cache: The cache holds W_down(x) of all tokens so far, as it is, the oldest token first.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        bias: Only the last layer has a bias. Nothing else is learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        device: The mask is on the module's device: a buffer, or built on the input's device.
        dtype: After `.double()`, everything is computed in float64, the cache too; the root may be
            taken in float32.
        unchanged: `x` and the cache that comes in stay as they were.
        gradients: Gradients flow to the input and to every parameter, with a cache too.

    Example: identity matrices and zero biases; one token first, and then a second. The latent of a
    token is its first two features, and no more than that is left of the other two.

    >>> attention = LatentCachedAttention(4, 4, 2, 2)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> out, cache = attention(torch.tensor([[[1.0, 0.0, 0.0, 1.0]]]))
    >>> out, cache = attention(torch.tensor([[[0.0, 2.0, 1.0, 1.0]]]), cache)
    >>> out.detach()
    tensor([[[0.0558, 1.8884, 0.0000, 0.0000]]])
    >>> cache.detach()
    tensor([[[1., 0.],
             [0., 2.]]])

    Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.2, https://arxiv.org/abs/2405.04434. As in
    `LatentAttention`, there is no norm on the latent, no compressed query, and no position.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, d_latent: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        cache: Float[Tensor, "batch seen d_latent"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch tokens d_out"], Float[Tensor, "batch total=seen+tokens d_latent"]
    ]:
        raise NotImplementedError


class RotaryAttention(nn.Module):
    """Compute cached multi-head attention whose queries and keys are rotated by their positions.

        queries = rotate(W_query(x))       each head at positions seen, …, seen + tokens - 1
        keys    = the keys of the cache, then rotate(W_key(x))
        values  = the values of the cache, then W_value(x)
        head[h][i] = Σⱼ weights[h][i, j] · values[h][j]      over j ≤ seen + i
        weights[h][i, j] ∝ exp(queries[h][i] · keys[h][j] / √head_dim), with sum 1 over j ≤ seen + i
        out     = W_out(head[0], head[1], …)

    `seen` counts the tokens in the cache, 0 without one. This is `CachedAttention` with one step
    more. `rotate` is `apply_rope` with its usual theta: neighbouring features make a pair, and pair
    i of a head turns by p · 10000^(-2i / head_dim) at position p. So rotate *after* the features
    are cut into heads: every head has a fastest pair of its own. Values are not rotated.

    Positions count from the start of the text, not from the start of the chunk: the first new token
    is at position `seen`. Each key is rotated once, by the position of its own token. That never
    changes, so the cache may hold rotated keys. It may also hold keys without rotation. Then rotate
    all of them at each step, from position 0 on.

    Why: this is how Llama, Mistral and many others know the order of words. The score of a query
    and a key depends on how far apart they are, and nothing is added to the tokens themselves.

    Made with:
        d_in: int, features of a token that comes in.
        d_out: int, features of a token that goes out, a multiple of num_heads.
        num_heads: int, heads of queries, of keys and of values. head_dim = d_out / num_heads is
            even.

    Takes:
        x: (batch, tokens, d_in), the new tokens, any number of them; 128 with the past at most.
        cache: (keys, values) as an earlier call returned them, each
            (batch, num_heads, seen, head_dim), (batch, num_heads, seen, head_dim), or None if
            there is no past.

    Returns:
        A pair (out, cache). `out` is (batch, tokens, d_out), for the new tokens only. The new cache
        is (keys, values) of all tokens so far, total = seen + tokens of them:
        (batch, num_heads, total, head_dim), (batch, num_heads, total, head_dim). What your cache
        holds is up to you, as long as its shapes are these.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        bias: W_query, W_key and W_value have no bias, the last layer has a bias. Nothing else is
            learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        dtype: After `.double()`, everything is computed in float64, angles and cache too; the root
            may be taken in float32.
        unchanged: `x` and the cache that comes in stay as they were.
        gradients: Gradients flow to the input and to every parameter, with a cache too.
        cost: The past is not projected again: one new token after 64 takes at most twice the work
            of one after 16, and each element that leaves torch through .item(), .tolist(), float()
            or iteration counts as one operation.

    Example: identity matrices and zero biases; two tokens first, and then a third, equal to the
    first. Without rotation, these two would get equal weights, and the third token would come out
    as [0.8022, 0.3956].

    >>> attention = RotaryAttention(2, 2, 1)
    >>> for weight in attention.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> out, cache = attention(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]))
    >>> out.detach()
    tensor([[[1.0000, 0.0000],
             [0.0177, 1.9647]]])
    >>> out, cache = attention(torch.tensor([[[1.0, 0.0]]]), cache)
    >>> out.detach()
    tensor([[[0.4576, 1.0848]]])

    Source: Su et al. 2021, "RoFormer", section 3.2.2, https://arxiv.org/abs/2104.09864. The cache,
    and the bias of the last layer, are this kit's choice.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_in"],
        cache: tuple[
            Float[Tensor, "batch num_heads seen head_dim"],
            Float[Tensor, "batch num_heads seen head_dim"],
        ]
        | None = None,
    ) -> tuple[
        Float[Tensor, "batch tokens d_out"],
        tuple[
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
            Float[Tensor, "batch num_heads total=seen+tokens head_dim=d_out//num_heads"],
        ],
    ]:
        raise NotImplementedError


class LlamaBlock(nn.Module):
    """Build the block of Llama: RMS norms, rotary attention, and a feed-forward layer with a gate.

        h   = x + attention(norm1(x))
        out = h + feed_forward(norm2(h))
        norm(x)         = x / √(mean of x² + 1e-6) · gain    over the features of a token
        attention(x)    = the output of RotaryAttention(d_model, d_model, num_heads)
        feed_forward(x) = W_down(silu(W_gate(x)) · W_up(x))

    This is `TransformerBlock` with three parts exchanged: `rms_norm` for both layer norms,
    `RotaryAttention` for the attention, and `SwiGLU(d_model, d_hidden)` for the feed-forward layer.
    Here the text comes all at once, at positions 0, 1, 2, …, and no cache goes in or comes out. You
    may import your earlier answers, write everything again, or take `nn.RMSNorm` and `F.silu`.

    Why: most open models of today are stacks of this block: Llama, Mistral, Qwen. Their
    attention also shares keys among heads, as your `GroupedQueryAttention` does.

    Made with:
        d_model: int, features of a token, a multiple of num_heads.
        num_heads: int, heads of queries, of keys and of values. head_dim = d_model / num_heads is
            even.
        d_hidden: int, features between the layers of the feed-forward part.

    Takes:
        x: (batch, tokens, d_model), sentences of 1 to 128 tokens.

    Returns:
        (batch, tokens, d_model): one vector for each token.

    Rules:
        forbidden: Ready-made attention and transformer layers are off limits; torch's softmax and
            its RMS norm are welcome.
        length: A sentence may have any length up to 128 tokens, and each call may have another
            length.
        norms: Each norm learns a gain of its own, d_model numbers, and no shift.
        eps: The norms add 1e-6 to the mean square. This matters if all features of a token are
            very small. `nn.RMSNorm` adds another number unless you pass eps.
        bias: The last layer of the attention has a bias, as in `RotaryAttention`, and no other
            layer has one. Nothing else is learned.
        dtype: After `.double()`, everything is computed in float64, angles too; the root of the
            scale may be taken in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every matrix is the identity, and all vectors (the gains and the bias) are 0.5. Each
    output still contains its token, and the second also has a little of the first.

    >>> block = LlamaBlock(2, 1, 3)
    >>> for weight in block.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.5)
    >>> block(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])).detach()
    tensor([[[2.5238, 0.5132],
             [0.7584, 3.2777]]])

    Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", section
    2.2, https://arxiv.org/abs/2302.13971. The bias of the attention's last layer is this kit's.
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        raise NotImplementedError


class EncoderDecoderBlock(nn.Module):
    """Build the block of a translator's decoder: it reads its own sentence, then another sentence.

        h1  = x + attention(norm1(x))                    causal
        h2  = h1 + cross(norm2(h1), context)             looks at the whole context
        out = h2 + feed_forward(norm3(h2))

    attention is multi-head self-attention: token i sees the tokens j ≤ i of its own sentence. cross
    is CrossAttention(d_model, d_model, d_model, num_heads): its queries come from norm2(h1), its
    keys and values from the context. feed_forward is FeedForward(d_model, d_hidden), with the exact
    GELU. Each norm is a layer norm with a gain, a shift and an eps of 1e-5.

    The context goes into cross as it comes, with no norm on it: the encoder that made it ends with
    a norm of its own. There is no dropout, and no limit to the length of a sentence.

    You may build it from your earlier answers, write it all in one class, or take `nn.LayerNorm`
    and `nn.GELU` as they are.

    Why: a translator writes the next word from two things, what it has written so far and what it
    translates. The first must not show the future, so it is causal. The second is known from
    beginning to end, so nothing of it is hidden but padding.

    Made with:
        d_model: int, the number of features of a token, of both sequences; a multiple of num_heads.
        num_heads: int, the number of heads of both attentions.
        d_hidden: int, the width of the feed-forward network between its two layers.

    Takes:
        x: (batch, targets, d_model), the sentences that are written.
        context: (batch, sources, d_model), what the encoder made of the other sentences.
        context_mask: bool (batch, sources) or None, by default None; True hides that token of the
            context from all tokens of its own sentence, as `padding_mask` returns it. Every context
            keeps at least one visible token.

    Returns:
        (batch, targets, d_model): one vector per token of x.

    Rules:
        forbidden: Ready-made attention is off limits: `F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`, and the layers of `nn.Transformer` that are made of it.
        causal: A token of x never sees later tokens of x, and each sees the whole context. Scores
            may lie near -800.
        hidden: The content of a hidden token of the context changes no output. Scores may lie near
            -800.
        norms: Each of the three norms learns a gain and a shift of its own.
        gelu: GELU is x · Φ(x) with the exact Φ. GPT-2 and the book use a tanh instead, which only
            one test tells apart from the exact form.
        bias: Queries, keys and values have no bias; both output layers and both layers of the
            feed-forward network have one. Nothing else is learned.
        device: After a move to another device, the module takes inputs and the mask from there.
        dtype: After `.double()`, everything is computed in float64, though the root of the scale
            may be taken in float32.
        unchanged: `x`, `context` and `context_mask` stay as they were.
        gradients: Gradients flow to both sequences and to every parameter.

    Example: all weights of the three parts are zero but the last biases, which are 1, 2 and 3: each
    part adds its bias to x, and nothing else.

    >>> block = EncoderDecoderBlock(2, 1, 3)
    >>> biases = iter((1.0, 2.0, 3.0))
    >>> for name, weight in block.named_parameters():
    ...     is_last = "out" in name or "down" in name
    ...     _ = nn.init.constant_(weight, next(biases) if is_last and weight.ndim == 1 else 0.0)
    >>> block(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 4, 2)).detach()
    tensor([[[7., 6.],
             [6., 8.]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.1 and 3.2.3,
    https://arxiv.org/abs/1706.03762, there with each norm after its sum. The norms stand in front
    here, as Xiong et al. 2020 have it, "On Layer Normalization in the Transformer Architecture",
    section 3, https://arxiv.org/abs/2002.04745.
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self,
        x: Float[Tensor, "batch targets d_model"],
        context: Float[Tensor, "batch sources d_model"],
        context_mask: Bool[Tensor, "batch sources"] | None = None,
    ) -> Float[Tensor, "batch targets d_model"]:
        raise NotImplementedError
