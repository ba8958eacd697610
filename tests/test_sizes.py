"""The sizes of the course's tests tell every two dimensions apart, and a head's width from others.

With a head as wide as the latents, a wrong scale gives the right numbers. Therefore at least one
call of each exercise, in its public checks and in its hidden tests, has sizes that all differ.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import pytest

from grader.course import contract
from grader.course.course import load_course
from grader.grading.opening import set_up
from grader.grading.order import Order
from grader.grading.play import replay
from grader.proxies import calls
from grader.sandbox.session import Nowhere
from tests.support.places import REAL

NUMBERS = ("value", "property", "gradient")  # rungs that compare numbers
WHOLE = ("d_out", "d_model")  # the heads share these features
OF_ONE_HEAD = {"MultiHeadAttentionWrapper"}  # exercises in which d_out is the width of one head

Sizes = Mapping[str, int]


@pytest.fixture(scope="module")
def sizes() -> dict[tuple[str, bool], list[Sizes]]:
    """The sizes of each call of a reference, by exercise and whether the test is hidden."""
    found: dict[tuple[str, bool], list[Sizes]] = defaultdict(list)
    running = "", False

    def bind(of: contract.Contract, *arguments: Any) -> contract.Binding:
        bound = contract.bind(of, *arguments)
        if of.name == running[0]:
            sizes = {name: size for name, size in bound.sizes.items() if size}  # none is empty
            found[running].append(sizes if of.name in OF_ONE_HEAD else with_heads(sizes))
        return bound

    course = load_course(REAL)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        desk = set_up(Order(course, "s", course.tests_of(), isolation="weak"), Nowhere())
        patch.setattr(calls, "bind", bind)
        for name, tests in desk.tests.items():
            for test in tests:
                running = name, test.hidden
                for case in test.cases if test.rung in NUMBERS and not test.memory_mb else ():
                    replay(desk, desk.definitions, test, case)
    return found


def with_heads(sizes: Sizes) -> Sizes:
    """The sizes, and the features of one head."""
    heads, whole = sizes.get("num_heads", 1), [sizes[name] for name in WHOLE if name in sizes]
    if heads == 1 or not whole or "head_dim" in sizes:
        return sizes
    return {**sizes, "a head": whole[0] // heads}


@pytest.mark.parametrize("hidden", [False, True], ids=["public", "hidden"])
def test_some_call_of_each_exercise_has_sizes_that_all_differ(
    sizes: Mapping[tuple[str, bool], list[Sizes]], hidden: bool
) -> None:
    alike = {}
    for (exercise, is_hidden), found in sizes.items():
        if is_hidden is hidden:
            equal = [{*pairs_alike(one)} for one in found]
            if all(equal):
                alike[exercise] = min(equal, key=len)
    assert alike == {}


def pairs_alike(sizes: Sizes) -> list[tuple[str, str]]:
    return [(a, b) for a, b in combinations(sorted(sizes), 2) if sizes[a] == sizes[b]]
