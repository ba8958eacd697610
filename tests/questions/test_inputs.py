"""The inputs that questions are about, and how they are told."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader import wire
from grader.questions.inputs import ROUND, Input, inputs_of
from grader.wire import payload


def made_of(tensor: Tensor) -> list[Input]:
    """The inputs for a study of a function whose only check passes this tensor."""
    call = wire.Invoke("center", [payload.pack_tensor(tensor)], [], 1)
    inputs, _ = inputs_of("center", [call])
    return inputs


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_question_tells_the_exact_numbers_of_a_small_input(dtype: torch.dtype) -> None:
    """With rounded ones, a person would compute another result."""
    readable = [one for one in made_of(torch.randn(3, 4).to(dtype)) if one.is_readable]
    assert readable
    for one in readable:
        (tensor,) = one.tensors
        assert one.only == ROUND
        assert tensor.dtype == dtype
        assert torch.equal(tensor, tensor.round())


def test_a_module_is_asked_about_with_sizes_that_none_of_its_numbers_repeats() -> None:
    """Else nobody sees whether a 4 is the heads or the tokens."""
    calls: list[wire.Call] = []
    for number, tokens in enumerate([4, 6], start=1):
        x = payload.pack_tensor(torch.randn(2, tokens, 5))
        calls += [
            wire.Invoke("Heads", [5, 12, 4], [], number, construct=True),
            wire.Invoke(number, [x], [], number + 10),
        ]
    inputs, _ = inputs_of("Heads", calls)
    assert [one.tensors[0].shape[1] for one in inputs if not one.only] == [6, 4]


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_rows_of_round_numbers_differ(columns: int) -> None:
    """A pattern as long as a row would make all rows the same."""
    readable = [one for one in made_of(torch.randn(3, columns)) if one.is_readable]
    assert readable
    for one in readable:
        (tensor,) = one.tensors
        assert len({*map(str, tensor.tolist())}) > 1
