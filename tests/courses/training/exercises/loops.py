"""Unit 2: a model that somebody else made is trained and evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn


def train(
    model: nn.Module,
    batches: Iterable[tuple[Float[Tensor, "batch features"], Int[Tensor, " batch"]]],
    rate: float,
) -> None:
    """Train a model for one pass over the batches, with plain gradient descent.

        for each batch: weight = weight - rate · gradient of the batch's cross-entropy

    Why: every training loop is this one, with a cleverer step.

    Takes:
        model: an nn.Module that turns inputs (batch, features) into logits (batch, classes).
        batches: a generator of pairs: inputs (batch, features), and targets int (batch).
        rate: the learning rate.

    Returns:
        nothing: the model that you are given holds the new weights.

    Rules:
        new: Each step uses the gradient of its own batch, and no gradients of earlier batches;
            an answer that breaks this rule gets at most half of the points.
        mode: The model trains in training mode, also if it comes in evaluation mode.

    Example: the gradient is 1 for the first weight and -1 for the second.

    >>> model = torch.nn.Linear(1, 2, bias=False)
    >>> _ = torch.nn.init.zeros_(model.weight)
    >>> train(model, [(torch.tensor([[2.0]]), torch.tensor([1]))], 0.1)
    >>> model.weight.data
    tensor([[-0.1000],
            [ 0.1000]])

    Source: Bottou 2010, "Large-Scale Machine Learning with Stochastic Gradient Descent",
    section 2, https://leon.bottou.org/papers/bottou-2010.
    """
    raise NotImplementedError


def accuracy(
    model: nn.Module, inputs: Float[Tensor, "batch features"], targets: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Find the fraction of rows for which the largest logit is that of the target.

        accuracy = (number of i with argmaxⱼ model(inputs)[i, j] = targets[i]) / batch

    Why: the loss says how sure a model is, and the accuracy how often it is right.

    Takes:
        model: an nn.Module that turns inputs (batch, features) into logits (batch, classes).
        inputs: (batch, features), any numbers.
        targets: int (batch), the number of the right class of each row.

    Returns:
        (): the accuracy, from 0 to 1.

    Rules:
        mode: The model predicts in evaluation mode.
        unchanged: The model keeps its weights, its buffers, and the mode in which it came.

    Example: the weight is 1, so the larger input is the larger logit; one of two rows is right.

    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = torch.nn.init.eye_(model.weight)
    >>> accuracy(model, torch.tensor([[1.0, 5.0], [7.0, 2.0]]), torch.tensor([1, 1]))
    tensor(0.5000)

    Source: Goodfellow, Bengio, Courville 2016, "Deep Learning", section 5.1.2,
    https://www.deeplearningbook.org.
    """
    raise NotImplementedError
