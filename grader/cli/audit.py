"""The command `audit`: proves a course's tests, and reads a class's wrong answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

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
    from grader.cli.tables import table_console
    from grader.feedback import terminal

    if who and graded is None:
        raise CallError("--who names the students of a gradebook: name it with --from")
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
    if watch and as_json:
        raise CallError("--watch prints for people: leave out --json")
    opened = instructors_course(course, "audit")
    chosen = opened.select(names or [])
    if not as_json:
        table_console().print(terminal.course_line(opened), soft_wrap=True, markup=False)
    if graded is not None:
        _audit_class(opened, chosen, graded, jobs, seed, who=who, as_json=as_json)
        return
    if watch:
        raise typer.Exit(_watch(course, chosen if names else [], seed))
    if machines:
        raise typer.Exit(_audit_machines(opened, chosen, jobs, seed, as_json=as_json))
    raise typer.Exit(_audit(opened, chosen, jobs, seed, seeds, suggest=suggest, as_json=as_json))


def _audit(
    course: Course,
    names: Sequence[str],
    jobs: int | None,
    seed: str | None,
    seeds: int,
    *,
    suggest: bool,
    as_json: bool,
) -> int:
    """Audit once, print the findings, and return the exit code."""
    from grader.author.audit import audit_course
    from grader.author.findings import Audited, audit_totals, nearest_margins
    from grader.author.suggestions import suggested
    from grader.cli import audit_tables
    from grader.cli.tables import table_console
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    console = table_console()

    def report(findings: Sequence[Audited]) -> None:
        advance()
        for line in () if as_json else audit_tables.faults(findings):
            console.print(line, markup=False, soft_wrap=True)

    try:
        with terminal.progress(Console(stderr=True), "auditing", len(names)) as advance:
            findings = audit_course(
                course,
                names,
                jobs or default_jobs(4 * len(names)),
                report,
                seed=seed,
                seeds=seeds,
                asks=True,
            )
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        return 130
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        first = [finding for finding in findings if finding.seed == 1]
        near = nearest_margins(first)
        for part in audit_tables.audit_report(first, near, audit_totals(first)):
            console.print(part, soft_wrap=True)
        if seeds > 1:
            console.print(audit_tables.seeds_table(findings, seeds), soft_wrap=True)
        for line in suggested(first) if suggest else ():
            console.print(line, markup=False, soft_wrap=True)
    return 0 if all(finding.well for finding in findings) else 1


def _watch(course: Path | None, names: Sequence[str], seed: str | None) -> int:
    """Audit at every save until Ctrl-C, and return the exit code."""
    from grader.author.findings import Audited
    from grader.author.watch import watch
    from grader.cli import audit_tables
    from grader.cli.tables import table_console

    console = table_console()
    waiting = "waiting for a save of a file of the course; Ctrl-C stops"

    def show(found: Sequence[Audited] | str, seconds: float) -> None:
        if console.is_terminal:
            console.clear()
        lines = [found] if isinstance(found, str) else audit_tables.watched(found, seconds)
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
    from grader.cli import audit_tables

    arguments = [*names, f"--course={course.private or course.folder}"]
    arguments += [f"--jobs={jobs}"] if jobs is not None else []
    arguments += [f"--seed={seed}"] if seed is not None else []
    console = Console(highlight=False)
    audits = []
    try:
        for setting in SETTINGS:
            audits.append(audited(setting, arguments))
            if not as_json:
                for line in audit_tables.audited_setting(label(setting), audits[-1]):
                    console.print(line, markup=False, soft_wrap=True)
    except NotAudited as stopped:
        return int(stopped.args[0])  # the audit has printed the reason
    except KeyboardInterrupt:
        return 130
    differing = list(differences(audits))
    if as_json:
        print(msgspec.json.encode(differing).decode())
    else:
        for line in audit_tables.differing_settings([*map(label, SETTINGS)], differing):
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
    from grader.cli import audit_tables
    from grader.cli.tables import table_console
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
    console = table_console()
    for part in audit_tables.recurring_report(found):
        console.print(part, soft_wrap=True)
