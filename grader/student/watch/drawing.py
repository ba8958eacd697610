"""What stands in the parts of the full screen: a lesson goes in, styled text comes out.

Lines that are to hang below each other are broken here, so most of it takes the width of a pane.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from grader.course.statements import Statement
from grader.feedback.terminal import all_asked, indented, safe, show_verdict
from grader.feedback.verdict import verdict_of
from grader.records.rows import counted
from grader.student.reward import in_lines
from grader.student.watch import words
from grader.student.watch.lesson import Lesson

BAR = 20  # characters
HANGING = 2  # columns by which later lines stand further in than the first
NARROWEST = 20  # columns; on a narrower screen text is broken once more, and nothing is lost


def head_line(lesson: Lesson, width: int) -> Text:
    """The course's title, and a bar of what is solved."""
    count, course = lesson.count, lesson.course
    full = BAR * count // len(course.asked)
    told = f" {count} of {all_asked(course)} solved"
    title = Text(course.file.title, style="bold", no_wrap=True)
    title.truncate(max(width - BAR - len(told) - 3, 0), overflow="ellipsis", pad=True)
    return Text.assemble(title, " ", ("█" * full, "green"), "░" * (BAR - full), told)


def key_lines(offered: Sequence[words.Shortcut], width: int) -> Text:
    """The keys on as many lines as they need; a key is never parted from its word."""
    lines: list[list[words.Shortcut]] = [[]]
    room = width
    for key in offered:
        size = len(f"{key.key} {key.word}  ")
        if size - 2 > room and lines[-1]:
            lines.append([])
            room = width
        lines[-1].append(key)
        room -= size
    return Text("\n").join(
        Text("  ").join(Text.assemble((key.key, "bold reverse"), f" {key.word}") for key in line)
        for line in lines
    )


def hints_text(lesson: Lesson) -> Text:
    """The hints that were read."""
    return Text("\n").join(
        Text.assemble((f"{number}. ", "bold"), safe(hint))
        for number, hint in enumerate(lesson.hints, 1)
    )


# --- statements ----------------------------------------------------------------------------------


def statement_text(lesson: Lesson, width: int, *, whole: bool, dark: bool) -> Text:
    """What the exercise asks for: first what one cannot do without, and the rest if `whole`."""
    found = lesson.statement()
    if isinstance(found, str):
        return Text(safe(found))
    width = max(width, NARROWEST)
    first, rest = found.first_and_rest(lesson.unchecked)
    signature = _signature(found, width, whole=whole, dark=dark)
    title = [Text(lesson.exercise.title, style="italic")] if whole else []
    parts = [Text("\n").join([*title, signature, _paragraphs(first, width, dark)])]
    about = lesson.about_unit()
    why = [Text(lesson.see_why(), style="italic")] if lesson.see_why() else []
    if whole:
        parts += [_paragraphs(rest, width, dark)] if rest else []
        parts += why
        parts += [Text("About this unit", style="bold")] if about else []
        parts += [_paragraphs(about, width, dark)] if about else []
    elif rest or about:
        titles = [part.title for part in words.paragraphs(rest) if part.title]
        listed = ", ".join([*titles, *(["About this unit"] if about else [])])
        rest_of_it = Text(words.REST.format(listed), style="italic")
        parts.append(Text("\n").join([*why, rest_of_it]))
    else:
        parts += why
    return Text("\n\n").join(parts)


def _signature(found: Statement, width: int, *, whole: bool, dark: bool) -> Text:
    """On one line, without types where they do not fit; all of it if `whole`."""
    fits = "\n" not in found.signature and len(found.signature) <= width
    text = code(found.signature if whole or fits else found.short_signature, "python", dark=dark)
    if not whole:
        text.truncate(width, overflow="ellipsis")
    return text


def _paragraphs(docstring: str, width: int, dark: bool) -> Text:
    """The paragraphs, an empty line between them; none before a formula or an example."""
    text = Text()
    for part in words.paragraphs(docstring):
        text.append("" if not text else "\n" if part.example else "\n\n")
        text.append_text(_paragraph(part, width, dark))
    return text


def _paragraph(part: words.Paragraph, width: int, dark: bool) -> Text:
    if part.entries:
        entries = (_entry(name, said, width) for name, said in part.entries)
        return Text("\n").join([Text(f"{part.title}:", style="bold"), *entries])
    if part.text.startswith(">>>"):
        return code(part.text, "pycon", dark=dark)
    if part.example:
        lines = safe(part.text).splitlines()
        return Text("\n").join(_hanging(Text(line, style="cyan"), width) for line in lines)
    text = Text(safe(part.text))
    text.stylize("bold", 0, len(part.title))
    return text


def _entry(name: str, said: str, width: int) -> Text:
    """A list's entry, its key in bold."""
    return _hanging(Text.assemble("  ", (f"{name}: " if name else "", "bold"), safe(said)), width)


def _hanging(line: Text, width: int) -> Text:
    """A line that is broken where it has to be, with its later lines further in."""
    if len(line) <= width:
        return line
    indent = len(line.plain) - len(line.plain.lstrip())
    first, later = " " * indent, " " * (indent + HANGING)
    console = Console(file=io.StringIO(), width=width)
    broken = line[indent:].wrap(console, max(width - len(later), NARROWEST // 2))
    return Text("\n").join(
        Text(later if number else first).append_text(part) for number, part in enumerate(broken)
    )


@lru_cache(maxsize=64)
def _coloured(text: str, language: str, theme: str) -> Text:
    found = Syntax("", language, theme=theme, background_color="default").highlight(text)
    found.rstrip()
    return found


def code(text: str, language: str, *, dark: bool) -> Text:
    """Lines of Python, or of a session with it (``pycon``), in colours for their ground."""
    return _coloured(safe(text), language, "ansi_dark" if dark else "ansi_light").copy()


# --- verdicts ------------------------------------------------------------------------------------


def verdict_text(lesson: Lesson, width: int, waited: int) -> Text:
    """What the last check found, and what a solved exercise brings; before one, what is going on.

    `waited` is for how many seconds that has gone on.
    """
    if lesson.trouble:
        return Text.assemble((" ! ", "magenta"), safe(lesson.trouble))
    if lesson.result is None:
        return Text(_before_a_check(lesson, waited))
    found = verdict_of(lesson.result, lesson.solved_before)
    console = Console(
        file=io.StringIO(),
        width=max(width, NARROWEST),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        highlight=False,
    )
    with console.capture() as captured:
        show_verdict(console, found, detail=False, picture_first=True)
        if found.state == "untouched":
            for finding in found.wrong:
                indented(console, Text(safe(finding.message)), 3)
        if step := lesson.next_step():
            indented(console, Text(step, style="bold"), 3)
        if (reward := lesson.reward) is not None:
            for line in in_lines(reward):
                indented(console, line, 3)
        if found.solved and found.worth_reading:
            passed = counted(len(found.worth_reading), "check")
            indented(console, Text(f"\n✓ {passed} passed"), 3)
    return Text.from_ansi(captured.get().rstrip("\n"))


def _before_a_check(lesson: Lesson, waited: int) -> str:
    if not lesson.ready:
        return f"{words.LOADING} {words.SO_FAR.format(waited)}" if waited else words.LOADING
    return words.CHECKING if lesson.checked_any else words.FIRST_CHECK
