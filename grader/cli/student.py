"""Commands for students: checks, hints, progress, and the zip to submit."""

from __future__ import annotations

import json
import platform
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from rich.console import Console

from grader import __version__
from grader.cli.app import (
    STUDENTS,
    BackendOption,
    CourseOption,
    DeviceOption,
    JsonOption,
    NamesArgument,
    StudentCommand,
    app,
    name_of_unit,
    students_course,
)
from grader.cli.completion import exercises
from grader.cli.streams import until_unread
from grader.course.course import Course, find_course, load_course
from grader.feedback.terminal import print_plain, print_row
from grader.feedback.verdict import verdict_of
from grader.intake.own import misnamed
from grader.records.faults import CallError, say
from grader.student.lesson import ALL_SOLVED, FREE, LAST_HINT, Lesson, closing
from grader.student.standing import standing_of

if TYPE_CHECKING:
    from grader.feedback.verdict import Verdict
    from grader.student.reward import Reward
    from grader.unsandboxed.worker import BackendName


NO_LIMIT = "loading torch; your code runs without a time limit, and Ctrl-C shows the current line"
WHERE_IT_IS = "to see the line at which {0} spends its time: grader check {0} --show, then Ctrl-C"


def _version(wanted: bool) -> None:
    if wanted:
        print(f"attention-grader {__version__}")
        print(f"Python {platform.python_version()}")
        with suppress(PackageNotFoundError):
            print(f"torch {version('torch')}")  # without its import, which takes seconds
        with suppress(CallError):
            print(f"course {load_course(find_course(None, student=True)).name}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the versions.")
    ] = False,
) -> None:
    """Exercises, checks that name mistakes, and an autograder.

    Without a command, inside a course: grader watch.
    """
    if context.invoked_subcommand is None:
        context.invoke(watch)


@app.command(
    cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader check {exercise}"
)
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
        typer.Option("--show", help="Show inputs, shapes line by line, and your prints."),
    ] = False,
    pdb: Annotated[
        bool, typer.Option("--pdb", help="Stop in your code, at the input that it gets wrong.")
    ] = False,
    backend: BackendOption = "auto",
    device: DeviceOption = "cpu",
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the public checks on your answers, and show which part is wrong.

    With --show or --pdb, look closer at one exercise. Your code then runs in this process, and
    Ctrl-C stops an endless loop.
    """
    from grader.feedback import terminal

    opened = students_course(course)
    opened.require_answers()
    if show or pdb:
        raise typer.Exit(_look_closer(opened, names or [], folder, show=show, pdb=pdb))
    from grader.student.checking import open_checker

    with (
        terminal.waiting("loading torch"),
        open_checker(opened, names or opened.asked, folder, backend, device) as checker,
    ):
        # Compute digests before the check: a save in between then makes an answer "changed".
        lesson = Lesson(opened) if folder is None else None
        results = checker.check()
    verdicts = (
        lesson.record(results, named=bool(names))
        if lesson is not None
        else [*map(verdict_of, results)]
    )
    _warn(lesson)
    if as_json:
        print(msgspec.json.encode(results).decode())
    else:
        _print_checks(Console(highlight=False), opened, verdicts, lesson, bool(names))
    if any(result.faulty for result in results):
        raise typer.Exit(3)
    raise typer.Exit(0 if all(result.solved for result in results) else 1)


def _look_closer(
    course: Course, names: Sequence[str], folder: Path | None, *, show: bool, pdb: bool
) -> int:
    """Trace the answer to one exercise, or debug it with `pdb`; return the exit code."""
    if len(names) != 1 or (show and pdb):
        what = "--show or --pdb, not both" if show and pdb else "one exercise with --show and --pdb"
        raise CallError(f"give {what}: grader check causal_mask --show")
    if pdb:
        from grader.inspection.debugger import debug

        return int(debug(course, names[0], folder))
    if sys.stderr.isatty():
        say(NO_LIMIT)
    from grader.inspection.screen import show_cases
    from grader.inspection.tracing import show as cases_of

    lesson = Lesson(course)
    passed = show_cases(cases_of(course, names[0], folder), Console(highlight=False))
    if passed and folder is None:  # a trace that did not pass may have been ended by Ctrl-C
        lesson.passed(names[0])
        _warn(lesson)
    return int(not passed)


def _warn(lesson: Lesson | None) -> None:
    if lesson is not None and lesson.unrecorded:
        say(lesson.unrecorded)


def _print_checks(
    console: Console,
    course: Course,
    verdicts: Sequence[Verdict],
    lesson: Lesson | None,
    named: bool,
) -> None:
    from grader.feedback import terminal
    from grader.student.program import left_out

    unit = None
    for verdict in verdicts:
        if verdict.unit != unit:
            unit = verdict.unit
            title = next(u.title for u in course.units if u.name == unit)
            console.print(f"\n[bold]{unit}[/bold]: {title}")
        terminal.show_verdict(console, verdict, named)
    below = closing(course, verdicts, lesson.standing if lesson is not None else None, named=named)
    console.print(f"\n{below.count}")
    if below.hidden:
        console.print(f"[dim]{below.hidden}[/dim]")
    for verdict in verdicts:
        if any(finding.status == "timeout" for finding in verdict.findings):
            console.print(f"[dim]{WHERE_IT_IS.format(verdict.exercise)}[/dim]")
    if lesson is not None:
        for line in misnamed(course):
            terminal.print_plain(console, line, "yellow")
    if named and lesson is not None:
        lines = (line for verdict in verdicts for line in left_out(course, verdict.exercise))
        for line in dict.fromkeys(lines):  # drop duplicates from exercises in the same file
            terminal.print_plain(console, line, "dim")
        if len(verdicts) == 1 and verdicts[0].solved:
            _after_solved(console, lesson, verdicts[0])
    if below.next:
        console.print(below.next)


def _after_solved(console: Console, lesson: Lesson, verdict: Verdict) -> None:
    """Print the explanation at the first solve; later, only how to read it again."""
    from grader.student.reward import reward

    if verdict.solved_before:
        if "after" not in lesson.standing.course.lacking:
            more = f"why it works, and ideas to try: grader after {verdict.exercise}"
            console.print(f"[dim]{more}[/dim]")
        return
    console.print()
    _print_reward(console, reward(lesson.standing, verdict.exercise))
    console.print()


@app.command(
    "list",
    cls=StudentCommand,
    rich_help_panel=STUDENTS,
    epilog="Example: grader list {unit} --todo",
)
def list_(
    names: NamesArgument = None,
    todo: Annotated[bool, typer.Option("--todo", help="Only unsolved exercises.")] = False,
    course: CourseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the exercises: solved, failing now, and how many hints you have read."""
    from grader.student.listing import EXERCISE_COLUMN, listed

    opened = students_course(course)
    standing = standing_of(opened)
    progress = standing.progress
    chosen = [
        name for name in opened.select(names or []) if not (todo and standing.is_solved(name))
    ]
    if as_json:
        rows = [
            {
                "name": name,
                "unit": opened.unit_of[name],
                "title": exercise.title,
                "points": exercise.points,
                "solved": name in progress.solved,
                "fails_now": name in progress.solved and standing.state(name) == "failing",
                "state": standing.state(name),
                "hints": len(exercise.hints),
                "hints_read": progress.hints.get(name, 0),
                "questions_right": replies.right if replies is not None else None,
                "asked": name in opened.asked,
            }
            for name in chosen
            for exercise, replies in [(opened.exercises[name], progress.asked.get(name))]
        ]
        print(json.dumps(rows))
        return
    console = Console(highlight=False)
    for part in listed(chosen, standing):
        print_row(console, part, EXERCISE_COLUMN)
    for line in misnamed(opened):
        print_plain(console, line, "yellow")


@app.command(cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader hint {exercise}")
def hint(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            callback=name_of_unit,
            autocompletion=exercises,
            help="An exercise (default: the next one).",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Give the next hint: first a question, then a pointer, then nearly the solution."""
    lesson = Lesson(students_course(course))
    name = name or lesson.standing.next
    if name is None:
        print(ALL_SOLVED)
        return
    given = lesson.hint(name)
    _warn(lesson)
    console = Console(highlight=False)
    console.print(f"[bold]{name}[/bold], hint {given.level} of {given.of}")
    console.print(given.text, markup=False)
    another = f"the next hint: grader hint {name}" if given.level < given.of else LAST_HINT
    console.print(f"[dim]{another}; {FREE}[/dim]")


@app.command(cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader ask {exercise}")
def ask(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            callback=name_of_unit,
            autocompletion=exercises,
            help="An exercise that you have solved (default: the last one not asked about).",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Other questions than the last time.")
    ] = False,
    backend: BackendOption = "auto",
    course: CourseOption = None,
) -> None:
    """Ask yourself why your answer works: questions about your own lines.

    The replies were found by running your answer with small changes. It is practice: progress.txt
    counts right replies, and they earn no points. Type a letter or a shape.
    """
    from grader.student.asking import exercise_to_ask

    opened = students_course(course)
    opened.require_answers()
    lesson = Lesson(opened)
    chosen = exercise_to_ask(lesson.standing, name)
    seed = secrets.token_hex(4) if again else ""
    _converse(Console(highlight=False), lesson, chosen, backend, seed)


def _converse(console: Console, lesson: Lesson, name: str, backend: BackendName, seed: str) -> None:
    """Ask the questions about an answer in the terminal."""
    from grader.feedback import terminal
    from grader.intake.own import read_answers
    from grader.student.checking import open_checker

    with terminal.waiting(f"running your answer to {name} with small changes"):
        from grader.student.asking import YOUR_REPLY, hold, questions_on, summary

        with open_checker(lesson.course, [name], backend=backend) as checker:
            submission = read_answers(lesson.course.folder, lesson.course)
            questions = questions_on(checker.desk, submission, name, seed)

    def tell(text: str) -> None:
        terminal.print_plain(console, text)

    try:
        right = hold(lesson, name, questions, tell, lambda: input(YOUR_REPLY))
    except EOFError:
        raise CallError("the replies ended before the last question; nothing is recorded") from None
    _warn(lesson)
    print(f"\n{summary(name, right, len(questions))}")
    if not seed:
        print(f"other questions: grader ask {name} --again")


@app.command(
    cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader after {exercise}"
)
def after(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            callback=name_of_unit,
            autocompletion=exercises,
            help="An exercise that you have solved; without a name, lists them.",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Read why a solved exercise works, another way to write it, and something to try."""
    from grader.student import reward

    standing = standing_of(students_course(course))
    if name is None:
        once = standing.progress.solved
        solved = ", ".join(one for one in standing.course.exercises if one in once)
        line = f"type grader after NAME. You have solved: {solved or 'nothing yet'}"
        print_plain(Console(highlight=False), line)
        return
    _print_reward(Console(highlight=False), reward.after(standing, name))


def _print_reward(console: Console, found: Reward) -> None:
    from grader.student.reward import in_lines

    for line in in_lines(found):
        console.print(line)


@app.command(cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader look {unit}")
def look(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[UNIT]",
            callback=name_of_unit,
            help="A unit that you have solved; without a name, lists all units.",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """See a unit at work: a picture or numbers from your own answers.

    Your code runs in this process; Ctrl-C stops an endless loop.
    """
    from grader.feedback import terminal
    from grader.student import scripts

    opened = students_course(course)
    if name is None:
        for line in scripts.listed_looks(opened):
            print_row(Console(highlight=False), line, scripts.LOOK_COLUMN)
        return
    print(scripts.title_of_look(opened, name))
    with terminal.waiting("loading torch"):
        import grader.mine  # noqa: F401 - this import loads torch
    scripts.run_look(opened, name)


@app.command(
    "try", cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader try {experiment}"
)
def try_(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="An experiment, or an exercise with experiments."),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Run an experiment that shows the reason for a rule; without a name, list experiments.

    You need not solve anything first. Once you have solved an exercise, its experiments use your
    answer. Ctrl-C stops an endless loop.
    """
    from grader.feedback import terminal
    from grader.student import scripts

    opened = students_course(course)
    if name is None:
        for line in scripts.listed_experiments(opened):
            print_row(Console(highlight=False), line, scripts.EXPERIMENT_COLUMN)
        return
    chosen = scripts.experiments_of(opened, name)
    with terminal.waiting("loading torch"):
        import grader.mine  # noqa: F401 - this import loads torch
    for one in chosen:
        scripts.run_experiment(opened, one)


@app.command(
    cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader reset {exercise}"
)
def reset(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            callback=name_of_unit,
            autocompletion=exercises,
            help="An exercise, or a whole unit.",
        ),
    ],
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Undo the last reset: bring your own lines back."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")] = False,
    course: CourseOption = None,
) -> None:
    """Put the stub of an exercise back into your file; a copy of your file is kept."""
    from grader.student import resetting

    opened = students_course(course)
    opened.select([name])
    if undo:
        restored = resetting.undo(opened, name)
        if restored is None:
            raise CallError(f"{name} was not reset so far: there is nothing to undo")
        print(f"{name} is back in {restored}; the same command again brings back the stub")
        return
    path = opened.stub_file(opened.unit_of.get(name, name))
    if not yes:
        typer.confirm(f"put the stub of {name} back into {path.name}?", abort=True)
    print(f"{name} is a stub again; your file as it was: {resetting.reset_exercises(opened, name)}")
    print(f"to undo this: grader reset {name} --undo")


@app.command(cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader run {exercise}")
def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            callback=name_of_unit,
            autocompletion=exercises,
            help="An exercise or a unit (default: the next exercise).",
        ),
    ] = None,
    course: CourseOption = None,
) -> None:
    """Run your whole file from top to bottom, as Python does; a check runs only definitions."""
    from grader.student.program import run_file

    opened = students_course(course)
    name = name or standing_of(opened).next or opened.asked[-1]
    raise typer.Exit(run_file(opened, name))


@app.command(rich_help_panel=STUDENTS, epilog="Example: grader pack --to ada.zip")
def pack(
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The zip to write.")] = Path(
        "answers.zip"
    ),
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Write the zip even if some answers are not right.")
    ] = False,
    backend: BackendOption = "auto",
    course: CourseOption = None,
) -> None:
    """Check your answers, and make the zip to submit.

    The zip holds the .py files and notebooks of the course's folder, and the notebooks of the
    folder next to it in which you have worked. If an exercise is not solved, or has two different
    answers, the zip is written only with --anyway.
    """
    from grader.feedback import terminal
    from grader.student import packing

    opened = students_course(course)
    opened.require_answers()
    with terminal.waiting("checking your answers"):
        lesson = Lesson(opened)
        before = lesson.standing.progress
        packed = packing.pack_answers(opened, to, backend)
    lesson.record(packed.results, named=None)
    _warn(lesson)
    objections = [*packing.objections(opened, packed, before)]
    console = Console(highlight=False)
    for line in packing.settle(opened, packed, objections, to, "grader pack --anyway", anyway):
        terminal.print_plain(console, line)
    raise typer.Exit(int(bool(objections) and not anyway))


@app.command(
    cls=StudentCommand, rich_help_panel=STUDENTS, epilog="Example: grader watch {exercise}"
)
def watch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            callback=name_of_unit,
            autocompletion=exercises,
            help="Where to begin (default: the next exercise).",
        ),
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain",
            help="Lines of text for a screen reader: a check after every save, and no keys.",
        ),
    ] = False,
    poll: Annotated[
        bool,
        typer.Option("--poll", help="Read the files again and again, for network drives."),
    ] = False,
    backend: BackendOption = "auto",
    course: CourseOption = None,
) -> None:
    """Show an exercise, and check it whenever you save.

    With --plain there are no keys. To go to another exercise, save an answer to that exercise. Type
    other commands in another terminal: grader hint NAME, list, check NAME --show, reset NAME.
    Ctrl-C stops the command.
    """
    from grader.student.watch import run_watch

    opened = students_course(course)
    opened.require_answers()
    if name is not None and name not in opened.exercises:
        name = opened.select([name])[0]
    with until_unread():
        run_watch(opened, plain=plain, poll=poll, start=name, backend=backend)


@app.command(rich_help_panel=STUDENTS, epilog="Example: grader mcp --config claude > .mcp.json")
def mcp(
    config: Annotated[
        Literal["claude", "cursor", "vscode"] | None,
        typer.Option(
            "--config",
            help="Print the configuration for this assistant: claude, cursor or vscode.",
        ),
    ] = None,
    backend: BackendOption = "auto",
    course: CourseOption = None,
) -> None:
    """Serve an assistant that tutors: statements, checks and hints, and no solution.

    An assistant starts this command, and uses its standard input and output (MCP). The assistant
    reads the command from .mcp.json (Claude), .cursor/mcp.json or .vscode/mcp.json: see --config.
    """
    from grader.student.tutor import configuration, serve

    opened = students_course(course)
    if config is not None:
        print(configuration(opened, config))
        return
    serve(opened, backend)
