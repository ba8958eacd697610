"""Adoption of biases, through a real jail: bare, fused, in lists, and under other names."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import pytest
import torch

from grader.testing import assert_agrees
from tests.support.attentions import TOKENS, Bare, Single, linears, matrices, single
from tests.support.seats import Adopted

# --- beside their weights ------------------------------------------------------------------------


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


# --- in lists and tables, and under names that say nothing ---------------------------------------


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


# --- what only looks like a bias -----------------------------------------------------------------


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
