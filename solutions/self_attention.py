"""References of unit 4, self-attention: every token asks, offers and answers with its own vectors.

A boolean mask is True where a query may NOT look, which is what `masked_fill` wants.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def linear_by_hand(
    x: Float[Tensor, "... d_in"],
    weight: Float[Tensor, "d_out d_in"],
    bias: Float[Tensor, " d_out"] | None,
) -> Float[Tensor, "... d_out"]:
    """Compute what `nn.Linear` computes: (..., d_in) to (..., d_out)."""
    projected = x @ weight.T  # (..., d_in) @ (d_in, d_out) -> (..., d_out)
    if bias is None:
        return projected
    return projected + bias


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
    """Give each token its query, key and value: three times (..., tokens, d_out)."""
    queries = inputs @ W_query
    keys = inputs @ W_key
    values = inputs @ W_value
    return queries, keys, values


def scaled_scores(
    queries: Float[Tensor, "... queries d_k"], keys: Float[Tensor, "... keys d_k"]
) -> Float[Tensor, "... queries keys"]:
    """Compare every query with every key: (..., queries, keys).

    Divided by the square root of d_k: Vaswani et al. 2017, section 3.2.1.
    """
    d_k = keys.shape[-1]
    attn_scores = queries @ keys.transpose(-2, -1)  # (..., queries, keys)
    return attn_scores / d_k**0.5


def scaled_dot_product_attention(
    queries: Float[Tensor, "... queries d_k"],
    keys: Float[Tensor, "... keys d_k"],
    values: Float[Tensor, "... keys d_v"],
    mask: Bool[Tensor, "... queries keys"] | None = None,
) -> Float[Tensor, "... queries d_v"]:
    """Mix the values by how well each query meets each key: (..., queries, d_v).

    softmax(QKᵀ/√d_k)V: Vaswani et al. 2017, equation 1.
    """
    attn_scores = scaled_scores(queries, keys)  # (..., queries, keys)
    if mask is not None:
        attn_scores = attn_scores.masked_fill(mask, -torch.inf)
    attn_weights = torch.softmax(attn_scores, dim=-1)
    return attn_weights @ values  # (..., queries, d_v)


class SelfAttention_v1(nn.Module):
    """Self-attention with three bare weight matrices: (tokens, d_in) to (tokens, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        """Return one context vector per token, mixed from the values of all tokens."""
        queries, keys, values = project_qkv(x, self.W_query, self.W_key, self.W_value)
        return scaled_dot_product_attention(queries, keys, values)


class SelfAttention_v2(nn.Module):
    """The same with `nn.Linear`, which starts from better weights and can have a bias."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        """Return one context vector per token, mixed from the values of all tokens."""
        queries = self.W_query(x)  # (tokens, d_out)
        keys = self.W_key(x)  # (tokens, d_out)
        values = self.W_value(x)  # (tokens, d_out)
        return scaled_dot_product_attention(queries, keys, values)


def v1_weights_from_v2(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Turn v2's `W_query.weight`, (d_out, d_in), into v1's `W_query`, (d_in, d_out), and so on."""
    return {name.removesuffix(".weight"): weight.T for name, weight in state.items()}


class CausalHead(nn.Module):
    """One causal head: (batch, time, d_in) to (batch, time, head_size).

    Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1) under a causal mask (3.2.3).
    """

    def __init__(self, d_in: int, head_size: int, scaled: bool = True) -> None:
        super().__init__()
        self.key = nn.Linear(d_in, head_size, bias=False)
        self.query = nn.Linear(d_in, head_size, bias=False)
        self.value = nn.Linear(d_in, head_size, bias=False)
        self.scaled = scaled

    def forward(self, x: Float[Tensor, "batch time d_in"]) -> Float[Tensor, "batch time head_size"]:
        """Return one context vector per token, mixed from the values at and before it."""
        _batch, time, _d_in = x.shape

        queries = self.query(x)  # (batch, time, head_size)
        keys = self.key(x)  # (batch, time, head_size)
        values = self.value(x)  # (batch, time, head_size)

        attn_scores = queries @ keys.transpose(-2, -1)  # (batch, time, time)
        if self.scaled:
            head_size = keys.shape[-1]
            attn_scores = attn_scores / head_size**0.5

        everything = torch.ones(time, time, dtype=torch.bool, device=x.device)
        future = torch.triu(everything, diagonal=1)  # True where a token may not look
        attn_scores = attn_scores.masked_fill(future, -torch.inf)

        attn_weights = torch.softmax(attn_scores, dim=-1)
        return attn_weights @ values  # (batch, time, head_size)
