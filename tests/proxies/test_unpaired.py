"""Adoption where one side has more parameters, through a real jail: missing, extra, and learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

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

USED = "return attend(self.q(x), self.k(x), self.v(x))"
BIASES = {"W_query.bias", "W_key.bias", "W_value.bias"}

# An answer, the arguments that make it and the reference, and what either side has alone.
Unpaired = tuple[type[nn.Module], str, tuple[Any, ...], set[str], set[str]]
UNPAIRED: dict[str, Unpaired] = {
    "every bias is missing": (Single, ALIASED, (3, 4, True), BIASES, set()),
    "one bias is missing": (
        Many,
        WIDE.replace("nn.Linear(d_out, d_out)", "nn.Linear(d_out, d_out, bias=False)"),
        (3, 6, 2),
        {"out_proj.bias"},
        set(),
    ),
    "biases are missing in every head, and reported once a role": (
        Wrapper, HEADS.replace("d_out, True)", "d_out, False)"), (3, 4, 2), BIASES, set()
    ),
    "every layer has a bias too many": (
        Single,
        single(linears("q", "k", "v", bias="True"), USED),
        (3, 4),
        set(),
        {"q.bias", "k.bias", "v.bias"},
    ),
    "biases too many do not hinder the search": (
        Single,
        single(
            linears("alpha", "beta", "gamma", bias="True"),
            "return attend(self.beta(x), self.gamma(x), self.alpha(x))",
        ),
        (3, 4),
        set(),
        {"alpha.bias", "beta.bias", "gamma.bias"},
    ),
    "a bias of another size": (
        Single,
        single(
            linears("q", "k", "v") + "\nself.q_bias = nn.Parameter(torch.ones(1))",
            "return attend(self.q(x) + self.q_bias, self.k(x), self.v(x))",
        ),
        (3, 4, True),
        BIASES,
        {"q_bias"},
    ),
    "a layer without a role": (
        Single,
        single(
            linears("q", "k", "v") + "\nself.last = nn.Linear(1, d_out)", USED + " + self.last.bias"
        ),
        (3, 4),
        set(),
        {"last.weight", "last.bias"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("unpaired", UNPAIRED.values(), ids=UNPAIRED)
def test_what_one_side_has_alone_is_reported_and_adds_nothing(
    adopted: Callable[..., Adopted], unpaired: Unpaired
) -> None:
    reference, source, arguments, missing, extra = unpaired
    theirs, ours, adoption = adopted(reference, source, *arguments)
    assert (set(adoption.missing), set(adoption.extra)) == (missing, extra)
    x = TOKENS if reference is Single else BATCH
    assert_agrees(theirs(x), ours(x))
    assert not any(theirs.values()[path].any() for path in extra if path.endswith("bias"))


def test_missing_biases_are_zero_in_the_reference(adopted: Callable[..., Adopted]) -> None:
    theirs, ours, adoption = adopted(Single, ALIASED, 3, 4, True)
    assert not any(ours.get_parameter(role).any() for role in adoption.missing)
    assert ours.W_query.weight.all()
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)


def test_extra_biases_leave_the_gradients_alone(adopted: Callable[..., Adopted]) -> None:
    _, source, arguments, _, _ = UNPAIRED["every layer has a bias too many"]
    theirs, ours, _ = adopted(Single, source, *arguments)
    assert_gradients_agree(theirs, ours, TOKENS, make=MAKE)


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
