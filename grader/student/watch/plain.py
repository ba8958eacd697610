"""`grader watch --plain`: a check after every save, in lines of text.

It is for screen readers, and for terminals without a full screen. It reads no keys: to go to
another exercise, a student saves an answer to that exercise. For hints and other commands, a
student uses another terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from threading import Event

from grader.feedback.pictures.text import drawn
from grader.feedback.terminal import all_asked, safe
from grader.feedback.verdict import Verdict
from grader.intake.names import SKIPPED, SOURCES
from grader.intake.own import own_folders
from grader.records.faults import CallError, HostFault
from grader.records.saves import saves, snapshot
from grader.student.checking import Checks
from grader.student.lesson import Lesson
from grader.student.program import left_out
from grader.student.reward import in_lines, reward
from grader.student.scripts import see_why
from grader.student.watch import words

WIDTH = 78


def watch(lesson: Lesson, name: str, checks: Checks, *, first_run: bool, poll: bool) -> None:
    """Check this exercise now, and after each save check the exercise whose answer was saved.

    Only an exception, such as `KeyboardInterrupt`, ends the loop.
    """
    folders = own_folders(lesson.course)
    seen = snapshot(folders, SOURCES, SKIPPED)  # before torch is loaded, so that no save is missed
    _greet(lesson, first_run)
    _show(lesson, name)
    _say(words.LOADING)
    _check(lesson, name, checks)
    for _ in saves(folders, SOURCES, SKIPPED, seen, Event(), poll=poll):
        changed = lesson.saved()
        if changed and name not in changed:
            name = changed[0]
            _show(lesson, name)
        _check(lesson, name, checks)


def _greet(lesson: Lesson, first_run: bool) -> None:
    course = lesson.course
    if first_run:
        _say(f"Welcome to {course.file.title}.")
    else:
        solved = sum(map(lesson.standing.is_solved, course.asked))
        _say(f"{course.file.title}: {solved} of {all_asked(course)} solved.")
    for line in words.PLAIN_WELCOME if first_run else words.PLAIN_WELCOME[-2:]:
        _say(line)


def _show(lesson: Lesson, name: str) -> None:
    """Print the title and the statement of an exercise."""
    course = lesson.course
    _print("")
    _say(f"Exercise {name}: {course.exercises[name].title} ({words.place(course, name)})")
    found = lesson.statement(name)
    if isinstance(found, str):
        _say(found)
    else:
        unchecked = lesson.verdicts[name].unchecked if name in lesson.verdicts else {}
        _print(found.signature)
        for part in filter(None, found.first_and_rest(unchecked)):
            _print(f"{prose(part, WIDTH)}\n")
        _say(see_why(course, name))
    if about := lesson.about_unit(name):
        _say("About this unit:")
        _print(f"{prose(about, WIDTH)}\n")


def _check(lesson: Lesson, name: str, checks: Checks) -> None:
    """Check an exercise, and print the verdict and what to do next."""
    try:
        (verdict,) = lesson.record(*checks.check([name]), named=True)
    except (CallError, HostFault) as error:
        _say(str(error))
        return
    for line in verdict_lines(verdict, WIDTH):
        _print(line)
    if verdict.solved:
        _say(words.solved(lesson.standing, name))
        _say(verdict.left_unchecked)
    elif verdict.state == "untouched":
        _say(words.UNTOUCHED.format(lesson.course.stub_file(verdict.unit).name))
    for line in (*left_out(lesson.course, name), lesson.unrecorded):
        _say(line)
    if verdict.solved:
        for part in in_lines(reward(lesson.standing, name)):
            _say(part.plain)


def _say(text: str) -> None:
    """Print prose in lines of at most `WIDTH` characters; an empty text prints nothing."""
    for line in _wrapped(text, WIDTH):
        _print(line)


def _print(text: str) -> None:
    print(safe(text), flush=True)


def _wrapped(text: str, width: int, indent: str = "") -> Iterator[str]:
    """The lines of a text after an indent, broken between words; broken lines keep their indent."""
    for line in text.splitlines():
        inner = indent + line[: len(line) - len(line.lstrip())]
        yield from textwrap.wrap(
            line,
            width,
            initial_indent=indent,
            subsequent_indent=inner,
            break_on_hyphens=False,
        ) or [""]


def prose(docstring: str, width: int) -> str:
    """A docstring as text, with lines of prose broken to this width."""
    parts = [
        part.text
        if part.example
        else "\n".join(
            textwrap.fill(line, width, subsequent_indent=line.startswith(" ") * "    ")
            for line in part.text.splitlines()
        )
        for part in words.paragraphs(docstring)
    ]
    return "\n\n".join(parts)


def verdict_lines(verdict: Verdict, width: int) -> Iterator[str]:
    """A verdict in words, without the signs that a screen reader would read aloud."""
    copies = [*_wrapped(safe(verdict.which_counts), width)]
    if verdict.solved:
        yield f"Solved: {verdict.exercise}"
        yield from copies
        return
    again = ", although it was solved before" if verdict.lost else ""
    yield f"Not solved yet: {verdict.exercise}{again}"
    yield from copies
    if verdict.mistake is not None:
        yield from _wrapped(f"Likely mistake: {safe(verdict.mistake.heading)}", width)
        if verdict.mistake.hint:
            yield from _wrapped(f"Think about: {safe(verdict.mistake.hint)}", width)
    for finding in verdict.wrong:
        yield from _wrapped(f"{finding.wording.word}: {finding.title}", width)
        yield from _wrapped(safe(finding.message.strip()), width, "  ")
        if finding.picture is not None and finding.is_best_picture:
            picture = drawn(finding.picture, width=width - 2, ascii_only=True) or ""
            yield from (f"  {line}" for line in picture.splitlines())
