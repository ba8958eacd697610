"""`grader grade`: grades submissions into a gradebook."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from grader.cli import tables
from grader.cli.app import (
    INSTRUCTORS,
    AssignmentOption,
    CourseOption,
    DeviceOption,
    JobsOption,
    JsonOption,
    SeedOption,
    app,
    instructors_course,
)
from grader.cli.completion import exercises
from grader.course.course import Course
from grader.lms import DOWNLOADS, SYSTEMS
from grader.records.faults import CallError
from grader.records.rows import CONFLICT, counted, listed

if TYPE_CHECKING:
    from grader.grading.order import Order
    from grader.intake import Arrivals, Roster, Times
    from grader.records.lateness import Policy
    from grader.records.rows import Person, Row
    from grader.run.tally import DisplayKind, Tally
    from grader.sandbox.jails import Isolation
    from grader.sandbox.session import Device


CHANGES = "changes.csv"  # in the gradebook's folder: what the last --again changed

# --- parameters ----------------------------------------------------------------------------------

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH...",
        help="Files, notebooks, zips, folders of those; or the download of an assignment from "
        f"{listed([system.title for system in SYSTEMS if system.downloads], 'or')}.",
        show_default=False,
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="The folder of the gradebook.")
]
RosterOption = Annotated[
    Path | None,
    typer.Option("--roster", metavar="FILE", help="A CSV of the class: id, name, email, …"),
]
TimesOption = Annotated[
    Path | None,
    typer.Option(
        "--times",
        metavar="FILE",
        help="A CSV of the times of submissions: student, time; or Moodle's worksheet.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="List the submissions without grading them.")
]
AgainOption = Annotated[
    bool, typer.Option("--again", help="Grade the submissions in DIR again, and show changes.")
]
AddOption = Annotated[
    bool,
    typer.Option("--add", help="Add these submissions to DIR; all other students keep theirs."),
]
WatchOption = Annotated[
    bool, typer.Option("--watch", help="Wait for submissions in the folder, and grade them.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler; local:N starts N here.",
    ),
]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="NAME",
        autocompletion=exercises,
        help="Only this exercise or unit; may be repeated.",
    ),
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Delete grades in DIR that this run does not make again.")
]
IsolationOption = Annotated[
    Literal["strong", "weak"],
    typer.Option(
        "--isolation",
        help="With weak, grade even if submissions could reach secrets: see doctor.",
    ),
]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Do not reuse grades that DIR has for the same text.")
]
PagesOption = Annotated[
    bool | None,
    typer.Option("--pages/--no-pages", help="Also write feedback and the report (default: yes)."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
JsonLinesOption = Annotated[
    bool, typer.Option("--json-lines", help="Print a line of JSON for each graded submission.")
]


# For each pair of options that exclude each other, the message. A mode refuses options that would
# have no effect. Only a dry run accepts all options of a grading, though it does not grade.
MODES = "--add, --again, --watch and --dry-run exclude one another"
EXERCISES = "--only, --assignment and --again exclude one another: --again keeps DIR's exercises"
ADDED = "--add keeps DIR's exercises, assignment and roster: leave out {}"
KINDS = "--quiet, --json and --json-lines exclude one another"
PEOPLE = "--watch and --dry-run print for people: leave out --quiet, --json and --json-lines"
PLACES = "--cluster excludes --jobs and --watch: the cluster's workers do the grading"
APART = {
    ("again", "watch"): MODES, ("again", "dry_run"): MODES, ("watch", "dry_run"): MODES,
    ("add", "again"): MODES, ("add", "watch"): MODES, ("add", "dry_run"): MODES,
    ("add", "only"): ADDED.format("--only"), ("add", "assignment"): ADDED.format("--assignment"),
    ("add", "roster"): ADDED.format("--roster"),
    ("add", "replace"): "--add deletes no grades: leave out --replace",
    ("again", "only"): EXERCISES, ("again", "assignment"): EXERCISES,
    ("only", "assignment"): EXERCISES,
    ("quiet", "as_json"): KINDS, ("quiet", "json_lines"): KINDS, ("as_json", "json_lines"): KINDS,
    ("watch", "quiet"): PEOPLE, ("watch", "as_json"): PEOPLE, ("watch", "json_lines"): PEOPLE,
    ("dry_run", "quiet"): PEOPLE, ("dry_run", "as_json"): PEOPLE,
    ("dry_run", "json_lines"): PEOPLE,
    ("cluster", "jobs"): PLACES, ("cluster", "watch"): PLACES,
    ("again", "paths"): "--again grades the submissions in the gradebook: leave out PATH",
    ("again", "roster"): "--again keeps DIR's roster. To use a new roster, grade the submissions "
        "with it: unchanged grades are reused",
    ("again", "times"): "--again keeps DIR's times. To use a new table, grade the submissions with "
        "it: unchanged grades are reused",
    ("again", "replace"): "--again grades all submissions in DIR: leave out --replace",
    ("watch", "jobs"): "--watch grades submissions one by one: leave out --jobs",
    ("watch", "pages"): "--watch writes no pages: `grader report DIR` writes them",
}  # fmt: skip


@dataclass(frozen=True)
class _Run:
    """The settings of one grading run."""

    order: Order
    out: Path
    kind: DisplayKind
    jobs: int | None
    cluster: str | None
    fresh: bool


@app.command(
    rich_help_panel=INSTRUCTORS,
    epilog="Example: grader grade submissions.zip --out grades/ --roster roster.csv",
)
def grade(
    context: typer.Context,
    paths: PathsArgument = None,
    out: OutOption = None,
    roster: RosterOption = None,
    times: TimesOption = None,
    dry_run: DryRunOption = False,
    add: AddOption = False,
    again: AgainOption = False,
    watch: WatchOption = False,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    seed: SeedOption = None,
    only: OnlyOption = None,
    assignment: AssignmentOption = None,
    replace: ReplaceOption = False,
    isolation: IsolationOption = "strong",
    device: DeviceOption = "cpu",
    fresh: FreshOption = False,
    pages: PagesOption = None,
    course: CourseOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    json_lines: JsonLinesOption = False,
) -> None:
    """Grade submissions into a gradebook: tables, and pages for students and for you.

    A student's name comes from the file, the folder or the download. Of several submissions by one
    student, the last counts. If it is unclear which is last, that student is not graded, and the
    exit code is 1. Grading a student again in the same folder replaces the grade. If nothing that
    decides a grade has changed, the grade is reused. After an interruption, repeat the command: it
    continues where it stopped. The gradebook keeps the roster. A late submission does not need the
    class again: --add grades it alone.
    """
    given = list(paths or [])
    kind: DisplayKind = (
        "quiet" if quiet else "json" if as_json else "json lines" if json_lines else "people"
    )
    from grader.grades.gradebook import ADDING, REGRADING
    from grader.intake import NO_TIMES

    _refuse_nonsense(context.params, given, device, isolation)
    opened = instructors_course(course, "grade")
    people, known = _people(roster, times, out, opened)
    if add and times is None:
        known = NO_TIMES  # a time in the gradebook is that of an earlier submission
    adding = shlex.join([*ADDING.split(), *map(str, given)]) if add else ""
    keeping = REGRADING if again else adding
    chosen, title = _chosen(opened, only or [], assignment, out, keeping)
    dated = [one.name for one in opened.file.assignment if one.due is not None]
    if times is not None and dated and not title:
        unused = "without an assignment, no due time applies, and these times cost no points"
        print(f"grader: {unused}: add --assignment {dated[0]}", file=sys.stderr)
    if out is None or dry_run:
        _show(given, opened, people, known)
        return
    order = _order(opened, seed, chosen, isolation, device, given, out, fresh=fresh)
    run = _Run(order, out, kind, jobs, cluster, fresh)
    with _stoppable(out):
        if watch:
            _stay(given[0], run, people, known, title, replace=replace)
            return
        if again:
            rows, tally = _again(run, another_seed=seed is not None)
            shown = rows
        else:
            rows, tally, new = _once(run, given, people, known, title, adding, replace=replace)
            shown = [row for row in rows if row.student in new] if add else rows
    tables.print_rows(opened, shown, _policy(out, opened), tally, out, kind)
    if pages is not False:
        _write_pages(opened, out, silent=kind != "people")
    if kind == "people":
        print(tally.summary(shown))
    statuses = {row.status for row in shown}
    if "grader_error" in statuses:
        raise typer.Exit(3)
    if CONFLICT in statuses:
        raise typer.Exit(1)


def _policy(out: Path, course: Course) -> Policy | None:
    """The rule for late submissions that the gradebook keeps."""
    from grader.grades.gradebook import open_gradebook

    with open_gradebook(out, course.identity) as book:
        return book.policy


def _order(
    course: Course,
    seed: str | None,
    exercises: tuple[str, ...],
    isolation: Isolation,
    device: Device,
    given: Sequence[Path],
    out: Path,
    *,
    fresh: bool,
) -> Order:
    from grader.grading.order import Order

    return Order(
        course,
        seed or course.hidden_seed(),
        course.tests_of(course.select(exercises)),
        exercises,
        isolation=isolation,
        secrets=(out, *given),
        device=device,
        keeps_sheet=not fresh,
    )


@contextmanager
def _stoppable(out: Path) -> Iterator[None]:
    """On Ctrl-C, exit with a line about the grades that are kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was graded"
        if out.exists():
            kept = f"the grades so far are kept in {out}; the same command continues from there"
        print(f"grader: stopped; {kept}", file=sys.stderr)
        raise typer.Exit(130) from None


def _refuse_nonsense(
    options: Mapping[str, object], paths: Sequence[Path], device: Device, isolation: Isolation
) -> None:
    """Raise `CallError` for options that exclude each other, and for missing options."""
    for both, why in APART.items():
        if all(options[name] for name in both):
            raise CallError(why)
    if not options["again"] and not paths:
        raise CallError("which submissions? grader grade submissions/ --out grades/")
    if options["out"] is None and not options["dry_run"]:
        raise CallError("where should the gradebook go? grader grade … --out grades/")
    if options["out"] == Path("-"):
        raise CallError("--out takes a folder: a gradebook is more than one file")
    if options["watch"] and (len(paths) != 1 or not paths[0].is_dir()):
        raise CallError("--watch takes one folder, in which submissions arrive")
    if device != "cpu" and isolation == "strong":
        raise CallError(
            f"jails cannot use {device}, so submissions would run without isolation: "
            "--isolation=weak allows that, and each grade records it"
        )


def _people(
    roster: Path | None, times: Path | None, out: Path | None, course: Course
) -> tuple[Roster, Times]:
    """The roster and the table of times given in this call, or else those of the gradebook."""
    from grader.grades.database import DATABASE
    from grader.grades.gradebook import open_gradebook
    from grader.intake import NO_ROSTER, NO_TIMES, read_roster, read_times

    kept = NO_ROSTER, NO_TIMES
    if out is not None and (out / DATABASE).is_file():
        with open_gradebook(out, course.identity) as book:
            kept = book.roster, book.times
    return (
        read_roster(roster) if roster is not None else kept[0],
        read_times(times, course.zone) if times is not None else kept[1],
    )


def _chosen(
    course: Course, only: Sequence[str], assignment: str | None, out: Path | None, keeping: str
) -> tuple[tuple[str, ...], str]:
    """The exercises to grade, and the assignment; or the gradebook's, if a command keeps them."""
    from grader.grades.gradebook import existing_gradebook

    if keeping and out is not None:
        with existing_gradebook(out, course.identity, continues=keeping) as book:
            return book.exercises, book.assignment
    title = assignment or ""
    return course.select(course.assignment(title).exercises if title else only), title


def _show(paths: Sequence[Path], course: Course, roster: Roster, times: Times) -> None:
    from grader.intake import take_in

    arrivals = take_in(paths, course, roster, DOWNLOADS, times)
    console = Console(highlight=False)
    for line in tables.arrivals_lines(arrivals, course.zone):
        console.print(line, soft_wrap=True)
    if roster.columns:
        console.print(tables.roster_line(roster), markup=False, soft_wrap=True)
    _print_notes(console, arrivals)
    if arrivals.conflicts:
        raise typer.Exit(1)


def _print_notes(console: Console, arrivals: Arrivals) -> None:
    for line in arrivals.notices:
        console.print(line, markup=False, soft_wrap=True)


def _once(
    run: _Run,
    paths: Sequence[Path],
    roster: Roster,
    times: Times,
    assignment: str,
    adding: str,
    *,
    replace: bool,
) -> tuple[list[Row], Tally, set[str]]:
    """Grade submissions; return the gradebook's rows, and the students of these submissions."""
    from grader.intake import take_in
    from grader.run.batch import grade_into
    from grader.run.tally import Tally, following

    there = _there(run) if adding else None
    arrivals = take_in(paths, run.order.course, roster, DOWNLOADS, times, known=there)
    stderr = Console(stderr=True, highlight=False)
    # In a terminal, show problems before grading begins, while Ctrl-C costs no time.
    interactive = stderr.is_terminal
    if interactive and run.kind == "people":
        for line in tables.conflict_lines(arrivals):
            stderr.print(line, soft_wrap=True)
        _print_notes(stderr, arrivals)
    tally = Tally(len(arrivals.submissions))
    with following(tally, run.kind, sys.stdout, stderr) as follow:
        rows = grade_into(
            run.out,
            run.order,
            arrivals,
            run.jobs,
            follow,
            cluster=run.cluster,
            replace=replace,
            fresh=run.fresh,
            roster=roster,
            times=times,
            assignment=assignment,
            adding=adding,
        )
    if not interactive and run.kind == "people":
        _print_notes(Console(highlight=False), arrivals)
    new = {student for one in arrivals.submissions for student in one.members}
    return rows, tally, new | arrivals.conflicts.keys()


def _there(run: _Run) -> Mapping[str, Person]:
    """The people of the gradebook, by name."""
    from grader.grades.gradebook import open_gradebook

    with open_gradebook(run.out, run.order.course.identity) as book:
        return book.people()


def _again(run: _Run, *, another_seed: bool) -> tuple[list[Row], Tally]:
    from grader.cli import revisions
    from grader.grades.changes import changes_csv, compared
    from grader.grades.gradebook import REGRADING, existing_gradebook
    from grader.records.files import write_whole
    from grader.run.batch import grade_again
    from grader.run.tally import Tally, following

    course = run.order.course
    with existing_gradebook(run.out, course.identity, continues=REGRADING) as book:
        tally = Tally(book.count_submissions())
    stderr = Console(stderr=True, highlight=False)
    with following(tally, run.kind, sys.stdout, stderr) as follow:
        rows = grade_again(
            run.out,
            run.order,
            run.jobs,
            follow,
            cluster=run.cluster,
            another_seed=another_seed,
            fresh=run.fresh,
        )
    changes = compared(course, run.out)
    write_whole(run.out / CHANGES, changes_csv(changes).encode())
    if run.kind == "people":
        console = Console(highlight=False)
        revisions.show_changes(changes, console)
        if changes.students:
            console.print(f"to mail from: {run.out / CHANGES}", markup=False, soft_wrap=True)
    return rows, tally


def _stay(
    folder: Path, run: _Run, roster: Roster, times: Times, assignment: str, *, replace: bool
) -> None:
    from grader.feedback import terminal
    from grader.grades.database import refuse_strangers
    from grader.intake.arrivals import arriving
    from grader.run.batch import grade_arrivals

    course, console = run.order.course, Console(highlight=False)
    refuse_strangers(run.out, course.identity)
    console.print(terminal.course_line(course), soft_wrap=True, markup=False)
    console.print(f"grading submissions that arrive in {folder}; Ctrl-C ends it", markup=False)
    looks = _reported(arriving(folder, course, roster, Event(), DOWNLOADS, times), console)
    graded = grade_arrivals(
        run.out,
        run.order,
        looks,
        replace=replace,
        fresh=run.fresh,
        roster=roster,
        times=times,
        assignment=assignment,
    )
    for rows in graded:
        for row in rows:
            console.print(tables.row_line(row))
            for line in row.limits:
                console.print(f"  {line}", markup=False, soft_wrap=True)


def _reported(looks: Iterable[Arrivals], console: Console) -> Iterator[Arrivals]:
    """Yield the submissions at each reading of the folder, and print each new problem once."""
    from grader.feedback.terminal import safe

    known: set[str] = set()
    for seen in looks:
        lines = [line.plain for line in tables.conflict_lines(seen)]
        lines += [safe(seen.refused)] if seen.refused else []
        for line in lines:
            if line not in known:
                console.print(line, style="yellow", markup=False, soft_wrap=True)
        known = {*lines}
        yield seen


def _write_pages(course: Course, out: Path, *, silent: bool) -> None:
    """Write the HTML pages; if their libraries are missing, print how to install them."""
    from grader.report import require_templates

    try:
        require_templates()
    except CallError as error:
        print(f"grader: no pages: {error}", file=sys.stderr)
        return
    where = written(out, course, quiet=silent)
    if not silent:
        print(where)


def written(
    folder: Path,
    course: Course,
    *,
    anonymous: bool = False,
    similarity: bool = True,
    quiet: bool = False,
) -> str:
    """Write a gradebook's HTML pages, with a progress bar; return a line that names the files."""
    from grader import report
    from grader.feedback import terminal
    from grader.grades.gradebook import existing_gradebook

    with existing_gradebook(folder, course.identity, meanwhile=True) as book:
        pages = 0 if anonymous else sum(row.grade is not None for row in book.rows())
        write = report.write_anonymous if anonymous else report.write_pages
        doing = "writing pages"
        console = Console(stderr=True, quiet=quiet)
        with terminal.progress(console, doing, pages + 1, first=doing) as advance:
            write(book, course, advance, similarity=similarity)
    if anonymous:
        return f"the report: {folder / report.ANONYMOUS}"
    students = f"{counted(pages, 'page')} for students in {folder / report.FEEDBACK}"
    return f"the report: {folder / report.REPORT}, and {students}"
