"""Adoption of modules in parts, through a real jail: blocks and models, whatever their trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from grader.course.tensors import Make
from grader.proxies.slots import Adoption, Unadoptable
from grader.testing import (
    REORDERED,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_gradients_agree,
    assert_has_one_table,
)
from tests.support import seats

OpenSeat = Callable[..., seats.Seat]
MAKE = Make("nesting", "inputs", "tests")
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


def block(made: str, used: str, name: str = "Block", header: str = "d, heads, hidden") -> str:
    """A class of a student: what stands in ``__init__``, and in ``forward``."""
    lines = [text.strip("\n").replace("\n", "\n        ") for text in (made, used)]
    return f"""
class {name}(nn.Module):
    def __init__(self, {header}):
        super().__init__()
        {lines[0]}
    def forward(self, x, *more):
        {lines[1]}
"""


class Adopted(NamedTuple):
    theirs: Any
    ours: Any
    adoption: Adoption


@pytest.fixture(name="adopted")
def _adopted(open_seat: OpenSeat) -> Callable[..., Adopted]:
    """Make a student's module and a reference with the same arguments, and adopt."""

    def made(reference: type[nn.Module], source: str, *arguments: Any) -> Adopted:
        seat = open_seat(COMMON + source, reference, parameters=ALIASES)
        make = Make("nesting", reference.__name__, "tests")
        theirs = getattr(seat.student(), reference.__name__)(*arguments)
        ours = getattr(seat.reference(make), reference.__name__)(*arguments)
        return Adopted(theirs, ours, adopt(theirs, ours))

    return made


PLAIN = "x = x + {a}({n1}(x))\nreturn x + {f}({n2}(x))"

BLOCKS = {
    "the reference's names": block(
        "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
        "self.attention = Named(d, heads)\nself.feed_forward = Mlp(d, hidden)",
        PLAIN.format(a="self.attention", f="self.feed_forward", n1="self.norm1", n2="self.norm2"),
    ),
    "aliases, the second norm made first": block(
        "self.ln_2, self.ln_1 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
        "self.mlp, self.attn = Mlp(d, hidden), Fused(d, heads)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.ln_1", n2="self.ln_2"),
    ),
    "norms whose names say nothing, the second made first": block(
        "self.a, self.b = Own(d), Own(d)\nself.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.b", n2="self.a"),
    ),
    "wrappers of a norm and what follows it": block(
        "self.steps = nn.ModuleList([PreNorm(d, PerHead(d, heads)), PreNorm(d, Mlp(d, hidden))])",
        "for step in self.steps:\n    x = x + step(x)\nreturn x",
    ),
    "all layers in the block itself": block(
        "self.heads = heads\n"
        "self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))\n"
        "self.o = nn.Linear(d, d)\n"
        "self.linear1, self.linear2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
        "self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])",
        "n = self.norms[0](x)\n"
        "x = x + self.o(attend(self.q(n), self.k(n), self.v(n), self.heads))\n"
        "return x + self.linear2(torch.tanh(self.linear1(self.norms[1](x))))",
    ),
    "bare parameters": block(
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
    ),
    "vectors in a dict, of which the gains alone have a name": block(
        "self.h = heads\n"
        "ones, zeros, rand = torch.ones, torch.zeros, torch.rand\n"
        "self.w = nn.ParameterDict({'g1': ones(d), 's1': zeros(d), 'g2': ones(d), 's2': zeros(d),"
        " 'q': rand(d, d), 'k': rand(d, d), 'v': rand(d, d), 'o': rand(d, d), 'o_b': zeros(d),"
        " 'up': rand(hidden, d), 'up_b': zeros(hidden), 'down': rand(d, hidden),"
        " 'down_b': zeros(d)})",
        "w = self.w\n"
        "n = norm(x, w['g1'], w['s1'])\n"
        "seen = attend(*(F.linear(n, w[name]) for name in ('q', 'k', 'v')), self.h)\n"
        "x = x + F.linear(seen, w['o'], w['o_b'])\n"
        "n = norm(x, w['g2'], w['s2'])\n"
        "return x + F.linear(torch.tanh(F.linear(n, w['up'], w['up_b'])), w['down'], w['down_b'])",
    ),
    "a matrix of both gains, and one of both shifts": block(
        "self.gains = nn.Parameter(torch.ones(2, d))\n"
        "self.shifts = nn.Parameter(torch.zeros(2, d))\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, self.gains[0], self.shifts[0]))\n"
        "return x + self.mlp(norm(x, self.gains[1], self.shifts[1]))",
    ),
    "bare parameters, of which b2 is the bias of W2 and not the shift beside g2": block(
        "self.h = heads\n"
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        "self.Wq, self.Wk, self.Wv, self.Wo, self.bo = p(d, d), p(d, d), p(d, d), p(d, d), p(d)\n"
        "self.W1, self.b1, self.W2, self.b2 = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
        "self.g1, self.s1, self.g2, self.s2 = p(d), p(d), p(d), p(d)",
        "n = norm(x, self.g1, self.s1)\n"
        "x = x + attend(n @ self.Wq, n @ self.Wk, n @ self.Wv, self.h) @ self.Wo + self.bo\n"
        "n = norm(x, self.g2, self.s2)\n"
        "return x + torch.tanh(n @ self.W1 + self.b1) @ self.W2 + self.b2",
    ),
    "letters in the order of the alphabet, whatever they are names of": block(
        "self.heads = heads\n"
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        "self.a, self.b, self.c, self.d, self.e = p(d, d), p(d, d), p(d, d), p(d, d), p(d)\n"
        "self.f, self.g, self.h, self.i = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
        "self.j, self.k = p(2, d), p(2, d)",
        "n = norm(x, self.j[0], self.k[0])\n"
        "x = x + attend(n @ self.a, n @ self.b, n @ self.c, self.heads) @ self.d + self.e\n"
        "n = norm(x, self.j[1], self.k[1])\n"
        "return x + torch.tanh(n @ self.f + self.g) @ self.h + self.i",
    ),
    "a sequence with the norm inside": block(
        "self.attn = nn.Sequential(nn.LayerNorm(d), Fused(d, heads))\n"
        "self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, hidden), nn.Tanh(),"
        " nn.Linear(hidden, d))",
        "x = x + self.attn(x)\nreturn x + self.ff(x)",
    ),
    "gain and shift under names that say nothing": block(
        "self.a, self.b = nn.ParameterList([torch.ones(d), torch.zeros(d)]), Odd(d)\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, *self.a))\nreturn x + self.mlp(self.b(x))",
    )
    .replace(
        "self.a, self.b = nn.ParameterList([torch.ones(d), torch.zeros(d)])",
        "self.a, self.b = Odd(d)",
    )
    .replace("norm(x, *self.a)", "self.a(x)")
    + """
class Odd(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))
    def forward(self, x):
        return norm(x, self.second, self.first)
""",
}


@pytest.mark.parametrize("source", BLOCKS.values(), ids=BLOCKS)
def test_the_parts_of_a_block_find_their_weights_and_gradients(
    adopted: Callable[..., Adopted], source: str
) -> None:
    theirs, ours, adoption = adopted(Block, source, 8, 2, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(X), ours(X))
    assert_gradients_agree(theirs, ours, X, make=MAKE)


def test_a_layer_as_large_as_a_whole_attention_is_one_layer(
    adopted: Callable[..., Adopted],
) -> None:
    theirs, ours, adoption = adopted(Block, BLOCKS["all layers in the block itself"], 8, 2, 32)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(X), ours(X))


def model(made: str, used: str) -> str:
    return block(made, used, "Model", "vocab, d, heads, layers, hidden").replace(
        "(self, x, *more)", "(self, ids)"
    )


AROUND = "self.tok_emb, self.pos_emb = nn.Embedding(vocab, d), nn.Embedding(9, d)\n"
ONE_TABLE = "self.both, self.vocab = nn.Embedding(vocab + 9, d), vocab\n"
ENTER = "x = self.tok_emb(ids) + self.pos_emb.weight[: ids.shape[1]]\n"
# One parameter of each kind for all layers, and what they do: norms stand in one or two more.
STACKED = (
    AROUND + "self.heads, self.layers = heads, layers\n"
    "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
    "self.qkv, self.o, self.ob = p(layers, 3, d, d), p(layers, d, d), p(layers, d)\n"
    "self.fc, self.fb = p(layers, d, hidden), p(layers, hidden)\n"
    "self.out, self.out_b = p(layers, hidden, d), p(layers, d)\n"
)


def steps(norm: str) -> str:
    """What these layers do, with norms that are written so."""
    return (
        ENTER + "for n in range(self.layers):\n"
        f"    y = {norm.format('2 * n')}\n"
        "    y = attend(*(y @ one for one in self.qkv[n]), self.heads)\n"
        "    x = x + y @ self.o[n] + self.ob[n]\n"
        f"    y = torch.tanh({norm.format('2 * n + 1')} @ self.fc[n] + self.fb[n])\n"
        "    x = x + y @ self.out[n] + self.out_b[n]\n"
        f"return {norm.format('-1')} @ self.tok_emb.weight.T"
    )


GPT_BLOCK = BLOCKS["aliases, the second norm made first"]
LISTED = "self.h = nn.ModuleList(Block(d, heads, hidden) for _ in range(layers))\n"
EACH = "for one in self.h:\n    x = one(x)\n"

MODELS = {
    "embeddings, and a list of blocks": model(
        AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)",
        ENTER + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK,
    "a head that shares its table": model(
        AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)\n"
        "self.head = nn.Linear(d, vocab, bias=False)\nself.head.weight = self.tok_emb.weight",
        ENTER + EACH + "return self.head(self.ln_f(x))",
    )
    + GPT_BLOCK,
    "tables as (d, vocab), blocks and norm in one sequence": model(
        "self.a, self.b = nn.Parameter(torch.rand(d, vocab)), nn.Parameter(torch.rand(d, 9))\n"
        "self.body = nn.Sequential(*(Block(d, heads, hidden) for _ in range(layers)),"
        " nn.LayerNorm(d))",
        "x = (self.a[:, ids].permute(1, 2, 0) + self.b[:, : ids.shape[1]].T)\n"
        "return self.body(x) @ self.a",
    )
    + BLOCKS["bare parameters"],
    "one table, of tokens and then of positions": model(
        ONE_TABLE + LISTED + "self.ln_f = nn.LayerNorm(d)",
        "x = self.both(ids) + self.both.weight[self.vocab :][: ids.shape[1]]\n"
        + EACH
        + "return self.ln_f(x) @ self.both.weight[: self.vocab].T",
    )
    + GPT_BLOCK,
    "one table, of positions and then of tokens": model(
        ONE_TABLE + LISTED + "self.ln_f = nn.LayerNorm(d)",
        "x = self.both(ids + 9) + self.both.weight[: ids.shape[1]]\n"
        + EACH
        + "return self.ln_f(x) @ self.both.weight[9:].T",
    )
    + GPT_BLOCK,
    "one table as (d, vocab + positions)": model(
        "self.both = nn.Parameter(torch.rand(d, vocab + 9))\nself.vocab = vocab\n"
        + LISTED
        + "self.ln_f = nn.LayerNorm(d)",
        "tokens, positions = self.both.T.tensor_split([self.vocab])\n"
        "x = tokens[ids] + positions[: ids.shape[1]]\n" + EACH + "return self.ln_f(x) @ tokens.T",
    )
    + GPT_BLOCK,
    "a table that was a layer first": model(
        "self.head = nn.Linear(d, vocab, bias=False)\n"
        + AROUND
        + "self.tok_emb.weight = self.head.weight\n"
        + LISTED
        + "self.ln_f = nn.LayerNorm(d)",
        ENTER + EACH + "return self.head(self.ln_f(x))",
    )
    + GPT_BLOCK,
    "blocks under names of their own": model(
        AROUND + "for n in range(layers):\n"
        "    setattr(self, f'block{n}', Block(d, heads, hidden))\n"
        "self.layers, self.last = layers, Own(d)",
        ENTER + "for n in range(self.layers):\n    x = getattr(self, f'block{n}')(x)\n"
        "return self.last(x) @ self.tok_emb.weight.T",
    )
    + BLOCKS["all layers in the block itself"],
    "a list of each kind of part": model(
        AROUND + "many = lambda make: nn.ModuleList(make() for _ in range(layers))\n"
        "self.norms_a, self.norms_b = (many(lambda: nn.LayerNorm(d)) for _ in range(2))\n"
        "self.attns, self.mlps = many(lambda: PerHead(d, heads)), many(lambda: Mlp(d, hidden))\n"
        "self.final = nn.LayerNorm(d)",
        ENTER + "for a, b, one, two in zip(self.norms_a, self.norms_b, self.attns, self.mlps):\n"
        "    x = x + one(a(x))\n    x = x + two(b(x))\n"
        "return self.final(x) @ self.tok_emb.weight.T",
    ),
    "lists of gains and shifts, in a list whose name is one of both": model(
        AROUND + "self.bs = nn.ModuleList(Block(d, heads, hidden) for _ in range(layers))\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for b in self.bs:\n    x = b(x)\nreturn self.ln_f(x) @ self.tok_emb.weight.T",
    )
    + block(
        "self.gains = nn.ParameterList([torch.ones(d), torch.ones(d)])\n"
        "self.shifts = nn.ParameterList([torch.zeros(d), torch.zeros(d)])\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, self.gains[0], self.shifts[0]))\n"
        "return x + self.mlp(norm(x, self.gains[1], self.shifts[1]))",
    ),
    "a list of each layer, in twos and threes that are alike": model(
        AROUND + "self.heads = heads\n"
        "many = lambda make: nn.ModuleList(make() for _ in range(layers))\n"
        "self.q, self.k, self.v = (many(lambda: nn.Linear(d, d, bias=False)) for _ in range(3))\n"
        "self.o, self.ups = many(lambda: nn.Linear(d, d)), many(lambda: nn.Linear(d, hidden))\n"
        "self.downs = many(lambda: nn.Linear(hidden, d))\n"
        "self.ln1, self.ln2 = (many(lambda: nn.LayerNorm(d)) for _ in range(2))\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for n in range(len(self.q)):\n"
        "    y = self.ln1[n](x)\n"
        "    y = attend(self.q[n](y), self.k[n](y), self.v[n](y), self.heads)\n"
        "    x = x + self.o[n](y)\n"
        "    x = x + self.downs[n](torch.tanh(self.ups[n](self.ln2[n](x))))\n"
        "return self.ln_f(x) @ self.tok_emb.weight.T",
    ),
    "one parameter of each kind for all layers": model(
        AROUND + "self.heads, self.layers = heads, layers\n"
        "p = lambda *shape: nn.Parameter(torch.rand(layers, *shape))\n"
        "self.ln1_g, self.ln1_b, self.ln2_g, self.ln2_b = p(d), p(d), p(d), p(d)\n"
        "self.qkv, self.proj, self.proj_b = p(d, 3 * d), p(d, d), p(d)\n"
        "self.fc, self.fc_b, self.out, self.out_b = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for n in range(self.layers):\n"
        "    y = norm(x, self.ln1_g[n], self.ln1_b[n]) @ self.qkv[n]\n"
        "    x = x + attend(*y.chunk(3, -1), self.heads) @ self.proj[n] + self.proj_b[n]\n"
        "    y = norm(x, self.ln2_g[n], self.ln2_b[n]) @ self.fc[n] + self.fc_b[n]\n"
        "    x = x + torch.tanh(y) @ self.out[n] + self.out_b[n]\n"
        "return self.ln_f(x) @ self.tok_emb.weight.T",
    ),
    "one parameter of each kind, and the gains of all norms in one, their shifts in another": model(
        STACKED + "self.gains, self.shifts = p(2 * layers + 1, d), p(2 * layers + 1, d)",
        steps("norm(x, self.gains[{0}], self.shifts[{0}])"),
    ),
    "one parameter of each kind, and one of gains and shifts for all norms": model(
        STACKED + "self.norms = p(2 * layers + 1, 2, d)", steps("norm(x, *self.norms[{0}])")
    ),
    "letters in every block, and a last norm whose shift is made first": model(
        AROUND + LISTED + "self.u = nn.Parameter(torch.zeros(d))\n"
        "self.t = nn.Parameter(torch.ones(d))",
        ENTER + EACH + "return norm(x, self.t, self.u) @ self.tok_emb.weight.T",
    )
    + BLOCKS["letters in the order of the alphabet, whatever they are names of"],
    "a last norm of a_2 and b_2, which are no two layers": model(
        AROUND + LISTED + "self.norm = Last(d)",
        ENTER + EACH + "return self.norm(x) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK
    + """
class Last(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
    def forward(self, x):
        return norm(x, self.a_2, self.b_2)
""",
    "all parts of all layers in the model, by number": model(
        AROUND + "self.heads, self.layers = heads, layers\n"
        "for n in range(layers):\n"
        "    for name in ('q', 'k', 'v'):\n"
        "        setattr(self, f'{name}_{n}', nn.Linear(d, d, bias=False))\n"
        "    setattr(self, f'o_{n}', nn.Linear(d, d))\n"
        "    setattr(self, f'up_{n}', nn.Linear(d, hidden))\n"
        "    setattr(self, f'down_{n}', nn.Linear(hidden, d))\n"
        "    setattr(self, f'before_{n}', nn.LayerNorm(d))\n"
        "    setattr(self, f'between_{n}', nn.LayerNorm(d))\n"
        "self.last = nn.LayerNorm(d)",
        ENTER + "for n in range(self.layers):\n"
        "    of = lambda name: getattr(self, f'{name}_{n}')\n"
        "    y = of('before')(x)\n"
        "    x = x + of('o')(attend(of('q')(y), of('k')(y), of('v')(y), self.heads))\n"
        "    x = x + of('down')(torch.tanh(of('up')(of('between')(x))))\n"
        "return self.last(x) @ self.tok_emb.weight.T",
    ),
}


@pytest.mark.parametrize("layers", [2, 3])
@pytest.mark.parametrize("source", MODELS.values(), ids=MODELS)
def test_the_layers_of_a_model_find_their_weights_and_gradients(
    adopted: Callable[..., Adopted], source: str, layers: int
) -> None:
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, layers, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    assert_gradients_agree(theirs, ours, IDS, make=MAKE)


def test_a_layer_as_large_as_an_attention_is_none(adopted: Callable[..., Adopted]) -> None:
    source = MODELS["all parts of all layers in the model, by number"]
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 32)  # 4 · 8 · 8 = 8 · 32
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))


ODD_BLOCK = (
    block(
        "self.a, self.b = Own(d), Own(d)\nself.attn, self.mlp = Turns(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.b", n2="self.a"),
    )
    + """
class Turns(Fused):
    def forward(self, x):
        parts = self.c_attn(x).unflatten(-1, (self.heads, 3, -1))
        v, k, q = (parts[..., n, :].flatten(-2) for n in range(3))
        return self.c_proj(attend(q, k, v, self.heads))
"""
)


@pytest.mark.parametrize("example", [False, True], ids=["", "after an example"])
def test_a_large_model_is_adopted_as_a_small_one_of_its_class_was(
    open_seat: OpenSeat, example: bool
) -> None:
    source = (
        COMMON
        + ODD_BLOCK
        + model(
            AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)",
            ENTER + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
    )
    seat = open_seat(source, Model, parameters=ALIASES)
    student, reference = seat.student(), seat.reference(Make("nesting", "Model", "large"))
    small, large = (13, 8, 2, 3, 12), (13, 128, 4, 2, 512)
    if example:  # with identity matrices, every order of queries, keys and values agrees
        adopt_identity_weights(student.Model(*small), reference.Model(*small))
    for sizes in (small, large):
        theirs, ours = student.Model(*sizes), reference.Model(*sizes)
        with torch.no_grad():
            for weight in ours.parameters():
                weight *= 0.3  # where sums are long, rounding is soon as large as they are
        adopt(theirs, ours)
        assert_agrees(theirs(IDS), ours(IDS), within=REORDERED)


def test_a_model_that_is_only_nearly_right_is_adopted_as_a_right_one_of_its_class_was(
    open_seat: OpenSeat,
) -> None:
    source = MODELS["one table, of positions and then of tokens"].replace(
        "return self.ln_f(x) @", "return (1 + (x.shape[-1] > 8) / 500) * self.ln_f(x) @"
    )
    seat = open_seat(COMMON + source, Model, parameters=ALIASES)
    student, reference = seat.student(), seat.reference(Make("nesting", "Model", "nearly"))
    for sizes in ((13, 8, 2, 3, 12), (13, 16, 2, 3, 12)):
        adoption = adopt(student.Model(*sizes), reference.Model(*sizes))
        first = {slot.role: slot.start for slot in adoption.slots if slot.path == "both.weight"}
        assert first == {"position_table": 0, "token_table": 9}


def test_a_model_that_is_given_ids_answers_in_the_precision_of_its_weights(
    adopted: Callable[..., Adopted],
) -> None:
    theirs, _, _ = adopted(Model, MODELS["embeddings, and a list of blocks"], 13, 8, 2, 3, 12)
    assert theirs(IDS).dtype == torch.float32
    assert theirs.double()(IDS).dtype == torch.float64


def test_an_output_table_of_its_own_gets_the_weights_of_the_table_that_it_should_be(
    adopted: Callable[..., Adopted],
) -> None:
    source = MODELS["a head that shares its table"].replace(
        "self.head.weight = self.tok_emb.weight", "pass"
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    tables = {slot.path for slot in adoption.slots if slot.role == "token_table"}
    assert tables == {"tok_emb.weight", "head.weight"}


def test_an_output_table_that_lies_the_other_way_round_gets_them_too(
    adopted: Callable[..., Adopted],
) -> None:
    source = (
        model(
            AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)\n"
            "self.unembed = nn.Parameter(torch.rand(d, vocab))",
            ENTER + EACH + "return self.ln_f(x) @ self.unembed",
        )
        + GPT_BLOCK
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=r"tok_emb\.weight and unembed are two tables"):
        assert_has_one_table(theirs, "token_table", 13)


@pytest.mark.parametrize("name", ["head", "wte"])
def test_an_output_table_beside_one_table_of_tokens_and_positions_gets_them_too(
    adopted: Callable[..., Adopted], name: str
) -> None:
    source = MODELS["one table, of tokens and then of positions"]
    untied = source.replace(
        "nn.LayerNorm(d)",
        f"nn.LayerNorm(d)\n        self.{name} = nn.Linear(d, vocab, bias=False)",
        1,
    ).replace("self.ln_f(x) @ self.both.weight[: self.vocab].T", f"self.{name}(self.ln_f(x))")
    theirs, ours, adoption = adopted(Model, untied, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=rf"both\.weight and {name}\.weight are two tables"):
        assert_has_one_table(theirs, "token_table", 13)


@pytest.mark.parametrize("first", ["tokens", "positions"])
def test_one_table_of_tokens_and_positions_is_one(
    adopted: Callable[..., Adopted], first: str
) -> None:
    source = next(source for name, source in MODELS.items() if f"one table, of {first}" in name)
    theirs, _, _ = adopted(Model, source, 13, 8, 2, 3, 12)
    assert_has_one_table(theirs, "token_table", 13)


def test_a_second_table_that_changes_nothing_is_nobodys_to_judge(
    adopted: Callable[..., Adopted],
) -> None:
    source = MODELS["embeddings, and a list of blocks"].replace(
        "self.ln_f = nn", "self.unused = nn.Linear(d, vocab, bias=False)\n        self.ln_f = nn"
    )
    theirs, _, _ = adopted(Model, source, 13, 8, 2, 3, 12)
    assert_has_one_table(theirs, "token_table", 13)


def test_a_second_table_that_gets_the_values_of_the_first_in_every_call_is_one_too_many(
    adopted: Callable[..., Adopted],
) -> None:
    source = model(
        AROUND + LISTED + "self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)",
        "with torch.no_grad():\n    self.head.weight.copy_(self.tok_emb.weight)\n"
        + ENTER
        + EACH
        + "return self.head(self.ln_f(x))",
    )
    theirs, ours, _ = adopted(Model, source + GPT_BLOCK, 13, 8, 2, 3, 12)
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match="two tables"):
        assert_has_one_table(theirs, "token_table", 13)


def test_a_bias_at_the_output_is_not_the_tables(adopted: Callable[..., Adopted]) -> None:
    source = MODELS["a head that shares its table"].replace(
        "nn.Linear(d, vocab, bias=False)", "nn.Linear(d, vocab)"
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert adoption.extra == ("head.bias",)
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=r"head\.bias has a number for each row"):
        assert_has_one_table(theirs, "token_table", 13)


PAIRS = {
    "aliases": block(
        "self.cross_attn, self.self_attn = Named(d, heads), Named(d, heads)\n"
        "self.ff = Mlp(d, hidden)\n"
        "self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d) for _ in range(3))",
        "x = x + self.self_attn(self.ln1(x))\nx = x + self.cross_attn(self.ln2(x), *more)\n"
        "return x + self.ff(self.ln3(x))",
        "Pair",
    ),
    "names that say nothing, in another order": block(
        "self.second, self.first, self.third = Named(d, heads), Named(d, heads), Mlp(d, hidden)\n"
        "self.c, self.b, self.a = (nn.LayerNorm(d) for _ in range(3))",
        "x = x + self.first(self.a(x))\nx = x + self.second(self.b(x), *more)\n"
        "return x + self.third(self.c(x))",
        "Pair",
    ),
    "all layers in the block itself": block(
        "self.heads = heads\n"
        "for name in ('q', 'k', 'v', 'cross_q', 'cross_k', 'cross_v'):\n"
        "    setattr(self, name, nn.Linear(d, d, bias=False))\n"
        "self.o, self.cross_o = nn.Linear(d, d), nn.Linear(d, d)\n"
        "self.fc1, self.fc2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
        "self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))",
        "y = self.n[0](x)\n"
        "x = x + self.o(attend(self.q(y), self.k(y), self.v(y), self.heads))\n"
        "y, (c,) = self.n[1](x), more\n"
        "y = attend(self.cross_q(y), self.cross_k(c), self.cross_v(c), self.heads, False)\n"
        "x = x + self.cross_o(y)\n"
        "return x + self.fc2(torch.tanh(self.fc1(self.n[2](x))))",
        "Pair",
    ),
    "all layers in the block itself, told apart by numbers": block(
        "self.heads = heads\n"
        "for name in ('q1', 'k1', 'v1', 'q2', 'k2', 'v2'):\n"
        "    setattr(self, name, nn.Linear(d, d, bias=False))\n"
        "self.o1, self.o2 = nn.Linear(d, d), nn.Linear(d, d)\n"
        "self.fc1, self.fc2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
        "self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d) for _ in range(3))",
        "y = self.ln1(x)\n"
        "x = x + self.o1(attend(self.q1(y), self.k1(y), self.v1(y), self.heads))\n"
        "y, (c,) = self.ln2(x), more\n"
        "x = x + self.o2(attend(self.q2(y), self.k2(c), self.v2(c), self.heads, False))\n"
        "return x + self.fc2(torch.tanh(self.fc1(self.ln3(x))))",
        "Pair",
    ),
    "all layers in dicts, told apart by a letter": block(
        "self.heads = heads\n"
        "sizes = {'c': (hidden, d), 'down': (d, hidden)}\n"
        "names = [one + name for one in 'ab' for name in ('q', 'k', 'v', '_out')]\n"
        "self.w, self.v = nn.ParameterDict(), nn.ParameterDict()\n"
        "for name in (*names, *sizes):\n"
        "    self.w[name] = nn.Parameter(torch.rand(sizes.get(name, (d, d))))\n"
        "for name in ('m0', 'm1', 'm2', 'n0', 'n1', 'n2', 'a_out', 'b_out', 'c', 'down'):\n"
        "    self.v[name] = nn.Parameter(torch.ones(hidden if name == 'c' else d))",
        "w, v, (context,) = self.w, self.v, more\n"
        "def attention(a, x, seen, causal):\n"
        "    q, k, u = (F.linear(y, w[a + n]) for y, n in zip((x, seen, seen), 'qkv'))\n"
        "    y = attend(q, k, u, self.heads, causal)\n"
        "    return F.linear(y, w[a + '_out'], v[a + '_out'])\n"
        "normed = lambda x, i: F.layer_norm(x, x.shape[-1:], v['m' + i], v['n' + i])\n"
        "y = normed(x, '0')\n"
        "x = x + attention('a', y, y, True)\n"
        "x = x + attention('b', normed(x, '1'), context, False)\n"
        "y = torch.tanh(F.linear(normed(x, '2'), w['c'], v['c']))\n"
        "return x + F.linear(y, w['down'], v['down'])",
        "Pair",
    ),
    "lists without a name, the last layer first": block(
        "self.heads = heads\n"
        "self.b, self.a = Back(d), Back(d)\n"
        "self.c = nn.Sequential(nn.Linear(d, hidden), nn.Tanh(), nn.Linear(hidden, d))\n"
        "self.l, self.m, self.n = (nn.LayerNorm(d) for _ in range(3))",
        "y = self.m(x)\nx = x + self.a(y, y, self.heads, True)\n"
        "x = x + self.b(self.n(x), *more, self.heads, False)\nreturn x + self.c(self.l(x))",
        "Pair",
    )
    + """
class Back(nn.Module):
    def __init__(self, d):
        super().__init__()
        linears = [nn.Linear(d, d), *(nn.Linear(d, d, bias=False) for _ in range(3))]
        self.m = nn.ModuleList(linears)
    def forward(self, x, context, heads, causal):
        out, v, k, q = self.m
        return out(attend(q(x), k(context), v(context), heads, causal))
""",
}


@pytest.mark.parametrize("source", PAIRS.values(), ids=PAIRS)
def test_two_attentions_of_one_block_are_told_apart(
    adopted: Callable[..., Adopted], source: str
) -> None:
    theirs, ours, adoption = adopted(Pair, source, 8, 2, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(X, CONTEXT), ours(X, CONTEXT))
    assert_gradients_agree(theirs, ours, X, CONTEXT, make=MAKE)


GAINS = {
    "gains in the block": block(
        "self.gain1, self.gain2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(F.rms_norm(x, x.shape[-1:], self.gain1, 1e-6))\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gain2, 1e-6))",
        "Gains",
    ),
    "gains with axes of one, of which one lies across": block(
        "self.gain1 = nn.Parameter(torch.ones(1, 1, d))\n"
        "self.gain2 = nn.Parameter(torch.ones(d, 1))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(self.gain1 * F.rms_norm(x, x.shape[-1:], eps=1e-6))\n"
        "return x + self.ff(self.gain2[:, 0] * F.rms_norm(x, x.shape[-1:], eps=1e-6))",
        "Gains",
    ),
    "gains in a list": block(
        "self.gains = nn.ParameterList(torch.ones(d) for _ in range(2))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(F.rms_norm(x, x.shape[-1:], self.gains[0], 1e-6))\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gains[1], 1e-6))",
        "Gains",
    ),
    "torch's norms": block(
        "self.a, self.b = nn.RMSNorm(d, eps=1e-6), nn.RMSNorm(d, eps=1e-6)\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(self.a(x))\nreturn x + self.ff(self.b(x))",
        "Gains",
    ),
    "letters in two dicts, of which o, u and l are matrices in one and biases in the other": block(
        "self.heads = heads\n"
        "sizes = {'u': (hidden, d), 'l': (d, hidden)}\n"
        "self.w = nn.ParameterDict({n: torch.rand(sizes.get(n, (d, d))) for n in 'qkvoul'})\n"
        "self.v = nn.ParameterDict({n: torch.ones(hidden if n == 'u' else d) for n in 'mnoul'})",
        "w, v = self.w, self.v\n"
        "y = F.rms_norm(x, x.shape[-1:], v['m'], 1e-6)\n"
        "y = attend(*(F.linear(y, w[name]) for name in 'qkv'), self.heads)\n"
        "x = x + F.linear(y, w['o'], v['o'])\n"
        "y = F.linear(F.rms_norm(x, x.shape[-1:], v['n'], 1e-6), w['u'], v['u'])\n"
        "return x + F.linear(torch.tanh(y), w['l'], v['l'])",
        "Gains",
    ),
    "a matrix of both gains beside a bias that is as wide": block(
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        "self.qkv, self.o, self.ob = p(3, heads, d, d // heads), p(heads, d // heads, d), p(d)\n"
        "self.gains, self.ff = p(2, d), Mlp(d, hidden)",
        "y = F.rms_norm(x, x.shape[-1:], self.gains[0], 1e-6)\n"
        "q, k, v = torch.einsum('btd,chde->cbthe', y, self.qkv).flatten(-2)\n"
        "y = attend(q, k, v, self.o.shape[0])\n"
        "x = x + y @ self.o.flatten(0, 1) + self.ob\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gains[1], 1e-6))",
        "Gains",
    ),
}


@pytest.mark.parametrize("source", GAINS.values(), ids=GAINS)
def test_norms_without_a_shift_are_adopted(adopted: Callable[..., Adopted], source: str) -> None:
    theirs, ours, adoption = adopted(Gains, source, 8, 2, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(X), ours(X))
    assert_gradients_agree(theirs, ours, X, make=MAKE)


# --- wrong answers -------------------------------------------------------------------------------


def test_norms_under_each_others_names_stay_wrong(adopted: Callable[..., Adopted]) -> None:
    source = block(
        "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
        "self.attention = Named(d, heads)\nself.feed_forward = Mlp(d, hidden)",
        PLAIN.format(a="self.attention", f="self.feed_forward", n1="self.norm2", n2="self.norm1"),
    )
    theirs, ours, _ = adopted(Block, source, 8, 2, 12)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(X), ours(X))


def test_a_norm_that_is_missing_is_reported(adopted: Callable[..., Adopted]) -> None:
    source = block(
        "self.ln1 = nn.LayerNorm(d)\nself.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.ln1", n2="self.ln1"),
    )
    theirs, ours, adoption = adopted(Block, source, 8, 2, 12)
    assert adoption.missing == ("norm2", "norm2.bias")
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(X), ours(X))


def test_a_model_with_one_block_for_all_layers_is_told_how_many_are_asked_for(
    adopted: Callable[..., Adopted],
) -> None:
    source = (
        model(
            AROUND + "self.h, self.layers = Block(d, heads, hidden), layers\n"
            "self.ln_f = nn.LayerNorm(d)",
            ENTER + "for _ in range(self.layers):\n    x = self.h(x)\n"
            "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
        + GPT_BLOCK
    )
    with pytest.raises(Unadoptable, match="3 layers are asked for"):
        adopted(Model, source, 13, 8, 2, 3, 12)


def test_a_table_that_is_missing_is_named(adopted: Callable[..., Adopted]) -> None:
    source = (
        model(
            LISTED + "self.tok_emb, self.ln_f = nn.Embedding(vocab, d), nn.LayerNorm(d)",
            "x = self.tok_emb(ids)\n" + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
        + GPT_BLOCK
    )
    with pytest.raises(Unadoptable, match="position_table"):
        adopted(Model, source, 13, 8, 2, 3, 12)
