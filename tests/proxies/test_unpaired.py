"""Adoption where one side has more parameters, through a real jail: missing, extra, and learned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.proxies.adoption import also_learned
from grader.testing import assert_agrees, assert_gradients_agree
from tests.support.attentions import (
    ALIASED,
    BATCH,
    HEADS,
    MAKE,
    TOKENS,
    WIDE,
    Many,
    Single,
    Wrapper,
    linears,
    matrices,
    single,
)
from tests.support.seats import Adopted

# --- missing and extra biases --------------------------------------------------------------------


def test_missing_biases_are_reported_and_zero_in_the_reference(
    adopted: Callable[..., Adopted],
) -> None:
    source = ALIASED
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
    source = HEADS.replace("d_out, True)", "d_out, False)")
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


def test_a_bias_of_a_layer_without_a_role_becomes_zero(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("q", "k", "v") + "\nself.last = nn.Linear(1, d_out)",
        "return attend(self.q(x), self.k(x), self.v(x)) + self.last.bias",
    )
    theirs, ours, adoption = adopted(Single, source, 3, 4)
    assert set(adoption.extra) == {"last.weight", "last.bias"}
    assert_agrees(theirs(TOKENS), ours(TOKENS))


# --- other parameters ----------------------------------------------------------------------------


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


# --- what is learned besides ---------------------------------------------------------------------

# What an answer may hold besides its three matrices, how its queries use it, and which of its
# parameters are reported as learned.
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
    assert_agrees(theirs(TOKENS), ours(TOKENS))  # the values that were tried are put back


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


def test_a_parameter_of_which_other_values_are_refused_counts_as_learned(
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
