"""Trains a student's model with the student's own loss and update, and records the progress."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from grader.playing import removal
from grader.playing.game import Game
from grader.records.faults import CallError

EVERY = 20  # steps between two tests of the model
A_LOOK = 200  # exam questions in such a test; if enough are right, all questions follow
FAR_ABOVE = 2.0  # a first loss above this multiple of the loss of guessing is too high


@dataclass(frozen=True)
class Choices:
    """The options of a training."""

    seed: int = 1
    steps: int | None = None
    heads: int | None = None
    std: float | None = None  # the standard deviation of redrawn embeddings; None: not redrawn
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """A prompt, the model's answer, and the right answer, if the game knows it."""

    prompt: str
    answer: str
    right: str = ""

    @property
    def correct(self) -> bool:
        """Whether the whole answer is right."""
        return self.answer == self.right


@dataclass(frozen=True)
class Mark:
    """The result of an exam after a number of steps."""

    step: int
    questions: int
    characters: float  # the share of characters that are right
    exact: float  # the share of answers in which all characters are right


@dataclass
class Learning:
    """The state of a training; iterating over `steps` continues the training."""

    game: Game
    choices: Choices
    losses: list[float] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    learnt: bool = False  # passed the exam twice in a row
    interrupted: bool = False

    def __post_init__(self) -> None:
        """Build the model, without the parts that the student chose to leave out."""
        choices, game = self.choices, self.game
        self.heads = choices.heads if choices.heads is not None else game.heads
        self.last = choices.steps if choices.steps is not None else game.recipe.steps
        _require(game, choices, self.heads, self.last)
        torch.manual_seed(choices.seed)
        self.random = random.Random(choices.seed)
        built = game.model(self.heads)
        if not isinstance(built, nn.Module) or not [*built.parameters()]:
            raise CallError(f"{type(built).__name__} has no parameters: there is nothing to learn")
        with torch.no_grad():
            if choices.std is not None:
                for table in removal.tables_of(game, built):
                    table.normal_(std=choices.std)
            self.held = (
                removal.positions_of(game, built) if removal.POSITIONS in choices.without else []
            )
            for table in self.held:
                table.zero_()
        # The largest standard deviation of an embedding table before the training.
        tables = removal.tables_of(game, built)
        self.first_spread = max((table.std().item() for table in tables), default=0.0)
        self.model = removal.without(game, built, choices.without, self.heads)
        self.moments: dict[nn.Parameter, tuple[Tensor, Tensor]] = {
            parameter: (torch.zeros_like(parameter), torch.zeros_like(parameter))
            for parameter in built.parameters()
        }

    # --- training --------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The number of training steps so far."""
        return len(self.losses)

    def steps(self) -> Iterator[None]:
        """Train, and yield after each step.

        Raises `CallError` if a shape is wrong, or if the loss is not finite.
        """
        began = time.monotonic()
        while self.step < self.last and not self.learnt:
            self._learn()
            if self.step == 1 or self.step % EVERY == 0 or self.step == self.last:
                self._look()
            self.seconds = time.monotonic() - began
            yield

    def finish(self) -> None:
        """Let the trained model continue all prompts and answer all exam questions."""
        self.samples = self.answers([*self.game.prompts])
        exam, last = self.game.exam, self.marks[-1] if self.marks else None
        if exam is None:
            return
        if last is None or (last.step, last.questions) != (self.step, len(exam.questions)):
            mark = self._mark(len(exam.questions))
            self.marks = [one for one in self.marks if one.step != self.step] + [mark]

    def _learn(self) -> None:
        """Make one training step: compute the loss of a batch, and update every parameter."""
        game, recipe = self.game, self.game.recipe
        ids = game.ids(game.batch(self.random))
        self.model.train()
        logits = self.model(ids)
        wanted = (*ids.shape, len(game.alphabet))
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted:
            raise CallError(
                f"the model's logits must have the shape {wanted}, but have {_shape(logits)}"
            )
        loss = game.loss(logits, ids)
        if not isinstance(loss, Tensor) or loss.shape != () or not loss.requires_grad:
            raise CallError(
                f"the loss must be one number with a gradient, but has the shape {_shape(loss)}"
            )
        value = loss.item()
        if not math.isfinite(value):
            raise CallError(
                f"the loss is {value} at step {self.step + 1}: look for a logarithm of 0, a "
                "division by 0, or a row with every key hidden"
            )
        gradients = torch.autograd.grad(loss, [*self.moments], allow_unused=True)
        rate = recipe.rate(self.step + 1, self.last)
        with torch.no_grad():
            for parameter, gradient in zip([*self.moments], gradients, strict=True):
                if gradient is not None and not any(parameter is held for held in self.held):
                    self._update(parameter, gradient, rate)
        self.losses.append(value)

    def _update(self, parameter: nn.Parameter, gradient: Tensor, rate: float) -> None:
        recipe, update = self.game.recipe, self.game.update
        moved = update(
            parameter.detach(),
            gradient,
            *self.moments[parameter],
            self.step + 1,
            rate,
            recipe.betas,
            recipe.eps,
            recipe.weight_decay,
        )
        try:
            new, momentum, square = moved
            parameter.copy_(new)
        except (TypeError, ValueError, RuntimeError):
            name = getattr(update, "__name__", "the step")
            raise CallError(
                f"{name} must return three tensors of the parameter's shape: the parameter, its "
                "momentum and its square"
            ) from None
        self.moments[parameter] = momentum, square

    # --- asking ----------------------------------------------------------------------------------

    def answers(self, prompts: list[str], length: int | None = None) -> list[Sample]:
        """The model's answers to prompts, which must all have the same length."""
        game = self.game
        length = game.length if length is None else length
        self.model.eval()
        ids = game.ids(prompts)
        with torch.no_grad():
            # One token less than the context: in training, the last position has no target, so its
            # predictions are untrained.
            longer = game.generate(self.model, ids, length, game.context - 1)
        wanted = (ids.shape[0], ids.shape[1] + length)
        if not isinstance(longer, Tensor) or tuple(longer.shape) != wanted:
            name = getattr(game.generate, "__name__", "the text")
            raise CallError(f"{name} must return ids of shape {wanted}, not {_shape(longer)}")
        right = game.exam.answer if game.exam is not None else lambda _: ""
        return [
            Sample(prompt, text[len(prompt) :], right(prompt))
            for prompt, text in zip(prompts, game.texts(longer), strict=True)
        ]

    def ask(self, typed: str) -> Sample:
        """The model's answer to a typed text; raises `CallError` if the text cannot be read."""
        (sample,) = self.answers([self.game.prompt(typed)])
        return sample

    def fed(self) -> float:
        """The share of right answers under teacher forcing.

        Each character is predicted from the question and the right characters before it, as in
        training.
        """
        assert self.game.exam is not None
        questions = [*self.game.exam.questions]
        whole = self.game.ids(
            [question + self.game.exam.answer(question) for question in questions]
        )
        start = len(questions[0])
        self.model.eval()
        with torch.no_grad():
            best = self.model(whole)[:, start - 1 : -1].argmax(dim=-1)
        same: list[bool] = (best == whole[:, start:]).all(dim=-1).tolist()
        return sum(same) / len(same)

    def _look(self) -> None:
        """Test the model: continue the prompts, and answer `A_LOOK` questions of the exam.

        If enough answers are right, the model answers all questions.
        """
        game = self.game
        self.samples = self.answers([*game.prompts])
        if game.exam is None:
            return
        mark = self._mark(A_LOOK)
        if mark.exact >= game.exam.enough and len(game.exam.questions) > A_LOOK:
            mark = self._mark(len(game.exam.questions))
        self.marks.append(mark)
        self.learnt = len(self.marks) > 1 and all(
            mark.questions == len(game.exam.questions) and mark.exact >= game.exam.enough
            for mark in self.marks[-2:]
        )

    def _mark(self, count: int) -> Mark:
        assert self.game.exam is not None
        samples = self.answers([*self.game.exam.questions[:count]])
        same = [
            ours == theirs
            for sample in samples
            for ours, theirs in zip(sample.answer, sample.right, strict=True)
        ]
        exact = sum(sample.correct for sample in samples) / len(samples)
        return Mark(self.step, len(samples), sum(same) / len(same), exact)

    # --- for remarks -----------------------------------------------------------------------------

    @property
    def starts_too_high(self) -> bool:
        """Whether the first loss is far above the loss of guessing."""
        return bool(self.losses) and self.losses[0] > FAR_ABOVE * self.game.guessing


def _require(game: Game, choices: Choices, heads: int, last: int) -> None:
    """Raise `CallError` for an option that is impossible for this game."""
    if last < 1:
        raise CallError(f"--steps must be at least 1, got {last}")
    if heads < 1 or game.width % heads:
        fit = ", ".join(str(n) for n in range(1, 17) if game.width % n == 0)
        raise CallError(f"{heads} heads do not divide the width of {game.width}: choose from {fit}")
    if choices.std is not None and not 0 < choices.std < math.inf:
        raise CallError(f"--std must be above 0, got {choices.std:g}")
    for part in choices.without:
        if part not in removal.PARTS:
            raise CallError(f"{part!r} cannot be left out; choose from {', '.join(removal.PARTS)}")


def _shape(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__
