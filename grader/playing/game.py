"""What is played, as data: a course's script makes one `Game`, out of the student's own answers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from grader.records.faults import CallError


@dataclass(frozen=True)
class Recipe:
    """How the model learns: a rate that rises to `lr` and falls to zero, and one batch a step."""

    steps: int
    lr: float
    warm_up: int
    weight_decay: float
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8

    def rate(self, step: int, last: int) -> float:
        """The learning rate of a step, of which there are `last`; steps count from 1."""
        if step <= self.warm_up:
            return self.lr * step / self.warm_up
        return self.lr * (last - step + 1) / (last - self.warm_up)


@dataclass(frozen=True)
class Exam:
    """Questions that the model never learns from, each with one right answer."""

    questions: Sequence[str]
    answer: Callable[[str], str]  # the right one to any question
    enough: float = 0.995  # of all answers right, twice in a row: the model has learnt it


@dataclass(frozen=True)
class Scene:
    """A text, and the weights of a head that are of interest while the model reads it."""

    text: str
    focus: Sequence[tuple[int, int]]  # rows and columns: which head looks there most?
    meaning: str  # of the focus: "looks at the units, to know the carry"


@dataclass(frozen=True)
class Game:
    """A model to train, and what to ask it: made by a script of the course.

    Four functions are the student's: `model` builds one with a number of heads, `loss` compares its
    logits with the ids that it read, `update` makes a step of one parameter, `generate` goes on
    with a text.
    """

    title: str
    alphabet: str  # the character with id i is alphabet[i]
    context: int
    width: int
    heads: int
    model: Callable[[int], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    update: Callable[..., tuple[Tensor, Tensor, Tensor]]
    generate: Callable[[nn.Module, Tensor, int, int], Tensor]
    recipe: Recipe
    batch: Callable[[random.Random], Sequence[str]]  # texts of one length
    prompts: Sequence[str]  # that it goes on with while it learns, all of one length
    length: int  # how many characters it answers with
    read: Callable[[str], str]  # what somebody typed, as a prompt; raises ValueError with a reason
    invitation: str  # what to type: "a sum, such as 57+68"
    scene: Scene
    exam: Exam | None = None
    backwards: bool = False  # whether an answer's last character comes first, as in sums on paper
    answers: str = "answers"  # what an exam counts: "sums"
    characters: str = "characters"  # of which an answer is made: "digits"
    without: Mapping[str, str] = field(default_factory=dict)  # what to see without "mask", …

    @property
    def guessing(self) -> float:
        """The loss of one who holds every character for equally likely."""
        return math.log(len(self.alphabet))

    def batch_of(self, count: int) -> Sequence[str]:
        """So many texts that it learns from, always the same ones."""
        return self.batch(random.Random(0))[:count]

    def ids(self, texts: Sequence[str]) -> Tensor:
        """Texts of one length as ids: (batch, tokens)."""
        places = {character: place for place, character in enumerate(self.alphabet)}
        return torch.tensor([[places[character] for character in text] for text in texts])

    def texts(self, ids: Tensor) -> list[str]:
        """Ids as texts."""
        return ["".join(self.alphabet[place] for place in row) for row in ids.tolist()]

    def readable(self, answer: str) -> str:
        """An answer in the order in which people write it."""
        return answer[::-1] if self.backwards else answer

    def prompt(self, typed: str) -> str:
        """What somebody typed, as the model reads it; raises `CallError` for what it cannot."""
        try:
            prompt = self.read(typed)
        except ValueError as error:
            raise CallError(str(error)) from None
        unknown = sorted({c for c in prompt if c not in self.alphabet})
        if unknown:
            raise CallError(f"the model knows no {', '.join(map(repr, unknown))}")
        return prompt


def game_of(names: Mapping[str, Any], script: str) -> Game:
    """The game that a script has made; raises `CallError` where it made none, or several."""
    found = [value for value in names.values() if isinstance(value, Game)]
    if len(found) != 1:
        raise CallError(f"{script} makes {len(found) or 'no'} Game: a script makes one")
    return found[0]
