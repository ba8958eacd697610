"""The kit's own models, which a test passes to a student's function.

Only the weights of a model are sent: both processes build the model from the code below. A student
may read the code and the weights, since calling the model reveals the same.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TableModel(nn.Module):
    """A tiny language model: ids (batch, tokens) become logits (batch, tokens, vocab).

    Each id has a step, an integer that depends on the id and its position. The sum of the steps so
    far, modulo the table's length, is the row of the table with the logits. Therefore the logits
    depend on each visible id and its position. The arithmetic is exact: every machine finds the
    same largest logit. Like a GPT, the model raises an error for more ids than its context length.
    """

    def __init__(self, table: Tensor, steps: Tensor) -> None:
        """`table` is (vocab, vocab); `steps` is int64 (context_length, vocab)."""
        super().__init__()
        self.table = nn.Parameter(table, requires_grad=False)
        self.steps = nn.Parameter(steps, requires_grad=False)
        self.eval()

    def forward(self, ids: Tensor) -> Tensor:
        """The logits of the next id, at each position; raises `ValueError` for unknown ids."""
        self._require_known(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)
        sums = self.steps[positions, ids].cumsum(dim=1)  # (batch, tokens)
        return self.table[sums % len(self.table)]

    def _require_known(self, ids: Tensor) -> None:
        context_length, vocab = self.steps.shape
        if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.dim() != 2:
            raise ValueError("the model takes ids as an int64 tensor of shape (batch, tokens)")
        if not 1 <= ids.shape[1] <= context_length:
            raise ValueError(
                f"the model takes 1 to {context_length} ids a row (its context_length is "
                f"{context_length}), got {ids.shape[1]}"
            )
        if not ids.is_meta and bool(((ids < 0) | (ids >= vocab)).any()):
            found = f"ids from {int(ids.min())} to {int(ids.max())}"
            raise ValueError(f"the model knows the ids 0 to {vocab - 1}, got {found}")
