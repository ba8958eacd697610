"""The data of a game: a script of the course makes a `Game` from the student's own answers."""

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
    """The settings of a training: the learning rate rises linearly to `lr`, then falls to zero."""

    steps: int
    lr: float
    warm_up: int
    weight_decay: float
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8

    def rate(self, step: int, last: int) -> float:
        """The learning rate of a step; steps count from 1 to `last`."""
        if step <= self.warm_up:
            return self.lr * step / self.warm_up
        return self.lr * (last - step + 1) / (last - self.warm_up)


@dataclass(frozen=True)
class Exam:
    """Questions that are not used for training, each with one right answer."""

    questions: Sequence[str]
    answer: Callable[[str], str]  # gives the right answer to any question
    enough: float = 0.995  # training ends after two exams in a row with this share of right answers


@dataclass(frozen=True)
class Scene:
    """A text, and the attention weights to look at while the model reads it."""

    text: str
    focus: Sequence[tuple[int, int]]  # (row, column); the head with most weight there is shown
    meaning: str  # a phrase for the focus: "the character before"


@dataclass(frozen=True)
class Game:
    """A model to train and questions to ask it, made by a script of the course.

    Four functions are the student's own. `model` builds a model with the given number of heads.
    `loss` compares the model's logits with the token ids that the model read. `update` makes an
    optimizer's step for one parameter. `generate` continues a text.
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
    batch: Callable[[random.Random], Sequence[str]]  # equally long texts
    prompts: Sequence[str]  # texts that the model continues during the training
    length: int  # the number of characters of an answer
    read: Callable[[str], str]  # turns typed text into a prompt; raises ValueError with a reason
    invitation: str  # an example of a question: "a sum, such as 57+68"
    scene: Scene
    exam: Exam | None = None
    backwards: bool = False  # whether an answer's last character comes first, as in sums on paper
    answers: str = "answers"  # the word for the answers in an exam: "sums"
    characters: str = "characters"  # the word for the characters of an answer: "digits"
    # Remarks on leaving out parts of the model, by the parts: "mask", "mask,positions", …
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def guessing(self) -> float:
        """The loss of a model that gives all characters the same probability."""
        return math.log(len(self.alphabet))

    def batch_of(self, count: int) -> Sequence[str]:
        """The first `count` texts of a fixed batch, the same at every call."""
        return self.batch(random.Random(0))[:count]

    def ids(self, texts: Sequence[str]) -> Tensor:
        """Texts of equal length as token ids: (batch, tokens)."""
        places = {character: place for place, character in enumerate(self.alphabet)}
        return torch.tensor([[places[character] for character in text] for text in texts])

    def texts(self, ids: Tensor) -> list[str]:
        """Token ids as texts."""
        return ["".join(self.alphabet[place] for place in row) for row in ids.tolist()]

    def readable(self, answer: str) -> str:
        """An answer in the order in which people write it."""
        return answer[::-1] if self.backwards else answer

    def prompt(self, typed: str) -> str:
        """The prompt for a typed text; raises `CallError` if the model cannot read the text."""
        try:
            prompt = self.read(typed)
        except ValueError as error:
            raise CallError(str(error)) from None
        unknown = sorted({c for c in prompt if c not in self.alphabet})
        if unknown:
            raise CallError(f"the model does not know {', '.join(map(repr, unknown))}")
        return prompt


def game_of(names: Mapping[str, Any], script: str) -> Game:
    """The game among a script's variables; raises `CallError` unless there is exactly one."""
    found = [value for value in names.values() if isinstance(value, Game)]
    if len(found) != 1:
        raise CallError(f"{script} must make exactly one Game, but makes {len(found)}")
    return found[0]
