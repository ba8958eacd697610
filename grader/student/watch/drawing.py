"""The styled text of the full screen, and its colours on a dark and on a light background.

Lines with a hanging indent are broken here, so most functions take the width of a pane. The
functions use the sixteen colour names of a terminal. Each theme gives these names shades that are
readable on its background.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import lru_cache

from rich.console import Console
from rich.syntax import Syntax
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from grader.course.statements import Statement
from grader.feedback.terminal import all_asked, indented, safe, show_verdict
from grader.feedback.verdict import Verdict
from grader.records.rows import counted
from grader.student.lesson import Lesson
from grader.student.reward import in_lines, reward
from grader.student.scripts import see_why
from grader.student.standing import Standing
from grader.student.watch import words

BAR = 20  # characters of the progress bar
HANGING = 2  # columns by which the later lines of a paragraph are indented
NARROWEST = 20  # columns: the least width to which lines are broken here

DARK, LIGHT = "textual-dark", "textual-light"

ON_DARK = TerminalTheme(
    (18, 18, 18),
    (224, 224, 224),
    [
        (150, 150, 150), (255, 105, 105), (120, 210, 110), (240, 190, 80),
        (120, 170, 255), (225, 140, 245), (90, 210, 230), (224, 224, 224),
    ],
)  # fmt: skip
ON_LIGHT = TerminalTheme(
    (224, 224, 224),
    (31, 31, 31),
    [
        (80, 80, 80), (165, 15, 30), (15, 90, 15), (105, 70, 0),
        (25, 60, 165), (120, 35, 130), (0, 80, 100), (31, 31, 31),
    ],
)  # fmt: skip


def is_light(environ: Mapping[str, str]) -> bool:
    """Whether the terminal reports a light background; False if TEXTUAL_THEME chooses a theme."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return ground in ("7", "15") and "TEXTUAL_THEME" not in environ


def head_line(standing: Standing, width: int) -> Text:
    """The course's title, and a bar with the share of solved exercises."""
    course = standing.course
    count = sum(map(standing.is_solved, course.asked))
    full = BAR * count // len(course.asked)
    solved = f" {count} of {all_asked(course)} solved"
    title = Text(course.file.title, style="bold", no_wrap=True)
    title.truncate(max(width - BAR - len(solved) - 3, 0), overflow="ellipsis", pad=True)
    return Text.assemble(title, " ", ("█" * full, "green"), "░" * (BAR - full), solved)


def key_lines(offered: Sequence[words.Shortcut], width: int) -> Text:
    """The keys on as many lines as needed; each key is on the same line as its word."""
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


def hints_text(hints: Sequence[str]) -> Text:
    """The hints that were read, with numbers."""
    return Text("\n").join(
        Text.assemble((f"{number}. ", "bold"), safe(hint)) for number, hint in enumerate(hints, 1)
    )


# --- statements ----------------------------------------------------------------------------------


def statement_text(lesson: Lesson, name: str, width: int, *, whole: bool, dark: bool) -> Text:
    """The statement of an exercise: the most important parts first, and the rest if `whole`."""
    found = lesson.statement(name)
    if isinstance(found, str):
        return Text(safe(found))
    unchecked = lesson.verdicts[name].unchecked if name in lesson.verdicts else {}
    width = max(width, NARROWEST)
    first, rest = found.first_and_rest(unchecked)
    signature = _signature(found, width, whole=whole, dark=dark)
    title = [Text(lesson.course.exercises[name].title, style="italic")] if whole else []
    parts = [Text("\n").join([*title, signature, _paragraphs(first, width, dark)])]
    about, why = lesson.about_unit(name), see_why(lesson.course, name)
    reason = [Text(why, style="italic")] if why else []
    if whole:
        parts += [_paragraphs(rest, width, dark)] if rest else []
        parts += reason
        parts += [Text("About this unit", style="bold")] if about else []
        parts += [_paragraphs(about, width, dark)] if about else []
    elif rest or about:
        titles = [part.title for part in words.paragraphs(rest) if part.title]
        listed = ", ".join([*titles, *(["About this unit"] if about else [])])
        rest_of_it = Text(words.REST.format(listed), style="italic")
        parts.append(Text("\n").join([*reason, rest_of_it]))
    else:
        parts += reason
    return Text("\n\n").join(parts)


def _signature(found: Statement, width: int, *, whole: bool, dark: bool) -> Text:
    """The whole signature, or only one line of it, without types if these do not fit."""
    fits = "\n" not in found.signature and len(found.signature) <= width
    text = code(found.signature if whole or fits else found.short_signature, "python", dark=dark)
    if not whole:
        text.truncate(width, overflow="ellipsis")
    return text


def _paragraphs(docstring: str, width: int, dark: bool) -> Text:
    """The paragraphs, separated by empty lines, except above a formula or an example."""
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
    return _hanging(Text.assemble("  ", (f"{name}: " if name else "", "bold"), safe(said)), width)


def _hanging(line: Text, width: int) -> Text:
    """A line broken to this width; all lines but the first are indented further."""
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
    """Coloured lines of Python, or of an interactive session (``pycon``)."""
    return _coloured(safe(text), language, "ansi_dark" if dark else "ansi_light").copy()


# --- verdicts ------------------------------------------------------------------------------------


def verdict_text(lesson: Lesson, verdict: Verdict, below: Sequence[str], width: int) -> Text:
    """A verdict, the next step, and the reward if the exercise is solved.

    `below` are lines about the check that are not part of the verdict.
    """
    console = Console(
        file=io.StringIO(),
        width=max(width, NARROWEST),
        force_terminal=True,
        color_system="standard",
        legacy_windows=False,
        highlight=False,
    )
    with console.capture() as captured:
        show_verdict(console, verdict, detail=False, picture_first=True)
        if verdict.state == "untouched":
            for finding in verdict.wrong:
                indented(console, Text(safe(finding.message)), 3)
        for line in filter(None, (*_next_step(lesson, verdict), *below)):
            indented(console, Text(line, style="bold"), 3)
        if verdict.solved:
            for part in in_lines(reward(lesson.standing, verdict.exercise)):
                indented(console, part, 3)
            if verdict.worth_reading:
                passed = counted(len(verdict.worth_reading), "check")
                indented(console, Text(f"\n✓ {passed} passed"), 3)
    return Text.from_ansi(captured.get().rstrip("\n"))


def _next_step(lesson: Lesson, verdict: Verdict) -> Sequence[str]:
    """Lines on what to do next, for verdicts that do not say this themselves."""
    if verdict.solved:
        return words.solved(lesson.standing, verdict.exercise, "n"), verdict.left_unchecked
    if verdict.state == "untouched":
        file = lesson.course.stub_file(verdict.unit).name
        return (f"{words.UNTOUCHED.format(file)} {words.O_OPENS}",)
    return ()
