"""Classroom 50: reads its downloads, and checks each submission in its runner with public checks.

The autograder of an assignment is published, and a student's repository is readable in the runner.
Therefore the autograder holds the student's bundle only: public checks, and recorded results. Its
scores are for learning; marks come from `grader grade`, which reads what the teacher downloads.

The autograder holds this module, but not `classroom50_bundle`, which writes it.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.console import Console

from grader.course.course import Course, load_course
from grader.feedback import terminal
from grader.feedback.verdict import Verdict, verdict_of
from grader.intake import read_submission
from grader.intake.downloads import Downloads, Upload, most_of
from grader.intake.files import FileItem, decoded
from grader.lms.markdown import block, failures, in_markdown, in_paragraphs
from grader.lms.system import Bundle, Host, System
from grader.records.faults import CallError, HostFault
from grader.records.files import write_whole
from grader.records.grade import ExerciseResult, counted_elsewhere, thousandths
from grader.records.rows import Person, number
from grader.records.tables import read_csv
from grader.records.times import read_time

# --- the result of a submission ------------------------------------------------------------------
#
# The format requires whole numbers. A score is a number of thousandths of a point, so that the
# scores of the exercises sum to the exact total.

RESULT, BODY = "result.json", "release-body.md"
MOST_OF_BODY = 60_000  # characters; GitHub takes twice as many
ELSEWHERE = (
    "These are the public checks. Your grade comes from other tests, which are not shown here."
)
MORE = "More is wrong than fits here. To see the rest, type `grader check` in your clone."
NO_ANSWERS = "No answers were found: there is no .py file and no notebook in the repository"
UNREAD = "These files were not read:"
MOST_UNREAD = 10  # lines


class Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """The result of one exercise."""

    test_name: str
    passed: bool
    score: int  # thousandths of a point
    max_score: int


class RunnerResult(msgspec.Struct, frozen=True):
    """The content of ``result.json``; the runner itself sets the owner, the type and the time."""

    classroom: str
    assignment: str
    assignment_type: str
    owner: str
    submission: str  # the tag
    commit: str
    release: str
    review: str
    datetime: str
    score: int
    max_score: int = msgspec.field(name="max-score")
    tests: tuple[Entry, ...]
    schema: str = "classroom50/result/v1"


def exercise_entries(course: Course, results: Sequence[ExerciseResult]) -> tuple[Entry, ...]:
    """An entry for each assigned exercise; those without a result have no points."""
    counted = {one.name: one for one in counted_elsewhere(results, course.worth, course.shares)}
    return tuple(
        _entry(name, thousandths(most), counted.get(name)) for name, most in course.shares.items()
    )


def _entry(name: str, most: int, result: ExerciseResult | None) -> Entry:
    if result is None:
        return Entry(name, passed=False, score=0, max_score=most)
    return Entry(name, result.solved, min(thousandths(result.points), most), most)


def _result(tests: tuple[Entry, ...]) -> RunnerResult:
    def given(name: str) -> str:
        return os.environ.get(name) or _not_in_the_runner(name)

    return RunnerResult(
        classroom=given("CLASSROOM"),
        assignment=given("ASSIGNMENT"),
        assignment_type=os.environ.get("ASSIGNMENT_TYPE") or "individual",
        owner=os.environ.get("OWNER") or given("USERNAME"),
        submission=given("SUBMISSION_TAG"),
        commit=given("COMMIT_URL"),
        release=given("RELEASE_URL"),
        review=os.environ.get("REVIEW_URL") or given("COMMIT_URL"),
        datetime=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        score=sum(test.score for test in tests),
        max_score=sum(test.max_score for test in tests),
        tests=tests,
    )


def _not_in_the_runner(name: str) -> str:
    raise CallError(
        f"{name} is not set, so this is not the runner of Classroom 50; you want: grader check"
    )


# --- the text that the student reads --------------------------------------------------------------


def release_body(
    course: Course, verdicts: Sequence[Verdict], summary: str, unread: Sequence[str] = ()
) -> str:
    """The results as Markdown: a line for each unit, then the failing checks of each exercise.

    `unread` has a line for each file that was not read.
    """
    begun = [one for one in verdicts if one.state == "unsolved"]
    parts = [f"# {in_markdown(summary)}", ELSEWHERE, *[_table(course, verdicts)] * bool(verdicts)]
    if unread:
        parts += [UNREAD, block("\n".join(unread[:MOST_UNREAD]))]
    left = MOST_OF_BODY
    for verdict in begun:
        text = failures(verdict)
        left -= len(text)
        if left < 0:
            parts.append(MORE)
            break
        parts.append(text)
    return in_paragraphs(*parts) + "\n"


def _table(course: Course, verdicts: Sequence[Verdict]) -> str:
    rows = ["| unit | solved | not yet right | not written |", "|---|---|---|---|"]
    for unit in course.units:
        own = [one for one in verdicts if one.unit == unit.name]
        counts = [
            str(sum(one.state == state for one in own) or "")
            for state in ("solved", "unsolved", "untouched")
        ]
        if own:
            rows.append(f"| {' | '.join([in_markdown(unit.title), *counts])} |")
    return "\n".join(rows)


# --- the runner ----------------------------------------------------------------------------------


def check_for_classroom50(checkout: Path) -> None:
    """Check a student's checkout, and write `RESULT` and `BODY` into it.

    The working directory holds the course: the autograder's folder. What a student did never
    raises an exception. Raises `CallError` outside of the runner, and `CallError` or `HostFault` if
    the checks themselves fail: then nothing is written, and Classroom 50 reports an error.
    """
    from grader.sandbox.session import StudentLost
    from grader.student.checking import UNREADABLE, open_checker

    course = load_course(Path.cwd() / "exercises")
    _result(())  # the runner's environment, before any work
    submission = read_submission("answers", checkout)
    if not submission.sources:
        _report(course, checkout, (), submission.problems, NO_ANSWERS)
        return
    with open_checker(course, course.asked, checkout) as checker:
        try:
            results = checker.check()
        except StudentLost as error:  # the answers cannot even be listed
            why = UNREADABLE.format(error)
            _report(course, checkout, (), submission.problems, why)
            return
    if any(result.faulty for result in results):
        raise HostFault("the grader itself failed in a check: there is no result")
    _report(course, checkout, results, submission.problems)


def _report(
    course: Course,
    checkout: Path,
    results: Sequence[ExerciseResult],
    unread: Sequence[str],
    problem: str = "",
) -> None:
    tests = exercise_entries(course, results)
    result = _result(tests)
    verdicts = [*map(verdict_of, results)]
    solved = sum(test.passed for test in tests)
    points = f"{number(result.score / 1000)} of {number(result.max_score / 1000)} points"
    summary = problem or f"{points}: {solved} of {len(tests)} exercises are solved"
    summary = terminal.safe(" ".join(summary.split()))
    for name, data in (
        (BODY, release_body(course, verdicts, summary, unread).encode()),
        (RESULT, msgspec.json.format(msgspec.json.encode(result))),
    ):
        _clear(checkout / name)
        write_whole(checkout / name, data)
    _print(verdicts, summary)
    output = os.environ.get("GITHUB_OUTPUT")
    if output:
        status: Literal["success", "failure"] = "success" if solved == len(tests) else "failure"
        with Path(output).open("a", encoding="utf-8") as file:
            file.write(f"status={status}\nsummary={summary}\n")


def _clear(path: Path) -> None:
    """Remove what a student put in the place of a result: a folder, or a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _print(verdicts: Sequence[Verdict], summary: str) -> None:
    console = Console(highlight=False)
    with _no_commands():
        for verdict in verdicts:
            terminal.show_verdict(console, verdict, detail=not verdict.solved)
        terminal.print_plain(console, summary)


@contextmanager
def _no_commands() -> Iterator[None]:
    """Stop GitHub from obeying lines such as ``::error::``, which an answer may print."""
    token = secrets.token_hex(16)
    print(f"::stop-commands::{token}", flush=True)
    try:
        yield
    finally:
        print(f"::{token}::", flush=True)


# --- downloads -----------------------------------------------------------------------------------
#
# `gh teacher download` writes a folder with a clone of each student's repository, and a table with
# a line for each submission. A clone is called <classroom>-<assignment>-<username>.

SCORES = "scores.csv"
COLUMNS = ("username", "datetime", "submission_tag")
TableLines = Mapping[str, Sequence[dict[str, str]]]  # by username in lower case


def _made(names: Collection[str]) -> Collection[str]:
    """The table and the clones, if the names are those of a download; otherwise none."""
    parts = {name: name.split("-") for name in names}  # <classroom>-<assignment>-<username>
    heads = Counter(tuple(own[:2]) for own in parts.values() if len(own) > 2)
    if SCORES not in names or not heads:
        return ()
    ((head, _),) = heads.most_common(1)
    return most_of(names, [SCORES, *(n for n, own in parts.items() if tuple(own[:2]) == head)])


def _uploads(items: Sequence[FileItem], _units: Collection[str]) -> list[Upload]:
    """The newest state of each clone; the table gives the students, times and attempts.

    Members of a team have the same lines, but only one of them has the clone. A student without a
    clone submitted nothing.
    """
    lines: dict[str, list[dict[str, str]]] = {}
    for line in _table_of(items):
        lines.setdefault(line["username"].casefold(), []).append(line)
    files: dict[str, dict[str, FileItem]] = {}
    for item in items:
        if len(item.parts) > 1:
            files.setdefault(item.parts[0], {})["/".join(item.parts[1:])] = item
    made = _made({item.parts[0] for item in items})
    clones = [folder for folder in files if folder in made]
    stem = _stem(clones, [*lines])
    teams = {who: _team(who, lines) for who in (clone.removeprefix(stem) for clone in clones)}
    seen = {member.casefold() for team in teams.values() for member in team}
    found = [_upload(who, team, files[f"{stem}{who}"], lines) for who, team in teams.items()]
    return found + [_upload(who, [who], {}, lines) for who in lines if who not in seen]


def _team(who: str, lines: TableLines) -> list[str]:
    """The students whose submissions are those of a clone: its owner, and the owner's team."""
    own = {_address(line) for line in lines.get(who.casefold(), ())} - {None}
    others = [
        name
        for name, theirs in lines.items()
        if name != who.casefold() and own & {_address(line) for line in theirs}
    ]
    return [who, *others]


def _address(line: Mapping[str, str]) -> tuple[str, str] | None:
    """The tag of a submission with the address of its repository; None without a submission."""
    tag, review = line["submission_tag"], line.get("review_url", "")
    return (tag, review) if tag and review else None


def _stem(clones: Sequence[str], usernames: Sequence[str]) -> str:
    """The beginning that makes most clones the clone of a student in the table."""
    stems = Counter(
        clone[: -len(name)]
        for clone in clones
        for name in usernames
        if clone.casefold().endswith(f"-{name}")
    )
    return stems.most_common(1)[0][0] if stems else ""


def _upload(
    who: str, team: Sequence[str], files: Mapping[str, FileItem], lines: TableLines
) -> Upload:
    own = lines.get(who.casefold(), ())
    submitted = [line for line in own if line["submission_tag"]]
    times = [*filter(None, (_time(line["datetime"]) for line in submitted))]
    return Upload(
        who,
        who,
        files,
        tuple(_person(member, lines.get(member.casefold(), ())) for member in team),
        late=any(line.get("late", "").casefold() in ("true", "yes", "1") for line in submitted[:1]),
        attempts=max(len(submitted), 1),
        submitted=max(times, default=None),
    )


def _person(who: str, lines: Sequence[Mapping[str, str]]) -> Person:
    line = lines[0] if lines else {}
    name = " ".join(filter(None, (line.get("first_name", ""), line.get("last_name", ""))))
    section = line.get("section", "")
    return Person(
        name=name or who,
        email=line.get("email", ""),
        login=who,
        extra={"section": section} if section else {},
    )


def _table_of(items: Sequence[FileItem]) -> Iterator[dict[str, str]]:
    tables = [item for item in items if item.parts == (SCORES,)]
    if len(tables) != 1:
        raise CallError(f"{SCORES} is no file: download the submissions again")
    with tables[0].opened() as file:
        text = decoded(file.read())
    rows = [cells for _, cells in read_csv(text, SCORES).rows if any(cells)]
    header = [cell.strip() for cell in rows[0]] if rows else []
    if not {*COLUMNS} <= {*header}:
        raise CallError(
            f"{SCORES} is not as Classroom 50 writes it: it needs the columns {', '.join(COLUMNS)}"
        )
    for cells in rows[1:]:
        padded = [*cells, *[""] * (len(header) - len(cells))]
        line = {title: cell.strip() for title, cell in zip(header, padded, strict=False)}
        if line["username"]:
            yield line


def _time(text: str) -> datetime | None:
    """The time of the submitted commit, as the student's computer set it; None if unreadable."""
    try:
        return read_time(text, UTC)
    except CallError:
        return None


# --- the system ----------------------------------------------------------------------------------


def _write(*given: Any, **options: Any) -> list[Path]:
    from grader.lms.classroom50_bundle import release_classroom50

    return release_classroom50(*given, **options)


def _next_steps(to: Path, files: int) -> Sequence[str]:
    return (
        f"{files} files in {to}: its README.md says where each folder goes",
        "anyone can read the autograder: it holds public checks only; give marks with grader grade",
    )


_HOST_HELP = """\
Check the submission in CHECKOUT in Classroom 50's runner.

Whatever a student submitted has a result. If the checks themselves fail, there is none, and
Classroom 50 shows an error.
"""
_RELEASE_HELP = """\
Write an autograder for Classroom 50, and the template of the students' repositories.

The autograder runs the public checks at every submission. Anyone can read it, and it holds no
solution. For marks, run `grader grade` on what `gh teacher download` writes.
"""

SYSTEM = System(
    "classroom50",
    "Classroom 50",
    downloads=Downloads("Classroom 50", _made, _uploads),
    host=Host(
        check_for_classroom50,
        argument="CHECKOUT",
        about="The student's repository.",
        example="checkout/",
        help=_HOST_HELP,
        kind=Path,
    ),
    bundle=Bundle(
        _write,
        _next_steps,
        example="classroom50/",
        help=_RELEASE_HELP,
        options=("torch_index",),
        recorded=True,
    ),
)
