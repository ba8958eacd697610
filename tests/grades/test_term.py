"""`grader term`: one sheet from the gradebooks of a term."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.grades.gradebook import existing_gradebook, open_gradebook
from grader.grades.term import Part, extensions_csv, part_of, term
from grader.intake import Roster, Submission
from grader.records.decisions import Decision
from grader.records.lateness import Counts, Policy
from grader.records.rows import Person
from grader.wire import SourceText
from tests.conftest import Grader
from tests.grades.test_gradebook import EXERCISES, grade_of
from tests.support.places import TINY

DUE = datetime(2026, 10, 1, 22, 59, tzinfo=UTC)
PEOPLE = {name: Person(f"s{k}", name.title()) for k, name in enumerate(("ada", "bob", "cleo"))}
Class = Mapping[str, tuple[float, float, float]]  # points of two exercises, hours after due


def assignment(
    folder: Path, number: int, students: Class, *, roster: bool = True, by: str = "us"
) -> Path:
    """Write a gradebook of the assignment with this number, due each week."""
    due = DUE + timedelta(weeks=number)
    with open_gradebook(folder / f"ps{number}", "tiny") as book:
        for name, (*points, hours) in students.items():
            when = f"{due + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"
            grade = msgspec.structs.replace(grade_of(name, *points), submitted=when)
            book.record(grade, Submission(name, (SourceText("a.py", (name,)),)))
        if roster:
            book.set_people(PEOPLE)
            book.roster = Roster(tuple(PEOPLE.values()))
        book.exercises, book.assignment = EXERCISES, f"ps{number}"
        book.policy = Policy(due, by, "10% a day" if by == "us" else "")  # type: ignore[arg-type]
        book.write_files()
    return folder / f"ps{number}"


@pytest.fixture
def gradebooks(tmp_path: Path) -> list[Path]:
    """Three assignments of at most four points each."""
    return [
        assignment(tmp_path, 1, {"ada": (2, 2, -1), "bob": (1, 1, 30), "cleo": (2, 1, -1)}),
        assignment(tmp_path, 2, {"ada": (2, 1, 5), "bob": (2, 2, -1), "cleo": (1, 0, 50)}),
        assignment(tmp_path, 3, {"ada": (1.333, 0, -1), "cleo": (2, 2, -1)}),
    ]


@pytest.fixture
def sheet(cold_grader: Grader, gradebooks: list[Path]) -> Callable[..., dict[str, dict[str, str]]]:
    """The lines of the sheet, by student."""

    def run(*options: str) -> dict[str, dict[str, str]]:
        ran = cold_grader(
            "term", *gradebooks, *options, "--out", "-", "--course", TINY / "exercises"
        )
        assert ran.code == 0, ran.err
        return {line["student"]: line for line in csv.DictReader(io.StringIO(ran.out))}

    return run


def test_three_students_terms_that_were_worked_out_on_paper(sheet) -> None:  # type: ignore[no-untyped-def]
    found = sheet()
    # Ada: 4/4; 3 of 4, five hours late: 3 - 0.3 = 2.7; 1.333/4.
    # (1 + 0.675 + 0.33325) / 3 = 0.669417
    assert found["ada"]["ps2"] == "2.7"
    assert found["ada"]["term_percent"] == "66.942"
    # Bob: 2 of 4, thirty hours late: 2 - 0.4 = 1.6; 4/4; absent: (0.4 + 1 + 0) / 3 = 0.466667
    assert found["bob"]["term_percent"] == "46.667"
    # Cleo: 3/4; 1 of 4, fifty hours late: 1 - 0.3 = 0.7; 4/4: (0.75 + 0.175 + 1) / 3 = 0.641667
    assert found["cleo"]["term_percent"] == "64.167"


def test_weights_and_the_lowest_dropped(sheet) -> None:  # type: ignore[no-untyped-def]
    found = sheet("--drop", "1", "--weight", "ps3=2")
    # Ada without ps3 (33.3 %): (1 + 0.675) / 2. Bob without ps3: (0.4 + 1) / 2.
    # Cleo without ps2: (0.75 + 2 * 1) / 3 = 0.916667
    assert {name: line["term_percent"] for name, line in found.items()} == {
        "ada": "83.75",
        "bob": "70",
        "cleo": "91.667",
    }
    assert [line["dropped"] for line in found.values()] == ["ps3", "ps3", "ps2"]


def test_what_is_excused_is_left_out_with_its_weight(sheet, gradebooks: list[Path]) -> None:  # type: ignore[no-untyped-def]
    with existing_gradebook(gradebooks[2], "tiny") as book:
        book.decide([Decision("bob", "excused", text="ill")])
    line = sheet("--weight", "ps3=7")["bob"]
    assert (line["term_percent"], line["excused"], line["ps3"]) == ("70", "ps3", "")


def test_free_days_span_the_term_and_are_used_in_the_order_of_due_times(sheet) -> None:  # type: ignore[no-untyped-def]
    found = sheet("--free-days", "2")
    # Bob needs two days for ps1 (30 hours): 2/4, and has none left. Ada needs one day for ps2.
    # Cleo needs three days for ps2 (50 hours); two of them leave a day: 1 - 0.1 = 0.9.
    assert {n: (x["free_days_used"], x["free_days_left"]) for n, x in found.items()} == {
        "ada": ("1", "1"), "bob": ("2", "0"), "cleo": ("2", "0"),
    }  # fmt: skip
    assert (found["ada"]["ps2"], found["bob"]["ps1"], found["cleo"]["ps2"]) == ("3", "2", "0.9")


def test_free_days_become_extensions_and_are_not_used_twice(  # type: ignore[no-untyped-def]
    sheet, cold_grader: Grader, gradebooks: list[Path], tmp_path: Path
) -> None:
    with existing_gradebook(gradebooks[1], "tiny") as book:  # cleo has a day for another reason
        later = DUE + timedelta(weeks=2, days=1)
        book.decide(
            [Decision("cleo", "extension", until=f"{later:%Y-%m-%dT%H:%M:%SZ}", text="ill")]
        )
    course = tmp_path / "course"
    course.mkdir()
    names = "".join(f'[[assignment]]\nname = "ps{n}"\nexercises = ["basics"]\n' for n in (1, 2, 3))
    (course / "course.toml").write_text(f'overlay = "{TINY / "exercises"}"\n{names}', "utf-8")
    file = tmp_path / "free.csv"
    before = sheet("--free-days", "2", "--extensions", str(file))
    assert before["cleo"]["ps2"] == "1"
    for folder in gradebooks:
        ran = cold_grader("extend", folder, "--from", file, "--course", course)
        assert ran.code == 0, ran.err
    assert sheet("--free-days", "2") == before
    with existing_gradebook(gradebooks[1], "tiny") as book:
        assert {row.student: row.total for row in book.rows()} == {"ada": 3, "bob": 4, "cleo": 1}


def test_students_are_matched_by_what_is_known_of_them(cold_grader: Grader, tmp_path: Path) -> None:
    first = assignment(tmp_path, 1, {"doejane": (2, 2, -1)}, roster=False)
    second = assignment(tmp_path, 2, {"40077": (1, 1, -1)}, roster=False)
    for folder, name in ((first, "doejane"), (second, "40077")):
        with existing_gradebook(folder, "tiny") as book:
            book.set_people({name: Person("40077", "Jane Doe", canvas="7")})
    ran = cold_grader("term", first, second, "--out", "-", "--course", TINY / "exercises")
    (line,) = csv.DictReader(io.StringIO(ran.out))
    assert (line["student"], line["ps1"], line["ps2"], line["term_percent"]) == (
        "40077", "4", "2", "75",
    )  # fmt: skip


def test_a_doubt_about_who_is_who_is_refused_with_both_names(
    cold_grader: Grader, tmp_path: Path
) -> None:
    first = assignment(tmp_path, 1, {"jane": (2, 2, -1), "j.doe": (1, 1, -1)}, roster=False)
    second = assignment(tmp_path, 2, {"40077": (1, 1, -1)}, roster=False)
    people = {"jane": Person("40077"), "j.doe": Person("", "", "j@x.edu")}
    with existing_gradebook(first, "tiny") as book:
        book.set_people(people)
    with existing_gradebook(second, "tiny") as book:
        book.set_people({"40077": Person("40077", "", "j@x.edu")})
    ran = cold_grader("term", first, second, "--course", TINY / "exercises")
    assert (ran.code, "40077 in ps2 may be j.doe or jane" in ran.err) == (2, True)


def test_who_is_absent_unknown_or_gone_is_named(
    cold_grader: Grader, gradebooks: list[Path], tmp_path: Path
) -> None:
    with existing_gradebook(gradebooks[0], "tiny") as book:
        book.record(grade_of("eve", 2, 2))
        book.record(grade_of("cleo", 0, 0, status="grader_error"))
    ran = cold_grader("term", *gradebooks, "--course", TINY / "exercises")
    assert ran.code == 0
    assert "not in the sheet, since no longer on the roster: eve" in ran.out
    assert "ps3: absent, counts 0: bob Bob" in ran.out
    assert "ps1: the points are not known, so the term has no percentage: cleo Cleo" in ran.out
    assert "3 students" in ran.out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--weight", "ps9=2"), "there is no gradebook called ps9"),
        (("--weight", "ps1=much"), "write a name and a number, such as ps3=2"),
        (("--weight", "ps1=-1"), "write a name and a number"),
        (("--anonymous", "--extensions", "x.csv"), "needs the students' names"),
        (("--json", "--out", "-"), "exclude each other"),
        (("--drop", "-1"), "--drop"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    cold_grader: Grader, gradebooks: list[Path], options: tuple[str, ...], told: str
) -> None:
    ran = cold_grader("term", *gradebooks, *options, "--course", TINY / "exercises")
    assert (ran.code, told in ran.err) == (2, True), ran.err


def test_the_same_gradebook_twice_is_refused(cold_grader: Grader, gradebooks: list[Path]) -> None:
    ran = cold_grader("term", gradebooks[0], gradebooks[0], "--course", TINY / "exercises")
    assert (ran.code, "are both called ps1" in ran.err) == (2, True)


def test_the_sheet_may_have_no_names(sheet) -> None:  # type: ignore[no-untyped-def]
    named, nameless = sheet(), sheet("--anonymous")
    assert all(name.startswith("student-") for name in nameless)
    assert not {"id", "name", "email"} & nameless[next(iter(nameless))].keys()
    assert sorted(line["term_percent"] for line in named.values()) == sorted(
        line["term_percent"] for line in nameless.values()
    )


def test_late_work_that_the_learning_platform_punishes_is_named(
    cold_grader: Grader, tmp_path: Path
) -> None:
    folder = assignment(tmp_path, 1, {"ada": (2, 2, 30)}, by="lms")
    ran = cold_grader("term", folder, "--course", TINY / "exercises")
    assert "ps1: late, in full here, since the learning platform subtracts: ada Ada" in ran.out


# --- free days, once more ------------------------------------------------------------------------


def of_ada(folder: Path, counts: Counts, *submissions: tuple[float, float]) -> Path:
    """A gradebook in which ada submitted several times: points, hours after the due time."""
    with open_gradebook(folder / "ps1", "tiny") as book:
        book.exercises, book.assignment = EXERCISES, "ps1"
        book.policy = Policy(DUE, "us", "10% a day", counts=counts)
        for points, hours in submissions:
            when = DUE + timedelta(hours=hours)
            written = f"{when:%Y-%m-%dT%H:%M:%SZ}"
            grade = msgspec.structs.replace(grade_of("ada", points, points), submitted=written)
            text = SourceText("a.py", (f"at {hours}",))
            book.record(grade, Submission("ada", (text,), submitted=when))
    return folder / "ps1"


def granted(folder: Path, days: int) -> tuple[float | None, int]:
    """The percentage of ada's term, and the days used, after the sheet's extensions are given."""
    with existing_gradebook(folder, "tiny") as book:
        parts = [part_of(book, "ps1", 1, days)]
        for line in csv.DictReader(io.StringIO(extensions_csv(term(parts, 0, days), parts))):
            removed, until = line["until"] == "none", line["until"]
            book.decide(
                [Decision("ada", "extension", until=until, text=line["reason"], removed=removed)]
            )
        (row,) = book.rows()
        again = term([part_of(book, "ps1", 1, days)], 0, days)
    (member,) = again.members
    assert row.total is not None
    assert member.percent == pytest.approx(row.total / 4 * 100, abs=0.001)
    return member.percent, member.free_days_used


def test_a_free_day_that_would_let_a_worse_submission_count_is_not_used(tmp_path: Path) -> None:
    # In time after a day, the first submission would count: 25 %. Without it: 80 %, two days late.
    folder = of_ada(tmp_path, "last in time", (0.5, 5), (2, 30))
    assert granted(folder, 1) == (80, 0)


def test_free_days_are_for_the_submission_that_counts_with_them(tmp_path: Path) -> None:
    # The first with no day: 3.1 - 0.31 = 2.79; the second with two days: 3.48.
    folder = of_ada(tmp_path, "best", (1.55, 10), (1.74, 40))
    assert granted(folder, 2) == (87, 2)
    assert granted(folder, 2) == (87, 2)


def test_days_that_an_earlier_assignment_needs_later_are_taken_back(  # type: ignore[no-untyped-def]
    sheet, cold_grader: Grader, gradebooks: list[Path], tmp_path: Path
) -> None:
    course = tmp_path / "course"
    course.mkdir()
    names = "".join(f'[[assignment]]\nname = "ps{n}"\nexercises = ["basics"]\n' for n in (1, 2, 3))
    (course / "course.toml").write_text(f'overlay = "{TINY / "exercises"}"\n{names}', "utf-8")
    file = tmp_path / "free.csv"

    def grant() -> None:
        sheet("--free-days", "1", "--extensions", str(file))
        for folder in gradebooks:
            ran = cold_grader("extend", folder, "--from", file, "--course", course)
            assert (ran.code == 0) or "nothing to write" in ran.err, ran.err

    grant()
    with existing_gradebook(gradebooks[1], "tiny") as book:
        assert {row.student: row.total for row in book.rows()}["ada"] == 3
    with existing_gradebook(gradebooks[0], "tiny") as book:  # ps1 was late, after all
        late = f"{DUE + timedelta(weeks=1, hours=5):%Y-%m-%dT%H:%M:%SZ}"
        book.record(msgspec.structs.replace(grade_of("ada", 2, 2), submitted=late))
    grant()
    with existing_gradebook(gradebooks[1], "tiny") as book:
        assert {row.student: row.total for row in book.rows()}["ada"] == 2.7


def test_a_mark_without_a_time_uses_no_free_day(tmp_path: Path) -> None:
    folder = of_ada(tmp_path, "last", (2, 5))
    with existing_gradebook(folder, "tiny") as book:
        book.policy = Policy(DUE, "us", "20%")
        book.record(msgspec.structs.replace(grade_of("ada", 2, 2), late=True))
        (member,) = term([part_of(book, "ps1", 1, 3)], 0, 3).members
    assert (member.percent, member.free_days_used) == (80, 0)


def test_who_left_is_not_in_the_sheet_also_if_everybody_else_submitted(
    cold_grader: Grader, gradebooks: list[Path]
) -> None:
    with existing_gradebook(gradebooks[0], "tiny") as book:
        book.record(grade_of("eve", 2, 2))
    with existing_gradebook(gradebooks[2], "tiny") as book:
        book.record(grade_of("bob", 2, 2))
    ran = cold_grader("term", *gradebooks, "--course", TINY / "exercises")
    assert "not in the sheet, since no longer on the roster: eve" in ran.out


def test_a_share_is_by_the_students_own_maximum(tmp_path: Path) -> None:
    with open_gradebook(tmp_path / "ps1", "tiny") as book:
        book.exercises = EXERCISES
        book.record(msgspec.structs.replace(grade_of("ada", 2, 0), max=2.0))
        book.record(grade_of("bob", 2, 2))
        found = term([part_of(book, "ps1", 1, 0)])
    assert [one.percent for one in found.members] == [100, 100]


def test_the_sheet_replaces_no_device_and_no_pipe(
    cold_grader: Grader, gradebooks: list[Path], tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ran = cold_grader("term", *gradebooks, "--out", pipe, "--course", TINY / "exercises")
    assert (ran.code, "cannot be written: it is no plain file" in ran.err) == (2, True)
    assert pipe.is_fifo()


# --- properties ----------------------------------------------------------------------------------

results = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-30, 100))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({"ada": results, "bob": results}), min_size=2, max_size=3),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_free_days_help_and_granting_them_changes_nothing(
    classes: list[Class], drop: int, days: int
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folders = [assignment(Path(place), n, one) for n, one in enumerate(classes)]

        def parts() -> list[Part]:
            found = []
            for n, folder in enumerate(folders):
                with existing_gradebook(folder, "tiny") as book:
                    found.append(part_of(book, f"ps{n}", 1, days))
            return found

        plain, freed = term(parts(), drop), term(parts(), drop, days)
        for one, other in zip(plain.members, freed.members, strict=True):
            assert 0 <= (one.percent or 0) <= (other.percent or 0) <= 100
            assert other.free_days_used + other.free_days_left == days
        for line in csv.DictReader(io.StringIO(extensions_csv(freed, parts()))):
            with existing_gradebook(folders[int(line["assignment"][2:])], "tiny") as book:
                until, why = line["until"], line["reason"]
                book.decide([Decision(line["student"], "extension", until=until, text=why)])
        again = term(parts(), drop, days)
        assert [one.percent for one in again.members] == [one.percent for one in freed.members]
        assert extensions_csv(again, parts()) == extensions_csv(freed, parts())
