"""Reads a model's attention weights while the student's own code computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grader.playing.game import Game, Scene

CLOSE = 1e-4  # the largest error in the sum of a row, which should be 1


@dataclass(frozen=True)
class Head:
    """The attention weights of one head for a text: rows are queries, columns are keys."""

    name: str  # "layer 1, head 2", both counted from 1
    weights: tuple[tuple[float, ...], ...]

    def on(self, focus: Sequence[tuple[int, int]]) -> float:
        """The sum of the weights at these (row, column) positions, averaged over their rows."""
        inside = [place for place in focus if max(place) < len(self.weights)]
        rows = {row for row, _ in inside}
        return sum(self.weights[row][column] for row, column in inside) / max(1, len(rows))

    def chance(self, focus: Sequence[tuple[int, int]]) -> float:
        """The value of `on` if each row spread its weight evenly over the tokens that it may see.

        A row with weight on later tokens may see all tokens; otherwise the row sees no later token.
        """
        inside = [place for place in focus if max(place) < len(self.weights)]
        rows = {row for row, _ in inside}
        sees_all = any(any(row[place + 1 :]) for place, row in enumerate(self.weights))
        shares = [1 / (len(self.weights) if sees_all else row + 1) for row, _ in inside]
        return sum(shares) / max(1, len(rows))


def heads_of(game: Game, model: nn.Module, heads: int, text: str) -> list[Head]:
    """The attention weights of all heads, layer by layer; empty if none were found.

    A matrix counts as weights if it has a row and a column for each token, and if each row sums
    to one.
    """
    ids = game.ids([text])
    watching = _Watching(ids.shape[1])
    # Torch's fused attention never stores the weights as a tensor; its MATH backend does.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), watching:
        model(ids)
    seen = watching.weights
    if any(map(_causal, seen)):  # then other matrices come from a softmax before the mask
        seen = [weights for weights in seen if _causal(weights)]
    matrices = [matrix for weights in seen for matrix in weights.tolist()]
    named = len(matrices) % heads == 0
    return [
        Head(
            f"layer {place // heads + 1}, head {place % heads + 1}" if named else f"no. {place}",
            tuple(map(tuple, matrix)),
        )
        for place, matrix in enumerate(matrices)
    ]


def most_on(heads: Sequence[Head], scene: Scene) -> Head | None:
    """The head with the most weight on the scene's focus."""
    return max(heads, key=lambda head: head.on(scene.focus), default=None)


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the tensors that look like attention weights over this many tokens."""

    def __init__(self, tokens: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tokens = tokens
        self.weights: list[Tensor] = []  # each (heads, tokens, tokens)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, Tensor) and value.is_floating_point():
                self._keep(value)
        return out

    def _keep(self, value: Tensor) -> None:
        if value.ndim < 2 or value.shape[-2:] != (self.tokens, self.tokens):
            return
        found = value.detach().reshape(-1, self.tokens, self.tokens)
        sums = found.sum(dim=-1)
        if bool((found < 0).any()) or not torch.allclose(sums, torch.ones_like(sums), atol=CLOSE):
            return
        # Keep equal weights once: they reappear as views, as copies, and after an inactive dropout.
        if not any(torch.equal(found, known) for known in self.weights):
            self.weights.append(found.clone())


def _causal(weights: Tensor) -> bool:
    return not bool(weights.triu(diagonal=1).any())
