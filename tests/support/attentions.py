"""Attentions for tests of adoption: references, and the same as students write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grader.course.tensors import Make

SEED = "adoption"
MAKE = Make(SEED, "inputs", "tests")
TOKENS = MAKE.normal(tokens=5, d_in=3, name="tokens")
BATCH = MAKE.normal(batch=2, tokens=5, d_in=3, name="batch")
QUERY = ("q", "wq", "query", "queries", "toq")
KEY = ("k", "wk", "key", "keys", "tok")
VALUE = ("v", "wv", "value", "values", "tov")
ALIASES: Mapping[str, Sequence[str]] = {
    "W_query": QUERY,
    "W_key": KEY,
    "W_value": VALUE,
    "query": QUERY,
    "key": KEY,
    "value": VALUE,
    "out_proj": ("out", "wo", "o", "output", "c_proj"),
    "W_query W_key W_value": ("qkv", "wqkv", "toqkv", "c_attn"),
}


# --- references ----------------------------------------------------------------------------------


def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ values


class Single(nn.Module):
    """One head, three projections."""

    def __init__(self, d_in: int, d_out: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        return attend(self.W_query(x), self.W_key(x), self.W_value(x))


class Bare(nn.Module):
    """The same, with bare matrices of shape (d_in, d_out)."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        return attend(x @ self.W_query, x @ self.W_key, x @ self.W_value)


class Many(nn.Module):
    """Several heads, split from one wide projection for each role."""

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: Float[Tensor, "batch tokens d_in"]) -> Float[Tensor, "batch tokens d_out"]:
        parts = [
            projection(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for projection in (self.W_query, self.W_key, self.W_value)
        ]
        mixed: Tensor = self.out_proj(attend(*parts).transpose(1, 2).flatten(2))
        return mixed


class Wrapper(nn.Module):
    """Several heads, each a module of its own."""

    def __init__(self, d_in: int, d_out: int, num_heads: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Single(d_in, d_out, True) for _ in range(num_heads))

    def forward(
        self, x: Float[Tensor, "batch tokens d_in"]
    ) -> Float[Tensor, "batch tokens num_heads*d_out"]:
        return torch.cat([head(x) for head in self.heads], dim=-1)


class Normed(nn.Module):
    """A norm before the projections, and another after the head."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.before = nn.LayerNorm(d_in)
        self.heads = nn.ModuleList([Single(d_in, d_out)])
        self.after = nn.LayerNorm(d_out)

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        found: Tensor = self.after(self.heads[0](self.before(x)))
        return found


# --- what students write -------------------------------------------------------------------------

COMMON = """
import torch
from torch import nn

def attend(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5, dim=-1) @ v

def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
"""


def module(name: str, header: str, made: str, used: str, inputs: str = "x") -> str:
    """A class of a student: the bodies of ``__init__`` and ``forward``."""
    made, used = (text.strip("\n").replace("\n", "\n        ") for text in (made, used))
    return f"""
class {name}(nn.Module):
    def __init__(self, {header}):
        super().__init__()
        {made}
    def forward(self, {inputs}):
        {used}
"""


def single(made: str, used: str) -> str:
    """One head."""
    return module("Single", "d_in, d_out, qkv_bias=False", made, used)


def many(made: str, used: str, name: str = "Many") -> str:
    """Several heads."""
    return module(name, "d_in, d_out, num_heads", made, used)


def linears(*names: str, bias: str = "False") -> str:
    return "\n".join(f"self.{name} = nn.Linear(d_in, d_out, bias={bias})" for name in names)


def matrices(*names: str, shape: str = "d_in, d_out") -> str:
    return "\n".join(f"self.{name} = nn.Parameter(torch.rand({shape}))" for name in names)


ALIASED = single(
    linears("q_proj", "k_proj", "v_proj"),
    "return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x))",
)
HEAD = """
class Head(nn.Module):
    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.query = nn.Linear(d_in, d_out, bias=bias)
        self.key = nn.Linear(d_in, d_out, bias=bias)
        self.value = nn.Linear(d_in, d_out, bias=bias)
    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x))
"""
HEADS = HEAD + many(
    "self.heads = nn.ModuleList(Head(d_in, d_out, True) for _ in range(num_heads))",
    "return torch.cat([head(x) for head in self.heads], dim=-1)",
    "Wrapper",
)
WIDE = many(
    f"{linears('q_proj', 'k_proj', 'v_proj')}\n"
    "self.n, self.wo = num_heads, nn.Linear(d_out, d_out)",
    "q, k, v = (split(p(x), self.n) for p in (self.q_proj, self.k_proj, self.v_proj))\n"
    "return self.wo(attend(q, k, v).transpose(1, 2).flatten(2))",
)
