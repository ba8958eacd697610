"""Commands for the author of a course: `audit`, `schema` and `new`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console

from grader.cli.app import (
    AUTHORS,
    CourseOption,
    JobsOption,
    JsonOption,
    NamesArgument,
    SeedOption,
    app,
    instructors_course,
)
from grader.course.course import Course
from grader.records.faults import CallError
from grader.records.rows import counted

AUDIT_EXAMPLES = """Example: grader audit softmax --jobs 2

Example: grader audit softmax_naive --watch

Example: grader audit softmax --suggest

Example: grader audit --seeds 5

Example: grader audit causal_mask --seed another --json

Example: grader audit causal_mask --machines

Example: grader audit --from grades/ --who
"""


@app.command(rich_help_panel=AUTHORS, epilog=AUDIT_EXAMPLES)
def audit(
    names: NamesArgument = None,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    machines: Annotated[
        bool,
        typer.Option("--machines", help="Also audit as on older processors, and compare."),
    ] = False,
    graded: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Instead: group a gradebook's wrong answers."),
    ] = None,
    who: Annotated[
        bool, typer.Option("--who", help="With --from: name the students of each group.")
    ] = False,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=1, help="Audit with so many seeds, and compare."),
    ] = 1,
    suggest: Annotated[
        bool,
        typer.Option("--suggest", help="Propose known mistakes for mutants that no test catches."),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Audit the exercises that you edit, whenever you save."),
    ] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test the course's tests on references, stubs, known answers and mechanical mutants.

    The tests must catch every mistake and mutant, name each mistake correctly, and accept every
    right answer. Each hidden test must find something that no other test finds. Otherwise the exit
    code is 1, unless solutions/mistakes/audit.toml gives a reason. With --machines, audits in three
    settings of torch's libraries. The exit code is then also 1 if verdicts, names or points differ.
    With --seeds 5, four more seeds are derived from the course's hidden seed, or from --seed. With
    --watch, only the exercises of the saved unit are audited, among NAME if given; Ctrl-C stops it.

    With --from, groups the wrong answers of a graded class that give the same results and that no
    known mistake explains, and drafts a mistake for each group.
    """
    from grader.author.audit import audit_course as examine
    from grader.author.findings import Audited, audit_totals, nearest_margins
    from grader.author.suggestions import suggested
    from grader.cli import tables
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    if who and graded is None:
        raise CallError("--who names the students of a gradebook: name it with --from")
    opened = instructors_course(course, "audit")
    chosen = opened.select(names or [])
    console = tables.table_console()
    stderr = Console(stderr=True)
    if not as_json:
        console.print(terminal.course_line(opened), soft_wrap=True, markup=False)
    kinds = {
        "--from": graded is not None,
        "--machines": machines,
        "--watch": watch,
        "--seeds": seeds > 1,
        "--suggest": suggest,
    }
    asked = [option for option, given in kinds.items() if given]
    if len(asked) > 1 and asked != ["--seeds", "--suggest"]:
        raise CallError(f"{asked[0]} and {asked[1]} are two audits: ask for one of them")
    if graded is not None:
        _audit_class(opened, chosen, graded, jobs, seed, who=who, as_json=as_json)
        return
    if watch:
        if as_json:
            raise CallError("--watch prints for people: leave out --json")
        raise typer.Exit(_watch(course, chosen if names else [], seed))
    if machines:
        raise typer.Exit(_audit_machines(opened, chosen, jobs, seed, as_json=as_json))

    def report(findings: Sequence[Audited]) -> None:
        advance()
        for line in () if as_json else tables.faults(findings):
            console.print(line, markup=False, soft_wrap=True)

    try:
        with terminal.progress(stderr, "auditing", len(chosen)) as advance:
            findings = examine(
                opened,
                chosen,
                jobs or default_jobs(4 * len(chosen)),
                report,
                seed=seed,
                seeds=seeds,
            )
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        first = [finding for finding in findings if finding.seed == 1]
        near = nearest_margins(first)
        for part in tables.audit_report(first, near, audit_totals(first)):
            console.print(part, soft_wrap=True)
        if seeds > 1:
            console.print(tables.seeds_table(findings, seeds), soft_wrap=True)
        for line in suggested(first) if suggest else ():
            console.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


def _watch(course: Path | None, names: Sequence[str], seed: str | None) -> int:
    """Audit at every save until Ctrl-C, and return the exit code."""
    from grader.author.findings import Audited
    from grader.author.watch import watch
    from grader.cli import tables

    console = tables.table_console()
    waiting = "waiting for a save of a file of the course; Ctrl-C stops"

    def show(found: Sequence[Audited] | str, seconds: float) -> None:
        if console.is_terminal:
            console.clear()
        lines = [found] if isinstance(found, str) else tables.watched(found, seconds)
        for line in (*lines, waiting):
            console.print(line, markup=False, soft_wrap=True)

    if not names:
        console.print(waiting)
    try:
        watch(lambda: instructors_course(course, "audit"), names, show, seed=seed)
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
    return 130


def _audit_machines(
    course: Course, names: Sequence[str], jobs: int | None, seed: str | None, *, as_json: bool
) -> int:
    """Audit in every setting of `SETTINGS`, print the differences, and return the exit code."""
    from grader.author.machines import SETTINGS, NotAudited, audited, differences, label
    from grader.cli import tables

    arguments = [*names, f"--course={course.private or course.folder}"]
    arguments += [f"--jobs={jobs}"] if jobs is not None else []
    arguments += [f"--seed={seed}"] if seed is not None else []
    console = Console(highlight=False)
    audits = []
    try:
        for setting in SETTINGS:
            audits.append(audited(setting, arguments))
            if not as_json:
                for line in tables.audited_setting(label(setting), audits[-1]):
                    console.print(line, markup=False, soft_wrap=True)
    except NotAudited as stopped:
        return int(stopped.args[0])  # the audit has printed the reason
    except KeyboardInterrupt:
        return 130
    differing = list(differences(audits))
    if as_json:
        print(msgspec.json.encode(differing).decode())
    else:
        for line in tables.differing_settings([*map(label, SETTINGS)], differing):
            console.print(line, markup=False, soft_wrap=True)
    well = all(finding.well for findings in audits for finding in findings)
    return 0 if well and not differing else 1


def _audit_class(
    course: Course,
    names: Sequence[str],
    folder: Path,
    jobs: int | None,
    seed: str | None,
    *,
    who: bool,
    as_json: bool,
) -> None:
    """Group a gradebook's wrong answers, and print the groups."""
    from dataclasses import replace

    from grader.author.recurring import read_class, recurring
    from grader.cli import tables
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    graded, stderr = read_class(folder, course, names, seed), Console(stderr=True)
    for note in graded.notes:
        terminal.print_plain(stderr, note, "yellow")
    count = len(graded.unnamed)
    try:
        with terminal.progress(stderr, "running answers again", count) as advance:
            found = recurring(graded, jobs or default_jobs(4 * count), advance)
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    if not who:
        found = [
            replace(one, groups=tuple(replace(group, students=()) for group in one.groups))
            for one in found
        ]
    if as_json:
        print(msgspec.json.encode(found).decode())
        return
    console = tables.table_console()
    for part in tables.recurring_report(found):
        console.print(part, soft_wrap=True)


@app.command(
    rich_help_panel=AUTHORS,
    epilog="Example: grader schema course > exercises/course.schema.json",
)
def schema(
    file: Annotated[
        Literal["course", "audit"],
        typer.Argument(help="Of course.toml, or of solutions/mistakes/audit.toml."),
    ],
) -> None:
    """Print the JSON schema of a file that authors write, so that editors complete its keys.

    Write it to a file, and name this file in the first line of course.toml, or of audit.toml:
    #:schema ./course.schema.json
    """
    from grader.author.schema import schema as text_of

    print(text_of(file), end="")


new = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Start something of your own.")
app.add_typer(new, name="new", rich_help_panel=AUTHORS)


@new.command(
    "course",
    epilog='Example: grader new course ../statistics --title "Statistics with tensors"',
)
def new_course(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make; keep it private.")],
    title: Annotated[str, typer.Option("--title", help="The course's title, for people.")] = "",
    name: Annotated[
        str, typer.Option("--name", help="The course's name, for files (default: the folder's).")
    ] = "",
    overlay: Annotated[
        bool,
        typer.Option("--overlay", help="Start a private course on top of the course --course."),
    ] = False,
    course: CourseOption = None,
) -> None:
    """Write a new course with one exercise, which grades, checks, audits and releases as it is.

    With --overlay, DIR becomes a private course on top of another course. Anyone can read the
    references and hidden tests of a public repository. The tests and mistakes that you put into
    DIR are added to them, and stay private.
    """
    if overlay:
        if title or name:
            raise CallError("an overlay takes its title and name from the course below it")
        from grader.release.courses import write_overlay

        write_overlay(instructors_course(course, "new course"), to)
        print(f"{to} has a seed of its own, and {to / 'README.md'} says what else you can add")
        print(f"to grade with it: grader grade submissions/ --out grades/ --course {to}")
        return
    if course is not None:
        raise CallError("--course names the course below an overlay: add --overlay")
    from grader.author.courses import write_course

    write_course(to, title, name)
    print(f"{to} is a course with one exercise, and {to / 'README.md'} says what each file is for")
    print(f"to prove its tests:  grader audit --course {to}")
    print(f"to add an exercise:  grader new exercise NAME --unit UNIT --from FILE --course {to}")


@new.command(
    "exercise",
    epilog="Example: grader new exercise softmax_rows --unit softmax --from answer.py --example "
    '"softmax_rows(torch.randn(2, 5), dim=-1)" --course ../my-course',
)
def new_exercise(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A function or nn.Module class.")],
    unit: Annotated[str, typer.Option("--unit", help="The unit; a new one is added.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="The file with the reference (default: the unit's file in solutions/).",
        ),
    ] = None,
    example: Annotated[
        str,
        typer.Option(
            "--example",
            metavar="CALL",
            help="A call of NAME, if annotations and docstring do not say the shapes.",
        ),
    ] = "",
    course: CourseOption = None,
) -> None:
    """Write an exercise from a reference: everything that can be derived from a right answer.

    Writes the stub with its statement, the entry in course.toml, public checks, hidden tests and
    known mistakes. Audits them, and lists what is left for a person. Text that is there already
    stays as it is, so the command can run again at any time.
    """
    from grader.author.scaffold.draft import write_exercise
    from grader.author.scaffold.words import lines_of

    opened = instructors_course(course, "new exercise")
    stderr = Console(stderr=True)
    try:
        with stderr.status("loading torch") as status:
            outcome = write_exercise(opened, name, unit, source, example, status.update)
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    for line in lines_of(name, outcome):
        print(line)


@new.command("class", epilog="Example: grader new class practice/ --students 300")
def new_class(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    students: Annotated[int, typer.Option("--students", min=1, help="Their number.")] = 300,
    course: CourseOption = None,
) -> None:
    """Write an invented class to practise on: a download from Canvas, its gradebook, and a roster.

    Answers are right in some form, have a known mistake, or are missing. Some students submit late,
    twice or never. The same call gives the same class; a smaller class has the first students of a
    larger one. Keep the class private: it contains solutions.
    """
    from grader.author.practice import write_class

    write_class(to, instructors_course(course, "new class"), students)
    print(f"{counted(students, 'student')} in {to}: submissions.zip, roster.csv, canvas.csv")
