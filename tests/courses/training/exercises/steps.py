"""Unit 1: what a training step is made of."""

from __future__ import annotations

import math  # noqa: F401 - your answers may need it
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def cross_entropy(
    logits: Float[Tensor, "batch classes"], targets: Int[Tensor, " batch"]
) -> Float[Tensor, ""]:
    """Measure how surprised a model is by the right classes.

        loss = mean over i of  log Σⱼ exp(logits[i, j]) - logits[i, targets[i]]

    Why: the loss is zero if the right class has all the probability, and grows without a limit as
    its probability goes to zero.

    Takes:
        logits: (batch, classes), any finite numbers, large ones too.
        targets: int (batch), the number of the right class of each row.

    Returns:
        (): the loss.

    Rules:
        forbidden: Torch's cross_entropy, nll_loss and log_softmax are off limits.
        large: Logits of several hundred give a finite loss.
        dtype: float64 in, float64 out, in full precision.
        unchanged: `logits` and `targets` stay as they were.
        gradients: Gradients flow back to the logits.

    Example: both classes are equally likely, so the loss is the logarithm of two.

    >>> cross_entropy(torch.tensor([[3.0, 3.0]]), torch.tensor([1]))
    tensor(0.6931)

    Source: Goodfellow, Bengio, Courville 2016, "Deep Learning", section 6.2.2,
    https://www.deeplearningbook.org.
    """
    raise NotImplementedError


def clip_gradients(gradients: list[Tensor], largest: float) -> list[Tensor]:
    """Shorten gradients that are too long together, and keep their direction.

        length = square root of the sum of all squares, in all tensors
        result = gradients · min(1, largest / length)

    Why: a single odd batch can have a gradient a thousand times longer than usual. One step along
    it would undo the training so far.

    Takes:
        gradients: a list of tensors of any shapes, which are not all zero.
        largest: the largest length, above 0.

    Returns:
        a list of new tensors, in the same order and with the same shapes.

    Rules:
        short: Gradients that are not longer than `largest` keep their values.
        dtype: float64 in, float64 out, in full precision.
        unchanged: The tensors in `gradients` stay as they were.

    Example: the length is 5, so all numbers become a fifth.

    >>> clip_gradients([torch.tensor([3.0]), torch.tensor([[4.0]])], 1.0)
    [tensor([0.6000]), tensor([[0.8000]])]

    Source: Pascanu, Mikolov, Bengio 2013, "On the difficulty of training recurrent neural
    networks", section 3.2, https://arxiv.org/abs/1211.5063.
    """
    raise NotImplementedError


def schedule(steps: int, warmup: int, peak: float) -> Float[Tensor, " steps"]:
    """Plan the learning rate of every step: a linear rise, then half a cosine.

        rate[t] = peak · (t + 1) / warmup                                    for t < warmup
        rate[t] = peak · (1 + cos(π (t - warmup) / (steps - warmup))) / 2    from t = warmup on

    Why: large steps at the start would throw the first weights far away, and large steps at the
    end would jump over the minimum.

    Takes:
        steps: int, the number of steps, more than `warmup`.
        warmup: int, the number of steps of the rise, at least 1.
        peak: the largest rate.

    Returns:
        (steps): the rates.

    Example: two steps up, and four down.

    >>> schedule(6, 2, 1.0)
    tensor([0.5000, 1.0000, 1.0000, 0.8536, 0.5000, 0.1464])

    Source: Loshchilov, Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts",
    section 3, https://arxiv.org/abs/1608.03983.
    """
    raise NotImplementedError


@dataclass(frozen=True)
class Momentum:
    """A weight with the average of its gradients so far."""

    weight: Float[Tensor, " features"]
    average: Float[Tensor, " features"]
    steps: int = 0


def momentum_step(
    state: Momentum,
    gradient: Float[Tensor, " features"],
    rate: float,
    keep: float = 0.9,
) -> Momentum:
    """Move a weight against the average of its gradients.

        average = keep · average + (1 - keep) · gradient
        weight  = weight - rate · average

    Why: the noise of single batches cancels in an average, so that a weight takes a straighter
    way down.

    Takes:
        state: Momentum with `weight` (features), `average` (features) and the number of `steps`
            so far.
        gradient: (features), that of the weight.
        rate: float, the learning rate.
        keep: float, the share of the old average, between 0 and 1.

    Returns:
        a new Momentum, with `weight` (features), `average` (features) and a step more in `steps`.

    Rules:
        unchanged: The tensors in `state`, and `gradient`, stay as they were.

    Example: half of the average is old, and half is new.

    >>> start = Momentum(torch.tensor([1.0, -2.0]), average=torch.tensor([0.0, 4.0]), steps=3)
    >>> momentum_step(start, torch.tensor([2.0, -2.0]), 0.5, keep=0.5)
    Momentum(weight=tensor([ 0.5000, -2.5000]), average=tensor([1., 1.]), steps=4)

    Source: Polyak 1964, "Some methods of speeding up the convergence of iteration methods",
    section 2, https://doi.org/10.1016/0041-5553(64)90137-5.
    """
    raise NotImplementedError
