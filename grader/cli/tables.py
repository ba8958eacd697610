"""Prints a class's grades and a list of submissions, for a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from grader.course.course import Course
from grader.feedback.terminal import NOT_GRADED, course_line, indented, notes, safe, who
from grader.grades.remarks import remarks
from grader.records.decisions import LATE, TOTAL
from grader.records.rows import ABSENT, CONFLICT, Person, Row, called, counted, number, some_of
from grader.records.times import shown_time

if TYPE_CHECKING:
    from grader.intake import Arrivals, Roster, Submission
    from grader.records.lateness import Policy
    from grader.run.tally import DisplayKind, Tally


FILES = 2  # file names shown for each submission in a list
LEAST_OF_A_NAME = 16  # characters of a student's name that a table keeps
LONGEST_NAME = 32  # characters of a student's name in a terminal
ANY = 10_000  # columns, if the output goes to a file or a program: no cell is cut there


def table_console() -> Console:
    """A console for tables, which cuts no cell if the output goes to a file or a program."""
    console = Console(highlight=False, emoji=False)  # the id of a mutant may hold `:x:`
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = ANY
    return console


def name_column(table: Table, width: int) -> None:
    """Add the column of students' names, which a terminal of this width may cut."""
    table.add_column("student", max_width=None if width >= ANY else LONGEST_NAME)


def gradebook_table(course: Course, rows: Sequence[Row], width: int) -> Table:
    """A table with a row for each student: status, points per unit, total.

    The table leaves out the points per unit if names would get too little room. A line below the
    table then says where to find these points.
    """
    whole = _gradebook_table(course, rows, _units(course, rows), width)
    fixed = sum(
        max(len(str(text)) for text in (column.header, *column.cells)) + 1
        for column in whole.columns[1:]
    )
    if fixed + LEAST_OF_A_NAME <= width:
        return whole
    table = _gradebook_table(course, rows, [], width)
    table.caption = "points per unit need a wider terminal; gradebook.csv has them"
    table.caption_justify = "left"
    return table


def _gradebook_table(
    course: Course, rows: Sequence[Row], units: Sequence[tuple[int, str]], width: int
) -> Table:
    table = Table(
        title=course.file.title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    most = max((row.max for row in rows if row.max is not None), default=0)
    more = _more(rows)
    heads = [*(str(n) for n, _ in units), *more, f"of {number(most)}"]
    cells = [_points(course, row, [name for _, name in units], more) for row in rows]
    name_column(table, width)
    table.add_column("status", no_wrap=True)
    for place, head in enumerate(heads):
        style = "bold" if place == len(units) else None
        add_numbers(table, head, (row[place] for row in cells), style)
    for row, points in zip(rows, cells, strict=True):
        style = "" if row.status == "graded" else "yellow"
        # Rich narrows a column only if it may wrap. So the column may wrap, but its cells may not:
        # they cut off names that are too long.
        student = Text(who(row), no_wrap=True, overflow="ellipsis")
        table.add_row(student, Text(row.status, style=style), *points)
    return table


def add_numbers(table: Table, head: str, numbers: Iterable[str], style: str | None = None) -> None:
    """Add a column of numbers, which is never cut.

    If a row is too long for the terminal, Rich shortens the name.
    """
    width = max(map(len, (head, *numbers)))
    table.add_column(head, justify="right", style=style, no_wrap=True, min_width=width)


def _points(
    course: Course, row: Row, units: Sequence[str], more: Mapping[str, Collection[str]]
) -> list[str]:
    """The points in each unit, `more` points, and the total.

    All are "?" if the grader failed, and "-" if the student has no grade.
    """
    if row.total is None:
        unknown = row.grade is not None and not row.excused
        return ["?" if unknown else "-"] * (len(units) + len(more) + 1)
    by_unit = [
        sum(p for e, p in row.points.items() if course.unit_of[e] == u) + row.sum_of([u])
        for u in units
    ]
    others = [row.sum_of(parts) for parts in more.values()]
    return [_short(points) for points in (*by_unit, *others, row.total)]


def _more(rows: Sequence[Row]) -> Mapping[str, Collection[str]]:
    """The further columns that the rows need: each head, with the parts whose points it sums."""
    parts = {"marked": {name for row in rows for name in row.questions}}
    parts |= {"total ±": {TOTAL}, "late": {LATE}}
    return {head: own for head, own in parts.items() if any(row.sum_of(own) for row in rows)}


def _units(course: Course, rows: Sequence[Row]) -> list[tuple[int, str]]:
    """The number and name of each graded unit."""
    present = {exercise.unit for row in rows if row.grade for exercise in row.grade.exercises}
    return [(n, unit.name) for n, unit in enumerate(course.units, 1) if unit.name in present]


def print_rows(
    course: Course,
    rows: Sequence[Row],
    policy: Policy | None,
    tally: Tally,
    out: Path,
    kind: DisplayKind,
) -> None:
    """Print a grading's results: a table for people, JSON for programs, or only errors."""
    from grader.run.tally import sum_up

    match kind:
        case "people":
            _print_table(course, rows, policy, tally, out)
        case "json":
            _print_json(rows)
        case "json lines":
            sum_up(tally, rows, sys.stdout)
    if kind != "people":
        failed = ("grader_error", CONFLICT) if kind == "quiet" else (CONFLICT,)
        without = [row for row in rows if row.status in failed]
        _print_notes(without, Console(stderr=True, highlight=False))


def _print_json(rows: Sequence[Row]) -> None:
    print(
        json.dumps(
            [
                {
                    "student": row.student,
                    "status": row.status,
                    "total": row.total,
                    "max": row.max,
                }
                for row in rows
            ]
        )
    )


def _print_table(
    course: Course, rows: Sequence[Row], policy: Policy | None, tally: Tally, out: Path
) -> None:
    console = table_console()
    console.print(gradebook_table(course, rows, console.width))
    console.print(legend(course, rows), soft_wrap=True)
    _print_notes(rows, console)
    for line in remarks(rows, policy):
        console.print(safe(line), style="yellow", soft_wrap=True, markup=False)
    if tally.reused:
        reused = (
            f"{tally.reused} of {tally.total} are reused from {out}: same text, course, seed and "
            "versions; --fresh grades them again"
        )
        console.print(reused, soft_wrap=True, markup=False)
    submissions = len({row.grade.submission for row in rows if row.grade})
    console.print(course_line(course), soft_wrap=True, markup=False)
    console.print(
        f"{counted(submissions, 'submission')} in {out / 'gradebook.csv'}", soft_wrap=True
    )


def _print_notes(rows: Sequence[Row], console: Console) -> None:
    for note in notes(rows):
        indented(console, note)


def row_line(row: Row) -> Text:
    """A student's status and points in one line."""
    most = f" of {number(row.max)}" if row.max is not None else ""
    total = "?" if row.total is None else number(row.total)
    return Text(f"{who(row)}: {row.status}, {total}{most}")


def legend(course: Course, rows: Sequence[Row]) -> str:
    """A line that gives the name of each unit whose number heads a column."""
    return ", ".join(f"{n} {name.replace('_', ' ')}" for n, name in _units(course, rows))


def _short(points: float) -> str:
    return f"{points:.1f}".removesuffix(".0")


def arrivals_lines(arrivals: Arrivals, zone: tzinfo | None) -> Iterator[Text]:
    """A line for each submission, each absent student and each problem, before grading."""
    absent = {key: one for key, one in arrivals.people.items() if key not in arrivals.conflicts}
    for one in arrivals.submissions:
        style = "" if one.status == "ready" else "yellow"
        yield Text(safe(_arrival(one, arrivals.people, zone)), style=style)
        for student in one.members:
            absent.pop(student, None)
    for student, person in sorted(absent.items()):
        yield Text(safe(f"{called(student, person.name)}: {ABSENT}"), style="yellow")
    yield from conflict_lines(arrivals)
    for one in arrivals.submissions:
        for problem in one.problems:
            yield Text(safe(f"{_named(one.student, arrivals.people)}: {problem}"), style="yellow")


def conflict_lines(arrivals: Arrivals) -> Iterator[Text]:
    """A line for each conflict: the submissions in it, and how to settle it."""
    for why in dict.fromkeys(arrivals.conflicts.values()):
        yield Text(safe(NOT_GRADED.format(why)), style="yellow")


def _arrival(one: Submission, people: Mapping[str, Person], zone: tzinfo | None) -> str:
    """``doejane Jane Doe (late, 2 times): 1 file: softmax.py``."""
    members = [_named(student, people) for student in one.group]
    time = [shown_time(one.submitted, zone)] if one.submitted is not None else []
    about = [*members, *time, *["late"] * one.late, *[f"{one.attempts} times"] * (one.attempts > 1)]
    names = [source.name for source in one.sources]
    files = f"{counted(len(names), 'file')}: {some_of(names, FILES)}" if names else one.status
    marks = f" ({', '.join(about)})" if about else ""
    return f"{_named(one.student, people)}{marks}: {files}"


def _named(student: str, people: Mapping[str, Person]) -> str:
    return called(student, people[student].name if student in people else "")


def roster_line(roster: Roster) -> str:
    """A line that says how each column of a roster was understood."""
    taken = [f"{kind} from {' or '.join(titles)}" for kind, titles in roster.columns.items()]
    kept = [*dict.fromkeys(title for person in roster.people for title in person.extra)]
    also = [f"kept as they are: {', '.join(kept)}"] if kept else []
    return safe("; ".join([f"the roster: {', '.join(taken)}", *also]))
