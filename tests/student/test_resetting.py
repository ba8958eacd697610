"""A stub goes back into a student's file, nothing else there changes, and nothing is ever lost."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.records.faults import CallError
from grader.student.progress import record_progress
from grader.student.resetting import KEPT, can_undo, reset_exercises, undo
from tests.support.places import TINY

STUBS = (TINY / "exercises" / "basics.py").read_text("utf-8")
HEAD = "import torch\n\nMINE = 3  # of my own\n\n\n"
HELPER = "\n\ndef helper(x):\n    return x  # mine\n"
STUB = next(
    ast.get_source_segment(STUBS, node) or ""
    for node in ast.parse(STUBS).body
    if isinstance(node, ast.FunctionDef) and node.name == "center"
)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """The tiny course as a student has it: with the stubs as they were."""
    shutil.copytree(TINY / "exercises", tmp_path / "tiny")
    stubs = tmp_path / "tiny" / "recorded" / "stubs"
    stubs.mkdir(parents=True)
    for unit in ("basics", "layers"):
        shutil.copy(TINY / "exercises" / f"{unit}.py", stubs)
    return load_course(tmp_path / "tiny")


Write = Callable[[str], Path]


@pytest.fixture
def write(course: Course) -> Write:
    """Write a student's text into the first unit's file."""

    def written(text: str) -> Path:
        path = course.stub_file("basics")
        path.write_bytes(text.encode())
        return path

    return written


def after_reset(course: Course, path: Path, name: str = "center") -> str:
    reset_exercises(course, name)
    return path.read_bytes().decode()


# --- one exercise --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mine",
    [
        "def center(x):\n    return x - x.mean()\n",
        "@torch.no_grad()\n@torch.compile\ndef center(\n    x,\n):\n    return x\n",
        "def center(x):\n    return x\n    # x - 1\n\n    # x - 2\n",
        "async def center(x): return x\n",
        "class center:\n    def __init__(self):\n        pass\n",
        "center = lambda x: x - x.mean()\n",
        "center: object = max(\n    1, 2\n)\n",
        'def center(x):\n    r"""Unindented\ndef center(x): inside a string\n"""\n    return x\n',
    ],
)
def test_the_stub_stands_where_the_answer_stood(course: Course, write: Write, mine: str) -> None:
    path = write(HEAD + mine + HELPER)
    assert after_reset(course, path) == f"{HEAD}{STUB}\n{HELPER}"


def test_of_several_versions_the_last_one_makes_room(course: Course, write: Write) -> None:
    version = "def center(x):\n    return x\n"
    path = write(f"{HEAD}{version}\n\n{version}{HELPER}\n\n{version}")
    assert after_reset(course, path) == f"{HEAD}{HELPER.lstrip()}\n\n{STUB}\n"


def test_an_answer_that_is_gone_comes_back_at_the_end(course: Course, write: Write) -> None:
    path = write(HEAD + "x = 1")
    assert after_reset(course, path) == f"{HEAD}x = 1\n\n\n{STUB}\n"


def test_a_statement_that_shares_its_line_is_left_alone(course: Course, write: Write) -> None:
    path = write("center = 1; other = 2\n")
    assert after_reset(course, path) == f"center = 1; other = 2\n\n\n{STUB}\n"


def test_a_page_break_ends_no_line(course: Course, write: Write) -> None:
    head = "x = '\x0c'\n\x0c\n"
    path = write(f"{head}def center(x):\n    return x\n\x0cy = 1\n")
    assert after_reset(course, path) == f"{head}{STUB}\n\x0cy = 1\n"


def test_methods_and_functions_inside_are_not_mistaken(course: Course, write: Write) -> None:
    text = "class Mine:\n    def center(self):\n        return 1\n"
    path = write(text)
    assert after_reset(course, path) == f"{text}\n\n{STUB}\n"


def test_a_class_comes_back_whole(course: Course) -> None:
    path = course.stub_file("layers")
    before = path.read_bytes()
    path.write_bytes(before.replace(b"raise NotImplementedError", b"return None"))
    reset_exercises(course, "Projection")
    assert path.read_bytes() == before


def test_a_file_that_is_gone_comes_back_whole(course: Course) -> None:
    path = course.stub_file("basics")
    path.unlink()
    reset_exercises(course, "center")
    assert path.read_text("utf-8") == STUBS


# --- how the file is written ---------------------------------------------------------------------


def test_line_endings_stay_as_they_were(course: Course, write: Write) -> None:
    text = HEAD + "def center(x):\n    return x\n" + HELPER
    path = write(text.replace("\n", "\r\n"))
    assert after_reset(course, path) == f"{HEAD}{STUB}\n{HELPER}".replace("\n", "\r\n")
    assert after_reset(course, path, "basics") == STUBS.replace("\n", "\r\n")


def test_the_encoding_stays_as_it_was(course: Course, write: Write) -> None:
    path = write("")
    path.write_bytes(b"\xef\xbb\xbfx = 1\ndef center(x): pass\n")
    reset_exercises(course, "center")
    assert path.read_bytes() == f"\ufeffx = 1\n{STUB}\n".encode()
    latin = "# coding: latin-1\ncafé = 1\n"
    path.write_bytes((latin + "def center(x): pass\n").encode("latin-1"))
    reset_exercises(course, "center")
    assert path.read_bytes() == f"{latin}{STUB}\n".encode("latin-1")


@pytest.mark.parametrize("data", ["x = 1\n".encode("utf-16"), b"\xffx = 1\n", b"# coding: klingon"])
def test_what_is_no_text_is_left_alone_until_the_whole_file_is_reset(
    course: Course, data: bytes
) -> None:
    path = course.stub_file("basics")
    path.write_bytes(data)
    with pytest.raises(CallError, match="grader reset basics"):
        reset_exercises(course, "center")
    assert path.read_bytes() == data
    assert reset_exercises(course, "basics").read_bytes() == data
    assert path.read_text("utf-8") == STUBS


def test_a_stub_that_the_encoding_cannot_hold_is_told(course: Course, write: Write) -> None:
    stubs = course.recorded / "stubs" / "basics.py"
    stubs.write_text(STUBS.replace("Subtract", "− Subtract"), "utf-8")
    path = write("# coding: latin-1\n")
    with pytest.raises(CallError, match="which cannot encode the stub"):
        reset_exercises(course, "center")
    assert path.read_bytes() == b"# coding: latin-1\n"


# --- a file that does not parse ------------------------------------------------------------------


@pytest.mark.parametrize(
    "mine",
    [
        "def center(x):\n    return x -\n",
        "@torch.no_grad()\ndef center(\n    x,\n) -> Tensor:\n    return (x\n",
        "def center(x):\n    y = x\n# y = 2\n      return y\n",
        "def center(x)\n    return x\n\n    # more\n",
        "def center(x):\nreturn x\n",  # lines that lost their indentation
    ],
)
def test_an_answer_with_a_syntax_error_makes_room(course: Course, write: Write, mine: str) -> None:
    rest = "\n\n# about the helper\ndef helper(x):\n    return x\n"
    path = write(HEAD + mine + rest)
    assert after_reset(course, path) == f"{HEAD}{STUB}\n{rest}"


def test_a_syntax_error_elsewhere_is_not_touched(course: Course, write: Write) -> None:
    wrong = "def weigh(scores):\n    return scores -\n"
    path = write(f"{HEAD}def center(x):\n    return x\n\n\n{wrong}")
    assert after_reset(course, path) == f"{HEAD}{STUB}\n\n\n{wrong}"


def test_a_syntax_error_without_the_definition_offers_the_whole_file(
    course: Course, write: Write
) -> None:
    path = write("x = (\n")
    with pytest.raises(CallError, match=r"line 1 is not valid .* grader reset basics"):
        reset_exercises(course, "center")
    assert path.read_bytes() == b"x = (\n"
    reset_exercises(course, "basics")
    assert path.read_text("utf-8") == STUBS


# --- backups -------------------------------------------------------------------------------------


def test_the_whole_file_is_kept_first(course: Course, write: Write) -> None:
    write(HEAD)
    kept = reset_exercises(course, "center")
    assert kept == course.folder / ".backups" / "basics.1.center.py"
    assert kept.read_text("utf-8") == HEAD


def test_undo_brings_an_answer_back_and_undo_again_takes_it_out(
    course: Course, write: Write
) -> None:
    path = write(HEAD)
    after = after_reset(course, path)
    for expected in (HEAD, after, HEAD):
        assert undo(course, "center") == path
        assert path.read_text("utf-8") == expected
    assert len(list((course.folder / ".backups").iterdir())) == 1


CENTER = "def center(x):\n    return x - 1\n"
STAIRCASE = "def staircase(size):\n    return size\n"
LATER = "def staircase(size):\n    return size + 1  # written after the reset\n"


def test_undo_brings_back_one_definition_and_keeps_what_was_written_since(
    course: Course, write: Write
) -> None:
    path = write(f"{HEAD}{CENTER}\n\n{STAIRCASE}")
    reset_exercises(course, "center")
    path.write_text(path.read_text("utf-8").replace(STAIRCASE, LATER), "utf-8")
    undo(course, "center")
    assert path.read_text("utf-8") == f"{HEAD}{CENTER}\n\n{LATER}"
    undo(course, "center")
    assert path.read_text("utf-8") == f"{HEAD}{STUB}\n\n\n{LATER}"


def test_undo_of_one_takes_back_no_reset_of_another(course: Course, write: Write) -> None:
    path = write(f"{HEAD}{CENTER}\n\n{STAIRCASE}")
    reset_exercises(course, "center")
    assert undo(course, "staircase") is None
    reset_exercises(course, "staircase")
    undo(course, "center")
    assert CENTER in path.read_text("utf-8")
    assert STAIRCASE not in path.read_text("utf-8")
    undo(course, "staircase")
    assert path.read_text("utf-8") == f"{HEAD}{CENTER}\n\n{STAIRCASE}"


def test_one_answer_comes_back_from_a_unit_that_was_reset(course: Course, write: Write) -> None:
    path = write(f"{HEAD}{CENTER}\n\n{STAIRCASE}")
    reset_exercises(course, "basics")
    undo(course, "staircase")
    assert path.read_text("utf-8").count(STAIRCASE) == 1
    assert STUB in path.read_text("utf-8")
    undo(course, "center")
    assert CENTER in path.read_text("utf-8")
    assert STAIRCASE in path.read_text("utf-8")


def test_a_unit_that_was_reset_comes_back_whole_and_goes_again(
    course: Course, write: Write
) -> None:
    path = write(f"{HEAD}{CENTER}")
    reset_exercises(course, "basics")
    for expected in (f"{HEAD}{CENTER}", STUBS, f"{HEAD}{CENTER}"):
        undo(course, "basics")
        assert path.read_text("utf-8") == expected


def test_a_unit_that_was_written_in_since_its_reset_is_not_replaced(
    course: Course, write: Write
) -> None:
    write(f"{HEAD}{CENTER}")
    kept = reset_exercises(course, "basics")
    path = write(f"{STUBS}\n\n{LATER}")
    with pytest.raises(CallError, match=f"has changed since its reset.*{kept.name}"):
        undo(course, "basics")
    assert path.read_text("utf-8") == f"{STUBS}\n\n{LATER}"


def test_an_answer_that_is_no_python_comes_back_into_a_file_that_changed(
    course: Course, write: Write
) -> None:
    broken = "def center(x):\n    return (x\n"
    path = write(f"{HEAD}{STAIRCASE}\n\n{broken}")
    reset_exercises(course, "center")
    path.write_text(path.read_text("utf-8").replace(STAIRCASE, LATER), "utf-8")
    undo(course, "center")
    assert broken in path.read_text("utf-8")
    assert LATER in path.read_text("utf-8")


def test_no_undo_takes_away_the_only_copy_of_what_it_does_not_bring_back(
    course: Course, write: Write
) -> None:
    first, second = CENTER.replace("1", "11"), CENTER.replace("1", "22")
    path = write(f"{HEAD}{first}\n\n{second}")
    reset_exercises(course, "center")
    path.write_text(f"{path.read_text('utf-8')}# later\n", "utf-8")
    undo(course, "center")
    kept = [one.read_text("utf-8") for one in (course.folder / ".backups").iterdir()]
    assert second in path.read_text("utf-8")
    assert any(first in text for text in kept)


def test_an_answer_is_found_behind_a_later_reset_of_its_unit(course: Course, write: Write) -> None:
    path = write(f"{HEAD}{CENTER}")
    reset_exercises(course, "center")
    reset_exercises(course, "basics")
    undo(course, "center")
    assert CENTER in path.read_text("utf-8")


def test_an_undo_of_the_oldest_backup_succeeds(course: Course, write: Write) -> None:
    path = write(f"{HEAD}{CENTER}\n\n{STAIRCASE}")
    reset_exercises(course, "center")
    for number in range(KEPT - 1):
        answer = f"def staircase(size):\n    return {number}\n"
        text = path.read_text("utf-8")
        stub = next(
            ast.get_source_segment(text, node) or ""
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef) and node.name == "staircase"
        )
        path.write_text(text.replace(stub, answer.strip()), "utf-8")
        reset_exercises(course, "staircase")
    undo(course, "center")
    assert CENTER in path.read_text("utf-8")


def test_who_looks_later_sees_what_can_be_undone(course: Course, write: Write) -> None:
    """Another terminal does, or the same one the next day."""
    write(f"{HEAD}{CENTER}")
    assert not can_undo(course, "center")
    reset_exercises(course, "center")
    assert can_undo(load_course(course.folder), "center")
    assert not can_undo(load_course(course.folder), "staircase")


def test_a_second_reset_does_not_stand_between_a_student_and_an_undo(
    course: Course, write: Write
) -> None:
    path = write(HEAD + "def center(x):\n    return x\n")
    first = reset_exercises(course, "center")
    assert reset_exercises(course, "center") == first
    undo(course, "center")
    assert path.read_text("utf-8") == HEAD + "def center(x):\n    return x\n"


def test_without_a_backup_there_is_nothing_to_undo(course: Course) -> None:
    reset_exercises(course, "Projection")
    before = course.stub_file("basics").read_bytes()
    assert undo(course, "center") is None
    assert course.stub_file("basics").read_bytes() == before


def test_the_newest_backups_of_each_unit_are_kept(course: Course, write: Write) -> None:
    reset_exercises(course, "Projection")
    for number in range(KEPT + 3):
        write(f"x = {number}\n")
        kept = reset_exercises(course, "basics")
    assert kept.name == f"basics.{KEPT + 3}.py"
    names = {path.name for path in kept.parent.iterdir()}
    assert names == {"layers.1.Projection.py", *(f"basics.{n}.py" for n in range(4, KEPT + 4))}


def test_progress_is_not_forgotten(course: Course, write: Write) -> None:
    record_progress(course.folder, solved=["center"])
    before = (course.folder / "progress.txt").read_bytes()
    write(HEAD)
    reset_exercises(course, "center")
    assert (course.folder / "progress.txt").read_bytes() == before


# --- what cannot be done -------------------------------------------------------------------------


def test_a_clone_is_told_to_use_git(course: Course) -> None:
    shutil.rmtree(course.recorded)
    with pytest.raises(CallError, match="git checkout"):
        reset_exercises(course, "center")
    assert not (course.folder / ".backups").exists()


def test_an_unknown_name_is_told_with_the_nearest(course: Course) -> None:
    for do in (reset_exercises, undo):
        with pytest.raises(CallError, match="did you mean center"):
            do(course, "centre")
    assert reset_exercises(course, "layers").name == "layers.1.py"  # a unit's name is one


def test_stubs_without_the_exercise_are_told(course: Course) -> None:
    (course.recorded / "stubs" / "basics.py").write_text("x = 1\n")
    with pytest.raises(CallError, match="does not define center"):
        reset_exercises(course, "center")


def test_a_folder_that_cannot_be_written_is_one_line(course: Course, write: Write) -> None:
    path = write(HEAD)
    (course.folder / ".backups").write_text("in the way")
    with pytest.raises(CallError):
        reset_exercises(course, "center")
    assert path.read_text("utf-8") == HEAD
