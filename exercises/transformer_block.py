"""Unit 11, the block around attention: norms, and layers that work on each token alone.

Attention lets tokens talk to each other. A transformer is a stack of blocks, and in every block
two more things happen. A norm gives the numbers of a token the same size in every layer, so that a
deep stack can be trained. A feed-forward layer then works on each token by itself, and about two
thirds of a block's weights are in it. Here you write two forms of both: that of GPT-2, and that of
today's models such as Llama.

In all exercises but the last, which contains attention, every token is computed alone: no result
depends on another token or another sentence.

In all exercises, names and initial values of parameters are free, projections may share one layer,
and layers may be bare parameters. The loops over parameters in the examples fit modules with one
layer for each projection. Arguments come by position, in the order of the signature. You may use
your own earlier answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


def layer_norm(
    x: Float[Tensor, "... d"],
    gain: Float[Tensor, " d"],
    shift: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "... d"]:
    """Bring every row to mean 0 and variance 1, then stretch and shift its features.

        mean     = (Σ x[i]) / d                  over the d features of a row
        variance = (Σ (x[i] - mean)²) / d        divided by d, and not by d - 1
        out[i]   = (x[i] - mean) / √(variance + eps) · gain[i] + shift[i]

    A row is the last dimension: the features of one token. Each row has its own mean and variance.
    All rows share one `gain` and one `shift`, with one number for each feature.

    Why: in a deep stack the numbers of a token can grow or shrink from layer to layer, and training
    fails. A norm brings them back to one size. `gain` and `shift` are learned, so a model can
    undo the norm where it does harm.

    Takes:
        x: (..., d), the features of each token.
        gain: (d,), what each feature is multiplied by.
        shift: (d,), what is added to each feature.
        eps: float, 1e-5 by default; more than 0.

    Returns:
        (..., d): the normalised rows.

    Rules:
        leading: There may be any number of leading dimensions, or none.
        eps: `eps` is added to the variance, under the root. The caller may pass another value.
        constant: A row of d equal numbers gives `shift`, and never NaN.
        large: For rows near 1000 whose numbers differ by about 1, the result is right to 0.01. To
            compute the variance as the mean of x² minus the square of the mean is wrong there:
            float32 has too few digits.
        forbidden: Torch's norms (layer_norm, rms_norm, group_norm, batch_norm, instance_norm,
            normalize, renorm, cosine_similarity and their classes) are off limits, and so are
            ready-made attention functions.
            Means, variances and lengths of vectors are welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x`, `gain` and `shift` stay as they were.
        gradients: Gradients flow back to `x`, `gain` and `shift`.

    Example: the first row has mean 3 and variance 3.5, so its numbers become -1.0690, -0.5345, 0
    and 1.6036. Then the last feature is doubled, and 10 is added. The second row is constant.

    >>> x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [5.0, 5.0, 5.0, 5.0]])
    >>> gain, shift = torch.tensor([1.0, 1.0, 2.0, 2.0]), torch.tensor([0.0, 0.0, 0.0, 10.0])
    >>> layer_norm(x, gain, shift)
    tensor([[-1.0690, -0.5345,  0.0000, 13.2071],
            [ 0.0000,  0.0000,  0.0000, 10.0000]])

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization", section 3,
    https://arxiv.org/abs/1607.06450. There is no eps there; torch and most models add one.
    """
    raise NotImplementedError


def rms_norm(
    x: Float[Tensor, "... d"], gain: Float[Tensor, " d"], eps: float = 1e-6
) -> Float[Tensor, "... d"]:
    """Divide every row by its root mean square, then stretch its features.

        mean_square = (Σ x[i]²) / d              over the d features of a row
        out[i]      = x[i] / √(mean_square + eps) · gain[i]

    No mean is subtracted, and no shift is added. Multiply by `gain` itself. Some models store the
    gain minus 1, and add 1 before they multiply; this function does not.

    Why: most of what a layer norm gives comes from the division. Without the mean there is less to
    compute and less to learn, and models are about as good. Llama and most of its successors do
    it this way.

    Takes:
        x: (..., d), the features of each token.
        gain: (d,), what each feature is multiplied by.
        eps: float, 1e-6 by default; more than 0.

    Returns:
        (..., d): the normalised rows.

    Rules:
        leading: There may be any number of leading dimensions, or none.
        eps: `eps` is added to the mean square, under the root. The caller may pass another value.
        zeros: A row of zeros gives zeros, and never NaN.
        forbidden: Torch's norms (layer_norm, rms_norm, group_norm, batch_norm, instance_norm,
            normalize, renorm, cosine_similarity and their classes) are off limits, and so are
            ready-made attention functions.
            Means and lengths of vectors are welcome.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` and `gain` stay as they were.
        gradients: Gradients flow back to `x` and `gain`.

    Example: the squares of the first row are 1, 1, 25 and 9. Their mean is 9, and the root of 9 is
    3, so every number is divided by 3. Then the third feature is doubled, and the last is
    multiplied by 10.

    >>> x = torch.tensor([[1.0, 1.0, 5.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    >>> rms_norm(x, torch.tensor([1.0, 1.0, 2.0, 10.0]))
    tensor([[ 0.3333,  0.3333,  3.3333, 10.0000],
            [ 0.0000,  0.0000,  0.0000,  0.0000]])

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", section 3,
    https://arxiv.org/abs/1910.07467. There is no eps there; torch and most models add one.
    """
    raise NotImplementedError


def gelu(x: Float[Tensor, " ..."]) -> Float[Tensor, " ..."]:
    """Compute the GELU of every number x: x times the probability of a normal value below x.

        gelu(x) = x · Φ(x)
        Φ(x)    = (1 + erf(x / √2)) / 2

    Φ(x) is the probability that a number drawn from the standard normal distribution is smaller
    than x: nearly 0 at -4, one half at 0, nearly 1 at 4. So large numbers stay nearly the same,
    very negative numbers become nearly 0, and in between the change is smooth. `torch.erf` is
    welcome, and so are `torch.erfc` and `torch.special.ndtr`.

    Why: without a nonlinear function between them, two linear layers do no more than one. ReLU,
    max(0, x), is nonlinear too, but it has a kink at 0 and gives no gradient to negative numbers. A
    GELU has no kink.

    Takes:
        x: (...), finite numbers.

    Returns:
        (...): the GELU of each number.

    Rules:
        gelu: Φ is exact. GPT-2 and many books use an approximation by tanh, 0.5 · x · (1 +
            tanh(√(2/π) · (x + 0.044715 · x³))). Its error is up to 0.00047, near ±2.7, and one test
            detects this error.
        leading: There may be any number of dimensions, or none.
        large: Numbers as large as ±1000 come out right, without NaN.
        forbidden: Torch's gelu and its class are off limits, and so are ready-made attention
            functions.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `x` stays as it was.
        gradients: Gradients flow back to `x`.

    Example: a normal value is below -1 with probability 0.1587, and below 1 with probability
    0.8413.

    >>> gelu(torch.tensor([-1.0, 0.0, 1.0, 3.0]))
    tensor([-0.1587,  0.0000,  0.8413,  2.9960])

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)", section 2,
    https://arxiv.org/abs/1606.08415. The approximation by tanh is there too.
    """
    raise NotImplementedError


class FeedForward(nn.Module):
    """Compute a feed-forward layer: widen each token, apply a GELU, and narrow it again.

        hidden = gelu(up(x))
        out    = down(hidden)

    `up` is a linear layer from d_model to d_hidden, and `down` is a linear layer from d_hidden to
    d_model. Both have a bias. There is no dropout, and x is not added at the end: the block does
    that.

    Why: attention only makes weighted sums of values. The feed-forward layer combines the features
    of a token in a way that is not linear. d_hidden is usually 4 · d_model.

    Made with:
        d_model: int, the number of features of a token, before and after the layer.
        d_hidden: int, the number of features between `up` and `down`, small or large.

    Takes:
        x: (batch, tokens, d_model), sentences of any length.

    Returns:
        (batch, tokens, d_model): one vector for each token.

    Rules:
        forbidden: Ready-made attention and transformer layers are off limits. `nn.GELU`, `F.gelu`
            and your own `gelu` are welcome.
        gelu: The GELU is exact, not an approximation. One test detects the difference.
        bias: Both layers have a bias. Nothing else is learned.
        dtype: After `.double()`, everything is computed in float64.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: matrices with ones on the diagonal and zero biases. Two features become three, of which
    the last is 0, and then two again. So the result is the GELU of the input.

    >>> layer = FeedForward(2, 3)
    >>> for weight in layer.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    >>> layer(torch.tensor([[[0.2, -0.2], [0.0, 0.1]]])).detach()
    tensor([[[ 0.1159, -0.0841],
             [ 0.0000,  0.0540]]])

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.3,
    https://arxiv.org/abs/1706.03762, with ReLU. The GELU came with GPT: Radford et al. 2018,
    "Improving Language Understanding by Generative Pre-Training", section 4.1.
    """

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        raise NotImplementedError


class SwiGLU(nn.Module):
    """Compute a feed-forward layer with a gate: one projection decides how much of another passes.

        gate = silu(W_gate(x))                   silu(z) = z · sigmoid(z)
        out  = W_down(gate · W_up(x))            · multiplies feature by feature

    W_gate and W_up are linear layers from d_model to d_hidden, and W_down is a linear layer from
    d_hidden to d_model. No layer has a bias. `F.silu` is welcome. x is not added at the end.

    Why: in `FeedForward`, the GELU of a hidden feature depends on that feature only. Here each
    hidden feature is multiplied by a second projection of the same token. With the same number of
    weights, such models learn a little better; the reason is unknown. Llama and most of its
    successors use this layer.

    Made with:
        d_model: int, the number of features of a token, before and after the layer.
        d_hidden: int, the number of hidden features. Use it unchanged: some papers take two thirds
            of a number to keep the number of weights, but here the caller has already done so.

    Takes:
        x: (batch, tokens, d_model), sentences of any length.

    Returns:
        (batch, tokens, d_model): one vector for each token.

    Rules:
        forbidden: Ready-made attention and transformer layers are off limits.
        bias: No layer has a bias. Nothing else is learned.
        large: The outputs of W_gate may be as large as ±1000, and the gate is never NaN.
        dtype: After `.double()`, everything is computed in float64.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: matrices with ones on the diagonal, so W_gate(x) and W_up(x) are the features z, and
    the result is z · silu(z). For the first token, silu(z) is 0.7311 and -0.2689.

    >>> layer = SwiGLU(2, 3)
    >>> for weight in layer.parameters():
    ...     _ = nn.init.eye_(weight)
    >>> layer(torch.tensor([[[1.0, -1.0], [2.0, 3.0]]])).detach()
    tensor([[[0.7311, 0.2689],
             [3.5232, 8.5732]]])

    Source: Shazeer 2020, "GLU Variants Improve Transformer", section 2,
    https://arxiv.org/abs/2002.05202. The paper calls W_gate W, and W_up V.
    """

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        raise NotImplementedError


class TransformerBlock(nn.Module):
    """Build a pre-norm block: add the result of attention, then that of a feed-forward network.

        h   = x + attention(norm1(x))
        out = h + feed_forward(norm2(h))
        norm(x) = (x - mean) / √(variance + 1e-5) · gain + shift    over the features of a token
        feed_forward(x) = down(gelu(up(x)))

    attention is MultiHeadAttention(d_model, d_model, context_length, dropout, num_heads): causal,
    with an output layer. up and down are linear layers, from d_model to d_hidden and back. Both
    norms are layer norms: the variance is the mean of the squares, divided by d_model. The sums
    take x and h themselves, not their norms: this is the shortcut, or residual connection.

    You may build it from your earlier answers (`from multi_head_attention import
    MultiHeadAttention` works wherever your files are), write it all in one class, or take
    `nn.LayerNorm` and `nn.GELU` as they are.

    Why: each layer only has to learn what to *add*. A gradient passes through a hundred blocks
    along the shortcuts, where it is neither multiplied nor normed. Each part gets normed numbers,
    so x may grow from block to block without saturating the softmax.

    Made with:
        d_model: int, the number of features of a token, a multiple of num_heads.
        num_heads: int, the number of heads of the attention.
        d_hidden: int, the width of the feed-forward network between its two layers.
        context_length: int, the length of the longest sentence; longer sentences are not tested.
        dropout: float, 0 ≤ dropout < 1, the probability with which an attention weight is dropped
            in training.

    Takes:
        x: (batch, num_tokens, d_model), a batch of sentences.

    Returns:
        (batch, num_tokens, d_model): one vector per token, as wide as the token.

    Rules:
        forbidden: Ready-made attention is off limits: `F.scaled_dot_product_attention`,
            `nn.MultiheadAttention`, and the layers of `nn.Transformer` that are made of it.
        shorter: Sentences may be shorter than `context_length`, and each call may have another
            length.
        norms: Each norm learns a gain and a shift of its own, d_model numbers each.
        eps: The norms add 1e-5 to the variance. This matters if all features of a token are nearly
            the same.
        gelu: The GELU is exact. GPT-2 and many books use an approximation by tanh; one test detects
            the difference.
        bias: Queries, keys and values have no bias; the output layer, up and down have a bias.
            Nothing else is learned.
        dropout: In training, each attention weight is dropped with the probability `dropout`, and
            kept weights are divided by 1 - `dropout`. Dropout in other places is not graded. Tests
            judge the statistics, not your random numbers.
        eval: After `.eval()` nothing is dropped.
        device: The mask is on the module's device: it is a buffer, or is built on the input's
            device.
        dtype: After `.double()`, everything is computed in float64, though a root may be taken in
            float32.
        unchanged: `x` stays as it was.
        gradients: Gradients flow to the input and to every parameter.

    Example: every matrix is the identity, and all vectors (gains, shifts, biases) are 0.1. Each
    result is the token plus a smaller vector.

    >>> block = TransformerBlock(4, 2, 6, 4, 0.0)
    >>> for weight in block.parameters():
    ...     _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.1)
    >>> block(torch.tensor([[[8.0, 0.0, 0.0, 8.0], [0.0, 16.0, 8.0, 8.0]]])).detach()
    tensor([[[ 8.5854,  0.2540,  0.2540,  8.5854],
             [ 0.3070, 16.5399,  8.3653,  8.4664]]])

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners" (GPT-2),
    section 2.3, https://cdn.openai.com/better-language-models/language_models_are_unsupervised_multitask_learners.pdf;
    Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", section 3,
    https://arxiv.org/abs/2002.04745. In Vaswani et al. 2017, "Attention Is All You Need", section
    3.1, https://arxiv.org/abs/1706.03762, the norm comes after the sum instead (post-norm).
    """

    def __init__(
        self, d_model: int, num_heads: int, d_hidden: int, context_length: int, dropout: float
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch num_tokens d_model"]
    ) -> Float[Tensor, "batch num_tokens d_model"]:
        raise NotImplementedError
