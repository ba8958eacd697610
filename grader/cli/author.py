"""What the author of a course types, and whoever wants to know what this machine can do."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table

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
from grader.course.course import Course, find_course, load_course
from grader.records.faults import CallError, HostFault


@app.command(rich_help_panel=AUTHORS, epilog="Example: grader audit softmax --jobs 2")
def audit(
    names: NamesArgument = None,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    machines: Annotated[
        bool,
        typer.Option("--machines", help="Audit with less and less of this processor, and compare."),
    ] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove the course's tests on references, stubs, known answers and mechanical mutants.

    Exits with 1 unless every mistake and mutant is caught, every right answer is accepted, every
    mistake is named as itself, and every hidden test tells of something that no other one tells of;
    or solutions/mistakes/audit.toml says why not. With --machines, does so in three settings of the
    libraries below torch, and exits with 1 too where verdicts, names or points differ among them.
    """
    from grader.author.audit import Finding, audit_totals
    from grader.author.audit import audit_course as examine
    from grader.cli import tables
    from grader.feedback import terminal
    from grader.run.workers import default_jobs

    opened = instructors_course(course, "audit")
    chosen = opened.select(names or [])
    console = Console(highlight=False)
    stderr = Console(stderr=True)
    if not as_json:
        console.print(terminal.course_line(opened), soft_wrap=True, markup=False)
    if machines:
        raise typer.Exit(_audit_machines(opened, chosen, jobs, seed, as_json=as_json))

    def heard(findings: Sequence[Finding]) -> None:
        advance()
        for finding in findings:
            if not finding.well and not as_json:
                console.print(f"{finding.kind} {finding.name}: {finding.text}", markup=False)

    try:
        with terminal.progress(stderr, "auditing", len(chosen)) as advance:
            findings = examine(
                opened, chosen, jobs or default_jobs(4 * len(chosen)), heard, seed=seed
            )
    except KeyboardInterrupt:
        print("grader: stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        for part in tables.audit_report(findings, audit_totals(findings)):
            console.print(part, soft_wrap=True)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


def _audit_machines(
    course: Course, names: Sequence[str], jobs: int | None, seed: str | None, *, as_json: bool
) -> int:
    """Audit in every setting, and say what differs; the exit code."""
    from grader.author.audit import SETTINGS, NotAudited, audited, differences, label
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
        return int(stopped.args[0])  # it has said why
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


new = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Start something of your own.")
app.add_typer(new, name="new", rich_help_panel=AUTHORS)


@new.command("course", epilog="Example: grader new course ../my-course")
def new_course(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make; keep it private.")],
    course: CourseOption = None,
) -> None:
    """Start a private course over this one: a seed of your own, hidden tests, references.

    Who has read the public repository knows its references and hidden tests; what you put into DIR
    comes before them, and only you know it.
    """
    from grader.release.courses import write_overlay as write

    write(instructors_course(course, "new course"), to)
    print(f"{to} has a seed of its own, and {to / 'README.md'} says what else may stand there")
    print(f"to grade with it: grader grade submissions/ --out grades/ --course {to}")


@new.command("class", epilog="Example: grader new class practice/ --students 300")
def new_class(
    to: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    students: Annotated[int, typer.Option("--students", min=1, help="How many.")] = 300,
    course: CourseOption = None,
) -> None:
    """Make up a class to practise on: a download from Canvas, its gradebook, and a roster.

    Answers are right in some form, have a known mistake, or are left out, and some hand in late,
    twice or nothing. The same call gives the same class, and a smaller one is its beginning. Keep
    it private: it holds solutions.
    """
    from grader.author.practice import write_class

    write_class(to, instructors_course(course, "new class"), students)
    print(f"{students} students in {to}: submissions.zip, roster.csv, canvas.csv")


@app.command(rich_help_panel=AUTHORS, epilog="Example: grader doctor")
def doctor(course: CourseOption = None, as_json: JsonOption = False) -> None:
    """Show versions, the course and the isolation layers, and what is missing.

    Exits with 1 if something is missing without which this machine cannot grade or check.
    """
    from grader.cli.author import examine

    findings = examine(course)
    if as_json:
        print(msgspec.json.encode(findings).decode())
    else:
        console = Console()
        signs = {"well": "[green]✓[/green]", "bad": "[red]✗[/red]", "absent": "-"}
        for topic in dict.fromkeys(finding.topic for finding in findings):
            table = Table(title=topic, title_justify="left", show_header=False)
            for finding in findings:
                if finding.topic == topic:
                    table.add_row(signs[finding.state], finding.name, finding.text)
            console.print(table)
    raise typer.Exit(1 if any(finding.state == "bad" for finding in findings) else 0)


# --- what this machine offers --------------------------------------------------------------------


PACKAGES = (
    "torch", "numpy", "pytest", "msgspec", "safetensors", "typer", "rich", "textual", "watchfiles",
)  # fmt: skip
GRADING = ("jaxtyping", "sandlock", "pyseccomp")  # which a student does without
# Absent is what this machine lacks and can do without.
State = Literal["well", "bad", "absent"]


@dataclass(frozen=True)
class Condition:
    """One thing looked at."""

    topic: str
    name: str
    state: State
    text: str


def examine(given: Path | None) -> list[Condition]:
    """Look at everything; what is missing says how to get it."""
    try:
        course: Course | CallError = load_course(find_course(given, student=True))
    except CallError as error:
        course = error
    student = isinstance(course, Course) and course.recorded.is_dir()
    return [*_versions(student), *_course(course), *_isolation(course, student)]


def _state(well: bool, needed: bool = True) -> State:
    return "well" if well else "bad" if needed else "absent"


def _versions(student: bool) -> list[Condition]:
    python, linux = sys.version_info[:2], sys.platform == "linux"
    findings = [
        Condition(
            "versions",
            "python",
            _state(python >= (3, 11)),
            platform.python_version() + ("" if python >= (3, 11) else ": 3.11 or newer is needed"),
        ),
        Condition(
            "versions",
            "system",
            _state(linux, not student),
            platform.platform() + ("" if linux else ": jails need Linux, and grading needs jails"),
        ),
    ]
    for name in (*PACKAGES, *GRADING):
        needed = name in PACKAGES or not student
        try:
            findings.append(Condition("versions", name, "well", metadata.version(name)))
        except metadata.PackageNotFoundError:
            told = f"missing: pip install {name}" if needed else "not here: only grading needs it"
            findings.append(Condition("versions", name, _state(False, needed), told))
    return findings


def _course(course: Course | CallError) -> list[Condition]:
    if isinstance(course, CallError):
        return [Condition("course", "course.toml", "bad", str(course))]
    about = f"{len(course.exercises)} exercises in {course.folder}"
    return [Condition("course", course.name, "well", about), _answers(course)]


def _answers(course: Course) -> Condition:
    """What answers are compared with."""
    if course.has_solutions:
        return Condition("course", "solutions", "well", str(course.solutions))
    if not course.recorded.is_dir():
        told = "not here, and no recordings of them: grading and checking need one of both"
        return Condition("course", "solutions", "bad", told)
    try:
        from grader.grading.recorded import Recorded

        Recorded(course).read_all()
    except (CallError, ImportError) as error:
        return Condition("course", "recordings", "bad", str(error))
    return Condition("course", "recordings", "well", f"{course.recorded}: enough to check answers")


def _isolation(course: Course | CallError, student: bool) -> list[Condition]:
    """Every layer of a jail, with the kernel's reason where there is none, and the bar."""
    try:
        from grader.sandbox.jails import MEANING, Warm, shortfall
        from grader.sandbox.session import Limits
    except ImportError as error:
        return [Condition("isolation", "jail", _state(False, not student), str(error))]
    secrets = course.secrets if isinstance(course, Course) and not student else ()
    try:
        with Warm() as warm:
            warm.open(Limits()).close()
            missing = warm.ready.missing
            reach = shortfall(warm, secrets)
    except (HostFault, OSError) as error:
        told = f"no jail could be made: {error}"
        return [Condition("isolation", "jail", _state(False, not student), told)]
    return [
        *(
            Condition("isolation", layer, "absent", f"none: {missing[layer]}")
            if layer in missing
            else Condition("isolation", layer, "well", text)
            for layer, text in MEANING.items()
        ),
        Condition(
            "isolation",
            "all in all",
            _state(reach is None, not student),
            reach or "enough to grade with",
        ),
    ]
