"""References of unit 13: a look into a layer, and layers wired together from earlier parts.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from .causal_attention import causal_mask, masked_softmax
from .cross_attention import CrossAttention
from .inference import CachedAttention
from .multi_head_attention import split_heads
from .transformer_block import FeedForward


def head_weights(
    x: Float[Tensor, "batch tokens d_in"],
    W_query: Float[Tensor, "d_in d_out"],
    W_key: Float[Tensor, "d_in d_out"],
    num_heads: int,
) -> Float[Tensor, "batch num_heads tokens tokens"]:
    """Weigh the keys in every causal head: (batch, num_heads, tokens, tokens).

    Vaswani et al. 2017, section 3.2.2, as far as the softmax.
    """
    tokens = x.shape[1]
    queries = split_heads(x @ W_query, num_heads)  # (batch, num_heads, tokens, head_dim)
    keys = split_heads(x @ W_key, num_heads)  # the same

    head_dim = keys.shape[-1]
    attn_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5
    # attn_scores: (batch, num_heads, tokens, tokens)

    mask = causal_mask(tokens).to(x.device)
    return masked_softmax(attn_scores, mask)


def bilinear_form(
    W_query: Float[Tensor, "d_in d_out"], W_key: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "d_in d_in"]:
    """Multiply both matrices into one of rank d_out at most, which compares tokens directly.

    Elhage et al. 2021, the QK circuit.
    """
    return W_query @ W_key.T


def absorb_keys(
    W_query: Float[Tensor, "d_in d_out"],
    W_up_key: Float[Tensor, "d_latent d_out"],
    num_heads: int,
) -> Float[Tensor, "num_heads d_in d_latent"]:
    """Make the matrix of each head that compares tokens with latents: (num_heads, d_in, d_latent).

    DeepSeek-AI 2024 (DeepSeek-V2), section 2.1.2.
    """
    d_in, d_latent = len(W_query), len(W_up_key)
    queries = W_query.reshape(d_in, num_heads, -1).transpose(0, 1)
    # queries: (num_heads, d_in, head_dim)
    keys = W_up_key.reshape(d_latent, num_heads, -1).transpose(0, 1)
    # keys: (num_heads, d_latent, head_dim)
    return queries @ keys.transpose(-2, -1)  # (num_heads, d_in, d_latent)


class EncoderDecoderBlock(nn.Module):
    """Causal attention to one's own sentence, then attention to another one, then a network.

    The decoder's layer of Vaswani et al. 2017, section 3.1, with its norms in front (Xiong et al.
    2020). The context is used as it comes: (batch, targets, d_model).
    """

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = CachedAttention(d_model, d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross = CrossAttention(d_model, d_model, d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_hidden)

    def forward(
        self,
        x: Float[Tensor, "batch targets d_model"],
        context: Float[Tensor, "batch sources d_model"],
        context_mask: Bool[Tensor, "batch sources"] | None = None,
    ) -> Float[Tensor, "batch targets d_model"]:
        """Read what was written, then what is translated; each part adds to what is there."""
        h = x + self.attention(self.norm1(x))[0]  # causal; the cache is of no use here
        h = h + self.cross(self.norm2(h), context, context_mask)
        return h + self.feed_forward(self.norm3(h))  # (batch, targets, d_model)
