"""`grader.play`: a game in a notebook; the cell shows the progress while the model learns."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from grader.course.course import load_course
from grader.playing import page, screen, words
from grader.playing.attention import Head, heads_of, most_on
from grader.playing.curve import BLOCKS
from grader.playing.learning import Choices, Learning
from grader.playing.opening import UNCHECKED
from grader.playing.session import Session
from grader.records.faults import CallError
from grader.student.heatmap import Heatmap, heatmap
from grader.student.notebook import found_course
from grader.student.notebook_display import NotChecked, on_page

FRAME = 0.5  # seconds between pictures: each is sent to a browser


@dataclass(frozen=True, repr=False)
class Asked:
    """A question to the model, and its answer."""

    line: str

    def __repr__(self) -> str:
        return self.line


class Played:
    """A trained model that answers questions, and its attention heads."""

    def __init__(self, session: Session, heads: Sequence[Head]) -> None:
        self._session = session
        self.heads = heads

    def ask(self, typed: str) -> Asked:
        """The model's answer to a text, such as ``played.ask("57+68")``."""
        try:
            with self._session.at_work():
                sample = self._session.learning.ask(typed)
        except CallError as error:
            raise NotChecked(str(error)) from None
        return Asked(words.line_of(sample, backwards=self._session.opened.game.backwards))

    def attention(self, layer: int | None = None, head: int = 1) -> Heatmap:
        """The attention weights of a head; `layer` and `head` count from 1.

        Without a `layer`, the head with the most weight on the scene's focus is shown.
        """
        scene = self._session.opened.game.scene
        found = most_on(self.heads, scene)
        if layer is not None:
            name = f"layer {layer}, head {head}"
            found = next((one for one in self.heads if one.name == name), None)
        if found is None:
            raise NotChecked("there is no such head, or the model shows no weights")
        tokens = [words.letter(character) for character in scene.text]
        return heatmap(found.weights, tokens=tokens, title=found.name)

    def __repr__(self) -> str:
        asked = self._session.opened.game.scene.text[:5]
        return f"Ask your model: played = grader.play(...), then played.ask({asked!r})"


@dataclass(frozen=True, repr=False)
class _Frame:
    """The state of a training, as HTML and as text."""

    learning: Learning
    below: tuple[str, ...] = ()

    def __repr__(self) -> str:
        def show(console: Console) -> None:
            for part in screen.drawn(self.learning, BLOCKS):
                console.print(part)
            for line in self.below:
                console.print(f"\n{line}", markup=False)

        return on_page(show)

    def _repr_html_(self) -> str:
        return page.cell(self.learning, self.below)


def play(
    name: str,
    *,
    seed: int = 1,
    steps: int | None = None,
    heads: int | None = None,
    std: float | None = None,
    without: str = "",
    out: str | Path | None = None,
    beside: str | Path | None = None,
    course: str | Path | None = None,
) -> Played:
    """Train a model made of your own saved answers, as ``grader play`` does, and return it.

    Writes a page with the results to `out`, by default ``NAME.html``, or ``NAME-2.html`` and so on
    if there is one. `beside` is the page of an earlier run: a second page then shows both runs.
    Interrupt the kernel to end the training early; the model keeps what it has learnt. Raises
    `NotChecked` for a game that cannot be played.
    """
    parts = tuple(part.strip() for part in without.split(",") if part.strip())
    try:
        opened = load_course(found_course(course))
        choices = Choices(seed, steps, heads, std, parts)
        pages = (Path(page) if page is not None else None for page in (out, beside))
        session = Session(opened, name, choices, *pages)
        return _played(session)
    except CallError as error:
        raise NotChecked(str(error)) from None


def _played(session: Session) -> Played:
    display = getattr(sys.modules.get("IPython"), "display", None)
    if display is None or sys.modules["IPython"].get_ipython() is None:
        session.on(Console(highlight=False), plain=True, questions=False)
        return Played(session, _heads(session))
    names = session.opened.unchecked
    if names:
        print(UNCHECKED.format(", ".join(names), names[0]))
    learning = session.learning
    handle = display.display(_Frame(learning), display_id=True)
    with session.at_work():
        _train(learning, handle)
        learning.finish()
    heads = _heads(session)
    session.write(heads)
    best = most_on(heads, learning.game.scene)
    below = (
        words.summary(learning),
        *session.remarks(),
        words.of_head(best, learning) if best is not None else words.NO_WEIGHTS,
        *session.pages(),
    )
    handle.update(_Frame(learning, below))
    played = Played(session, heads)
    if best is not None:
        display.display(played.attention())
    return played


def _train(learning: Learning, handle: Any) -> None:
    """Train and show the progress; interrupting the kernel ends only the training."""
    shown = time.monotonic()
    try:
        for _ in learning.steps():
            if time.monotonic() - shown > FRAME:
                handle.update(_Frame(learning))
                shown = time.monotonic()
    except KeyboardInterrupt:
        learning.interrupted = True


def _heads(session: Session) -> list[Head]:
    learning = session.learning
    with session.at_work():
        return heads_of(learning.game, learning.model, learning.heads, learning.game.scene.text)
