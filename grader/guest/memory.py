"""Adds up the numbers that a call's tensors hold at one time.

The size of the largest tensor does not show what an answer keeps: a list of small tensors may hold
as much as the matrix that they were cut from.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch


class Memory:
    """The memory of the tensors that were made in a call, as long as anything uses it.

    Several tensors may share their memory, such as a tensor and its views. Torch keeps the Python
    object of a storage until the memory is freed, so a weak reference to that object tells whether
    the memory is still in use. The references call no function of ours, since student code could
    find such a function.
    """

    def __init__(self) -> None:
        """Begin with no memory."""
        self._used: dict[int, tuple[weakref.ref[object], int]] = {}
        self._sum = 0  # of all in `_used`; some may have been freed since
        self.most = 0  # numbers that tensors held at one time

    def add(self, result: torch.Tensor, given: Sequence[torch.Tensor]) -> None:
        """Count the result of an operation, unless it lies in the memory of what it was given."""
        memory = _memory_of(result)
        reference, before = self._used.get(id(memory), (None, 0))
        if reference is None or reference() is not memory:
            if any(_memory_of(one) is memory for one in given):
                return
            self._sum -= before  # that memory was freed, and its object's place is used again
            before = 0
        numbers = result.numel()
        if isinstance(memory, torch.UntypedStorage):
            numbers = memory.nbytes() // result.element_size()
        self._used[id(memory)] = weakref.ref(memory), numbers
        self._sum += numbers - before
        if self._sum > self.most:
            self._used = {at: one for at, one in self._used.items() if one[0]() is not None}
            self._sum = sum(numbers for _, numbers in self._used.values())
            self.most = max(self.most, self._sum)


def _memory_of(tensor: torch.Tensor) -> object:
    """The storage of a tensor, or the tensor if it has none, as a sparse one."""
    return tensor.untyped_storage() if tensor.layout == torch.strided else tensor
