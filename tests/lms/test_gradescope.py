"""Gradescope: what it shows of a grade, and both scripts as it runs them."""

from __future__ import annotations

import json
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from markdown_it import MarkdownIt

from grader.course.course import Course, load_course
from grader.course.file import FeedbackTable
from grader.feedback.verdict import verdict_of
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.intake import Submission
from grader.lms.gradescope import ZIP, Results, grade_for_gradescope, release_gradescope, results
from grader.records.faults import CallError, HostFault
from grader.records.files import files_in
from grader.records.grade import Grade
from grader.sandbox.jails import WITHOUT
from grader.wire import SourceText
from tests.conftest import Grader, assigned
from tests.support.environments import make_environment, run
from tests.support.places import TINY

ADDS = "def center(x):\n    return x + x.mean()\n"

# As Gradescope writes it.
METADATA = {
    "id": 123456,
    "created_at": "2026-02-03T10:20:30.123456-08:00",
    "assignment": {
        "due_date": "2026-02-04T23:59:00.000000-08:00", "group_size": 2, "group_submission": True,
        "id": 25828, "course_id": 1234, "late_due_date": None, "title": "Attention",
        "release_date": "2026-01-02T00:00:00.000000-08:00", "total_points": "10.0",
    },
    "submission_method": "upload",
    "users": [
        {"email": "ada@example.org", "id": 1234, "name": "Ada Lovelace"},
        {"email": "bob@example.org", "id": 1235, "name": "Bob"},
    ],
    "previous_submissions": [
        {
            "submission_time": "2026-02-01T10:00:00.000000-08:00", "score": 0.0,
            "autograder_error": False,
            "results": {"tests": [{"name": "the hidden test of yesterday", "score": 0}]},
        }
    ],
}  # fmt: skip


def graded(desk: Desk, text: str) -> Grade:
    return grade_submission(desk, Submission("ada", (SourceText("ada.py", (text,)),)))


def by_name(shown: Results) -> dict[str, Any]:
    return {test.name: test for test in shown.tests}


# --- what is shown of a grade --------------------------------------------------------------------


def test_each_test_is_an_entry_and_the_scores_add_up(desk: Desk, right: str) -> None:
    grades = graded(desk, right), graded(desk, right.replace("x - x.mean()", "x + x.mean()"))
    for one in grades:
        shown = results(one, desk.course)
        assert shown.score == one.total == pytest.approx(sum(t.score or 0 for t in shown.tests))
        tests = [test for exercise in one.exercises for test in verdict_of(exercise).worth_reading]
        assert len(shown.tests) == len({test.number for test in shown.tests}) == len(tests)
    assert {test.status for test in results(grades[0], desk.course).tests} == {"passed"}
    assert [t.number for t in results(grades[0], desk.course).tests] == [
        t.number for t in results(grades[1], desk.course).tests
    ]
    assert results(grades[0], desk.course).tests[0].number == "1.1"


def test_public_tests_are_visible_and_hidden_ones_wait_for_publication(
    desk: Desk, right: str
) -> None:
    shown = by_name(results(graded(desk, right), desk.course))
    assert shown["center: 1, 2, 6 become -2, -1, 3"].visibility == "visible"
    assert shown["center: 1, 2, 6 become -2, -1, 3"].max_score is None
    assert shown["center: The mean is gone from every element"].visibility == "after_published"
    assert shown["center: The mean is gone from every element"].max_score == 1.143


def test_of_a_hidden_test_only_the_verdict_and_the_mistake_are_told(desk: Desk) -> None:
    shown = by_name(results(graded(desk, ADDS), desk.course))
    public = shown["center: 1, 2, 6 become -2, -1, 3"].output
    hidden = shown["center: The mean is gone from every element"].output
    about = "**The mean is added**\n\n*What is the mean of what remains?*\n\nIt is not right yet."
    assert hidden == about
    assert public.startswith(f"{about}\n\n    ")
    assert "expected -2" in public
    assert "expected" in public.split("\n\n")[-1], "and a picture"


def test_a_course_may_tell_less_of_hidden_tests(desk: Desk) -> None:
    table = FeedbackTable("nothing")
    quiet = replace(desk.course, file=msgspec.structs.replace(desk.course.file, feedback=table))
    one = graded(desk, "def staircase(size):\n    return 1\n")
    hidden = [test for test in results(one, quiet).tests if test.visibility != "visible"]
    assert [test.name for test in hidden if "staircase" in test.name] == [
        "staircase: All 3 hidden tests pass"
    ]
    assert sum(test.max_score or 0 for test in hidden) == one.max


def test_what_an_exception_says_of_a_hidden_input_stays_hidden(desk: Desk) -> None:
    shown = by_name(
        results(graded(desk, "def center(x):\n    raise ValueError(str(x))\n"), desk.course)
    )
    raised = [test for name, test in shown.items() if name.startswith("center: ")]
    assert any("tensor(" in test.output for test in raised if test.visibility == "visible")
    assert not any("tensor(" in test.output for test in raised if test.visibility != "visible")


def test_what_is_missing_is_told_once_before_the_tests(desk: Desk) -> None:
    first, *others = results(graded(desk, "x = 1"), desk.course).tests
    assert (first.name, first.number) == ("center: The exercise is not there yet", "1.0")
    assert "no definition with this name was found" in first.output
    assert {test.output for test in others if test.number.startswith("1.")} == {
        "It is not written yet."
    }


def test_neither_the_seed_nor_a_name_leaves_with_the_results(desk: Desk, right: str) -> None:
    one = graded(desk, right)
    text = msgspec.json.encode(results(one, desk.course)).decode()
    assert one.seed == "tiny-hidden"
    assert one.seed not in text
    assert "ada" not in text
    about = json.loads(text)["extra_data"]
    assert about["isolation"] == list(one.isolation)
    assert about["course"] == one.course


HOSTILE = (
    "```\n    ```\n~~~\n</code></pre><script>alert(1)</script>\n"
    "# [free points](javascript:alert(1))\n\n\n- **you passed**\r\n\u2028![](http://x)\n\x1b[2J"
)


@pytest.mark.parametrize("where", ["message", "print", "file name"])
def test_hostile_text_is_shown_as_text(desk: Desk, where: str) -> None:
    files = {
        "message": SourceText("a.py", (f"def center(x):\n    raise ValueError({HOSTILE!r})\n",)),
        "print": SourceText("a.py", (f"def center(x):\n    print({HOSTILE!r})\n    return x\n",)),
        "file name": SourceText("a.py", ("def center(x):\n    return x\n",)),
    }
    problems = (f"{HOSTILE}.py: cannot be read",) if where == "file name" else ()
    shown = results(
        grade_submission(desk, Submission("mallory", (files[where],), problems)), desk.course
    )
    rendered = [
        MarkdownIt().parse(text) for text in (shown.output, *(t.output for t in shown.tests))
    ]
    tokens = [token for parsed in rendered for token in parsed]
    kinds = {token.type for token in tokens} | {c.type for t in tokens for c in t.children or ()}
    assert kinds <= {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "code_block",
        "strong_open",
        "strong_close",
        "em_open",
        "em_close",
        "softbreak",
    }
    blocks = [token.content for token in tokens if token.type == "code_block"]
    assert any("<script>" in block and "**you passed**" in block for block in blocks)


def test_an_authors_words_are_not_taken_for_markup(desk: Desk) -> None:
    one = graded(desk, ADDS)
    named = msgspec.structs.replace(
        one.exercises[0].tests[-1], mistake="a*b <em> __init__", hint="Is `x[0]` a [list]?"
    )
    exercise = msgspec.structs.replace(one.exercises[0], tests=(named,))
    (test,) = results(msgspec.structs.replace(one, exercises=(exercise,)), desk.course).tests
    words = MarkdownIt().render(test.output)
    assert "<strong>a*b &lt;em&gt; __init__</strong>" in words
    assert "<em>Is <code>x[0]</code> a [list]?</em>" in words


def test_what_follows_from_an_earlier_mistake_says_what_to_mend_first(desk: Desk) -> None:
    one = graded(desk, ADDS)
    following = msgspec.structs.replace(
        one.exercises[0].tests[-1], mistake="The mean is added", follows="center", status="failed"
    )
    exercise = msgspec.structs.replace(one.exercises[0], tests=(following,))
    (test,) = results(msgspec.structs.replace(one, exercises=(exercise,)), desk.course).tests
    assert "**Follows from center: The mean is added**" in test.output
    assert "This follows from a mistake in `center`. Fix that first" in test.output
    assert test.status == "failed"


def test_a_fault_of_ours_has_no_score(desk: Desk, right: str) -> None:
    broken = msgspec.structs.replace(graded(desk, right), status="grader_error", message="ours")
    with pytest.raises(HostFault, match="ours"):
        results(broken, desk.course)


def test_what_cannot_be_read_is_a_zero_and_says_why(desk: Desk) -> None:
    shown = results(
        grade_submission(desk, Submission("ada", (), ("ada.py: larger than 4 MB",))), desk.course
    )
    assert (shown.score, shown.tests) == (0, ())
    assert "    ada.py: larger than 4 MB" in shown.output


# --- the bundle ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    folder = tmp_path_factory.mktemp("release") / "gradescope"
    release_gradescope(tiny, folder)
    return folder


def test_the_zip_holds_what_gradescope_looks_for_at_its_root(bundle: Path) -> None:
    with zipfile.ZipFile(bundle / ZIP) as archive:
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
        assert archive.read("solutions/seed") == b"tiny-hidden\n"
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert {mode for name, mode in modes.items() if "/" in name} == {0o644}
    assert {"exercises/course.toml", "grader/lms/gradescope.py", "solutions/basics.py"} <= {*modes}
    assert not [name for name in modes if "__pycache__" in name]


def test_a_bundle_with_solutions_is_closed_to_others(grader: Grader, tmp_path: Path) -> None:
    for folder in (tmp_path / "new", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        ran = grader("release", "gradescope", "--to", folder, "--course", TINY / "exercises")
        assert ran.code == 0
        assert "among them the solutions and the seed: keep the folder private" in ran.out
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_bundle_asks_for_a_container_that_is_large_enough(bundle: Path) -> None:
    text = (bundle / "README.md").read_text("utf-8")
    # 256 MB above 700 of ours; twenty seconds of computing may take ten times that to wait.
    assert "**at least 1 GB**" in text
    assert "**9 minutes**" in text
    assert "**10 points**" in text


def test_another_seed_and_another_index_go_into_the_bundle(tiny: Course, tmp_path: Path) -> None:
    release_gradescope(tiny, tmp_path / "a", seed="mine", torch_index="https://example.org/cpu")
    release_gradescope(tiny, tmp_path / "b", seed="mine", torch_index="https://example.org/cpu")
    assert (tmp_path / "a" / "solutions" / "seed").read_text() == "mine\n"
    assert "extra-index-url = https://example.org/cpu" in (tmp_path / "a" / "pip.conf").read_text()
    assert (tmp_path / "a" / ZIP).read_bytes() == (tmp_path / "b" / ZIP).read_bytes()


def test_a_course_without_a_seed_is_not_released(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    (tmp_path / "tiny" / "solutions" / "seed").unlink()
    with pytest.raises(CallError, match=r"seed is missing or empty: .* or pass --seed"):
        release_gradescope(load_course(tmp_path / "tiny" / "exercises"), tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


# --- as Gradescope runs it -----------------------------------------------------------------------


class Graded(NamedTuple):
    """How run_autograder ended, what it printed, and the results, if it wrote any."""

    code: int
    printed: str
    results: dict[str, Any] | None


Submit = Callable[..., Graded]


@pytest.fixture(scope="module")
def machine(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for ``/autograder``, after setup.sh has run."""
    root = tmp_path_factory.mktemp("autograder")
    source = root / "source"
    with zipfile.ZipFile(bundle / ZIP) as archive:
        archive.extractall(source)
        for entry in archive.infolist():
            (source / entry.filename).chmod(entry.external_attr >> 16)
    shutil.copy(source / "run_autograder", root)
    make_environment(root / "environment")
    ran = run("bash", source / "setup.sh", place=root, environment={"AUTOGRADER_ROOT": str(root)})
    assert ran.returncode == 0, ran.stderr
    return root


@pytest.fixture
def submit(machine: Path) -> Submit:
    """Hand in files, and let Gradescope run the autograder on them."""

    def graded(files: Mapping[str, str], **environment: str) -> Graded:
        for name in ("submission", "results"):
            shutil.rmtree(machine / name, ignore_errors=True)
            (machine / name).mkdir()
        for name, text in files.items():
            (machine / "submission" / name).write_text(text, "utf-8")
        (machine / "submission_metadata.json").write_text(json.dumps(METADATA))
        ran = run(
            machine / "run_autograder",
            place=machine,
            environment={"AUTOGRADER_ROOT": str(machine), **environment},
        )
        written = machine / "results" / "results.json"
        found = json.loads(written.read_text("utf-8")) if written.exists() else None
        return Graded(ran.returncode, ran.stdout + ran.stderr, found)

    return graded


def test_setup_installs_the_engine_and_closes_the_solutions(machine: Path) -> None:
    python = machine / "environment" / "bin" / "python"
    command = "import grader; print(grader.__file__)"
    ran = run(python, "-I", "-c", command, place=machine, environment={})
    assert Path(ran.stdout.strip()).is_relative_to(machine / "environment")
    assert not [
        path
        for path in files_in(machine / "source")
        if (machine / "source" / path).stat().st_mode & 0o77
    ]
    assert stat.S_IMODE((machine / "source").stat().st_mode) & 0o77 == 0


def test_a_right_submission_gets_the_points_that_grade_gives(
    submit: Submit, grader: Grader, right: str, tmp_path: Path, tiny: Course
) -> None:
    halves = {"basics.py": right.replace("x - x.mean()", "x + x.mean()")}
    ran = submit(halves)
    assert ran.code == 0
    assert re.fullmatch(r"course: tiny, .*/source/exercises\n", ran.printed)
    assert ran.results is not None
    (tmp_path / "ada.py").write_text(halves["basics.py"])
    grader("grade", tmp_path / "ada.py", "--out", tmp_path / "out", "--course", tiny.folder)
    one = Grade.from_json((tmp_path / "out" / "results.jsonl").read_bytes())
    assert ran.results["score"] == one.total == 8
    for exercise in one.exercises:
        scores = [
            test.get("score", 0)
            for test in ran.results["tests"]
            if test["name"].startswith(f"{exercise.name}: ")
        ]
        assert sum(scores) == pytest.approx(exercise.points)
    assert ran.results["extra_data"]["course"] == one.course
    assert "weak" not in ran.results["extra_data"]["isolation"]


def test_a_hostile_submission_reaches_neither_the_solutions_nor_the_results(
    submit: Submit, machine: Path
) -> None:
    secret = [machine / "source" / "solutions" / "seed", machine / "submission_metadata.json"]
    text = f"""
import os, pathlib
forged = b'{{"score": 10, "tests": []}}'
def center(x):
    told = []
    for path in {[str(path) for path in secret]!r}:
        try:
            told.append(pathlib.Path(path).read_text())
        except OSError as error:
            told.append(type(error).__name__)
    try:
        pathlib.Path({str(machine / "results" / "results.json")!r}).write_bytes(forged)
    except OSError as error:
        told.append(type(error).__name__)
    print(*told)
    return x
"""
    ran = submit({"basics.py": text})
    assert ran.code == 0
    assert ran.results is not None
    assert ran.results["score"] == 0
    shown = json.dumps(ran.results)
    # Reading finds no such file, or may not; writing may not, since opening to write is refused.
    assert re.search(r"((FileNotFound|Permission)Error ){2}PermissionError", shown)
    assert "tiny-hidden" not in shown
    assert "of yesterday" not in shown


def test_a_container_with_few_layers_grades_and_says_so(submit: Submit, right: str) -> None:
    ran = submit({"everything.py": right}, **{WITHOUT: "landlock namespaces uid"})
    assert ran.code == 0
    assert ran.results is not None
    assert ran.results["score"] == 10
    assert "weak" in ran.results["extra_data"]["isolation"]


def test_a_course_that_cannot_be_loaded_is_nobodys_zero(
    submit: Submit, machine: Path, right: str
) -> None:
    seed = machine / "source" / "solutions" / "seed"
    seed.rename(seed.with_name("lost"))
    try:
        ran = submit({"basics.py": right})
    finally:
        seed.with_name("lost").rename(seed)
    assert (ran.code, ran.results) == (2, None)
    assert "seed is missing or empty" in ran.printed


# --- the same, in this process -------------------------------------------------------------------


@pytest.fixture
def layout(one_warm_process: None, tmp_path: Path) -> Path:
    """A machine on which nothing was handed in, and on which an old result lies."""
    shutil.copytree(TINY, tmp_path / "source")
    for name in ("submission", "results"):
        (tmp_path / name).mkdir()
    (tmp_path / "results" / "results.json").write_text('{"score": 9}')
    (tmp_path / "submission_metadata.json").write_text(json.dumps(METADATA))
    return tmp_path


def score_in(root: Path) -> float:
    text = (root / "results" / "results.json").read_text("utf-8")
    return float(json.loads(text)["score"])


def test_nothing_handed_in_is_a_zero_with_a_reason(
    layout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grade_for_gradescope(layout)
    assert score_in(layout) == 0
    assert "no .py file and no notebook" in (layout / "results" / "results.json").read_text()
    assert "\nAda Lovelace, Bob: no .py file and no notebook" in capsys.readouterr().out


def test_a_test_that_fails_for_our_fault_is_nobodys_zero(layout: Path, right: str) -> None:
    (layout / "submission" / "basics.py").write_text(right)
    with (layout / "source" / "solutions" / "graders" / "test_layers.py").open("a") as file:
        file.write('\n\n@rung.value("Projection", points=1)\ndef test_ours(student):\n')
        file.write('    """Ours."""\n    raise KeyError("ours")\n')
    with pytest.raises(HostFault, match="the grader itself failed in a test"):
        grade_for_gradescope(layout)
    assert list((layout / "results").iterdir()) == []


def test_an_assignment_counts_its_points_and_not_those_of_the_course(
    layout: Path, capsys: pytest.CaptureFixture[str], right: str
) -> None:
    assigned(layout / "source" / "exercises", "center", "weigh", points=100)
    (layout / "submission" / "basics.py").write_text(right.replace("x - x.mean()", "x"))
    grade_for_gradescope(layout)
    shown = json.loads((layout / "results" / "results.json").read_text("utf-8"))
    assert shown["score"] == 60, "weigh has three points of five"
    assert sum(t.get("score", 0) for t in shown["tests"]) == pytest.approx(60, abs=0.01)
    assert sum(t.get("max_score", 0) for t in shown["tests"]) == pytest.approx(100, abs=0.01)
    said = capsys.readouterr().out
    assert "the graded exercises are worth 100 points, and this assignment 10:" in said


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (None, ""),
        ("[1, 2", ""),
        (json.dumps({"users": 7, "assignment": None}), ""),
        (json.dumps({**METADATA, "assignment": {"total_points": "100.0"}}), "this assignment 100:"),
    ],
    ids=["none", "cut off", "of another kind", "other points"],
)
def test_no_grade_hangs_on_the_metadata(
    layout: Path, capsys: pytest.CaptureFixture[str], right: str, metadata: str | None, said: str
) -> None:
    (layout / "submission" / "basics.py").write_text(right)
    (layout / "submission_metadata.json").unlink()
    if metadata is not None:
        (layout / "submission_metadata.json").write_text(metadata)
    grade_for_gradescope(layout)
    assert score_in(layout) == 10
    assert said in capsys.readouterr().out
