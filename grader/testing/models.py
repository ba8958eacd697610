"""Draws small models, for functions that take a model."""

from __future__ import annotations

import torch
from torch import nn

from grader.course.references import WEIGHT_SCALE
from grader.course.tensors import Make
from grader.wire.models import TableModel, layers_of


def small_model(make: Make, *layers: nn.Module) -> nn.Sequential:
    """Put layers of torch into a model, and draw all its parameters, biases included.

    ``small_model(make, nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))`` goes to a function of the
    student. After the call, the test's own model has the weights, buffers and modes that the
    student's code left in it, as after a call in the same process. Make a copy for the reference::

        theirs = small_model(make, nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        ours = copy.deepcopy(theirs)
        student.train(theirs, batches, 0.1)
        reference.train(ours, batches, 0.1)
        assert_agrees(theirs, ours)

    The layers are Linear, Conv1d, Conv2d, Embedding, norms, activations, Dropout, Flatten and
    Sequential of ``torch.nn``; raises `UnsuitableModel`, which lists them, for any other. The model
    is in training mode. Gradients in ``.grad`` travel in neither direction, and whether a weight
    needs a gradient travels to the student only. With dropout, the student's code and the reference
    drop different entries.
    """
    model = nn.Sequential(*layers)
    layers_of(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(make.normal_like(parameter, WEIGHT_SCALE))
    return model


def table_model(make: Make, *, vocab: int, context_length: int) -> TableModel:
    """Draw a language model that takes up to `context_length` ids below `vocab`.

    Pass the same model to ``student.f(model, …)`` and ``reference.f(model, …)``. The logit of the
    likeliest next id is the largest by one. Changing any id that the model sees changes which id is
    the likeliest.

    >>> model = table_model(make, vocab=7, context_length=5)
    >>> model(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 7])
    """
    table = make.normal(2.0, rows=vocab, vocab=vocab)
    likeliest = make.uniform(rows=vocab, dtype=torch.float64).argsort()
    table[torch.arange(vocab), likeliest] = table.amax(dim=1) + 1.0
    drawn = make.uniform(context_length=context_length, vocab=vocab, dtype=torch.float64)
    steps = drawn.argsort(dim=1)  # at each position, every id has a different step
    return TableModel(table, steps)
