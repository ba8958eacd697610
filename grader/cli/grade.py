"""`grader grade`: from what was handed in to a gradebook."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    DeviceOption,
    JobsOption,
    JsonOption,
    SeedOption,
    app,
)
from grader.cli.pages import written
from grader.course import Course, find_course, load_course
from grader.faults import CallError
from grader.wording import counted

if TYPE_CHECKING:
    from grader.intake import Arrivals, Roster
    from grader.rows import Row
    from grader.workers import Order


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader grade submissions.zip --out grades/ --roster roster.csv",
)
def grade(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Files, notebooks, zips, folders of those; or the download of an assignment from "
            "Canvas, Moodle, Gradescope or nbgrader.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the gradebook goes.")
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option("--roster", metavar="FILE", help="A CSV of the class: id, name, email, …"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say who handed in what, and grade nothing.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Grade what is in DIR once more, and say what changed."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and grade what arrives in the folder.")
    ] = False,
    jobs: JobsOption = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            help="Grade on the workers of this Dask scheduler; local:N starts N here.",
        ),
    ] = None,
    seed: SeedOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Just this exercise or unit; may be repeated."),
    ] = None,
    assignment: AssignmentOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Lose earlier grades in DIR that this run leaves out.")
    ] = False,
    isolation: Annotated[
        Literal["strong", "weak"],
        typer.Option(
            "--isolation",
            help="With weak, grade even where submissions could reach secrets: see doctor.",
        ),
    ] = "strong",
    device: DeviceOption = "cpu",
    pages: Annotated[
        bool, typer.Option("--pages/--no-pages", help="Write feedback and the report as well.")
    ] = True,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grade submissions into a gradebook: tables, and pages for students and for you.

    A student's name is the file's, the folder's, or the one in the download; of several hand-ins
    the last one counts. Who is graded again in the same folder gets the new grade. A roster is
    remembered with the grades.
    """
    given = list(paths or [])
    _refuse_nonsense(given, out, again=again, watch=watch, dry_run=dry_run)
    if cluster is not None and (jobs is not None or watch):
        raise CallError("--cluster goes with neither --jobs nor --watch: its workers do the work")
    if device != "cpu" and isolation == "strong":
        raise CallError(
            f"no jail may touch {device}, so submissions run where nothing isolates them: "
            "--isolation=weak grades all the same, and says so in each grade"
        )
    opened = load_course(find_course(course))
    opened.require_solutions("grade")
    people = _roster(roster, out, opened)
    if dry_run:
        _show(given, opened, people)
        return
    assert out is not None
    from grader.workers import Order

    order = Order(
        opened, seed or opened.hidden_seed(), opened.test_files(),
        _chosen(opened, only or [], assignment, out if again else None), isolation=isolation,
        secrets=(out, *given), device=device,
    )  # fmt: skip
    try:
        if watch:
            _stay(given[0], out, order, people, assignment or "")
            return
        if again:
            rows = _again(out, order, jobs, cluster, another_seed=seed is not None, silent=as_json)
        else:
            rows = _once(
                given, out, order, jobs, cluster, people, assignment or "", replace=replace,
                silent=as_json,
            )  # fmt: skip
    except KeyboardInterrupt:
        kept = f"what was graded so far is kept in {out}" if out.exists() else "nothing was graded"
        print(f"grader: stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    _print_rows(opened, rows, out, as_json=as_json)
    if pages:
        _write_pages(opened, out, silent=as_json)
    if any(row.status == "grader_error" for row in rows):
        raise typer.Exit(3)


def _refuse_nonsense(
    paths: Sequence[Path], out: Path | None, *, again: bool, watch: bool, dry_run: bool
) -> None:  # fmt: skip
    if sum((again, watch, dry_run)) > 1:
        raise CallError("--again, --watch and --dry-run exclude one another")
    if again and paths:
        raise CallError("--again grades what is in the gradebook: leave out the submissions")
    if not again and not paths:
        raise CallError("which submissions? grader grade submissions/ --out grades/")
    if out is None and not dry_run:
        raise CallError("where should the gradebook go? grader grade … --out grades/")
    if watch and (len(paths) != 1 or not paths[0].is_dir()):
        raise CallError("--watch takes one folder, in which submissions arrive")


def _roster(given: Path | None, out: Path | None, course: Course) -> Roster:
    """The roster of this call, or the one of an earlier call."""
    from grader.gradebook import DATABASE, open_gradebook
    from grader.intake import NOBODY, read_roster

    if given is not None:
        return read_roster(given)
    if out is None or not (out / DATABASE).is_file():
        return NOBODY
    with open_gradebook(out, course.name) as book:
        return book.roster


def _chosen(
    course: Course, only: Sequence[str], assignment: str | None, again: Path | None
) -> tuple[str, ...]:  # fmt: skip
    """The exercises to grade."""
    from grader.gradebook import existing_gradebook

    if sum((bool(only), assignment is not None, again is not None)) > 1:
        raise CallError("--only, --assignment and --again exclude one another")
    if again is not None:
        with existing_gradebook(again, course.name) as book:
            return book.exercises
    return course.select(course.assignment(assignment).exercises if assignment else only)


def _show(paths: Sequence[Path], course: Course, roster: Roster) -> None:
    from grader import terminal
    from grader.intake import take_in

    arrivals = take_in(paths, course, roster)
    console = Console(highlight=False)
    for line in terminal.arrivals_lines(arrivals):
        console.print(line, soft_wrap=True)
    if roster.columns:
        console.print(terminal.roster_line(roster), markup=False, soft_wrap=True)
    _tell(console, arrivals)


def _tell(console: Console, arrivals: Arrivals) -> None:
    for line in arrivals.told:
        console.print(line, markup=False, soft_wrap=True)


def _once(
    paths: Sequence[Path], out: Path, order: Order, jobs: int | None, cluster: str | None,
    roster: Roster, assignment: str, *, replace: bool, silent: bool,
) -> list[Row]:  # fmt: skip
    from grader.batch import grade_into
    from grader.intake import take_in
    from grader.workers import default_jobs

    arrivals = take_in(paths, order.course, roster)
    stderr = Console(stderr=True, highlight=False)
    if stderr.is_terminal:  # in time for Ctrl-C, where someone is there to press it
        _tell(stderr, arrivals)
    count = len(arrivals.submissions)
    with _progress(count) as advance:
        rows = grade_into(
            out, order, arrivals, jobs or default_jobs(count), lambda _: advance(),
            cluster=cluster, replace=replace, roster=roster, assignment=assignment,
        )  # fmt: skip
    if not stderr.is_terminal and not silent:
        _tell(Console(highlight=False), arrivals)
    return rows


def _again(
    out: Path, order: Order, jobs: int | None, cluster: str | None, *, another_seed: bool,
    silent: bool,
) -> list[Row]:  # fmt: skip
    from grader.batch import grade_again
    from grader.conversation import told
    from grader.conversation.changes import compared
    from grader.gradebook import existing_gradebook
    from grader.workers import default_jobs

    with existing_gradebook(out, order.course.name) as book:
        count = book.count_submissions()
    with _progress(count) as advance:
        rows = grade_again(
            out, order, jobs or default_jobs(count), lambda _: advance(), cluster=cluster,
            another_seed=another_seed,
        )  # fmt: skip
    if not silent:
        told.changes(compared(order.course, out), Console(highlight=False))
    return rows


def _stay(folder: Path, out: Path, order: Order, roster: Roster, assignment: str) -> None:
    from grader import terminal
    from grader.batch import grade_arrivals
    from grader.intake.arriving import arriving

    console = Console(highlight=False)
    console.print(f"grading what arrives in {folder}; Ctrl-C ends it", markup=False)
    looks = arriving(folder, order.course, roster, Event())
    for rows in grade_arrivals(out, order, looks, roster=roster, assignment=assignment):
        for row in rows:
            console.print(terminal.row_line(row))


def _progress(count: int) -> AbstractContextManager[Callable[[], None]]:
    from grader import terminal

    return terminal.progress(Console(stderr=True), "grading", count)


def _write_pages(course: Course, out: Path, *, silent: bool) -> None:
    """The pages, or how to get them: that they are missing is no fault of a grading."""
    from grader.report import require_templates

    try:
        require_templates()
    except CallError as error:
        print(f"grader: no pages: {error}", file=sys.stderr)
        return
    told = written(out, course)
    if not silent:
        print(told)


def _print_rows(course: Course, rows: Sequence[Row], out: Path, *, as_json: bool) -> None:
    from grader import terminal

    if as_json:
        print(json.dumps([
            {
                "student": row.student, "status": row.status, "total": row.total,
                "max": row.grade.max if row.grade else None,
            }
            for row in rows
        ]))  # fmt: skip
        return
    console = Console(highlight=False)
    console.print(terminal.gradebook_table(course, rows))
    console.print(terminal.legend(course, rows), soft_wrap=True)
    for note in terminal.notes(rows):
        terminal.indented(console, note)
    handed_in = len({row.grade.submission for row in rows if row.grade})
    told = counted(handed_in, "submission")
    console.print(f"{told} in {out / 'gradebook.csv'}", soft_wrap=True)
