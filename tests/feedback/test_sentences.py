"""What is said to torch's errors about other things than sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from grader.feedback import sentences
from grader.guest.trace import OneDevice

HERE, PRETEND = torch.ones(3, 4), torch.ones(3, 4, device="meta")
LEARNED = torch.ones(3, requires_grad=True)


def with_one_device() -> None:
    with OneDevice():  # type: ignore[no-untyped-call]
        torch.add(HERE, PRETEND)


ERRORS: dict[str, tuple[Callable[[], object], str]] = {
    "two devices": (with_one_device, "meta is a pretend device"),
    "two devices, in torch's words": (lambda: HERE + PRETEND, "meta is a pretend device"),
    "numpy": (lambda: LEARNED.numpy(), "numpy knows no gradients"),
    "a function of numpy's": (lambda: np.exp(LEARNED), "numpy knows no gradients"),
}


@pytest.mark.parametrize(("fails", "sentence"), ERRORS.values(), ids=ERRORS)
def test_what_torch_says_is_explained(fails: Callable[[], object], sentence: str) -> None:
    with pytest.raises(RuntimeError) as raised:
        fails()
    told = sentences.raised(raised.typename, str(raised.value), None, {}, {})
    assert told.startswith(f"it raised {raised.typename}: {raised.value!s}")
    assert told.splitlines()[-1].startswith(sentence)


def test_other_errors_are_left_as_they_are() -> None:
    told = sentences.raised("ValueError", "the device is metal", None, {}, {})
    assert told == "it raised ValueError: the device is metal"
