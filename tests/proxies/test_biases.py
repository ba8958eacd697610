"""Adoption of biases, through a real jail: bare, fused, in lists, and under other names."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import pytest
import torch

from grader.testing import assert_agrees
from tests.support.attentions import TOKENS, Bare, Single, linears, matrices, single
from tests.support.seats import Adopted, assert_whole

PLAIN = "return attend(self.q(x), self.k(x), self.v(x))"


def biased(made: str, q: str, k: str, v: str) -> str:
    """Matrices W_q, W_k and W_v, with biases that are made and used so."""
    return single(
        f"{matrices('W_q', 'W_k', 'W_v')}\n{made}",
        f"return attend(x @ self.W_q + {q}, x @ self.W_k + {k}, x @ self.W_v + {v})",
    )


def listed(order: str) -> str:
    """Biases in a list without names, in this order."""
    return single(
        matrices("W_q", "W_k", "W_v") + "\n"
        "biases = (nn.Parameter(torch.zeros(d_out)) for _ in range(3 if qkv_bias else 0))\n"
        "self.biases = nn.ParameterList(biases)",
        f"given = dict(zip('{order}', self.biases)) if len(self.biases) else {{}}\n"
        "parts = {n: x @ getattr(self, f'W_{n}') + given.get(n, 0) for n in 'qkv'}\n"
        "return attend(parts['q'], parts['k'], parts['v'])",
    )


def unnamed(q: str, k: str, v: str) -> str:
    """Biases under names that say nothing."""
    return single(
        f"{linears('q', 'k', 'v')}\nif qkv_bias:\n"
        + indent(matrices(k, v, q, shape="d_out"), "    ")
        + "\nself.qkv_bias = qkv_bias",
        f"if not self.qkv_bias:\n    {PLAIN}\n"
        f"return attend(self.q(x) + self.{q}, self.k(x) + self.{k}, self.v(x) + self.{v})",
    )


BIASED = {
    "of layers": single(linears("q", "k", "v", bias="qkv_bias"), PLAIN),
    "of a fused layer": single(
        "self.all = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)",
        "k, v, q = self.all(x).chunk(3, dim=-1)\nreturn attend(q, k, v)",
    ),
    "bare, under names of their roles": biased(
        matrices("q_bias", "bias_k", "b_v", shape="d_out"), "self.q_bias", "self.bias_k", "self.b_v"
    ),
    "bare, under the names of their weights": single(
        matrices("frage", "W_such", "wert")
        + "\n"
        + matrices("frage_b", "b_such", "bias_wert", shape="d_out"),
        "k, v = x @ self.W_such + self.b_such, x @ self.wert + self.bias_wert\n"
        "return attend(x @ self.frage + self.frage_b, k, v)",
    ),
    "with leading axes of one": biased(
        matrices("q_bias", "k_bias", "v_bias", shape="1, 1, d_out"),
        *(f"self.{name}_bias[0]" for name in "qkv"),
    ),
    "in a list without names": listed("qkv"),
    "in a list without names, in another order": listed("vkq"),
    "in a table called b": single(
        linears("q", "k", "v") + "\nself.b = nn.Parameter(torch.zeros(3, d_out))",
        "return attend(self.q(x) + self.b[0], self.k(x) + self.b[1], self.v(x) + self.b[2])",
    ),
    "under words that say nothing": unnamed("shift_q", "offset_k", "add_v"),
    "under letters that say nothing": unnamed("gamma", "beta", "delta"),
}


@pytest.mark.parametrize("source", BIASED.values(), ids=BIASED)
def test_biases_are_adopted_with_their_weights(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Single, source, 3, 4, True), TOKENS)


def test_a_list_without_names_may_be_empty(adopted: Callable[..., Adopted]) -> None:
    assert adopted(Single, listed("vkq"), 3, 4, False).adoption.extra == ()


def test_a_bias_goes_where_its_layer_goes(adopted: Callable[..., Adopted]) -> None:
    found = adopted(Single, BIASED["of layers"], 3, 4, True)
    assert torch.equal(found.theirs.values()["q.bias"], found.ours.W_query.bias)


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
    for with_biases in (False, True):
        assert_whole(adopted(Single, source, 3, 4, with_biases), TOKENS)


# --- what only looks like a bias -----------------------------------------------------------------


def test_a_factor_that_begins_with_b_stays_what_it_is(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.beta = nn.Parameter(torch.ones(d_out))",
        "return attend(self.q(x) * self.beta, self.k(x), self.v(x))",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert_agrees(theirs(TOKENS), ours(TOKENS))


@pytest.mark.parametrize("names", ["b1 b2 b3", "bq bk bv", "bias_q bias_k bias_v", "a b c"])
@pytest.mark.parametrize("reference", [Single, Bare])
def test_three_matrices_with_names_of_biases_are_no_biases(
    adopted: Callable[..., Adopted], reference: type, names: str
) -> None:
    q, k, v = names.split()
    source = single(matrices(q, k, v), f"return attend(x @ self.{q}, x @ self.{k}, x @ self.{v})")
    source = source.replace("Single", reference.__name__)
    assert_whole(adopted(reference, source, 3, 4), TOKENS)
