"""Blocks and models for tests of adoption: references, and the same as students write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from grader.course.tensors import Make
from tests.support.attentions import module

SEED = "nesting"
MAKE = Make(SEED, "inputs", "tests")
X = MAKE.normal(batch=2, tokens=5, d_model=8, name="x")
CONTEXT = MAKE.normal(batch=2, tokens=7, d_model=8, name="context")
IDS = MAKE.integers(0, 13, batch=2, tokens=5, name="ids")

ALIASES: Mapping[str, Sequence[str]] = {
    "W_query": ("q", "wq", "query"),
    "W_key": ("k", "wk", "key"),
    "W_value": ("v", "wv", "value"),
    "out_proj": ("out", "wo", "o", "c_proj"),
    "W_query W_key W_value": ("qkv", "c_attn"),
    "up": ("fc1", "w1", "c_fc", "linear1"),
    "down": ("fc2", "w2", "c_proj", "linear2"),
    "norm1": ("ln1", "ln_1"),
    "norm2": ("ln2", "ln_2"),
    "norm3": ("ln3",),
    "attention": ("attn", "self_attn", "mha"),
    "cross": ("cross_attn",),
    "feed_forward": ("ff", "mlp"),
    "token_table": ("tok_emb", "wte"),
    "position_table": ("pos_emb", "wpe"),
    "final_norm": ("ln_f", "norm"),
}

# --- references ----------------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, d: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d, d, bias=False)
        self.W_key = nn.Linear(d, d, bias=False)
        self.W_value = nn.Linear(d, d, bias=False)
        self.out_proj = nn.Linear(d, d)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        seen = x if context is None else context
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.W_query(x), self.W_key(seen), self.W_value(seen))
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if context is None:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        mixed: Tensor = self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return mixed


class Feed(nn.Module):
    def __init__(self, d: int, d_hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(d, d_hidden)
        self.down = nn.Linear(d_hidden, d)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.down(torch.tanh(self.up(x)))
        return found


class Block(nn.Module):
    """A norm, an attention, a norm, a feed-forward layer."""

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = Attention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = Feed(d_model, d_hidden)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        x = x + self.attention(self.norm1(x))
        found: Tensor = x + self.feed_forward(self.norm2(x))
        return found


class Model(nn.Module):
    """Two tables, layers of blocks, a last norm; the output uses the first table."""

    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_hidden: int
    ) -> None:
        super().__init__()
        self.token_table = nn.Parameter(torch.empty(vocab_size, d_model))
        self.position_table = nn.Parameter(torch.empty(9, d_model))
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_hidden) for _ in range(num_layers))
        self.final_norm = nn.LayerNorm(d_model)

    def forward(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocab_size"]:
        x = self.token_table[ids] + self.position_table[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        found: Tensor = self.final_norm(x) @ self.token_table.T
        return found


class Pair(nn.Module):
    """A block of a decoder: attention to itself, and to a context."""

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = Attention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross = Attention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)
        self.feed_forward = Feed(d_model, d_hidden)

    def forward(
        self,
        x: Float[Tensor, "batch targets d_model"],
        context: Float[Tensor, "batch sources d_model"],
    ) -> Float[Tensor, "batch targets d_model"]:
        x = x + self.attention(self.norm1(x))
        x = x + self.cross(self.norm2(x), context)
        found: Tensor = x + self.feed_forward(self.norm3(x))
        return found


class Shifted(nn.Module):
    """A norm that is the whole reference, with a gain and a shift of its own."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))

    def forward(self, x: Float[Tensor, "batch tokens d"]) -> Float[Tensor, "batch tokens d"]:
        apart = x - x.mean(-1, keepdim=True)
        return (
            self.gain * apart / (apart.square().mean(-1, keepdim=True) + 1e-5).sqrt() + self.shift
        )


class Gains(nn.Module):
    """Norms that only multiply, as parameters of the block itself."""

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.Parameter(torch.empty(d_model))
        self.attention = Attention(d_model, num_heads)
        self.norm2 = nn.Parameter(torch.empty(d_model))
        self.feed_forward = Feed(d_model, d_hidden)

    def forward(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        x = x + self.attention(nn.functional.rms_norm(x, x.shape[-1:], self.norm1, 1e-6))
        normed = nn.functional.rms_norm(x, x.shape[-1:], self.norm2, 1e-6)
        found: Tensor = x + self.feed_forward(normed)
        return found


# --- what students write -------------------------------------------------------------------------

COMMON = """
import torch
from torch import nn
import torch.nn.functional as F

def attend(q, k, v, heads, causal=True):
    q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (q, k, v))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

class Named(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.W_query = nn.Linear(d, d, bias=False)
        self.W_key = nn.Linear(d, d, bias=False)
        self.W_value = nn.Linear(d, d, bias=False)
        self.out_proj = nn.Linear(d, d)
    def forward(self, x, context=None):
        seen = x if context is None else context
        q, k, v = self.W_query(x), self.W_key(seen), self.W_value(seen)
        return self.out_proj(attend(q, k, v, self.heads, context is None))

class Fused(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(d, 3 * d, bias=False)
        self.c_proj = nn.Linear(d, d)
    def forward(self, x):
        return self.c_proj(attend(*self.c_attn(x).chunk(3, dim=-1), self.heads))

class PerHead(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        size = d // heads
        for name in ("qs", "ks", "vs"):
            setattr(self, name, nn.ModuleList(nn.Linear(d, size, bias=False) for _ in range(heads)))
        self.mix = nn.Linear(d, d)
    def forward(self, x):
        heads = zip(self.qs, self.ks, self.vs)
        return self.mix(torch.cat([attend(q(x), k(x), v(x), 1) for q, k, v in heads], dim=-1))

class Mlp(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, hidden), nn.Tanh(), nn.Linear(hidden, d))
    def forward(self, x):
        return self.net(x)

class Own(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.zeros(d))
    def forward(self, x):
        return norm(x, self.scale, self.shift)

def norm(x, gain, shift):
    apart = x - x.mean(-1, keepdim=True)
    return gain * apart / (apart.square().mean(-1, keepdim=True) + 1e-5).sqrt() + shift

class PreNorm(nn.Module):
    def __init__(self, d, inner):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.inner = inner
    def forward(self, x):
        return self.inner(self.norm(x))
"""


def block(made: str, used: str, name: str = "Block") -> str:
    """A block of a student."""
    return module(name, "d, heads, hidden", made, used, "x, *more")


PLAIN = "x = x + {a}({n1}(x))\nreturn x + {f}({n2}(x))"


# Blocks that models use too.
GPT_BLOCK = block(
    "self.ln_2, self.ln_1 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
    "self.mlp, self.attn = Mlp(d, hidden), Fused(d, heads)",
    PLAIN.format(a="self.attn", f="self.mlp", n1="self.ln_1", n2="self.ln_2"),
)
FLAT_BLOCK = block(
    "self.heads = heads\n"
    "self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))\n"
    "self.o = nn.Linear(d, d)\n"
    "self.linear1, self.linear2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
    "self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])",
    "n = self.norms[0](x)\n"
    "x = x + self.o(attend(self.q(n), self.k(n), self.v(n), self.heads))\n"
    "return x + self.linear2(torch.tanh(self.linear1(self.norms[1](x))))",
)
BARE_BLOCK = block(
    "self.h = heads\n"
    "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
    "self.gain1, self.shift1, self.gain2, self.shift2 = p(d), p(d), p(d), p(d)\n"
    "self.W_query, self.W_key, self.W_value, self.W_o = p(d, d), p(d, d), p(d, d), p(d, d)\n"
    "self.W_o_bias = p(d)\n"
    "self.w1, self.b1, self.w2, self.b2 = p(d, hidden), p(hidden), p(hidden, d), p(d)",
    "n = norm(x, self.gain1, self.shift1)\n"
    "seen = attend(n @ self.W_query, n @ self.W_key, n @ self.W_value, self.h)\n"
    "x = x + seen @ self.W_o + self.W_o_bias\n"
    "n = norm(x, self.gain2, self.shift2)\n"
    "return x + torch.tanh(n @ self.w1 + self.b1) @ self.w2 + self.b2",
)
LETTERS_BLOCK = block(
    "self.heads = heads\n"
    "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
    "self.a, self.b, self.c, self.d, self.e = p(d, d), p(d, d), p(d, d), p(d, d), p(d)\n"
    "self.f, self.g, self.h, self.i = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
    "self.j, self.k = p(2, d), p(2, d)",
    "n = norm(x, self.j[0], self.k[0])\n"
    "x = x + attend(n @ self.a, n @ self.b, n @ self.c, self.heads) @ self.d + self.e\n"
    "n = norm(x, self.j[1], self.k[1])\n"
    "return x + torch.tanh(n @ self.f + self.g) @ self.h + self.i",
)
