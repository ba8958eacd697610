"""`grader diff`: whose grade changed between two gradings, and why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.grades.changes import changes
from grader.grades.gradebook import open_gradebook
from grader.grades.privacy import pseudonyms
from grader.intake import Submission
from grader.records.grade import Grade
from grader.records.rows import Adjustment, Person, Row
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.gradebooks import correct
from tests.support.places import TINY


def write(folder: Path, *grades: Grade, text: str = "x = 1") -> Path:
    """A gradebook with these grades, all of one text."""
    with open_gradebook(folder, "tiny") as book:
        for grade in grades:
            book.record(grade, Submission(grade.student, (SourceText("a.py", (text,)),)))
        book.exercises = EXERCISES
    return folder


def with_test(grade: Grade, status: str, **fields: Any) -> Grade:
    """The grade, with the first exercise's test ending so."""
    first, *rest = grade.exercises
    test = msgspec.structs.replace(first.tests[0], status=status, **fields)
    return msgspec.structs.replace(
        grade, exercises=(msgspec.structs.replace(first, tests=(test,)), *rest)
    )


def diff(cold_grader: Grader, *arguments: str | Path) -> str:
    """What the command prints."""
    ran = cold_grader("diff", *arguments, "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


# --- what is told --------------------------------------------------------------------------------


def test_two_gradebooks_that_agree_have_nothing_to_tell(
    cold_grader: Grader, tmp_path: Path
) -> None:
    old, new = (write(tmp_path / name, grade_of("ada", 2, 1)) for name in ("old", "new"))
    assert diff(cold_grader, old, new) == "no grade changed\n"


def test_a_change_is_told_with_the_tests_that_decided_it(
    cold_grader: Grader, tmp_path: Path
) -> None:
    before = with_test(grade_of("ada", 0, 1), "failed", points=0, message="off by one\nand more")
    old = write(tmp_path / "old", before, grade_of("bob", 1, 1))
    new = write(tmp_path / "new", grade_of("ada", 2, 1), grade_of("bob", 1, 1))
    assert diff(cold_grader, old, new) == (
        "ada  1 → 3\n"
        "  center  0 → 2\n"
        "    It: failed → passed\n"
        "      off by one\n"
        "\n"
        "1 of 2 grades changed\n"
    )


def test_tests_that_stand_on_one_that_failed_are_counted(
    cold_grader: Grader, tmp_path: Path
) -> None:
    right, wrong = grade_of("ada", 2, 1), with_test(grade_of("ada", 0, 1), "failed", points=0)
    both = []
    for name, grade, status in (("old", right, "passed"), ("new", wrong, "skipped")):
        first, *rest = grade.exercises
        higher = msgspec.structs.replace(first.tests[0], name="test_more", status=status)
        first = msgspec.structs.replace(first, tests=(*first.tests, higher))
        both.append(
            write(tmp_path / name, msgspec.structs.replace(grade, exercises=(first, *rest)))
        )
    old, new = both
    assert "passed → failed\n    later tests, skipped now because of these changes: 1\n" in diff(
        cold_grader, old, new
    )
    assert "failed → passed\n    later tests, skipped before and passed now: 1\n" in diff(
        cold_grader, new, old
    )


def test_what_held_for_all_grades_is_told_once_and_no_seed(
    cold_grader: Grader, tmp_path: Path
) -> None:
    grades = [grade_of(student, 1, 1) for student in ("ada", "bob")]
    other = [msgspec.structs.replace(g, seed="secret", course="1e", torch="2.14.0") for g in grades]
    told = diff(cold_grader, write(tmp_path / "old", *grades), write(tmp_path / "new", *other))
    assert told == (
        "the hidden seed changed\n"
        "the course's tests, references or mistakes changed\n"
        "torch 2.13.0 is now 2.14.0\n\n"
        "no grade changed\n"
    )


def test_a_program_reads_both_values_of_a_setting_and_no_seed(
    cold_grader: Grader, tmp_path: Path
) -> None:
    grade = grade_of("ada", 1, 1)
    other = msgspec.structs.replace(grade, seed="secret", course="1e", torch="2.14.0")
    old, new = write(tmp_path / "old", grade), write(tmp_path / "new", other)
    assert json.loads(diff(cold_grader, old, new, "--json"))["settings"] == [
        {"name": "seed", "before": None, "after": None},
        {"name": "course", "before": grade.course, "after": "1e"},
        {"name": "torch", "before": "2.13.0", "after": "2.14.0"},
    ]


def test_another_text_is_told(cold_grader: Grader, tmp_path: Path) -> None:
    old = write(tmp_path / "old", grade_of("ada", 0, 1))
    new = write(tmp_path / "new", grade_of("ada", 2, 1), text="x = 2")
    assert "ada  1 → 3\n  another submission\n" in diff(cold_grader, old, new)


def test_who_is_in_one_of_them_alone_is_told_without_every_exercise(
    cold_grader: Grader, tmp_path: Path
) -> None:
    old = write(tmp_path / "old", grade_of("ada", 0, 1))
    new = write(tmp_path / "new", grade_of("bob", 0, 1))
    assert diff(cold_grader, old, new) == (
        "ada  1 → no points\n  graded → not there\n\n"
        "bob  no points → 1\n  not there → graded\n\n"
        "2 of 2 grades changed\n"
    )


def test_a_correction_is_told_with_its_reason(cold_grader: Grader, tmp_path: Path) -> None:
    old, new = (write(tmp_path / name, grade_of("ada", 2, 1)) for name in ("old", "new"))
    with open_gradebook(new, "tiny") as book:
        correct(book, "ada", Adjustment("weigh", -0.5, "handed in \x1b[2Jlate"))
    assert "  weigh  1 → 0.5\n    corrected by -0.5: handed in �[2Jlate\n" in diff(
        cold_grader, old, new
    )
    assert "    the correction was removed\n" in diff(cold_grader, new, old)


def test_a_correction_that_a_mended_test_makes_needless_is_told(
    cold_grader: Grader, tmp_path: Path
) -> None:
    folder = write(tmp_path / "out", grade_of("ada", 0, 1), grade_of("bob", 0, 1))
    with open_gradebook(folder, "tiny") as book:
        correct(book, "ada", Adjustment("center", 2, "a faulty test"))
        book.put_aside()
    write(folder, grade_of("ada", 2, 1), grade_of("bob", 2, 1))
    told = diff(cold_grader, folder)
    assert (
        "  center  2 → 4\n"
        "    the correction by +2 still counts on top (a faulty test). If the corrected fault is "
        "fixed now, remove the correction with 0\n"
    ) in told
    assert told.count("still counts on top") == 1
    hidden = diff(cold_grader, folder, "--anonymous")
    assert "still counts on top. If the corrected" in hidden
    assert "faulty" not in hidden


def test_one_gradebook_is_compared_with_what_its_regrading_replaced(
    cold_grader: Grader, tmp_path: Path
) -> None:
    folder = write(tmp_path / "out", grade_of("ada", 0, 1))
    with open_gradebook(folder, "tiny") as book:
        book.put_aside()
    write(folder, grade_of("ada", 2, 1))
    assert "ada  1 → 3\n" in diff(cold_grader, folder)


def test_a_program_gets_the_same(cold_grader: Grader, tmp_path: Path) -> None:
    old = write(tmp_path / "old", grade_of("ada", 0, 1))
    new = write(tmp_path / "new", grade_of("ada", 2, 1))
    told = json.loads(diff(cold_grader, old, new, "--json"))
    (ada,) = told["students"]
    assert (told["unchanged"], ada["student"], ada["before"], ada["after"]) == (0, "ada", 1, 3)
    assert [one["name"] for one in ada["exercises"]] == ["center"]


# --- the same reason -----------------------------------------------------------------------------


def regraded(folder: Path) -> Path:
    """A class in which a mended test gave six students points, and dan fails another exercise."""
    names = ("ada", "bob", "cleo", "dan", "eve", "finn")
    folder = write(folder, *(with_test(grade_of(n, 0, 1), "failed", points=0) for n in names))
    with open_gradebook(folder, "tiny") as book:
        book.set_people({n: Person(f"s-{n}", n.title(), f"{n}@x.edu") for n in names})
        book.put_aside()
    new = [grade_of(n, 1.167, 1) for n in names if n not in ("dan", "eve")]
    return write(folder, *new, grade_of("eve", 1.5, 1), grade_of("dan", 1.167, 0))


def test_students_whose_points_changed_for_one_reason_are_listed_together(
    cold_grader: Grader, tmp_path: Path
) -> None:
    assert diff(cold_grader, regraded(tmp_path / "out")) == (
        "center: It: failed → passed for 6 students, +1.167 to +1.5\n"
        "  ada 1 → 2.167, bob 1 → 2.167, cleo 1 → 2.167, dan 1 → 1.167, eve 1 → 2.5 and 1 more\n"
        "\n"
        "dan  1 → 1.167\n"
        "  center  0 → 1.167, as above\n"
        "  weigh  1 → 0\n"
        "    It: passed, with another weight\n"
        "\n"
        "6 of 6 grades changed\n"
    )


def test_equal_changes_are_told_as_one_number(cold_grader: Grader, tmp_path: Path) -> None:
    names = [f"student{n:02}" for n in range(11)]
    failed = [with_test(grade_of(n, 0, 1), "failed", points=0) for n in names]
    old = write(tmp_path / "old", *failed)
    new = write(tmp_path / "new", *(grade_of(n, 1.17, 1) for n in names))
    told = diff(cold_grader, old, new)
    assert told.startswith("center: It: failed → passed for 11 students, +1.17 each\n")
    assert told.endswith("11 of 11 grades changed\n")


def test_a_corrected_student_is_listed_alone_too(cold_grader: Grader, tmp_path: Path) -> None:
    folder = regraded(tmp_path / "out")
    with open_gradebook(folder, "tiny") as book:
        correct(book, "ada", Adjustment("center", 0.5, "a faulty test"))
    told = diff(cold_grader, folder)
    assert "for 5 students" in told
    assert "ada  1.5 → 2.667\n" in told
    assert "still counts on top (a faulty test)" in told


def test_points_that_moved_from_one_exercise_to_another_are_a_change(
    cold_grader: Grader, tmp_path: Path
) -> None:
    old = write(tmp_path / "old", grade_of("ada", 2, 1))
    new = write(tmp_path / "new", grade_of("ada", 1, 2))
    told = diff(cold_grader, old, new)
    assert "no grade changed" not in told
    assert "ada  3 → 3\n  center  2 → 1\n  weigh  1 → 2\n" in told


def test_a_table_to_mail_from_has_a_line_for_each_student(
    cold_grader: Grader, tmp_path: Path
) -> None:
    folder = regraded(tmp_path / "out")
    told = diff(cold_grader, folder, "--csv", tmp_path / "mail.csv")
    assert told.endswith(f"{tmp_path / 'mail.csv'}\n")
    lines = (tmp_path / "mail.csv").read_text("utf-8").splitlines()
    assert lines[:2] == [
        "student,id,name,email,before,after,change,reasons",
        "ada,s-ada,Ada,ada@x.edu,1,2.167,1.167,center 0 → 1.167 (It: failed → passed)",
    ]
    assert lines[4].startswith(
        'dan,s-dan,Dan,dan@x.edu,1,1.167,0.167,"center 0 → 1.167 (It: failed '
    )
    assert "); weigh 1 → 0 (It: " in lines[4]
    assert diff(cold_grader, folder, "--csv", "-").splitlines() == lines
    hidden = diff(cold_grader, folder, "--csv", "-", "--anonymous")
    assert not re.search("ada|x.edu", hidden)
    ran = cold_grader("diff", folder, "--csv", "-", "--json", "--course", TINY)
    assert (ran.code, "exclude each other" in ran.err) == (2, True)


# --- what counts as a change ---------------------------------------------------------------------


def rows(grade: Grade, *adjustments: Adjustment) -> dict[str, Row]:
    """One student's row, by student."""
    return {grade.student: Row(grade.student, grade, Person(), adjustments)}


def test_a_test_that_only_weighs_otherwise_is_not_listed() -> None:
    before = with_test(grade_of("ada", 2, 1), "passed", points=2.0, max=2.0)
    after = with_test(grade_of("ada", 1, 1), "passed", points=1.0, max=1.0)
    (ada,) = changes(rows(before), rows(after)).students
    (center,) = ada.exercises
    assert (center.tests, center.reweighted) == ((), True)


def test_a_test_that_fails_and_costs_nothing_any_more_is_listed() -> None:
    before = with_test(grade_of("ada", 0, 1), "failed", points=0)
    after = with_test(grade_of("ada", 2, 1), "failed", points=2.0)
    (ada,) = changes(rows(before), rows(after)).students
    (test,) = ada.exercises[0].tests
    assert (test.before, test.after, ada.exercises[0].reweighted) == ("failed", "failed", False)


def test_a_correction_that_makes_up_for_the_difference_is_no_change() -> None:
    corrected = rows(grade_of("ada", 1, 1), Adjustment("center", 1, "typo"))
    assert changes(corrected, rows(grade_of("ada", 2, 1))).students == ()


def test_points_that_became_unknown_are_a_change() -> None:
    fault = grade_of("ada", 0, 0, status="grader_error")
    (ada,) = changes(rows(grade_of("ada", 2, 1)), rows(fault)).students
    assert (ada.before, ada.after, ada.exercises) == (3, None, ())


# --- without names -------------------------------------------------------------------------------


def test_an_anonymous_list_has_no_names_no_messages_and_no_reasons(
    cold_grader: Grader, tmp_path: Path
) -> None:
    message = "ada.py line 3 raised ValueError"
    old = write(tmp_path / "old", with_test(grade_of("ada", 0, 1), "failed", message=message))
    new = write(tmp_path / "new", grade_of("ada", 2, 1), grade_of("bob", 2, 1))
    with open_gradebook(new, "tiny") as book:
        correct(book, "ada", Adjustment("center", 0.5, "ada was ill"))
    for told in (
        diff(cold_grader, old, new, "--anonymous"),
        diff(cold_grader, old, new, "--anonymous"),
    ):
        found = re.findall(r"student-[0-9a-f]{6}", told)
        assert len(set(found)) == 2
        assert not re.search("ada|bob|line 3", told)
        assert "It: failed → passed" in told
        assert "corrected by +0.5\n" in told
    as_json = diff(cold_grader, old, new, "--anonymous", "--json")
    assert set(found) == set(re.findall(r"student-[0-9a-f]{6}", as_json))
    assert not re.search("ada|bob|line 3", as_json)


def test_pseudonyms_are_stable_differ_and_need_the_salt() -> None:
    names = [f"student {n}" for n in range(20_000)]  # so many that some begin alike
    first = pseudonyms(names, "salt")
    assert len(set(first.values())) == len(names)
    assert pseudonyms(reversed(names), "salt") == first
    assert pseudonyms(names[:1], "another salt")[names[0]] != first[names[0]]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folders", "told"),
    [
        (["old"], "was never regraded: name the gradebook to compare it with"),
        (["old", "nowhere"], "there is no gradebook in"),
        (["old", "old", "old"], "name one gradebook or two, not 3"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    cold_grader: Grader, tmp_path: Path, folders: list[str], told: str
) -> None:
    write(tmp_path / "old", grade_of("ada", 2, 1))
    ran = cold_grader("diff", *(tmp_path / name for name in folders), "--course", TINY)
    assert (ran.code, told in ran.err, ran.err.count("\n")) == (2, True, 1)
    assert not (tmp_path / "nowhere").exists()
