"""The weights that hidden tests give to a student's model: the reference adds with them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import gelu

from grader.course.course import load_course
from grader.course.references import open_oracle
from grader.course.tolerances import RECOGNISED
from tests.support.places import REAL
from tests.tools.trained import (
    ENOUGH,
    FILE,
    HELD_OUT,
    SIZES,
    pairs,
    reproducibly,
    share_of_right_sums,
    train,
)


def references() -> Mapping[str, Any]:
    return open_oracle(load_course(REAL)).definitions


def new_model() -> nn.Module:
    model = references()["GPT"](*SIZES)
    assert isinstance(model, nn.Module)
    return model


@pytest.fixture(name="kept")
def _kept() -> dict[str, Tensor]:
    return load_file(FILE)


def test_the_reference_adds_numbers_with_them_that_no_training_saw(
    kept: dict[str, Tensor],
) -> None:
    lines = kept.pop("held_out").long()
    model = new_model()
    assert share_of_right_sums(model, lines) < 0.05
    model.load_state_dict({path: value.float() for path, value in kept.items()}, strict=False)
    assert share_of_right_sums(model, lines) >= ENOUGH


def test_the_exact_gelu_and_the_tanh_form_give_the_same_with_them(
    kept: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = kept.pop("held_out").long()[:, :-1]
    model = new_model()
    model.load_state_dict({path: value.float() for path, value in kept.items()}, strict=False)
    with torch.no_grad():
        exact = model(lines)
        module = sys.modules[references()["gelu"].__module__]
        monkeypatch.setattr(module, "gelu", partial(gelu, approximate="tanh"))
        by_tanh = model(lines)
    assert not torch.equal(exact, by_tanh)
    assert RECOGNISED.holds(by_tanh, exact)


def test_they_are_small_and_no_line_of_theirs_was_learned_from(kept: dict[str, Tensor]) -> None:
    known, held_out = pairs()
    assert torch.equal(kept["held_out"].long(), held_out)
    assert len(held_out) == HELD_OUT
    assert {tuple(line) for line in known.tolist()}.isdisjoint(map(tuple, held_out.tolist()))
    assert FILE.stat().st_size < 250_000


def test_training_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tools.trained.STEPS", 60)
    monkeypatch.setattr("tests.tools.trained.BATCH", 8)
    known, _ = pairs()
    models = []
    for _ in range(2):
        with reproducibly():
            models.append(new_model())
            train(models[-1], known)
    first, second = models
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
