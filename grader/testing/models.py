"""Draws small language models, for functions that take a model."""

from __future__ import annotations

import torch

from grader.course.tensors import Make
from grader.wire.models import TableModel


def table_model(make: Make, *, vocab: int, context_length: int) -> TableModel:
    """Draw a language model that takes up to `context_length` ids below `vocab`.

    Pass the same model to ``student.f(model, …)`` and ``reference.f(model, …)``. The logit of the
    likeliest next id is the largest by one. Changing any id that the model sees changes which id is
    the likeliest.
    """
    table = make.normal(2.0, rows=vocab, vocab=vocab)
    likeliest = make.uniform(rows=vocab, dtype=torch.float64).argsort()
    table[torch.arange(vocab), likeliest] = table.amax(dim=1) + 1.0
    drawn = make.uniform(context_length=context_length, vocab=vocab, dtype=torch.float64)
    steps = drawn.argsort(dim=1)  # at each position, every id has a different step
    return TableModel(table, steps)
