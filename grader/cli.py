"""The commands. They read arguments and print results; the work is done elsewhere.

Exit codes: 0 all well, 1 the answer is wrong, 2 the call is wrong, 3 the grader itself failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from grader import __version__
from grader.course import Course, find_course, load_course
from grader.faults import CallError, HostFault
from grader.progress import ALL_SOLVED, Progress, next_hint, read_progress, record

app = typer.Typer(
    name="grader", add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
    help="Exercises and an autograder for self-attention in PyTorch.",
)  # fmt: skip

CourseOption = Annotated[
    Path | None,
    typer.Option("--course", metavar="DIR", help="The course: a folder with course.toml in it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def _one_or_more(jobs: int | None) -> int | None:
    if jobs is not None and jobs < 1:
        raise CallError(f"--jobs must be at least 1, got {jobs}")
    return jobs


JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", callback=_one_or_more, help="Processes (default: by the cores)."
    ),
]
SeedOption = Annotated[
    str | None,
    typer.Option("--seed", metavar="TEXT", help="Instead of the seed in solutions/seed."),
]
BackendOption = Annotated[
    Literal["auto", "jail", "worker"],
    typer.Option(
        "--backend",
        help="Where your code runs: forked and fenced in (Linux), or in a process that stays.",
    ),
]
DeviceOption = Annotated[
    Literal["cpu", "cuda"],
    typer.Option(
        "--device",
        help="Where answers compute; never needed to pass. No jail may touch a GPU.",
    ),
]
NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Exercises or units; all if none.")
]


@app.command(
    epilog="Example: grader grade submissions/ --out grades/ --jobs 2",
)
def grade(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="A .py file, a notebook, a zip or folder of those, or a folder of submissions.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the gradebook goes.")],
    jobs: JobsOption = None,
    seed: SeedOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Just this exercise or unit; may be repeated."),
    ] = None,
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
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Grade submissions into a gradebook: grades.db, gradebook.csv and results.jsonl.

    A student's name is the file's or the folder's. Who is graded again in the same folder gets
    the new grade.
    """
    from grader import terminal
    from grader.batch import grade_into
    from grader.intake import find_submissions
    from grader.workers import Order, default_jobs

    opened = load_course(find_course(course))
    opened.require_solutions("grade")
    if device != "cpu" and isolation == "strong":
        raise CallError(
            f"no jail may touch {device}, so submissions run where nothing isolates them: "
            "--isolation=weak grades all the same, and says so in each grade"
        )
    chosen = opened.select(only or [])
    submissions = find_submissions(paths, opened)
    files = opened.test_files()
    order = Order(
        opened, seed or opened.hidden_seed(), files, chosen, isolation=isolation,
        secrets=(out, *paths), device=device,
    )  # fmt: skip
    stderr, stdout = Console(stderr=True), Console(highlight=False)
    try:
        with terminal.progress(stderr, "grading", len(submissions)) as advance:
            grades = grade_into(
                out, order, submissions, jobs or default_jobs(len(submissions)),
                lambda _: advance(), replace=replace,
            )  # fmt: skip
    except KeyboardInterrupt:
        print(f"grader: stopped; what was graded so far is kept in {out}", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        fields = ("student", "status", "total", "max")
        print(json.dumps([{f: getattr(g, f) for f in fields} for g in grades]))
    else:
        stdout.print(terminal.gradebook_table(opened, grades))
        stdout.print(terminal.legend(opened, grades), soft_wrap=True)
        for note in terminal.notes(grades):
            stdout.print(note)
        count = f"{len(grades)} submission{'s' if len(grades) != 1 else ''}"
        stdout.print(f"{count} in {out / 'gradebook.csv'}", soft_wrap=True)
    if any(grade.status == "grader_error" for grade in grades):
        raise typer.Exit(3)


@app.command(epilog="Example: grader check softmax_naive causal_attention")
def check(
    names: NamesArgument = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--in", metavar="PATH", help="The answers: a folder, file or zip (default: the course)."
        ),
    ] = None,
    show: Annotated[
        bool,
        typer.Option("--show", help="Show inputs, the shapes along the way, and your prints."),
    ] = False,
    pdb: Annotated[
        bool, typer.Option("--pdb", help="Stop in your code, at the input that it gets wrong.")
    ] = False,
    backend: BackendOption = "auto",
    device: DeviceOption = "cpu",
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the public checks on your answers, and say what is wrong first.

    With --show or --pdb, look closer at one exercise: your code then runs in this process, and what
    never ends is ended by Ctrl-C.
    """
    from grader import terminal

    opened = load_course(find_course(course))
    opened.require_answers()
    if show or pdb:
        raise typer.Exit(_look_closer(opened, names or [], folder, show=show, pdb=pdb))
    from grader.checking import open_checker

    with (
        terminal.waiting("loading torch"),
        open_checker(opened, names or [], folder, backend, device) as checker,
    ):
        results = checker.check()
    solved = [result.name for result in results if result.solved]
    before = _remember(opened, solved=solved) if folder is None else Progress()
    if as_json:
        print(msgspec.json.encode(results).decode())
    else:
        console = Console(highlight=False)
        _print_checks(console, opened, results, before.solved, bool(names), folder is None)
    statuses = {test.status for result in results for test in result.tests}
    if "grader_error" in statuses:
        raise typer.Exit(3)
    raise typer.Exit(0 if all(result.solved for result in results) else 1)


def _look_closer(
    course: Course, names: Sequence[str], folder: Path | None, *, show: bool, pdb: bool
) -> int:  # fmt: skip
    """Show one exercise's code at work, or stop in it; the exit code."""
    if len(names) != 1 or (show and pdb):
        what = "--show or --pdb, not both" if show and pdb else "one exercise with --show and --pdb"
        raise CallError(f"give {what}: grader check causal_mask --show")
    if pdb:
        from grader.inspecting.debugging import debug

        return int(debug(course, names[0], folder))
    from grader.inspecting.showing import show as shown
    from grader.inspecting.shown import show_lines

    return int(not show_lines(shown(course, names[0], folder), Console(highlight=False)))


def _remember(course: Course, **news: Any) -> Progress:
    """Add to a student's progress, and return what was known before.

    A folder that cannot be read or written costs a warning, and no verdict.
    """
    try:
        before = read_progress(course.folder)
        record(course.folder, **news)
    except CallError as error:
        print(f"grader: progress is not recorded: {error}", file=sys.stderr)
        return Progress()
    return before


def _print_checks(
    console: Console, course: Course, results: Any, solved_before: frozenset[str], detail: bool,
    in_place: bool,
) -> None:  # fmt: skip
    from grader import terminal

    unit = None
    for result in results:
        if result.unit != unit:
            unit = result.unit
            title = next(u.title for u in course.units if u.name == unit)
            console.print(f"\n[bold]{unit}[/bold]: {title}")
        terminal.verdict(console, result, detail, result.name in solved_before)
    solved = sum(result.solved for result in results)
    console.print(f"\n{solved} of {len(results)} pass the public checks")
    if solved == len(results):
        console.print("[dim]tests for grades look at more of what the docstrings promise[/dim]")
    known = solved_before | {result.name for result in results if result.solved}
    wrong = next((result.name for result in results if not result.solved), None)
    # Of answers that live elsewhere nobody knows what else is solved.
    todo = wrong or (Progress(known).first_unsolved(course.exercises) if in_place else None)
    if todo is not None and not (detail and wrong):
        console.print(f"next: {todo}, in {course.stub_file(course.unit_of[todo]).name}")


@app.command("list", epilog="Example: grader list softmax --todo")
def list_(
    names: NamesArgument = None,
    todo: Annotated[bool, typer.Option("--todo", help="Only what was never solved.")] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the exercises: which were solved, and how many of their hints you have read."""
    from grader import terminal

    opened = load_course(find_course(course))
    progress = read_progress(opened.folder)
    chosen = [n for n in opened.select(names or []) if not (todo and n in progress.solved)]
    if as_json:
        rows = [
            {
                "name": name, "unit": opened.unit_of[name], "title": exercise.title,
                "points": exercise.points, "solved": name in progress.solved,
                "hints": len(exercise.hints), "hints_read": progress.hints.get(name, 0),
            }
            for name in chosen
            for exercise in [opened.exercises[name]]
        ]  # fmt: skip
        print(json.dumps(rows))
        return
    console = Console(highlight=False)
    for part in terminal.exercises(opened, chosen, progress):
        console.print(part, soft_wrap=True)


@app.command(epilog="Example: grader hint causal_mask")
def hint(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An exercise; the next one if none.")
    ] = None,
    course: CourseOption = None,
) -> None:
    """Give the next hint: first a question, then a pointer, then nearly the solution."""
    opened = load_course(find_course(course))
    progress = read_progress(opened.folder)
    if name is None:
        name = progress.first_unsolved(opened.exercises)
        if name is None:
            print(ALL_SOLVED)
            return
    level, text = next_hint(opened, name, progress)
    levels = len(opened.exercises[name].hints)
    _remember(opened, hints={name: level})
    console = Console(highlight=False)
    console.print(f"[bold]{name}[/bold], hint {level} of {levels}")
    console.print(text, markup=False)
    if level < levels:
        console.print(f"[dim]another one: grader hint {name}[/dim]")


@app.command(epilog="Example: grader reset causal_mask")
def reset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="An exercise, or a whole unit.")],
    undo: Annotated[
        bool, typer.Option("--undo", help="Take back what you had before the last reset.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    course: CourseOption = None,
) -> None:
    """Put the stub of an exercise back into your file; what was there is kept beside it."""
    from grader import resetting

    opened = load_course(find_course(course))
    opened.select([name])
    if undo:
        restored = resetting.undo(opened, name)
        if restored is None:
            raise CallError(f"nothing of {name} was reset so far: there is nothing to take back")
        print(f"{restored} is as it was; once more takes this back")
        return
    path = opened.stub_file(opened.unit_of.get(name, name))
    if not yes:
        typer.confirm(f"put the stub of {name} back into {path.name}?", abort=True)
    print(f"{name} is a stub again; your file as it was: {resetting.reset(opened, name)}")
    print(f"to take it back: grader reset {name} --undo")


@app.command(epilog="Example: grader pack --to ada.zip")
def pack(
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The zip to write.")] = Path(
        "answers.zip"
    ),
    course: CourseOption = None,
) -> None:
    """Make the zip to hand in, and say what is in it and what is not solved."""
    from grader.packing import pack as make

    opened = load_course(find_course(course))
    packed = make(opened, to)
    solved = read_progress(opened.folder).solved
    print(f"{packed.path}: {', '.join(packed.names)}")
    missing = []
    for unit in opened.units:
        names = [exercise.name for exercise in unit.exercise if exercise.name not in solved]
        missing += names if len(names) < len(unit.exercise) else [f"all of {unit.name}"]
    if missing:
        print(f"not solved at any check so far: {', '.join(missing)}")


@app.command(epilog="Example: grader watch causal_mask")
def watch(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Where to begin; the first unsolved one if none."),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines of text only, for a screen reader.")
    ] = False,
    poll: Annotated[
        bool,
        typer.Option("--poll", help="Look at the files all the time; wait for no event."),
    ] = False,
    backend: BackendOption = "auto",
    course: CourseOption = None,
) -> None:
    """Show an exercise, and check it whenever you save."""
    from grader.watch import run_watch

    opened = load_course(find_course(course))
    opened.require_answers()
    if name is not None and name not in opened.exercises:
        name = opened.select([name])[0]
    run_watch(opened, plain=plain, poll=poll, start=name, backend=backend)


@app.command(epilog="Example: grader audit softmax --jobs 2")
def audit(
    names: NamesArgument = None,
    jobs: JobsOption = None,
    seed: SeedOption = None,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prove the course's tests on references, stubs, known answers and mechanical mutants.

    Exits with 1 unless every mistake and mutant is caught, every right answer is accepted, every
    mistake is named as itself, and every hidden test tells of something that no other one tells of;
    or solutions/mistakes/audit.toml says why not.
    """
    from grader import terminal
    from grader.audit import Finding, totals
    from grader.audit import audit as examine
    from grader.workers import default_jobs

    opened = load_course(find_course(course))
    opened.require_solutions("audit")
    chosen = opened.select(names or [])
    console = Console(highlight=False)
    stderr = Console(stderr=True)

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
        for part in terminal.audit_report(findings, totals(findings)):
            console.print(part, soft_wrap=True)
    raise typer.Exit(0 if all(finding.well for finding in findings) else 1)


release = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Write folders to give away."
)
app.add_typer(release, name="release")


@release.command("student", epilog="Example: grader release student --to attention/")
def release_student(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder to write.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over an earlier bundle in DIR.")
    ] = False,
    jobs: JobsOption = None,
    course: CourseOption = None,
) -> None:
    """Write the student bundle: stubs, public checks, recordings, notebooks; no solution.

    Every public check is run on the references and on all known mistakes, which takes a minute or
    two: the recorded results then stand in the bundle instead of the solutions.
    """
    from grader import terminal
    from grader.release.student import release_student as write
    from grader.workers import default_jobs

    opened = load_course(find_course(course))
    opened.require_solutions("release student")
    units = len(opened.units)
    with terminal.progress(Console(stderr=True), "recording", units) as advance:
        written = write(
            opened, to, lambda _: advance(), replace=replace, jobs=jobs or default_jobs(4 * units)
        )
    print(f"{len(written)} files in {to}; try it as a student would: see {to / 'README.md'}")


@app.command(epilog="Example: grader init attention/")
def init(
    to: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder to make.")] = Path(
        "attention"
    ),
) -> None:
    """Write the course that came with this install into a new folder."""
    from grader.release.init import init as write

    write(to)
    print(f"the course is in {to}. Next: cd {to}, then: grader")


@app.command(epilog="Example: grader doctor")
def doctor(course: CourseOption = None, as_json: JsonOption = False) -> None:
    """Show versions, the course and the isolation layers, and what is missing.

    Exits with 1 if something is missing without which this machine cannot grade or check.
    """
    from grader.doctor import examine

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


def _version(wanted: bool) -> None:
    if wanted:
        print(f"attention-grader {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Exercises and an autograder for self-attention in PyTorch.

    Without a command, inside a course: grader watch.
    """
    if context.invoked_subcommand is None:
        context.invoke(watch)


def main() -> None:
    """Run a command; our exceptions become one line and an exit code."""
    try:
        app()
    except CallError as error:
        print(f"grader: {error}", file=sys.stderr)
        sys.exit(2)
    except HostFault as fault:
        print(f"grader: the grader itself failed: {fault}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
