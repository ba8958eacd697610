"""Adoption of one head, through a real jail, whatever its matrices are called and how they lie."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from grader.proxies.adoption import joined_gradients
from grader.testing import adopt, assert_agrees, assert_gradients_agree
from tests.support.attentions import (
    ALIASED,
    ALIASES,
    COMMON,
    MAKE,
    TOKENS,
    Bare,
    Single,
    linears,
    matrices,
    single,
)
from tests.support.seats import Adopted, OpenSeat

# --- right answers: the reference's result, whatever the names and the layout --------------------

RIGHT_SINGLES = {
    "the contract's names": single(
        linears("W_query", "W_key", "W_value"),
        "return attend(self.W_query(x), self.W_key(x), self.W_value(x))",
    ),
    "aliases": ALIASED,
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


# --- what else holds of an adoption --------------------------------------------------------------

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


def test_a_match_at_another_size_is_tried_first_and_not_trusted(
    adopted: Callable[..., Adopted],
) -> None:
    for size in (3, 4, 3):
        tokens = MAKE.normal(tokens=5, d_in=size, name="fickle")
        theirs, ours, _ = adopted(Bare, FICKLE, size, size)
        assert_agrees(theirs(tokens), ours(tokens))


def test_weights_flow_from_the_reference_only(open_seat: OpenSeat) -> None:
    seat = open_seat(COMMON + ALIASED, Single, parameters=ALIASES)
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
