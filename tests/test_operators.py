"""No operator of torch does in one call what an exercise forbids, or more than it costs.

`make operators` goes through all of them; here are the quick parts, which a new torch must pass.
"""

from __future__ import annotations

import re

import pytest
import torch

from grader.course.course import load_course
from grader.guest import operations as counted
from tests.support.places import REAL
from tests.tools.operators import Finding, too_cheap, twins, unseen

FUNCTIONS = {name: group.functions for name, group in load_course(REAL).file.operations.items()}

# A pattern of operators' names, and the groups of forbidden functions that must have them.
FAMILIES = {
    r"soft(max|min)|logsumexp": ("softmax", "logsumexp", "autograd"),
    r"attention": ("attention", "autograd"),
    r"gelu": ("gelu",),
    r"adam": ("adamw",),
    r"norm(?!al)": ("norm",),
}
# Operators that do something else: lengths of vectors, gradients of norms, limits of lengths.
OTHERS = re.compile(r"norm.*_backward|(vector|matrix|frobenius|nuclear|foreach|native|linalg)_norm"
                    r"|^norm(_except_dim)?$|renorm")  # fmt: skip


def operators() -> set[str]:
    """The names of all operators, as forbidden functions are named."""
    schemas = torch._C._jit_get_all_schemas()
    return {schema.name.split("::")[1].split(".")[0].strip("_") for schema in schemas}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operator_of_a_forbidden_family_is_forbidden(family: str) -> None:
    known = {name for group in FAMILIES[family] for name in FUNCTIONS[group]}
    found = {name for name in operators() if re.search(family, name)}
    assert found, "the pattern finds the family"
    assert sorted(name for name in found - known if not OTHERS.search(name)) == []


def test_every_optimiser_that_can_make_adams_step_is_forbidden() -> None:
    other_steps = {"Adamax", "NAdam", "RAdam"}
    optimisers = {name for name in vars(torch.optim) if "Adam" in name} - other_steps
    assert {f"{name}.step" for name in optimisers} <= set(FUNCTIONS["adamw"])


def test_somebody_has_looked_at_every_operator_that_is_as_cheap_as_a_view() -> None:
    assert [*unseen()] == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(2))
def test_no_operator_computes_more_than_it_costs(part: int) -> None:
    assert [*too_cheap(lambda number: number % 90 == 45 * part)] == []


@pytest.mark.filterwarnings("ignore")
def test_a_maximum_that_counts_as_a_view_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "REDUCTIONS", frozenset())
    monkeypatch.setattr(counted, "MOVING", counted.MOVING | {"amax", "logsumexp"})
    found = {finding.operator for finding in too_cheap(lambda number: number in (472, 534))}
    assert found == {"amax", "logsumexp"}


def test_a_twin_that_is_not_forbidden_is_found() -> None:
    softmax = "aten::softmax.int"
    assert Finding("twin", softmax, "gives what softmax gives") in [*twins([softmax], banned={})]
