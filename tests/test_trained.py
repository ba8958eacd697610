"""The weights that hidden tests give to a student's model: the reference adds with them."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from grader.course.course import load_course
from grader.course.references import open_oracle
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


def new_model() -> nn.Module:
    model = open_oracle(load_course(REAL)).definitions["GPT"](*SIZES)
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
