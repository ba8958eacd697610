"""`course.toml`: what it says, and how its mistakes are told."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import Course, find_course, load_course, nearest_course
from grader.records.faults import CallError
from tests.support.places import REAL, ROOT, TINY

TOML = (TINY / "exercises" / "course.toml").read_text("utf-8")

Edit = Callable[[str, str], str]


@pytest.fixture
def refusal(tmp_path: Path) -> Edit:
    """Replace one piece of a right `course.toml`, and return what is said about the result."""

    def edit(before: str, after: str) -> str:
        assert TOML.count(before) == 1
        path = tmp_path / "course.toml"
        path.write_text(TOML.replace(before, after), "utf-8")
        with pytest.raises(CallError) as error:
            load_course(tmp_path)
        file, _, told = str(error.value).partition("course.toml")
        assert Path(file) == tmp_path
        return told

    return edit


def line_of(before: str, after: str, wanted: str) -> int:
    """The line on which `wanted` stands once `before` is replaced by `after`."""
    lines = TOML.replace(before, after).splitlines()
    (found,) = [number for number, line in enumerate(lines, start=1) if wanted in line]
    return found


# --- mistakes in the file ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('seed = "tiny-public"', 'sede = "tiny-public"', "sede"),
        ("[limits]", "[limitz]", "limitz"),
        ("test_seconds = 0.5", "tset_seconds = 0.5", "tset_seconds"),
        ("functions = [", "fucntions = [", "fucntions"),
        ("[aliases.arguments]", "[aliases.argumnets]", "argumnets"),
        ('title = "A module"', 'titel = "A module"', "titel"),
        ("requires = [", "needs = [", "needs"),
        ("points = 4", "points = 4\npionts = 4", "pionts"),
    ],
    ids=[
        "at the top",
        "a table",
        "in limits",
        "in operations",
        "in aliases",
        "in a unit",
        "in an exercise",
        "in the last exercise",
    ],
)
def test_an_unknown_key_is_told_with_file_line_and_key(
    refusal: Edit, before: str, after: str, key: str
) -> None:
    told = f":{line_of(before, after, key)}: unknown key '{key}'"
    assert refusal(before, after).startswith(told)


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('name = "tiny"', "name = 3", "name"),
        ("memory_mb = 256", 'memory_mb = "plenty"', "memory_mb"),
        ('functions = ["softmax", "log_softmax"]', 'functions = "softmax"', "functions"),
        ('d_in = ["in_features"]', 'd_in = "in_features"', "d_in"),
        ("points = 4", 'points = "four"', "points"),
        ('requires = ["center"]', 'requires = "center"', "requires"),
        ('forbidden = ["softmax"]', "forbidden = [3]", "forbidden"),
    ],
)
def test_a_wrong_type_is_told_with_line_key_and_both_types(
    refusal: Edit, before: str, after: str, key: str
) -> None:
    told = refusal(before, after)
    assert told.startswith(f":{line_of(before, after, after)}: {key}: ")
    assert re.search(r"write .+, not .+", told)


@pytest.mark.parametrize(
    ("line", "key", "table"),
    [
        ('seed = "tiny-public"\n', "seed", None),
        ('name = "layers"\n', "name", '[[unit]]\nname = "layers"'),
        ("points = 4\n", "points", '[[unit.exercise]]\nname = "Projection"'),
    ],
)
def test_a_missing_key_is_told_with_the_line_of_its_table(
    refusal: Edit, line: str, key: str, table: str | None
) -> None:
    number = TOML[: TOML.index(table)].count("\n") + 1 if table else 1
    assert refusal(line, "").startswith(f":{number}: key '{key}' is missing")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('name = "Projection"', 'name = "center" #', "'center' is there twice"),
        ('name = "layers"', 'name = "basics" #', "'basics' is there twice"),
        ('requires = ["center"]', 'requires = ["centre"]', "'centre' does not come before weigh"),
        (
            'requires = ["center"]',
            'requires = ["Projection"]',
            "'Projection' does not come before weigh",
        ),
        ('forbidden = ["softmax"]', 'forbidden = ["sofmax"]', "no operations are called 'sofmax'"),
        (
            'functions = ["softmax", "log_softmax"]',
            'functions = ["grad"]\nlayers = ["Autogard"]',
            "layers: Invalid enum value 'Autogard'",
        ),
        ("points = 4", "points = 0", "points must be positive"),
        ("points = 4", "points = nan", "points must be"),
        ("points = 4", "points = inf", "points must be"),
        ("points = 4", "points = 0.0004", "points must be"),
        ('name = "Projection"', 'name = "two words"', "'two words' is not a Python name"),
        ('name = "Projection"', 'name = "class"', "'class' is not a Python name"),
        ('name = "layers"', 'name = "../layers"', "'../layers' is not a file stem"),
        ("test_seconds = 0.5", "test_seconds = -0.5", "test_seconds must be"),
        ("submission_seconds = 20.0", "submission_seconds = 0", "submission_seconds must be"),
        ("memory_mb = 256", "memory_mb = 0", "memory_mb must be"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_line(
    refusal: Edit, before: str, after: str, told: str
) -> None:
    message = refusal(before, after)
    assert message.startswith(f":{line_of(before, after, after.splitlines()[-1])}: ")
    assert told in message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("points = 4", "points = = 4"),
        ("points = 4", "points = 4\npoints = 5"),
        ('requires = ["center"]', 'requires = ["'),
    ],
    ids=["not TOML", "a key twice", "a string without an end"],
)
def test_a_syntax_error_is_told_with_file_and_line(refusal: Edit, before: str, after: str) -> None:
    line = line_of(before, after, after.splitlines()[-1])
    assert re.search(rf":{line}:|\bline {line}\b", refusal(before, after))


def test_a_course_that_is_not_text_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "course.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CallError, match=re.escape(str(tmp_path / "course.toml"))):
        load_course(tmp_path)


# --- what a course knows -------------------------------------------------------------------------


def test_exercises_stand_in_teaching_order_with_their_units(tiny: Course) -> None:
    assert list(tiny.exercises) == ["center", "staircase", "weigh", "Projection"]
    assert tiny.unit_of["weigh"] == "basics"
    assert tiny.unit_of["Projection"] == "layers"


def test_no_name_selects_every_exercise(tiny: Course) -> None:
    assert tiny.select([]) == tuple(tiny.exercises)


def test_exercises_and_units_are_selected_in_teaching_order_and_once(tiny: Course) -> None:
    assert tiny.select(["weigh", "center"]) == ("center", "weigh")
    assert tiny.select(["layers"]) == ("Projection",)
    assert tiny.select(["weigh", "basics"]) == ("center", "staircase", "weigh")


@pytest.mark.parametrize(("typed", "meant"), [("centre", "center"), ("layer", "layers")])
def test_an_unknown_name_suggests_the_nearest(tiny: Course, typed: str, meant: str) -> None:
    with pytest.raises(CallError, match=f"'{typed}'; did you mean {meant}"):
        tiny.select([typed])


def test_a_name_like_no_other_is_answered_with_the_units(tiny: Course) -> None:
    with pytest.raises(CallError, match="the units are basics, layers"):
        tiny.select(["xyzzy"])


@pytest.mark.parametrize(
    "changed",
    [
        "exercises/basics.py",
        "exercises/checks/test_layers.py",
        "solutions/basics.py",
        "solutions/graders/test_layers.py",
        "solutions/parts/means.py",  # what a reference may import
        "solutions/trained/sums.safetensors",  # what a grader may read
    ],
)
def test_the_fingerprint_changes_with_whatever_decides_a_grade(
    tmp_path: Path, changed: str
) -> None:
    copy = Path(shutil.copytree(TINY, tmp_path / "copy"))
    course = load_course(copy / "exercises")
    assert course.fingerprint() == load_course(TINY / "exercises").fingerprint()
    path = copy / changed
    path.parent.mkdir(exist_ok=True)
    path.touch()
    before = course.fingerprint()
    path.write_text(path.read_text("utf-8") + "\n# changed\n", "utf-8")
    assert course.fingerprint() != before


@pytest.mark.parametrize(
    ("lines", "same"),
    [
        ("[feedback]\nhidden = 'verdicts'", True),
        ("[[manual]]\nname = 'essay'\npoints = 2", True),
        ("[[assignment]]\nname = 'a'\nexercises = ['basics']\ndue = 2026-12-01T12:00:00Z", True),
        ("[term]\ndrop = 1", True),
        ("[operations.sums]\ntitle = 'sum'\nfunctions = ['sum']", False),
        ("[aliases.arguments]\ne_in = ['width']", False),
    ],
)
def test_what_concerns_assignments_and_pages_regrades_nobody(
    tmp_path: Path, lines: str, same: bool
) -> None:
    copy = Path(shutil.copytree(TINY, tmp_path / "copy"))
    before = load_course(copy / "exercises").fingerprint()
    path = copy / "exercises" / "course.toml"
    text = path.read_text("utf-8")
    if "aliases" in lines:
        text = text.replace("[aliases.arguments]\n", f"{lines}\n")
    else:
        text += f"\n{lines}\n"
    path.write_text(text, "utf-8")
    assert (load_course(copy / "exercises").fingerprint() == before) is same


def test_a_course_without_solutions_says_who_has_them(tmp_path: Path) -> None:
    shutil.copytree(TINY / "exercises", tmp_path / "exercises")
    course = load_course(tmp_path / "exercises")
    with pytest.raises(CallError, match=r"`grader grade` needs the folder .*solutions"):
        course.require_solutions("grade")


@pytest.mark.parametrize("text", [None, "", " \n"], ids=["no file", "an empty file", "blanks"])
def test_a_course_without_a_hidden_seed_says_what_to_do(tmp_path: Path, text: str | None) -> None:
    copy = Path(shutil.copytree(TINY, tmp_path / "copy"))
    (copy / "solutions" / "seed").unlink()
    if text is not None:
        (copy / "solutions" / "seed").write_text(text, "utf-8")
    with pytest.raises(CallError, match="--seed"):
        load_course(copy / "exercises").hidden_seed()


# --- finding a course ----------------------------------------------------------------------------


@pytest.mark.parametrize("start", [".", "exercises", "exercises/checks", "solutions/graders"])
def test_the_course_is_found_here_above_and_beside(tmp_path: Path, start: str) -> None:
    copy = Path(shutil.copytree(TINY, tmp_path / "copy"))
    assert nearest_course(copy / start) == (copy / "exercises").resolve()


def test_the_nearest_course_wins(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / "course.toml").write_text(TOML, "utf-8")
    (inner / "course.toml").write_text(TOML, "utf-8")
    assert find_course(None, inner, student=True) == inner.resolve()


def test_a_course_that_is_named_wins_over_the_nearest() -> None:
    assert find_course(TINY, ROOT) == (TINY / "exercises").resolve()


def test_a_course_that_is_named_and_not_there_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(CallError, match=re.escape(f"no course.toml in {tmp_path}")):
        find_course(tmp_path, TINY)


def test_without_a_course_the_message_says_how_to_name_one(nowhere: None) -> None:
    with pytest.raises(CallError, match="--course DIR"):
        find_course(None)


def test_elsewhere_the_course_that_lies_beside_the_engine_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_course(None) == REAL
