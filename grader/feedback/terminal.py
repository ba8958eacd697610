"""Prints results in a terminal.

Student names, messages and source lines are printed as plain text: their markup and control
characters have no effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from grader.course.course import Course
from grader.feedback.pictures.text import UNICODE, drawn
from grader.feedback.verdict import Finding, Verdict, Wording
from grader.records.grade import Picture
from grader.records.rows import Row, called, counted

WRONG_CELL = rf"\S*{UNICODE.wrong}"  # in a picture: a cross, or a number followed by a cross
NARROW = 20  # in fewer columns, the text of a list's row is not set apart
NOT_GRADED = "not graded: {}"  # the reason is a conflict between submissions


def safe(text: str) -> str:
    """Text without control characters, which could repaint a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "�" for c in text)


def course_line(course: Course) -> str:
    """The line that names the course; printed by every command that runs the course's code."""
    return safe(f"course: {course.label}")


def indented(console: Console, text: Text, indent: int = 0) -> None:
    """Print text wrapped to the terminal's width; without a terminal, do not wrap lines."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))
        return
    for line in text.split("\n", allow_blank=True):
        console.print(Text(" " * indent if line else "").append_text(line), soft_wrap=True)


def print_row(console: Console, row: Text, column: int) -> None:
    """Print a row of a list: wrapped lines begin in the column in which the row's text begins."""
    room = console.width - column
    if not console.is_terminal or room < NARROW:
        indented(console, row)
        return
    lines = row[column:].wrap(console, room)
    text = Text("\n" + " " * column).join(lines)
    console.print(row[:column].append_text(text), soft_wrap=True)


def print_plain(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print text without interpreting its markup or control characters."""
    indented(console, Text(safe(text), style=style), indent)


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show a spinner while something takes seconds, if the output is a terminal."""
    console = Console(stderr=True)
    # The output of a notebook cell claims to be a terminal, but keeps every frame of the spinner.
    if not console.is_terminal or "JPY_PARENT_PID" in os.environ:
        yield
        return
    with console.status(doing):
        yield


@contextmanager
def progress(
    console: Console, doing: str, total: int, *, first: str = "loading torch"
) -> Iterator[Callable[[], None]]:
    """Show a progress bar while work is done; call the yielded function after each part.

    `first` is the bar's text before the first part is done.
    """
    # Imported here, since most commands draw no bar and the import is slow.
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(first, total=total)
        yield lambda: bar.update(task, advance=1, description=doing)


def who(row: Row) -> str:
    """A student's name or key, safe to print."""
    return safe(called(row.student, row.person.name))


def notes(rows: Sequence[Row]) -> Iterator[Text]:
    """Lines about submissions that need an instructor's attention."""
    for row in rows:
        grade = row.grade
        if grade is None:
            if row.conflict is not None:
                yield Text(safe(f"{who(row)}: {NOT_GRADED.format(row.conflict)}"), style="yellow")
            continue
        if grade.status == "grader_error":
            faults = [
                f"{exercise.name}/{test.name}: {(test.message or ' ').splitlines()[0]}"
                for exercise in grade.exercises
                for test in exercise.tests
                if test.status == "grader_error"
            ]
            for fault in faults or [grade.message or ""]:
                yield Text(f"{who(row)}: {safe(fault)}", style="magenta")
        elif grade.message:
            yield Text(f"{who(row)}: {safe(grade.message)}", style="dim")
        for note in grade.notes:
            yield Text(f"{who(row)}: {safe(note)}", style="dim")
        for line in row.limits:
            yield Text(f"{who(row)}: {safe(line)}", style="yellow")


# --- a student's checks --------------------------------------------------------------------------


def all_asked(course: Course, noun: str = "") -> str:
    """The number of exercises that the course asks for: ``12``, or ``3 asked``.

    The word "asked" appears if the course has optional exercises too. With a `noun`, the text is
    ``12 exercises`` or ``3 asked exercises``.
    """
    asked = len(course.asked)
    which = "asked " if asked < len(course.exercises) else ""
    return counted(asked, f"{which}{noun}") if noun else f"{asked} {which}".strip()


def signed(result: Verdict | Wording) -> tuple[str, str]:
    """The sign of a verdict or a test, followed by a space; and the sign's colour."""
    return f"{result.sign} ", result.color


def show_verdict(
    console: Console, verdict: Verdict, detail: bool, *, picture_first: bool = False
) -> None:
    """Print an exercise's verdict: its state, and the tests that did not pass.

    With `detail`, print all tests. With `picture_first`, print the picture of a named mistake
    directly below the mistake.
    """
    again = "  (it was solved before)" if verdict.lost else ""
    console.print(
        Text.assemble(" ", signed(verdict), (verdict.exercise, "bold"), (again, "yellow"))
    )
    _below(console, 4, verdict.which_counts, "yellow")
    if not detail and verdict.state != "unsolved":
        return
    if verdict.mistake is not None:  # shown once, above the tests
        _below(console, 4, verdict.mistake.heading, "bold")
        _below(console, 4, verdict.mistake.hint, "italic")
    shows_mistake = (f for f in verdict.findings if f.is_best_picture and f.mistake)
    early = [f for f in shows_mistake if picture_first and f.mistake == verdict.mistake]
    for finding in early:  # without its title, which the list below has
        _picture(console, finding)
    for finding in verdict.findings:
        if not finding.bare and (detail or not finding.quiet):
            _show_finding(console, finding, drawn_already=finding in early)
    _below(console, 4, verdict.left_unchecked, "dim")


def _show_finding(console: Console, finding: Finding, *, drawn_already: bool) -> None:
    line = Text.assemble(signed(finding.wording), finding.title)
    if finding.status in ("timeout", "memory", "crashed"):
        line.append(f"  ({finding.status})", style="red")
    indented(console, line, 4)
    if finding.status != "passed":
        _below(console, 8, finding.message)
    if not drawn_already:
        _picture(console, finding)


def _picture(console: Console, finding: Finding) -> None:
    if finding.picture is not None and finding.is_best_picture:
        show_picture(console, finding.picture, 8, 72)


def show_picture(console: Console, picture: Picture, indent: int, most: int) -> None:
    """Print a picture with wrong cells in red, at most `most` characters wide.

    Prints nothing if the terminal is too narrow for the picture.
    """
    text = Text(safe(drawn(picture, width=min(console.width - indent, most)) or ""))
    text.highlight_regex(WRONG_CELL, "red")
    if text:
        indented(console, text, indent)


def _below(console: Console, indent: int, text: str, style: str = "") -> None:
    if text.strip():
        print_plain(console, text.strip("\n").rstrip(), style, indent)
