"""No operator of torch does in one call what an exercise forbids: a new torch is looked through."""

from __future__ import annotations

import re

import pytest
import torch

from grader.course.course import load_course
from tests.support.places import REAL

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
