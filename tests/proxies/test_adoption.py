"""Adoption, through a real jail: the same weights, whatever a student calls and how they lie."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from grader.course.tensors import Make
from grader.proxies.adoption import also_learned, joined_gradients
from grader.proxies.matching import candidates
from grader.proxies.slots import Unadoptable, WantedRoles
from grader.testing import adopt, assert_agrees, assert_gradients_agree
from grader.wire import ParameterInfo
from tests.support import seats
from tests.support.seats import Adopted

OpenSeat = Callable[..., seats.Seat]

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
    """Several heads out of one wide projection each."""

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


@pytest.fixture(name="adopted")
def _adopted(open_seat: OpenSeat) -> Callable[..., Adopted]:
    """Make a student's module and a reference with the same arguments, and adopt."""

    opened: dict[str, seats.Seat] = {}

    def made(reference: type[nn.Module], source: str, *arguments: Any) -> Adopted:
        if source not in opened:
            opened[source] = open_seat(COMMON + source, reference, parameters=ALIASES)
        seat = opened[source]
        make = Make("adoption", reference.__name__, "tests")
        theirs = getattr(seat.student(), reference.__name__)(*arguments)
        ours = getattr(seat.reference(make), reference.__name__)(*arguments)
        return Adopted(theirs, ours, adopt(theirs, ours))

    return made


COMMON = """
import torch
from torch import nn

def attend(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5, dim=-1) @ v

def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)
"""
MAKE = Make("adoption", "inputs", "tests")
TOKENS = MAKE.normal(tokens=5, d_in=3, name="tokens")
BATCH = MAKE.normal(batch=2, tokens=5, d_in=3, name="batch")


def single(made: str, used: str, header: str = "d_in, d_out, qkv_bias=False") -> str:
    """A one-headed class of a student: what stands in ``__init__``, and in ``forward``."""
    lines = {name: text.replace("\n", "\n        ") for name, text in (("m", made), ("u", used))}
    return f"""
class Single(nn.Module):
    def __init__(self, {header}):
        super().__init__()
        {lines["m"]}
    def forward(self, x):
        {lines["u"]}
"""


def linears(*names: str, bias: str = "False") -> str:
    return "\n".join(f"self.{name} = nn.Linear(d_in, d_out, bias={bias})" for name in names)


def matrices(*names: str, shape: str = "d_in, d_out") -> str:
    return "\n".join(f"self.{name} = nn.Parameter(torch.rand({shape}))" for name in names)


# --- right answers: the reference's result, whatever the names and the layout --------------------

RIGHT_SINGLES = {
    "the contract's names": single(
        linears("W_query", "W_key", "W_value"),
        "return attend(self.W_query(x), self.W_key(x), self.W_value(x))",
    ),
    "aliases": single(
        linears("q_proj", "k_proj", "v_proj"),
        "return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x))",
    ),
    "words of one's own around an alias": single(
        linears("Query_Layer", "linear_keys", "valueProj1"),
        "return attend(self.Query_Layer(x), self.linear_keys(x), self.valueProj1(x))",
    ),
    "another order of making": single(
        linears("values", "to_q", "keys"),
        "return attend(self.to_q(x), self.keys(x), self.values(x))",
    ),
    "bare matrices (d_in, d_out)": single(
        matrices("W_q", "W_k", "W_v"), "return attend(x @ self.W_q, x @ self.W_k, x @ self.W_v)"
    ),
    "bare matrices (d_out, d_in)": single(
        matrices("W_q", "W_k", "W_v", shape="d_out, d_in"),
        "return attend(x @ self.W_q.T, x @ self.W_k.T, x @ self.W_v.T)",
    ),
    "both layouts at once": single(
        matrices("W_q", "W_v") + "\n" + linears("W_k"),
        "return attend(x @ self.W_q, self.W_k(x), x @ self.W_v)",
    ),
    "fused, bare, (d_in, 3, d_out)": single(
        matrices("Wqkv", shape="d_in, 3, d_out"),
        "return attend(*torch.einsum('ti,iro->rto', x, self.Wqkv))",
    ),
    "in a submodule": single(
        "self.p = nn.ModuleDict({n: nn.Linear(d_in, d_out, bias=False) for n in ('q', 'k', 'v')})",
        "return attend(*(self.p[n](x) for n in ('q', 'k', 'v')))",
    ),
    "in a parameter dictionary": single(
        "self.p = nn.ParameterDict({n: torch.rand(d_in, d_out) for n in ('wv', 'wk', 'wq')})",
        "return attend(*(x @ self.p[n] for n in ('wq', 'wk', 'wv')))",
    ),
    "fused as qkv, in chunks": single(
        "self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)",
        "return attend(*self.qkv(x).chunk(3, dim=-1))",
    ),
    "fused as qkv, in another order": single(
        "self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)",
        "v, q, k = self.qkv(x).chunk(3, dim=-1)\nreturn attend(q, k, v)",
    ),
    "fused as qkv, three rows in turn": single(
        "self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)",
        "return attend(*self.qkv(x).unflatten(-1, (-1, 3)).unbind(-1))",
    ),
    "stacked as one bare parameter": single(
        "self.qkv = nn.Parameter(torch.rand(3, d_in, d_out))",
        "return attend(*(x @ weight for weight in self.qkv))",
    ),
    "fused as c_attn, split": single(
        "self.d_out = d_out\nself.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)",
        "return attend(*self.c_attn(x).split(self.d_out, dim=-1))",
    ),
    "fused as a bare W_qkv": single(
        "self.W_qkv = nn.Parameter(torch.rand(d_in, 3 * d_out))",
        "return attend(*(x @ self.W_qkv).chunk(3, dim=-1))",
    ),
    "fused as a bare W_qkv, matrices (d_in, d_out) below each other": single(
        "self.d_in = d_in\nself.W_qkv = nn.Parameter(torch.rand(3 * d_in, d_out))",
        "return attend(*(x @ weight for weight in self.W_qkv.split(self.d_in)))",
    ),
    "fused as a bare W_qkv, matrices (d_out, d_in) side by side": single(
        "self.d_in = d_in\nself.W_qkv = nn.Parameter(torch.rand(d_out, 3 * d_in))",
        "return attend(*(x @ weight.T for weight in self.W_qkv.split(self.d_in, dim=1)))",
    ),
    "fused under a name that says nothing": single(
        "self.everything = nn.Linear(d_in, 3 * d_out, bias=False)",
        "return attend(*self.everything(x).chunk(3, dim=-1))",
    ),
    "fused in another order, under a name that says nothing": single(
        "self.everything = nn.Linear(d_in, 3 * d_out, bias=False)",
        "v, q, k = self.everything(x).chunk(3, dim=-1)\nreturn attend(q, k, v)",
    ),
    "fused and bare, in another order, under a name that says nothing": single(
        "self.everything = nn.Parameter(torch.rand(d_in, 3 * d_out))",
        "v, k, q = (x @ self.everything).chunk(3, dim=-1)\nreturn attend(q, k, v)",
    ),
    "queries alone, keys and values fused": single(
        "self.first = nn.Linear(d_in, d_out, bias=False)\n"
        "self.second = nn.Linear(d_in, 2 * d_out, bias=False)",
        "k, v = self.second(x).chunk(2, dim=-1)\nreturn attend(self.first(x), k, v)",
    ),
    "names that say nothing": single(
        linears("alpha", "beta", "gamma"),
        "return attend(self.alpha(x), self.beta(x), self.gamma(x))",
    ),
    "names that say nothing, in another order": single(
        linears("alpha", "beta", "gamma"),
        "return attend(self.gamma(x), self.alpha(x), self.beta(x))",
    ),
    "bare, names that say nothing, (d_out, d_in), in another order": single(
        matrices("alpha", "beta", "gamma", shape="d_out, d_in"),
        "return attend(x @ self.gamma.T, x @ self.alpha.T, x @ self.beta.T)",
    ),
    "three names that mean the same": single(
        linears("q1", "q2", "q3"), "return attend(self.q2(x), self.q3(x), self.q1(x))"
    ),
    "lazy layers": single(
        linears("W_query", "W_key", "W_value").replace("nn.Linear(d_in, ", "nn.LazyLinear("),
        "return attend(self.W_query(x), self.W_key(x), self.W_value(x))",
    ),
    "a list": single(
        "self.layers = nn.ModuleList(nn.Linear(d_in, d_out, bias=False) for _ in range(3))",
        "return attend(*(layer(x) for layer in self.layers))",
    ),
    "one name of three": single(
        linears("query", "foo", "bar"), "return attend(self.query(x), self.bar(x), self.foo(x))"
    ),
}


FICKLE = """
class Bare(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.turned = d_out > 3
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Parameter(torch.rand(d_in, d_in)))

    def forward(self, x):
        weights = self.W_query, self.W_key, self.W_value
        return attend(*(x @ (w.T if self.turned else w) for w in weights))
"""


def test_how_a_class_was_matched_before_is_no_more_than_a_guess(
    adopted: Callable[..., Adopted],
) -> None:
    for size in (3, 4, 3):
        tokens = MAKE.normal(tokens=5, d_in=size, name="fickle")
        theirs, ours, _ = adopted(Bare, FICKLE, size, size)
        assert_agrees(theirs(tokens), ours(tokens))


@pytest.mark.parametrize("source", RIGHT_SINGLES.values(), ids=RIGHT_SINGLES)
def test_the_weights_find_their_place_and_their_gradients_too(
    adopted: Callable[..., Adopted], source: str
) -> None:
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)
    roles = {role: grad for role, grad, _ in joined_gradients(theirs, ours)}
    assert set(roles) == {"W_query", "W_key", "W_value"}
    assert all(grad is not None and grad.any() for grad in roles.values())
    assert (adoption.missing, adoption.extra) == ((), ())
    square = adopted(Single, source, 3, 3)
    assert_agrees(square.theirs(TOKENS), square.ours(TOKENS))


def test_a_reference_of_bare_matrices_fits_every_layout(
    adopted: Callable[..., Adopted],
) -> None:
    for name in ("aliases", "bare matrices (d_in, d_out)", "fused as qkv, in chunks"):
        source = RIGHT_SINGLES[name].replace("class Single", "class Bare")
        theirs, ours, _ = adopted(Bare, source, 3, 4)
        assert_agrees(theirs(TOKENS), ours(TOKENS))


# --- several heads -------------------------------------------------------------------------------

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
WIDE = """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.q_proj = nn.Linear(d_in, d_out, bias=False)
        self.k_proj = nn.Linear(d_in, d_out, bias=False)
        self.v_proj = nn.Linear(d_in, d_out, bias=False)
        self.wo = nn.Linear(d_out, d_out)
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.q_proj, self.k_proj, self.v_proj))
        return self.wo(attend(q, k, v).transpose(1, 2).flatten(2))
"""
MANY = {
    "wide projections": WIDE,
    "a list of heads": f"""
{HEAD}
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_in, d_out // num_heads, False) for _ in range(num_heads))
        self.out_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))
""",
    "a list of projections for each role": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def several():
            each = (nn.Linear(d_in, d_out // num_heads, bias=False) for _ in range(num_heads))
            return nn.ModuleList(each)
        self.queries, self.keys, self.values = several(), several(), several()
        self.output = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = zip(self.queries, self.keys, self.values)
        return self.output(torch.cat([attend(q(x), k(x), v(x)) for q, k, v in heads], dim=-1))
""",
    "a list of bare matrices for each role": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def several():
            return nn.ParameterList(torch.rand(d_in, d_out // num_heads) for _ in range(num_heads))
        self.Wq, self.Wk, self.Wv = several(), several(), several()
        self.out_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = zip(self.Wq, self.Wk, self.Wv)
        return self.out_proj(torch.cat([attend(x @ q, x @ k, x @ v) for q, k, v in heads], dim=-1))
""",
    "fused": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        q, k, v = (split(part, self.n) for part in self.c_attn(x).chunk(3, dim=-1))
        return self.c_proj(attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "fused, head by head": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)
        self.out = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (self.n, 3, -1)).transpose(1, 2)
        return self.out(attend(*heads.unbind(-2)).transpose(1, 2).flatten(2))
""",
    "fused, bare, (d_in, 3, heads, head_dim)": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.everything = nn.Parameter(torch.rand(d_in, 3, num_heads, d_out // num_heads))
        self.out = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = torch.einsum("bti,irhd->rbhtd", x, self.everything)
        return self.out(attend(*heads).transpose(1, 2).flatten(2))
""",
    "bare parameters with a dimension of heads": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked():
            return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))
        self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()
        self.W_o = nn.Parameter(torch.rand(d_out, d_out))
        self.b_o = nn.Parameter(torch.rand(d_out))
    def forward(self, x):
        q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))
        return attend(q, k, v).transpose(1, 2).flatten(2) @ self.W_o + self.b_o
""",
    "an output matrix with the heads split": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked():
            return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))
        self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()
        self.W_o = nn.Parameter(torch.rand(num_heads, d_out // num_heads, d_out))
        self.b_o = nn.Parameter(torch.rand(1, d_out))
    def forward(self, x):
        q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))
        return torch.einsum("bhtd,hdo->bto", attend(q, k, v), self.W_o) + self.b_o
""",
    "an output matrix that is split behind its rows": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def cut(first):
            return nn.Parameter(torch.rand(first, num_heads, d_out // num_heads))
        self.W_q, self.W_k, self.W_v, self.W_o = cut(d_in), cut(d_in), cut(d_in), cut(d_out)
        self.b_o = nn.Parameter(torch.rand(d_out))
    def forward(self, x):
        weights = self.W_q, self.W_k, self.W_v
        q, k, v = (torch.einsum("bti,ihd->bhtd", x, weight) for weight in weights)
        return torch.einsum("bhtd,ohd->bto", attend(q, k, v), self.W_o) + self.b_o
""",
    "an output layer for each head": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n, each = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out = nn.ModuleList(nn.Linear(each, d_out, bias=n == 0) for n in range(num_heads))
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.W_query, self.W_key, self.W_value))
        heads = attend(q, k, v).unbind(1)
        return sum(out(head) for out, head in zip(self.out, heads))
""",
    "fused under a name that says nothing, and an unnamed output": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.a = nn.Linear(d_in, 3 * d_out, bias=False)
        self.b = nn.Linear(d_out, d_out)
    def forward(self, x):
        k, q, v = (split(part, self.n) for part in self.a(x).chunk(3, dim=-1))
        return self.b(attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "one list of all layers": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        projections = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]
        self.layers = nn.ModuleList([*projections, nn.Linear(d_out, d_out)])
    def forward(self, x):
        k, v, q = (split(layer(x), self.n) for layer in self.layers[:3])
        return self.layers[3](attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "names that say nothing": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.alpha = nn.Linear(d_out, d_out)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_out, bias=False)
        self.delta = nn.Linear(d_in, d_out, bias=False)
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.delta, self.beta, self.gamma))
        return self.alpha(attend(q, k, v).transpose(1, 2).flatten(2))
""",
}


@pytest.mark.parametrize("source", MANY.values(), ids=MANY)
def test_several_heads_find_the_rows_of_a_wide_reference(
    adopted: Callable[..., Adopted], source: str
) -> None:
    for d_out in (6, 3):
        theirs, ours, adoption = adopted(Many, source, 3, d_out, 3)
        assert_agrees(theirs(BATCH), ours(BATCH))
        assert_gradients_agree(theirs, ours, BATCH, make=MAKE)
        assert (adoption.missing, adoption.extra) == ((), ())


WRAPPERS = {
    "a list of heads": f"""
{HEAD}
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_in, d_out, True) for _ in range(num_heads))
    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
""",
    "bare matrices and biases, with a dimension of heads": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked(*shape):
            return nn.Parameter(torch.rand(num_heads, *shape))
        self.Wq, self.Wk, self.Wv = (stacked(d_in, d_out) for _ in range(3))
        self.bq, self.bk, self.bv = (stacked(d_out) for _ in range(3))
    def forward(self, x):
        parts = (self.Wq, self.bq), (self.Wk, self.bk), (self.Wv, self.bv)
        q, k, v = (x.unsqueeze(1) @ w + b.unsqueeze(1) for w, b in parts)
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
    "a list of heads under another name": f"""
{HEAD}
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.attentions = nn.ModuleList(Head(d_in, d_out, True) for _ in range(num_heads))
    def forward(self, x):
        return torch.cat([head(x) for head in self.attentions], dim=-1)
""",
    "heads as numbered attributes": f"""
{HEAD}
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        for i in range(num_heads):
            self.add_module(str(i), Head(d_in, d_out, True))
    def forward(self, x):
        return torch.cat([getattr(self, str(i))(x) for i in range(self.n)], dim=-1)
""",
    "one wide projection for each role": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.query = nn.Linear(d_in, num_heads * d_out)
        self.key = nn.Linear(d_in, num_heads * d_out)
        self.value = nn.Linear(d_in, num_heads * d_out)
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.query, self.key, self.value))
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
    "one wide projection for all roles": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.qkv = nn.Linear(d_in, 3 * num_heads * d_out)
    def forward(self, x):
        q, k, v = (split(part, self.n) for part in self.qkv(x).chunk(3, dim=-1))
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
}


@pytest.mark.parametrize("source", WRAPPERS.values(), ids=WRAPPERS)
def test_wide_projections_take_the_heads_of_a_reference_in_order(
    adopted: Callable[..., Adopted], source: str
) -> None:
    theirs, ours, adoption = adopted(Wrapper, source, 3, 4, 2)
    assert_agrees(theirs(BATCH), ours(BATCH))
    assert_gradients_agree(theirs, ours, BATCH, make=MAKE)
    assert (adoption.missing, adoption.extra) == ((), ())


def test_eleven_heads_are_taken_by_number_and_not_by_the_alphabet(
    adopted: Callable[..., Adopted],
) -> None:
    backwards = "for i in reversed(range(num_heads)):"
    source = WRAPPERS["heads as numbered attributes"].replace(
        "for i in range(num_heads):\n", f"{backwards}\n"
    )
    assert backwards in source
    theirs, ours, _ = adopted(Wrapper, source, 3, 2, 11)
    assert_agrees(theirs(BATCH), ours(BATCH))


# --- biases, and parameters without a partner ----------------------------------------------------


def test_biases_are_adopted_with_their_weights(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q_proj", "k_proj", "v_proj", bias="qkv_bias"),
        "return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x))",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert torch.equal(theirs.values()["q_proj.bias"], ours.W_query.bias)
    assert (adoption.missing, adoption.extra) == ((), ())


def test_biases_are_adopted_in_a_fused_projection_too(adopted: Callable[..., Adopted]) -> None:
    source = single(
        "self.all = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)",
        "k, v, q = self.all(x).chunk(3, dim=-1)\nreturn attend(q, k, v)",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert (adoption.missing, adoption.extra) == ((), ())


def test_bare_biases_beside_bare_weights_are_adopted_by_name(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        matrices("W_q", "W_k", "W_v") + "\n" + matrices("q_bias", "bias_k", "b_v", shape="d_out"),
        "k, v = x @ self.W_k + self.bias_k, x @ self.W_v + self.b_v\n"
        "return attend(x @ self.W_q + self.q_bias, k, v)",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_bare_biases_go_with_the_weights_whose_names_they_share(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        matrices("frage", "W_such", "wert")
        + "\n"
        + matrices("frage_b", "b_such", "bias_wert", shape="d_out"),
        "k, v = x @ self.W_such + self.b_such, x @ self.wert + self.bias_wert\n"
        "return attend(x @ self.frage + self.frage_b, k, v)",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


@pytest.mark.parametrize("order", ["qkv", "vkq"])
def test_a_list_of_biases_without_names_is_tried_in_every_order(
    adopted: Callable[..., Adopted], order: str
) -> None:
    source = single(
        matrices("W_q", "W_k", "W_v") + "\n"
        "biases = (nn.Parameter(torch.zeros(d_out)) for _ in range(3 if qkv_bias else 0))\n"
        "self.biases = nn.ParameterList(biases)",
        "given = dict(zip('" + order + "', self.biases)) if len(self.biases) else {}\n"
        "parts = {n: x @ getattr(self, f'W_{n}') + given.get(n, 0) for n in 'qkv'}\n"
        "return attend(parts['q'], parts['k'], parts['v'])",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert adopted(Single, source, 3, 4, False).adoption.extra == ()


def test_biases_in_a_list_beside_matrices_in_a_list_are_adopted_after_none_were(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        "self.lin = nn.ModuleList([nn.Linear(d_in, d_out, bias=False) for _ in range(3)])\n"
        "many = range(3 if qkv_bias else 0)\n"
        "self.bs = nn.ParameterList([nn.Parameter(torch.zeros(d_out)) for _ in many])",
        "added = self.bs if len(self.bs) else [0, 0, 0]\n"
        "return attend(*(layer(x) + b for layer, b in zip(self.lin, added)))",
    )
    for biased in (False, True):
        theirs, ours, adoption = adopted(Single, source, 3, 4, biased)
        assert (adoption.missing, adoption.extra) == ((), ())
        assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_biases_stacked_in_one_table_called_b_are_adopted(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.b = nn.Parameter(torch.zeros(3, d_out))",
        "return attend(self.q(x) + self.b[0], self.k(x) + self.b[1], self.v(x) + self.b[2])",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_a_factor_that_begins_with_b_stays_what_it_is(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.beta = nn.Parameter(torch.ones(d_out))",
        "return attend(self.q(x) * self.beta, self.k(x), self.v(x))",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_a_matrix_that_is_called_b_is_no_bias(adopted: Callable[..., Adopted]) -> None:
    source = single(
        matrices("a", "b", "c"), "return attend(x @ self.a, x @ self.b, x @ self.c)"
    ).replace("Single", "Bare")
    theirs, ours, adoption = adopted(Bare, source, 3, 4)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


NAMED_LIKE_BIASES = {
    "b1 b2 b3": ("b1", "b2", "b3"),
    "bq bk bv": ("bq", "bk", "bv"),
    "bias_q bias_k bias_v": ("bias_q", "bias_k", "bias_v"),
}


@pytest.mark.parametrize("names", NAMED_LIKE_BIASES.values(), ids=NAMED_LIKE_BIASES)
def test_three_matrices_with_names_of_biases_are_no_biases(
    adopted: Callable[..., Adopted], names: tuple[str, str, str]
) -> None:
    q, k, v = names
    source = single(matrices(*names), f"return attend(x @ self.{q}, x @ self.{k}, x @ self.{v})")
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


@pytest.mark.parametrize("names", ["shift_q offset_k add_v", "gamma beta delta"])
def test_biases_whose_names_say_nothing_are_tried_in_every_order(
    adopted: Callable[..., Adopted], names: str
) -> None:
    q, k, v = names.split()
    source = single(
        linears("q", "k", "v")
        + "\nif qkv_bias:\n"
        + indent(matrices(k, v, q, shape="d_out"), "    ")
        + "\nself.qkv_bias = qkv_bias",
        "if not self.qkv_bias:\n    return attend(self.q(x), self.k(x), self.v(x))\n"
        f"return attend(self.q(x) + self.{q}, self.k(x) + self.{k}, self.v(x) + self.{v})",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_a_bias_with_leading_axes_of_one_is_adopted(adopted: Callable[..., Adopted]) -> None:
    names = ("q_bias", "k_bias", "v_bias")
    source = single(
        matrices("W_q", "W_k", "W_v") + "\n" + matrices(*names, shape="1, 1, d_out"),
        "k, v = x @ self.W_k + self.k_bias[0], x @ self.W_v + self.v_bias[0]\n"
        "return attend(x @ self.W_q + self.q_bias[0], k, v)",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))


# What an answer may hold besides its three matrices, and what of it is told as learned.
BESIDE = {
    "a factor of one": ("torch.ones(())", "q * self.a", ["a"]),
    "shifts of zero": ("torch.zeros(3, d_out)", "q + self.a[0]", ["a"]),
    "a layer like the identity": ("torch.eye(d_out)", "q @ self.a", ["a"]),
    "a factor that is not trained": ("torch.ones(()), requires_grad=False", "q * self.a", []),
    "a matrix that takes no part": ("torch.eye(d_out)", "q", []),
    "two of which each alone does nothing": (
        "torch.zeros(d_out, 1))\nself.b_of_a = nn.Parameter(torch.zeros(1, d_out)",
        "q + q @ self.a @ self.b_of_a",
        ["a", "b_of_a"],
    ),
}


@pytest.mark.parametrize(("value", "queries", "told"), BESIDE.values(), ids=BESIDE)
def test_what_is_learned_besides_is_found_by_what_it_does(
    adopted: Callable[..., Adopted], value: str, queries: str, told: list[str]
) -> None:
    source = single(
        matrices("W_q", "W_k", "W_v") + f"\nself.a = nn.Parameter({value})",
        f"q = x @ self.W_q\nreturn attend({queries}, x @ self.W_k, x @ self.W_v)",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert also_learned(theirs) == told
    assert_agrees(theirs(TOKENS), ours(TOKENS))  # and everything is as it was


def test_a_mask_that_is_called_bias_and_is_not_learned_stays_what_it_is(
    adopted: Callable[..., Adopted],
) -> None:
    shape = "torch.ones(1, 1, 5, 5)"
    source = single(
        f"{linears('q', 'k', 'v')}\nself.bias = nn.Parameter({shape}, requires_grad=False)",
        "return attend(self.q(x), self.k(x), self.v(x)) * self.bias[0, 0, 0, 0]",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert also_learned(theirs) == []
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_an_answer_that_refuses_other_values_depends_on_them(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        f"{linears('q', 'k', 'v')}\nself.a = nn.Parameter(torch.ones(4))",
        "if not bool((self.a == 1).all()):\n    raise ValueError('not mine')\n"
        "return attend(self.q(x), self.k(x), self.v(x))",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert also_learned(theirs) == ["a"]
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_a_search_among_many_biases_without_a_name_ends_soon(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        linears("q", "k", "v")
        + "\nself.more = nn.ParameterList(torch.zeros(5) for _ in range(60))",
        "return attend(self.q(x), self.k(x), self.v(x)) + 0 * sum(m.sum() for m in self.more)",
    )
    theirs, _, adoption = adopted(Single, source, 3, 4, True)
    assert len(adoption.missing) == 3
    assert len(adoption.extra) == len(theirs.parameters()) - 3


class Normed(nn.Module):
    """A norm before the projections, and one behind."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.before = nn.LayerNorm(d_in)
        self.heads = nn.ModuleList([Single(d_in, d_out)])
        self.after = nn.LayerNorm(d_out)

    def forward(self, x: Float[Tensor, "tokens d_in"]) -> Float[Tensor, "tokens d_out"]:
        found: Tensor = self.after(self.heads[0](self.before(x)))
        return found


NORMS = {
    "torch's": ("nn.LayerNorm(d_in)", "nn.LayerNorm(d_out)"),
    "own": ("Own(d_in)", "Own(d_out)"),
}


@pytest.mark.parametrize("norms", NORMS.values(), ids=NORMS.keys())
def test_norms_are_adopted_with_what_they_multiply_by_and_add(
    adopted: Callable[..., Adopted], norms: tuple[str, str]
) -> None:
    first, second = norms
    source = single(
        f"self.n1, self.n2 = {first}, {second}\n" + linears("q", "k", "v"),
        "x = self.n1(x)\nreturn self.n2(attend(self.q(x), self.k(x), self.v(x)))",
    ).replace("Single", "Normed") + (
        "\n\nclass Own(nn.Module):\n"
        "    def __init__(self, d):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(d))\n"
        "        self.shift = nn.Parameter(torch.zeros(d))\n"
        "    def forward(self, x):\n"
        "        apart = x - x.mean(-1, keepdim=True)\n"
        "        spread = (apart.square().mean(-1, keepdim=True) + 1e-5).sqrt()\n"
        "        return self.scale * apart / spread + self.shift\n"
    )
    theirs, ours, adoption = adopted(Normed, source, 3, 4)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)


def test_missing_biases_are_reported_and_zero_in_the_reference(
    adopted: Callable[..., Adopted],
) -> None:
    source = RIGHT_SINGLES["aliases"]
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert set(adoption.missing) == {"W_query.bias", "W_key.bias", "W_value.bias"}
    assert adoption.extra == ()
    assert not any(ours.get_parameter(role).any() for role in adoption.missing)
    assert ours.W_query.weight.all()
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)


def test_one_missing_bias_is_reported_alone(adopted: Callable[..., Adopted]) -> None:
    source = WIDE.replace(
        "self.wo = nn.Linear(d_out, d_out)", "self.wo = nn.Linear(d_out, d_out, bias=False)"
    )
    theirs, ours, adoption = adopted(Many, source, 3, 6, 2)
    assert adoption.missing == ("out_proj.bias",)
    assert_agrees(theirs(BATCH), ours(BATCH))


def test_biases_missing_in_every_head_are_reported_once_a_role(
    adopted: Callable[..., Adopted],
) -> None:
    source = WRAPPERS["a list of heads"].replace("d_out, True)", "d_out, False)")
    theirs, ours, adoption = adopted(Wrapper, source, 3, 4, 2)
    assert set(adoption.missing) == {"W_query.bias", "W_key.bias", "W_value.bias"}
    assert_agrees(theirs(BATCH), ours(BATCH))


def test_extra_biases_are_reported_and_zero_in_the_students_module(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        linears("q_proj", "k_proj", "v_proj", bias="True"),
        "return attend(self.q_proj(x), self.k_proj(x), self.v_proj(x))",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert set(adoption.extra) == {"q_proj.bias", "k_proj.bias", "v_proj.bias"}
    assert not any(theirs.values()[path].any() for path in adoption.extra)
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)


def test_a_bias_of_another_size_is_extra(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.q_bias = nn.Parameter(torch.ones(1))",
        "return attend(self.q(x) + self.q_bias, self.k(x), self.v(x))",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4, True)
    assert adoption.extra == ("q_bias",)
    assert "W_query.bias" in adoption.missing
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_extra_biases_do_not_hinder_the_search(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("alpha", "beta", "gamma", bias="True"),
        "return attend(self.beta(x), self.gamma(x), self.alpha(x))",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert set(adoption.extra) == {"alpha.bias", "beta.bias", "gamma.bias"}
    assert_agrees(theirs(TOKENS), ours(TOKENS))


@pytest.mark.parametrize(
    "extra",
    [
        "self.norm = nn.LayerNorm(7)",
        "self.more = nn.Linear(d_in, 9)",
        "self.temperature = nn.Parameter(torch.tensor(1.0))",
        "self.grid = nn.Parameter(torch.ones(2, 2, 2))",
        "self.nothing = nn.Parameter(torch.ones(0))",
        "self.phase_bias = nn.Parameter(torch.ones(2, dtype=torch.complex64))",
        "self.mask = nn.Parameter(torch.ones(3, 4).bool(), requires_grad=False)",
        "self.size_bias = nn.Parameter(torch.ones(4).long(), requires_grad=False)",
    ],
    ids=["norm", "linear", "scalar", "three dimensions", "empty", "complex", "mask", "whole"],
)
@pytest.mark.parametrize("names", [("q", "k", "v"), ("alpha", "beta", "gamma")], ids=" ".join)
def test_a_parameter_without_a_role_is_extra_and_stays(
    adopted: Callable[..., Adopted], extra: str, names: tuple[str, str, str]
) -> None:
    used = ", ".join(f"self.{name}(x)" for name in names)
    source = single(f"{linears(*names)}\n{extra}", f"return attend({used})")
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert_agrees(theirs(TOKENS), ours(TOKENS))
    stem = extra[len("self.") :].partition(" ")[0]
    assert adoption.extra
    assert {path.partition(".")[0] for path in adoption.extra} == {stem}


def test_a_bias_of_a_layer_without_a_role_becomes_zero(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.last = nn.Linear(1, d_out)",
        "return attend(self.q(x), self.k(x), self.v(x)) + self.last.bias",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert set(adoption.extra) == {"last.weight", "last.bias"}
    assert_agrees(theirs(TOKENS), ours(TOKENS))


# --- names are final -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("W_query", "W_key", "W_value"),
        ("q_proj", "k_proj", "v_proj"),
        ("to_q", "to_k", "to_v"),
    ],
    ids=" ".join,
)
def test_weights_used_under_each_others_names_give_wrong_values(
    adopted: Callable[..., Adopted], names: tuple[str, str, str]
) -> None:
    query, key, value = names
    source = single(
        linears(*names), f"return attend(self.{value}(x), self.{key}(x), self.{query}(x))"
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert torch.equal(theirs.values()[f"{query}.weight"], ours.W_query.weight)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_names_are_final_in_a_list_of_heads_too(adopted: Callable[..., Adopted]) -> None:
    source = WRAPPERS["a list of heads"].replace(
        "attend(self.query(x), self.key(x), self.value(x))",
        "attend(self.value(x), self.key(x), self.query(x))",
    )
    theirs, ours, _ = adopted(Wrapper, source, 3, 4, 2)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(BATCH), ours(BATCH))


def test_a_mistake_is_not_adopted_away(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("alpha", "beta", "gamma"),
        "q, k, v = self.alpha(x), self.beta(x), self.gamma(x)\n"
        "return torch.softmax(q @ k.T, dim=-1) @ v",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_weights_flow_from_the_reference_only(open_seat: OpenSeat) -> None:
    seat = open_seat(COMMON + RIGHT_SINGLES["aliases"], Single, parameters=ALIASES)
    ours, untouched = (seat.reference(MAKE).Single(3, 4) for _ in range(2))
    theirs = seat.student().Single(3, 4)
    adopt(theirs, ours)
    for path, weight in untouched.named_parameters():
        assert torch.equal(ours.get_parameter(path), weight)
    assert torch.equal(theirs.values()["q_proj.weight"], untouched.W_query.weight)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_search_leaves_the_mode_as_it_was(open_seat: OpenSeat, mode: str) -> None:
    source = single(
        linears("alpha", "beta", "gamma") + "\nself.drop = nn.Dropout(0.9)",
        "return self.drop(attend(self.gamma(x), self.alpha(x), self.beta(x)))",
    )
    seat = open_seat(COMMON + source, Single, parameters=ALIASES)
    theirs = getattr(seat.student().Single(3, 4), mode)()
    ours = getattr(seat.reference(MAKE).Single(3, 4), mode)()
    adopt(theirs, ours)
    assert bool((theirs(TOKENS) == 0).any()) == (mode == "train")
    assert ours.training == (mode == "train")
    theirs.eval()
    assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_adoption_in_double_precision_gives_the_same_weights(
    adopted: Callable[..., Adopted],
) -> None:
    theirs, ours, _ = adopted(Single, RIGHT_SINGLES["fused as qkv, in chunks"], 3, 4)
    assert_agrees(theirs.double()(TOKENS.double()), ours.double()(TOKENS.double()))


def test_a_module_can_adopt_twice(adopted: Callable[..., Adopted]) -> None:
    theirs, ours, _ = adopted(Single, RIGHT_SINGLES["names that say nothing"], 3, 4)
    with torch.no_grad():
        ours.W_query.weight.mul_(-2)
    adopt(theirs, ours)
    assert_agrees(theirs(TOKENS), ours(TOKENS))


# --- modules that have no place for the weights --------------------------------------------------


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            single("self.d = d_out", "return x.sum(-1, keepdim=True).expand(-1, self.d)"),
            "no floating-point parameters",
        ),
        (
            single(
                "self.w = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]",
                "return attend(*(w(x) for w in self.w))",
            ),
            "no floating-point parameters",
        ),
        (
            single(
                "self.Wq, self.Wk, self.Wv = (torch.rand(d_in, d_out) for _ in range(3))",
                "return attend(x @ self.Wq, x @ self.Wk, x @ self.Wv)",
            ),
            "nn.Parameter or nn.Linear",
        ),
        (
            single(linears("q"), "return attend(self.q(x), self.q(x), self.q(x))"),
            "found for W_key, W_value: q.weight is W_query, and the module has nothing else",
        ),
        (
            single(
                linears("alpha", "beta"),
                "return attend(self.alpha(x), self.alpha(x), self.beta(x))",
            ),
            "alpha.weight (4, 3), beta.weight (4, 3)",
        ),
        (
            single(
                "self.q, self.k, self.v = (nn.Linear(d_in, 5, bias=False) for _ in range(3))",
                "return attend(self.q(x), self.k(x), self.v(x))[:, :4]",
            ),
            "q.weight has shape (5, 3)",
        ),
        (
            single(
                "self.qkv = nn.ModuleList([nn.Linear(d_in, d_out, bias=False)] * 3)",
                "return attend(*(layer(x) for layer in self.qkv))",
            ),
            "qkv.0.weight has room for one of W_query, W_key, W_value: is it the same layer",
        ),
        (
            single(
                f"{linears('query', 'key')}\nself.extra = nn.Linear(5, 7)",
                "return attend(self.query(x), self.key(x), self.key(x))",
            ),
            "no parameters were found for W_value: query.weight is W_query, key.weight is W_key, "
            "and the module has extra.weight (7, 5), extra.bias (7,). Weights live in",
        ),
    ],
    ids=[
        "none",
        "in a list",
        "plain tensors",
        "one for three",
        "two for three",
        "other sizes",
        "one layer three times",
        "one lacking",
    ],
)
def test_a_module_without_a_place_for_a_weight_is_told_what_it_has(
    adopted: Callable[..., Adopted], source: str, told: str
) -> None:
    with pytest.raises(Unadoptable) as caught:
        adopted(Single, source, 3, 4)
    assert told in str(caught.value)
    assert isinstance(caught.value, AssertionError)


# --- how long a search may take ------------------------------------------------------------------


@contextmanager
def at_most_calls(most: int) -> Iterator[None]:
    """Fail as soon as more functions were called inside: no clock says the same everywhere."""
    calls = 0

    def counted(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > most:
            sys.setprofile(None)
            pytest.fail(f"the search takes more than {most:,} calls")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("shape", [(6, 6), (12, 6), (12, 4), (6, 4), (16, 6)])
def test_a_search_among_many_weights_without_a_name_ends_soon(shape: tuple[int, int]) -> None:
    """Five roles of which no weight fits all: 95,000 ways to share them out among eight weights."""
    roles = (
        ("W_query", (6, 6)),
        ("W_down", (4, 6)),
        ("W_up_key", (6, 4)),
        ("W_up_value", (6, 4)),
        ("out_proj", (6, 6)),
    )
    unnamed = tuple(ParameterInfo(f"{letter}x", shape, "float32", "Own") for letter in "abcdefgh")
    with at_most_calls(3 * 10**6), pytest.raises(Unadoptable):
        candidates(WantedRoles(roles, unnamed, (2,)), ())


@pytest.mark.parametrize("lacking", ["gate", "down"], ids=["like others", "like none"])
def test_a_search_for_the_one_matrix_that_a_block_lacks_ends_soon(lacking: str) -> None:
    """Seven roles, six of which names say: the orders of all seven among six have no end."""
    square = ("W_query", "W_key", "W_value", "out_proj")
    shapes = dict.fromkeys(square, (6, 6)) | {"up": (8, 6), "gate": (8, 6), "down": (6, 8)}
    held = tuple(
        ParameterInfo(f"{role}.weight", shape, "float32", "Linear")
        for role, shape in shapes.items()
        if role != lacking
    )
    told = f"no parameters were found for {lacking}: "
    with at_most_calls(10**5), pytest.raises(Unadoptable, match=told):
        candidates(WantedRoles(tuple(shapes.items()), held, (2,)), ())
