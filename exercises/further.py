"""Unit 13, a look inside, and the parts wired together.

First you look into a layer of attention: at the weights of each head, and at the products of its
matrices. Then you combine parts that you have written before, as today's models do: a cache of
latents, rotated queries and keys, and two blocks.

This holds for everything in this unit. A head is a range of features: head h has the features
h · head_dim to (h + 1) · head_dim - 1, where head_dim is d_out / num_heads. There is no dropout.
Arguments come by position, in the order of the signature. You may use your own earlier answers. In
modules, names and initial values of parameters are free, projections may share one layer, and
layers may be bare parameters.

Functions take matrices of shape (d_in, d_out), which multiply the tokens from the right: x · W.
`nn.Linear` stores such a matrix transposed, as (d_out, d_in): pass `layer.weight.T`.

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
    """Compute the attention weights of every head of a causal layer.

        queries = x · W_query      keys = x · W_key      both cut into heads
        weights[h] = softmax(queries[h] · keys[h]ᵀ / √head_dim)      over keys j ≤ i

    Row i of a head says how token i shares out its attention. The row sums to one, and keys that
    come after the token get a weight of exactly 0. head_dim is d_out / num_heads.

    Why: a layer returns only the mix of values, and the weights are gone. To see what a head has
    learned, compute the weights again, without values and without an output layer. Look at the
    heads one by one: the average over the heads hides what each head does.

    Takes:
        x: (batch, tokens, d_in), sentences of any length.
        W_query: (d_in, d_out). `nn.Linear` stores its matrix transposed, as (d_out, d_in): for a
            layer, pass `layer.weight.T`.
        W_key: (d_in, d_out). For a layer, pass `layer.weight.T`.
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

    Example: identity matrices, and two heads of two features. The second token gives the first a
    score of 0 in head 0, and a score of 1 / √2 in head 1.

    >>> x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])
    >>> head_weights(x, torch.eye(4), torch.eye(4), 2)
    tensor([[[[1.0000, 0.0000],
              [0.0558, 0.9442]],
    <BLANKLINE>
             [[1.0000, 0.0000],
              [0.3302, 0.6698]]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2,
    https://arxiv.org/abs/1706.03762. The last figures of the paper show such weights of an encoder.
    """
    raise NotImplementedError


def bilinear_form(
    W_query: Float[Tensor, "d_in d_out"], W_key: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "d_in d_in"]:
    """Multiply the two matrices of a head into one matrix that compares tokens directly.

        form = W_query · W_keyᵀ

    Then x · form · xᵀ are the scores of the tokens before scaling: rows are queries, columns are
    keys. Entry (i, j) of the form is the weight in a score of the product of two numbers: feature i
    of the query's token and feature j of the key's token.

    Why: a model could learn this one matrix, without queries and keys. But the form has d_in · d_in
    numbers, and the two matrices together have 2 · d_in · d_out: with d_in = 768 and heads of 64
    features, 589,824 against 98,304. The form has rank d_out at most: it compares tokens in at most
    d_out ways. And queries and keys of d_out features are cheap to compare, and small enough to
    keep in a cache.

    Takes:
        W_query: (d_in, d_out), of one head, so d_out is its head_dim. For an `nn.Linear`, pass
            `layer.weight.T`.
        W_key: (d_in, d_out), of the same head.

    Returns:
        (d_in, d_in): the form, with a row for each feature of the query's token and a column for
        each feature of the key's token.

    Rules:
        forbidden: Ready-made attention functions are off limits.
        dtype: float64 in, float64 out, in full precision.
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
    """Multiply query and key matrices head by head, to compare tokens with latents directly.

        absorbed[h] = W_query[:, head h] · W_up_key[:, head h]ᵀ

    "Head h" means the columns h · head_dim to (h + 1) · head_dim - 1, where head_dim is
    d_out / num_heads. In `LatentAttention`, keys are latent · W_up_key. So the scores of head h,
    before they are divided by √head_dim, are x · absorbed[h] · latentᵀ, and no key is computed.
    This is `bilinear_form` for each head, with latents in place of the keys' tokens.

    Why: a model that writes keeps one latent for each token of the past. Unpacking the latents into
    keys at every step is work that grows with the past. The absorbed matrices are computed only
    once, before the first step. Then each new token is compared with the latents directly.

    Keep the heads apart. The product of the whole matrices, W_query · W_up_keyᵀ, is the sum over
    all heads. It gives one table of scores for all heads, but each head needs its own table.

    Takes:
        W_query: (d_in, d_out). For an `nn.Linear`, pass `layer.weight.T`.
        W_up_key: (d_latent, d_out), which unpacks a latent into the keys of all heads. For an
            `nn.Linear`, pass `layer.weight.T`.
        num_heads: int, how many heads the d_out features are cut into. It divides d_out.

    Returns:
        (num_heads, d_in, d_latent): one matrix for each head.

    Rules:
        forbidden: Ready-made attention functions are off limits.
        dtype: float64 in, float64 out, in full precision.
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

    `seen` is the number of tokens in the cache, or 0 without a cache. W_down maps d_in to d_latent,
    W_up_key and W_up_value map d_latent to d_out. This is `LatentAttention` with a cache, as in
    `CachedAttention`: the tokens of a text may come one at a time, or in chunks of any size, and
    every token gets the output that it gets when all tokens come at once. `causal_mask_after`
    builds the right mask.

    The cache holds no keys and no values. You may unpack them from the latents at every step, or
    compare tokens and latents directly, with the matrices of `absorb_keys`. The numbers are the
    same in both ways, and so is the scale √head_dim.

    Why: latents exist for the sake of this cache. It holds d_latent numbers for each token instead
    of 2 · d_out, and yet every head has keys and values of its own.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the number of features of an output token, a multiple of num_heads.
        num_heads: int, the number of heads of queries, keys and values.
        d_latent: int, the number of features of a latent, small or large.

    Takes:
        x: (batch, tokens, d_in), the new tokens.
        cache: (batch, seen, d_latent), the cache of an earlier call, or None if there is no past.

    Returns:
        A pair (out, cache). `out` is (batch, tokens, d_out), for the new tokens only. The new cache
        is one tensor for all tokens so far, total = seen + tokens: (batch, total, d_latent).

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        cache: The cache holds W_down(x) of all tokens so far, unchanged, the oldest token first.
        length: With the past, a text may have any length up to 256 tokens.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        bias: Only the last layer has a bias. Nothing else is learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, the cache too; the root may be
            taken in float32.
        unchanged: `x` and the cache that comes in stay as they were.
        gradients: Gradients flow to the input and to every parameter, with a cache too.

    Example: identity matrices and zero biases; one token first, and then a second. The latent of a
    token is its first two features; the other two features are lost.

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

    `seen` is the number of tokens in the cache, or 0 without a cache. This is `CachedAttention`
    with one step more. `rotate` is `apply_rope` with its default theta: neighbouring features make
    a pair, and pair i of a head turns by p · 10000^(-2i / head_dim) at position p. Rotate *after*
    the features are cut into heads, because i counts the pairs of a head. Values are not rotated.

    Positions count from the start of the text, not from the start of the chunk: the first new token
    is at position `seen`. A key is rotated by the position of its own token, which never changes,
    so the cache may hold rotated keys. The cache may also hold keys without rotation. Then rotate
    all keys at each step, from position 0 on.

    Why: this is how Llama, Mistral and many others know the order of words. The score of a query
    and a key depends on how far apart they are, and nothing is added to the tokens themselves.

    Made with:
        d_in: int, the number of features of an input token.
        d_out: int, the number of features of an output token, a multiple of num_heads.
        num_heads: int, the number of heads of queries, keys and values. head_dim =
            d_out / num_heads is even.

    Takes:
        x: (batch, tokens, d_in), the new tokens.
        cache: the pair (keys, values) of an earlier call, of shapes
            (batch, num_heads, seen, head_dim), (batch, num_heads, seen, head_dim), or None if
            there is no past.

    Returns:
        A pair (out, cache). `out` is (batch, tokens, d_out), for the new tokens only. The new cache
        is the pair (keys, values) for all tokens so far, total = seen + tokens:
        (batch, num_heads, total, head_dim), (batch, num_heads, total, head_dim). Your cache may
        hold other numbers than keys and values, as long as it has these shapes.

    Rules:
        forbidden: Ready-made attention functions are off limits; torch's softmax is welcome.
        length: With the past, a text may have any length up to 128 tokens.
        none: Leaving `cache` out and passing None mean the same.
        state: The module itself remembers nothing, so that it can continue two texts in turn.
        bias: W_query, W_key and W_value have no bias; the last layer has a bias. Nothing else is
            learned.
        batch: Sentences of a batch never see one another, however large a sentence's scores are.
        large: Scores of a head may be as large as 800, and no head changes the result of another
            head; scores of the future are at most 80 higher than those of the past.
        dtype: After `.double()`, everything is computed in float64, angles and cache too; the root
            may be taken in float32.
        unchanged: `x` and the cache that comes in stay as they were.
        gradients: Gradients flow to the input and to every parameter, with a cache too.
        cost: The past is not projected again: a new token after 64 tokens takes at most twice the
            work of a new token after 16. What Python and NumPy compute is not counted, so at most
            32 numbers may leave torch, through .item(), .tolist(), .numpy(), float() or `if`.

    Example: identity matrices and zero biases; two tokens first, and then a third, equal to the
    first. Without rotation, the third token would give the first and the third equal weights, and
    its output would be [0.8022, 0.3956].

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

    This is `TransformerBlock` with three parts replaced: `rms_norm` replaces both layer norms,
    `RotaryAttention` the attention, and `SwiGLU(d_model, d_hidden)` the feed-forward layer. Here
    the text comes all at once, at positions 0, 1, 2, …, and no cache goes in or comes out. You may
    import your earlier answers, write everything again, or use `nn.RMSNorm` and `F.silu`.

    Why: most open models of today are stacks of this block: Llama, Mistral, Qwen. Their
    attention also shares keys among heads, as your `GroupedQueryAttention` does.

    Made with:
        d_model: int, the number of features of a token, a multiple of num_heads.
        num_heads: int, the number of heads of queries, keys and values. head_dim =
            d_model / num_heads is even.
        d_hidden: int, the number of hidden features of the feed-forward layer.

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
        bias: Only the last layer of the attention has a bias, as in `RotaryAttention`. Nothing else
            is learned.
        dtype: After `.double()`, everything is computed in float64, angles too; the root of the
            scale may be taken in float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every matrix is the identity, and all vectors (the gains and the bias) are 0.5. Each
    output still contains its token, and the second also has a little of the first.

    >>> block = LlamaBlock(2, 1, 3)
    >>> for weight in block.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.5)
    >>> block(torch.tensor([[[6.0, 0.0], [0.0, 12.0]]])).detach()
    tensor([[[ 7.5402,  0.5012],
             [ 0.7432, 13.2984]]])

    Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", section
    2.2, https://arxiv.org/abs/2302.13971. The bias of the attention's last layer is this kit's
    choice.
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

    cross gets the context without a norm, because the encoder that computed the context ends with a
    norm. There is no dropout.

    You may build the block from your earlier answers, write it all in one class, or use
    `nn.LayerNorm` and `nn.GELU`.

    Why: a translator writes the next word from two sentences: the words that it has written so far,
    and the sentence that it translates. Words still to be written must be hidden, so attention is
    causal. The sentence to translate is complete, so cross hides only its padding.

    Made with:
        d_model: int, the number of features of a token, of both sequences; a multiple of num_heads.
        num_heads: int, the number of heads of both attentions.
        d_hidden: int, the width of the feed-forward network between its two layers.

    Takes:
        x: (batch, targets, d_model), the sentences that are written.
        context: (batch, sources, d_model), the encoder's output for the sentences to translate.
        context_mask: bool (batch, sources) or None, by default None; True hides that token of the
            context from all tokens of its own sentence, as `padding_mask` returns it. Every context
            keeps at least one visible token.

    Returns:
        (batch, targets, d_model): one vector per token of x.

    Rules:
        forbidden: Ready-made attention is off limits: `F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`, and the layers of `nn.Transformer` that are made of it.
        causal: A token of x never sees later tokens of x, but it sees the whole context. Scores may
            lie near -800.
        hidden: The content of a hidden token of the context changes no output. Scores may lie near
            -800.
        length: Both sentences may have any length, and each call may have other lengths.
        norms: Each of the three norms learns a gain and a shift of its own.
        eps: The norms add 1e-5 to the variance. This matters if all features of a token are nearly
            the same.
        gelu: The GELU is exact. GPT-2 and many books use an approximation by tanh; one test detects
            the difference.
        bias: Queries, keys and values have no bias; both output layers and both layers of the
            feed-forward network have a bias. Nothing else is learned.
        device: After a move to another device, the module takes inputs and the mask from there.
        dtype: After `.double()`, everything is computed in float64, though a root may be taken in
            float32.
        unchanged: `x`, `context` and `context_mask` stay as they were.
        gradients: Gradients flow to both sequences and to every parameter.

    Example: all weights are zero, except the last biases of the three parts, which are 1, 2 and 3.
    So each part adds only its bias to x.

    >>> block = EncoderDecoderBlock(2, 1, 3)
    >>> biases = iter((1.0, 2.0, 3.0))
    >>> for name, weight in block.named_parameters():
    ...     is_last = "out" in name or "down" in name
    ...     _ = nn.init.constant_(weight, next(biases) if is_last and weight.ndim == 1 else 0.0)
    >>> block(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 4, 2)).detach()
    tensor([[[7., 6.],
             [6., 8.]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.1 and 3.2.3,
    https://arxiv.org/abs/1706.03762, where each norm comes after its sum. Here each norm comes
    before its part, as in Xiong et al. 2020, "On Layer Normalization in the Transformer
    Architecture", section 3, https://arxiv.org/abs/2002.04745.
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
