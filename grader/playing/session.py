"""A game from start to end: open, train, print the results, write the page, answer questions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path

from rich.console import Console

from grader.course.course import Course
from grader.feedback import terminal
from grader.playing import screen, words
from grader.playing.attention import Head
from grader.playing.learning import Choices, Learning
from grader.playing.opening import UNCHECKED, open_game
from grader.playing.page import page, side_by_side
from grader.records.faults import CallError
from grader.records.files import write_whole
from grader.student.scripts import ended_by_answers
from grader.unsandboxed.in_process import undisturbed


class Session:
    """A game with the student's choices; raises `CallError` if it cannot be played."""

    def __init__(
        self,
        course: Course,
        name: str,
        choices: Choices,
        out: Path | None,
        beside: Path | None = None,
    ) -> None:
        """`beside` is the page of another run, to be set beside the page of this run."""
        self.name = name
        self.out = page_file(name, out)
        self.replaces = self.out.exists()
        self.other = (beside, _read_page(beside)) if beside is not None else None
        self.opened = open_game(course, name)
        with self.at_work():
            self.learning = Learning(self.opened.game, choices)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run student code in this context: in one thread, with errors that name the line."""
        with undisturbed(), ended_by_answers(f"playing {self.name}"):
            yield

    def on(self, console: Console, *, plain: bool, questions: bool) -> None:
        """Play in a terminal."""
        names = self.opened.unchecked
        if names:
            terminal.print_plain(console, UNCHECKED.format(", ".join(names), names[0]), "yellow")
        console.print()
        terminal.print_plain(console, self.opened.game.title, "bold")
        with self.at_work():
            screen.train(self.learning, console, plain=plain)
            try:
                heads = screen.conclude(self.learning, console, self.name)
                self.write(heads)
                console.print()
                for line in self.pages():
                    terminal.print_plain(console, line)
                if questions:
                    screen.answer_questions(self.learning, console)
            except KeyboardInterrupt:
                terminal.print_plain(console, "\nstopped")

    def remarks(self) -> list[str]:
        """Remarks on the results of the training."""
        with self.at_work():
            return [*words.remarks(self.learning, self.name)]

    def write(self, heads: list[Head]) -> None:
        """Write the HTML page with the results, and the page with both runs if there is another."""
        with self.at_work():
            whole = page(self.opened, self.learning, heads)
        write_whole(self.out, whole.encode())
        if self.other is not None:
            path, text = self.other
            both = side_by_side((path.name, text), (self.out.name, whole))
            write_whole(self._both(path), both.encode())

    def pages(self) -> Iterator[str]:
        """A line for each page that `write` has written."""
        again = " (it replaces an earlier page)" if self.replaces else ""
        yield f"A page to show around: {self.out}{again}"
        if self.other is not None:
            yield f"Both runs side by side: {self._both(self.other[0])}"

    def _both(self, other: Path) -> Path:
        return self.out.with_name(f"{other.stem}-beside-{self.out.stem}.html")


def _read_page(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise CallError(f"--beside names the page of another run, but {path} is no page") from None


def page_file(name: str, out: Path | None) -> Path:
    """The path of the page; raises `CallError` if no page can be written there.

    Without `out`, this is ``NAME.html``, or the first free one of ``NAME-2.html``, and so on.
    """
    ends = chain([""], (f"-{number}" for number in count(2)))
    numbered = (Path(f"{name}{end}.html") for end in ends)
    path = out if out is not None else next(path for path in numbered if not path.exists())
    if path.suffix.lower() not in (".html", ".htm"):
        raise CallError(f"--out names a page, so it must end in .html, but {path} does not")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise CallError(
            f"the page cannot be written to {path}: name a file in a folder that exists"
        )
    return path
