"""Parameters that no weight fits into, and that do not stay: the grade stands, and says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.proxies.adoption import also_learned
from grader.proxies.calls import StudentRaised
from grader.testing import assert_agrees
from tests.support.seats import Adopted
from tests.support.transformers import PLAIN, Block, X, block

STUB = (
    "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
    "self.attention, self.feed_forward = Named(d, heads), Mlp(d, hidden)\n"
)
FORWARD = PLAIN.format(a="self.attention", f="self.feed_forward", n1="self.norm1", n2="self.norm2")


@pytest.mark.parametrize("dtype", ["complex64", "complex32", "int64", "float8_e8m0fnu"])
@pytest.mark.parametrize("kind", ["weight", "bias"])
def test_a_norm_of_numbers_that_hold_no_weight_is_wrong(
    adopted: Callable[..., Adopted], kind: str, dtype: str
) -> None:
    odd = f"nn.Parameter(torch.ones(d).to(torch.{dtype}), requires_grad=False)"
    source = block(f"{STUB}self.norm1.{kind} = {odd}", FORWARD)

    def agree() -> None:
        found = adopted(Block, source, 8, 2, 12)
        assert_agrees(found.theirs(X), found.ours(X))

    with pytest.raises((AssertionError, StudentRaised)):  # the answer's fault, and not ours
        agree()


def test_numbers_that_hold_no_weight_are_told_as_what_is_over(
    adopted: Callable[..., Adopted],
) -> None:
    odd = "nn.Parameter(torch.ones(d, dtype=torch.complex64))"
    found = adopted(Block, block(f"{STUB}self.phases = {odd}", FORWARD), 8, 2, 12)
    assert found.adoption.extra == ("phases",)
    assert_agrees(found.theirs(X), found.ours(X))


@pytest.mark.parametrize(
    "change",
    [
        "vars(self)['_parameters'].pop('scratch', None)",
        "self.scratch.data = self.scratch.data[:1]",
    ],
    ids=["is gone", "has another shape"],
)
def test_a_parameter_that_a_call_takes_away_is_told_to_the_student(
    adopted: Callable[..., Adopted], change: str
) -> None:
    source = block(f"{STUB}self.scratch = nn.Parameter(torch.ones(3))", f"{change}\n{FORWARD}")
    found = adopted(Block, source, 8, 2, 12)
    found.theirs(X)
    with pytest.raises(AssertionError, match=r"scratch had shape \(3,\) .*; after a call"):
        also_learned(found.theirs)
