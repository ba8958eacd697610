"""Canvas's API: a class is fetched and its grades are pushed, with a server that often fails."""

from __future__ import annotations

import io
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.grades.gradebook import FEEDBACK, feedback_names, open_gradebook
from grader.intake import read_roster
from grader.lms.canvas import user_of
from grader.records.faults import Unreachable
from grader.records.rows import Person
from tests.conftest import Grader
from tests.support import canvas_server
from tests.support.canvas_server import ASSIGNMENT, COURSE, TOKEN, Canvas
from tests.support.gradebooks import EXERCISES, grade, mistaken, solved, untouched
from tests.support.places import ROOT, TINY

PLACE = (str(COURSE), str(ASSIGNMENT))
FETCH = ("canvas", "fetch", *PLACE, "--out")
STUDENTS = 40


@pytest.fixture
def canvas(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canvas]:
    with canvas_server.served() as canvas:
        monkeypatch.setenv("CANVAS_URL", canvas.url)
        monkeypatch.setenv("CANVAS_TOKEN", TOKEN)
        yield canvas


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds for which commands would have waited."""
    waited: list[float] = []
    monkeypatch.setattr("grader.lms.canvas_api.sleep", waited.append)
    return waited


def enrol_class(canvas: Canvas, count: int = STUDENTS) -> list[int]:
    letters = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(count)]
    return [
        canvas.enrol(
            f"Ann X{two}", f"X{two}, Ann", ("basics.py", f"def center(): ... # {two}\n".encode())
        )
        for two in letters
    ]


def write_book(folder: Path, users: list[int], *, points: float = 0.5) -> None:
    """A gradebook of these students, with pages."""
    with open_gradebook(folder, "tiny") as book:
        book.exercises = EXERCISES
        for n, user in enumerate(users):
            center = solved("center") if n % 2 else mistaken("center", points=points)
            book.record(grade(f"student{user}", center, solved("weigh")))
        book.set_people({f"student{user}": Person(canvas=str(user)) for user in users})
        write_pages(folder, "one")


def write_pages(folder: Path, words: str) -> None:
    (folder / FEEDBACK).mkdir(exist_ok=True)
    with open_gradebook(folder, "tiny") as book:
        for student, name in feedback_names(book.rows()).items():
            (folder / FEEDBACK / name).write_text(f"<p>{student}, {words}</p>", "utf-8")


def push(*more: str) -> tuple[str | Path, ...]:
    return ("canvas", "push", "book", *PLACE, "--course", TINY, *more)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- fetching ------------------------------------------------------------------------------------


def test_a_class_is_fetched_over_pages_pauses_and_cuts_every_file_once_and_whole(
    canvas: Canvas, here: Path, cold_grader: Grader, pauses: list[float]
) -> None:
    users = enrol_class(canvas)
    canvas.fail("GET", "/submissions", "429")
    canvas.fail("GET", "bookmark", "403")
    canvas.fail("GET", "search_users", "half")
    canvas.fail("GET", "sections", "502")
    canvas.fail("GET", "/kept/70020", "half", times=3)
    stopped = cold_grader(*FETCH, "ps1")
    assert stopped.code == 3
    assert "run the same command again" in stopped.err
    assert "waiting for 7 s" in stopped.err
    assert pauses[0] == 7
    written = {path.name for path in (here / "ps1" / "submissions").iterdir()}
    assert len(written) == 39, "the cut file is not there at all, and those after it are"
    assert "basics.py is missing" in stopped.err
    assert (here / "ps1" / "roster.csv").exists()
    done = cold_grader(*FETCH, "ps1")
    assert (done.code, done.err) == (0, "")
    assert "1 file fetched, 39 here already" in done.out
    folder = here / "ps1" / "submissions"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"x{chr(97 + n // 26)}{chr(97 + n % 26)}ann_{user}_{70_000 + n}_basics.py": canvas.files[
            70_000 + n
        ]
        for n, user in enumerate(users)
    }
    kept = [path for path, _ in canvas.foreign]
    assert sorted(kept) == sorted([f"/kept/{70_000 + n}" for n in range(40)] + 3 * ["/kept/70020"])
    assert {authorization for _, authorization in canvas.foreign} == {None}


def test_the_printed_command_reads_what_was_fetched(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    enrol_class(canvas, 3)
    canvas.enrol("Zoë Absent", "Absent, Zoë")
    done = cold_grader(*FETCH, "my ps1")
    command = shlex.split(done.out.splitlines()[-1])
    assert command[:3] == ["grader", "grade", "my ps1/submissions"]
    listed = cold_grader(*command[1:], "--course", TINY, "--dry-run")
    assert "a download from Canvas: 3 submissions" in listed.err + listed.out
    assert "s1003 Zoë Absent" in listed.err + listed.out
    roster = read_roster(here / "my ps1" / "roster.csv")
    assert roster.people[0] == Person(
        "s1000",
        "Ann Xaa",
        "1000@example.edu",
        "1000",
        login="login1000",
        extra={"login": "login1000", "section": "Lab 1"},
    )
    assert roster.find(Person(canvas="1002"), "somebody") == "s1002"
    times = (here / "my ps1" / "times.csv").read_text("utf-8")
    assert times.splitlines()[:2] == ["canvas id,time", "1000,2026-11-20T10:00:00Z"]


def test_only_the_newest_attempt_is_kept(canvas: Canvas, here: Path, cold_grader: Grader) -> None:
    user = canvas.enrol("Ada Lovelace", "Lovelace, Ada", ("old.py", b"x = 1\n"))
    assert cold_grader(*FETCH, "ps1").code == 0
    canvas.submissions[user]["attachments"] = [canvas.attach("new.py", b"x = 2\n")]
    canvas.submissions[user]["late"] = True
    (here / "ps1" / "submissions" / "notes.txt").write_text("my own", "utf-8")
    done = cold_grader(*FETCH, "ps1")
    assert "1 file fetched, 0 here already, 1 of earlier attempts removed" in done.out
    names = sorted(path.name for path in (here / "ps1" / "submissions").iterdir())
    assert names == [f"lovelaceada_LATE_{user}_70001_new.py", "notes.txt"]


def test_nothing_leaves_the_folder_and_nothing_large_is_fetched(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    name = "../../../\x1b[2J" + "long" * 100 + ".py"
    user = canvas.enrol("../evil", "../", (name, b"x = 1\n"), ("..", b"y"))
    large = canvas.attach("film.mp4", b"")
    large["size"] = 5 * 2**20
    canvas.submissions[user]["attachments"] += [large, canvas.attach("gone.py", b"1") | {"url": ""}]
    done = cold_grader(*FETCH, "ps1")
    assert done.code == 0
    assert f"{user} ../evil: film.mp4 is left out: it is larger than 4 MiB" in done.err
    assert "gone.py is left out" in done.err
    assert sorted(path.name for path in here.iterdir()) == ["ps1"]
    first, second = sorted((here / "ps1" / "submissions").iterdir())
    assert first.name.startswith(f"_{user}_70000_..-..-..-")
    assert first.suffix == ".py"
    assert first.name.isprintable()
    assert second.name == f"_{user}_70001_file"


def test_typed_text_groups_and_the_test_student(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    typed = {"submission_type": "online_text_entry", "body": "<p>x = 1</p>"}
    ada = canvas.enrol("Ada", "Ada", submitted_at="2026-11-20T10:00:00Z", **typed)
    link = {"submission_type": "online_url", "url": "https://example.edu/<x>"}
    bob = canvas.enrol("Bob", "Bob", **link)
    canvas.enrol("Test Student", "Student, Test", ("basics.py", b"x = 1\n"))
    shared = [canvas.attach("team.py", b"x = 1\n")]
    canvas.enrol("Dan", "Dan", attachments=shared)
    canvas.enrol("Eve", "Eve", attachments=shared)
    canvas.assignment["group_category_id"] = 9
    dan, eve = canvas.users[3:]
    canvas.groups += [
        {"id": 1, "name": "Team 1", "group_category_id": 9, "users": [dan, eve]},
        {"id": 2, "name": "Other", "group_category_id": 8, "users": [dan]},
    ]
    assert cold_grader(*FETCH, "ps1").code == 0
    names = sorted(path.name for path in (here / "ps1" / "submissions").iterdir())
    assert names == [
        f"ada_{ada}_text.html", f"bob_{bob}_link.html", f"dan_{dan['id']}_70001_team.py"
    ]  # fmt: skip
    roster = read_roster(here / "ps1" / "roster.csv")
    assert roster.groups == {"team1": (f"s{dan['id']}", f"s{eve['id']}")}
    assert len(roster.people) == 4


def test_a_folder_of_something_else_stays(canvas: Canvas, here: Path, cold_grader: Grader) -> None:
    enrol_class(canvas, 1)
    (here / "roster.csv").write_text("mine", "utf-8")
    refused = cold_grader(*FETCH, ".")
    assert refused.code == 2
    assert (here / "roster.csv").read_text("utf-8") == "mine"
    assert cold_grader(*FETCH, "ps1").code == 0
    (here / "ps1" / "canvas.json").write_text('{"url": "https://other"}', "utf-8")
    assert "holds another assignment" in cold_grader(*FETCH, "ps1").err


def test_a_classmates_number_as_id_or_name_takes_nobodys_time(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    for n in range(3):
        time = f"2026-11-2{n}T10:00:00Z"
        files = (f"{n}.py", f"def center(): ... # {n}\n".encode())
        canvas.enrol(f"Ann {n}", f"{n}, Ann", files, submitted_at=time)
    canvas.users[0] |= {"sis_user_id": "1001", "name": "s1001"}
    canvas.users[1] |= {"login_id": "1002"}
    done = cold_grader(*FETCH, "ps1")
    command = shlex.split(done.out.splitlines()[-1])
    assert cold_grader(*command[1:], "--course", TINY, "--dry-run").code == 0


def test_a_student_called_anon_and_one_without_a_name_are_known_by_their_numbers(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = [canvas.enrol(name, name, ("basics.py", b"x = 1\n")) for name in ("Anon", "?")]
    canvas.submissions[users[0]]["late"] = True
    assert cold_grader(*FETCH, "ps1").code == 0
    names = sorted(path.name for path in (here / "ps1" / "submissions").iterdir())
    assert [user_of(name) for name in names] == [str(user) for user in reversed(users)]


SUBMISSIONS = f"courses/{COURSE}/assignments/{ASSIGNMENT}/submissions"


def test_texts_that_look_like_dates_and_odd_fields_are_no_errors(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    enrol_class(canvas, 1)
    typed = {"submission_type": "online_text_entry", "body": "0001-01-01T00:00:00+05:00"}
    canvas.enrol("Bob \ud800", "Bob", **typed)
    canvas.enrol("99991231T235959-0500", "Cleo", ("99991231T235959-0500", b"x = 1\n"))
    dan = canvas.enrol("Dan", "Dan", attachments=None, submission_comments=None)
    canvas.users[3] |= {"enrollments": None, "sis_user_id": 4711, "id": str(dan)}
    canvas.submissions[dan] |= {"user_id": str(dan)}
    assert cold_grader(*FETCH, "ps1").code == 0
    assert len([*(here / "ps1" / "submissions").iterdir()]) == 3
    assert read_roster(here / "ps1" / "roster.csv").people[3].id == "4711"
    write_book(here / "book", [dan])
    assert cold_grader(*push("--yes")).code == 0
    assert canvas.graded == [(dan, "2.5")]


def test_a_record_that_cannot_be_read_is_named_and_the_others_are_fetched(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 2)
    canvas.submissions[users[0]]["attachments"] = 5
    done = cold_grader(*FETCH, "ps1")
    assert done.code == 0
    assert f"the entry {users[0]} has an unknown form" in done.err
    assert len([*(here / "ps1" / "submissions").iterdir()]) == 1


@pytest.mark.parametrize(
    "answer",
    [b"5", b"null", b'"x"', b"[5]", b"<html>login</html>", b"", b"\xff", b"[" * 100_000,
     b'{"id": NaN}', b'{"a": 1}', b"9" * 5000],
)  # fmt: skip
def test_an_answer_of_an_unknown_form_is_one_line(
    canvas: Canvas, here: Path, cold_grader: Grader, answer: bytes
) -> None:
    enrol_class(canvas, 1)
    write_book(here / "book", [1000])
    for path in (SUBMISSIONS, SUBMISSIONS.rpartition("/")[0]):
        canvas.raw = {path: answer}
        for ran in (cold_grader(*FETCH, "ps1"), cold_grader(*push("--yes"))):
            assert ran.code == 3
            assert "gave an answer of an unknown form" in ran.err.splitlines()[-1]
            assert len(ran.err) < 1000


@pytest.mark.parametrize("more", ["/x?page=1", "http://[", "http://127.0.0.1:99999/x", "//h:p/"])
def test_pages_that_never_end_or_have_no_address_are_one_line(
    canvas: Canvas, here: Path, cold_grader: Grader, more: str
) -> None:
    address = canvas.url + f"/api/v1/{SUBMISSIONS}" if more.startswith("/x") else more
    canvas.raw = {SUBMISSIONS: b"[]"}
    canvas.headers = {"Link": f'<{address}>; rel="next"'}
    stopped = cold_grader(*FETCH, "ps1")
    assert (stopped.code, len(stopped.err.splitlines())) == (3, 1)
    assert len(canvas.asked) < 5


def test_an_attachment_that_cannot_be_fetched_keeps_no_other_back(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 5)
    odd = [canvas.submissions[user]["attachments"][0] for user in users]
    odd[0]["size"] += 1
    odd[1]["url"] = "http://127.0.0.1:1/dead"
    odd[2]["url"] = "http://files.example.edu/x"
    odd[3]["url"] = "https://[/x"
    done = cold_grader(*FETCH, "ps1")
    assert done.code == 3
    assert done.err.count("basics.py is missing") == 4
    assert "4 files could not be fetched" in done.err.splitlines()[-1]
    assert len([*(here / "ps1" / "submissions").iterdir()]) == 1
    assert (here / "ps1" / "times.csv").exists()


def test_a_fetch_stops_if_canvas_itself_answers_no_more(
    canvas: Canvas, here: Path, cold_grader: Grader, pauses: list[float]
) -> None:
    enrol_class(canvas)
    canvas.fail("GET", "/files/", "before", times=999)
    canvas.fail("GET", f"/assignments/{ASSIGNMENT}$", "before", times=999, skip=1)
    stopped = cold_grader(*FETCH, "ps1")
    assert stopped.code == 3
    assert "the assignment; ConnectionError" in stopped.err.splitlines()[-1]
    assert len(pauses) < 20


@pytest.mark.parametrize("place", ["http://[", "http://127.0.0.1:99999/", "http://127.0.0.1:x/"])
def test_an_odd_redirection_is_one_line(
    canvas: Canvas, here: Path, cold_grader: Grader, place: str
) -> None:
    (user,) = enrol_class(canvas, 1)
    write_book(here / "book", [user])
    canvas.moved = place
    stopped = cold_grader(*FETCH, "ps1")
    assert stopped.code == 3
    assert "basics.py is missing" in stopped.err
    stopped = cold_grader(*push("--feedback", "--yes"))
    assert stopped.code == 3
    assert "the upload of feedback-" in stopped.err.splitlines()[-1]


def test_a_draft_that_a_killed_fetch_left_is_no_content(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    enrol_class(canvas, 1)
    (here / "ps1").mkdir()
    (here / "ps1" / ".canvas.json.99999999").write_text("{", "utf-8")
    assert cold_grader(*FETCH, "ps1").code == 0


# --- pushing -------------------------------------------------------------------------------------


def test_every_grade_and_every_page_arrives_once_however_often_the_line_is_cut(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas)
    write_book(here / "book", users)
    one = "/submissions/{}$"
    canvas.fail("PUT", one.format(users[3]), "before")
    canvas.fail("PUT", one.format(users[5]), "after")
    canvas.fail("PUT", one.format(users[7]), "half")
    canvas.fail("PUT", one.format(users[8]), "403")
    canvas.fail("POST", "/upload", "after")
    canvas.fail("PUT", one.format(users[10]), "before", times=3)
    first = cold_grader(*push("--feedback", "--yes"))
    assert (first.code, len(canvas.graded)) == (3, 10)
    assert "run the same command again" in first.err
    # Cut off after the work, and no answer to the question whether it was done.
    canvas.fail("PUT", one.format(users[20]), "after")
    canvas.fail("GET", f"/{users[20]}[?]", "502", times=9, skip=1)
    second = cold_grader(*push("--feedback", "--yes"))
    assert (second.code, len(canvas.graded)) == (3, 21)
    third = cold_grader(*push("--feedback", "--yes"))
    assert third.code == 0
    assert "sent to 19 students" in third.out
    wanted = [(user, "4" if n % 2 else "2.5") for n, user in enumerate(users)]
    assert canvas.graded == wanted
    assert canvas.commented == [(user, f"<p>student{user}, one</p>") for user in users]
    assert "nothing was sent" in cold_grader(*push("--feedback", "--yes")).out
    assert canvas.graded == wanted


def test_a_new_grading_replaces_what_the_kit_wrote_and_a_persons_grade_stays(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 6)
    write_book(here / "book", users)
    canvas.submissions[users[0]] |= {"score": 3.75, "entered_score": 3.75}
    canvas.submissions[users[1]] |= {"excused": True}
    first = cold_grader(*push("--feedback", "--yes"))
    (line,) = (line for line in first.out.splitlines() if f"student{users[0]}" in line)
    assert line.split()[1:3] == ["3.75", "2.5"]
    assert "not from this gradebook: --overwrite NAME replaces it" in line
    assert "excused in Canvas" in first.out
    assert [user for user, _ in canvas.graded] == users[2:]
    assert [user for user, _ in canvas.commented] == users[2:]
    write_book(here / "book", users, points=1)
    write_pages(here / "book", "two")
    # A late penalty of Canvas's own is not a person's change.
    canvas.submissions[users[2]] |= {"score": 1.5, "points_deducted": 1.0}
    again = cold_grader(*push("--yes", "--overwrite", f"student{users[1]}"))
    assert "Canvas itself takes points off late work" in again.err
    assert canvas.graded[4:] == [(users[1], "4"), (users[2], "3"), (users[4], "3")]
    assert cold_grader(*push("--yes", "--overwrite-all", "--feedback")).code == 0
    assert canvas.graded[7:] == [(users[0], "3")]
    assert len(canvas.commented) == 10, "each student has each version of the page once"


def test_the_csv_and_the_api_know_each_others_grades(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 2)
    write_book(here / "book", users)
    assert cold_grader(*push("--yes")).code == 0
    write_book(here / "book", users, points=1)
    table = ["Student,ID,SIS User ID,SIS Login ID,Section,Homework (345)"]
    table += [f'"X, Ann",{user},,,,{grade}' for user, grade in canvas.graded]
    (here / "canvas.csv").write_text("\n".join(table), "utf-8")
    export = ("export", "book", "--to", "canvas", "--into", "canvas.csv", "--out", "up.csv")
    done = cold_grader(*export, "--column", "Homework", "--course", TINY)
    assert "1 row filled in" in done.err
    assert ",3\n" in (here / "up.csv").read_text("utf-8")
    write_book(here / "book", users, points=0.25)  # nobody imported the file
    assert cold_grader(*push("--yes")).code == 0
    assert canvas.graded[2:] == [(users[0], "2.25")]


def test_a_push_that_was_cut_before_its_grade_knows_the_grade_before_it(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    (user,) = enrol_class(canvas, 1)
    for points, code in ((0.5, 0), (1, 3), (0.25, 0)):
        write_book(here / "book", [user], points=points)
        canvas.fail("PUT", f"/{user}$", "before", times=3 if code else 0)
        assert cold_grader(*push("--yes")).code == code
    assert canvas.graded == [(user, "2.5"), (user, "2.25")]
    persons(canvas, user, score=2.5)  # the grade before the last is a person's wish now
    assert "not from this gradebook" in cold_grader(*push("--yes")).out


@pytest.mark.parametrize(("how", "done"), [("hang", 0), ("hang after", 1)])
def test_a_killed_push_goes_on_and_knows_which_grade_was_its_own(
    canvas: Canvas, here: Path, cold_grader: Grader, how: canvas_server.How, done: int
) -> None:
    users = enrol_class(canvas, 3)
    write_book(here / "book", users)
    canvas.fail("PUT", f"/{users[0]}$", how)
    command = [sys.executable, "-m", "grader", *push("--yes", "--feedback")]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        assert canvas.hanging.wait(60)
        process.kill()
    assert len(canvas.graded) == len(canvas.commented) == done
    canvas.released.set()
    assert cold_grader(*push("--dry-run")).code == 0
    write_book(here / "book", users, points=0.25)
    assert cold_grader(*push("--yes", "--feedback")).code == 0
    assert canvas.graded[:done] == [(users[0], "2.5")][:done]
    assert canvas.graded[done:] == [(users[0], "2.25"), (users[1], "4"), (users[2], "2.25")]
    assert sorted(user for user, _ in canvas.commented) == users


def test_dry_run_and_no_as_answer_send_nothing(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = enrol_class(canvas, 3)
    write_book(here / "book", users)
    canvas.assignment["points_possible"] = 10.0
    dry = cold_grader(*push("--feedback", "--dry-run"))
    assert dry.code == 0
    assert f"student{users[2]}" in dry.out
    assert "3 students would get something" in dry.out
    assert "Canvas has 10 points possible, and these grades have a maximum of 4" in dry.err
    monkeypatch.setattr("typer.confirm", lambda *_, **__: sys.exit(1))
    assert cold_grader(*push()).code == 1
    assert {request.split()[0] for request in canvas.asked} == {"GET"}


def test_no_grade_is_no_zero_and_an_excuse_is_sent(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 4)
    write_book(here / "book", users[:2])
    with open_gradebook(here / "book", "tiny") as book:
        empty = grade("finn", untouched("center"), status="empty", message="no file")
        book.record(empty)
        people = {"finn": Person(canvas=str(users[2])), "zoe": Person("none", "Zoe Nowhere")}
        book.set_people({**book.people(), **people})
    excuse = ("excuse", "book", f"student{users[1]}", "--reason", "ill", "--course", TINY)
    assert cold_grader(*excuse).code == 0
    done = cold_grader(*push("--yes"))
    assert done.code == 0
    assert canvas.graded == [(users[0], "2.5"), (users[1], "EX")]
    assert "no grade: empty" in done.out
    assert "in Canvas, but not in this gradebook: Ann Xad" in done.err


def test_a_grade_that_canvas_does_not_take_is_reported(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 2)
    write_book(here / "book", users)
    canvas.deaf = True
    canvas.assignment["group_category_id"] = 9
    done = cold_grader(*push("--yes"))
    assert done.code == 2
    assert "Canvas stored another grade than the one that was sent" in done.err
    assert "the same grade, the one that is sent last" in done.err


def test_one_refused_student_does_not_stop_the_others(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 3)
    write_book(here / "book", users)
    canvas.fail("PUT", f"/{users[1]}$", "400")
    done = cold_grader(*push("--yes"))
    assert done.code == 2
    assert "sent to 2 students" in done.out
    assert f"student{users[1]}: Canvas refused it" in done.err
    assert [user for user, _ in canvas.graded] == [users[0], users[2]]


def persons(canvas: Canvas, user: int, **changes: object) -> None:
    """A person changes a submission in Canvas."""
    score = changes.get("score")
    canvas.submissions[user] |= {"score": score, "entered_score": score, **changes}


def test_what_a_person_does_in_canvas_while_the_question_is_read_stays(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = enrol_class(canvas, 4)
    write_book(here / "book", users)

    def think(*_: object, **__: object) -> None:
        persons(canvas, users[0], score=3.25)
        persons(canvas, users[1], excused=True)
        persons(canvas, users[2], score=2.5)  # the very same grade

    monkeypatch.setattr("typer.confirm", think)
    done = cold_grader(*push("--feedback"))
    assert done.code == 2
    assert done.err.count("somebody changed the grade meanwhile, so it stays") == 2
    assert canvas.graded == [(users[3], "4")]
    assert [user for user, _ in canvas.commented] == users[2:]
    assert "not from this gradebook" in cold_grader(*push("--yes")).out


@pytest.mark.parametrize(("how", "code"), [("before", 2), ("after", 0)])
def test_an_excuse_is_sent_again_only_if_nobody_gave_a_grade_meanwhile(
    canvas: Canvas,
    here: Path,
    cold_grader: Grader,
    monkeypatch: pytest.MonkeyPatch,
    how: canvas_server.How,
    code: int,
) -> None:
    (user,) = enrol_class(canvas, 1)
    write_book(here / "book", [user])
    excuse = ("excuse", "book", f"student{user}", "--reason", "ill", "--course", TINY)
    assert cold_grader(*excuse).code == 0
    canvas.fail("PUT", f"/{user}$", how)
    if how == "before":

        def zero(_: float) -> None:
            persons(canvas, user, score=0.0)

        monkeypatch.setattr("grader.lms.canvas_api.sleep", zero)
    assert cold_grader(*push("--yes")).code == code
    assert canvas.graded == [(user, "EX")] * (how == "after")


def test_a_gradebook_that_changed_while_the_question_was_read_is_not_sent(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = enrol_class(canvas, 2)
    write_book(here / "book", users)

    def think(*_: object, **__: object) -> None:
        write_book(here / "book", users, points=1)

    monkeypatch.setattr("typer.confirm", think)
    stopped = cold_grader(*push())
    assert stopped.code == 2
    assert "the gradebook changed meanwhile: run the same command again" in stopped.err
    assert canvas.graded == []


@pytest.mark.parametrize("kind", ["pass_fail", "gpa_scale", "letter_grade", "not_graded"])
def test_an_assignment_without_points_gets_nothing(
    canvas: Canvas, here: Path, cold_grader: Grader, kind: str
) -> None:
    write_book(here / "book", enrol_class(canvas, 2))
    canvas.assignment["grading_type"] = kind
    refused = cold_grader(*push("--yes"))
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "display the grade as points in the assignment's settings" in refused.err
    assert canvas.graded == []


def test_a_student_whom_the_teacher_may_not_grade_does_not_stop_the_others(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    users = enrol_class(canvas, 5)
    write_book(here / "book", users)
    canvas.fail("PUT", f"/{users[0]}$", "forbidden")
    done = cold_grader(*push("--yes"))
    assert done.code == 2
    assert "sent to 4 students" in done.out
    assert [user for user, _ in canvas.graded] == users[1:]
    write_book(here / "book", users, points=1)
    canvas.fail("PUT", "/submissions", "forbidden", times=9)
    stopped = cold_grader(*push("--yes"))
    assert stopped.code == 2
    assert "only a teacher of the course may" in stopped.err.splitlines()[-1]
    assert canvas.faults[-1].times == 6, "three students were tried"


def test_a_dry_run_changes_nothing_and_ctrl_c_at_the_question_is_told_apart_from_a_no(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    (user,) = enrol_class(canvas, 1)
    write_book(here / "book", [user])
    canvas.fail("PUT", f"/{user}$", "after")
    canvas.fail("GET", f"/{user}[?]", "502", times=9, skip=1)
    assert cold_grader(*push("--yes")).code == 3
    before = (here / "book" / "grades.db").read_bytes()
    canvas.submissions[user] |= {"late": True, "points_deducted": 0}
    dry = cold_grader(*push("--dry-run"))
    assert f"Canvas itself may take points off late work: student{user}" in dry.err
    assert (here / "book" / "grades.db").read_bytes() == before
    write_book(here / "book", [user], points=1)

    class Stopped(io.StringIO):
        def readline(self, *_: object) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Stopped())
    assert cold_grader(*push()).code == 130
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert cold_grader(*push()).code == 1
    assert canvas.graded == [(user, "2.5")]


# --- the token, and errors -----------------------------------------------------------------------


def test_the_token_is_in_no_file_no_output_and_no_log(
    canvas: Canvas, here: Path, cold_grader: Grader, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    users = enrol_class(canvas, 3)
    write_book(here / "book", users)
    outputs = [cold_grader(*FETCH, "ps1"), cold_grader(*push("--feedback", "--yes"))]
    failures: tuple[canvas_server.How, ...] = (
        "401", "forbidden", "404", "400", "502", "before", "half"
    )  # fmt: skip
    for how in failures:
        canvas.fail("GET", "/assignments", how, times=3)
        outputs.append(cold_grader(*FETCH, "ps1"))
        canvas.faults.clear()
    assert [ran.code for ran in outputs] == [0, 0, 2, 2, 2, 2, 3, 3, 3]
    assert all(len(ran.err.splitlines()) <= 3 for ran in outputs)
    assert "Authorization" in caplog.text, "canvasapi's own log is on"
    written = [path.read_bytes() for path in here.rglob("*") if path.is_file()]
    for secret in (TOKEN, TOKEN[-6:]):
        assert secret not in caplog.text
        assert not any(secret in ran.out + ran.err for ran in outputs)
        assert not any(secret.encode() in data for data in written)
    assert not any(TOKEN in request for request in canvas.asked)
    assert len(canvas.foreign) > 3
    assert {authorization for _, authorization in canvas.foreign} == {None}


def test_an_error_keeps_no_token(canvas: Canvas) -> None:
    from grader.lms.canvas_api import Api

    api = Api(canvas.url, TOKEN, print)
    canvas.fail("GET", "/courses", "before", times=3)
    with pytest.raises(Unreachable) as caught:
        api.one("course", f"courses/{COURSE}", dict)
    error: BaseException | None = caught.value
    while error is not None:
        request = getattr(error, "request", None)
        assert request is None or "Authorization" not in request.headers
        assert TOKEN not in repr(error) + repr(vars(error))
        error = error.__context__


def test_a_server_that_hangs_is_not_waited_for(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.lms.canvas_api.TIMEOUT", (1.0, 0.05))
    canvas.fail("GET", "/courses", "hang", times=3)
    assert cold_grader(*FETCH, "ps1").code == 3


def test_a_download_has_a_limit_of_time(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrol_class(canvas, 1)
    monkeypatch.setattr("grader.lms.canvas_api.LONGEST", -1.0)
    assert cold_grader(*FETCH, "ps1").code == 3


def test_a_page_of_a_list_at_another_host_is_not_asked(
    canvas: Canvas, here: Path, cold_grader: Grader
) -> None:
    enrol_class(canvas)
    canvas.url = canvas.files_url  # what the server calls itself in its links
    refused = cold_grader(*FETCH, "ps1")
    assert refused.code == 3
    assert "is this the address that your browser shows" in refused.err
    assert canvas.foreign == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("401", "it expired, or it is of another Canvas"),
        ("forbidden", "only a teacher of the course may"),
        ("404", "Canvas does not know assignment 345 in course 12"),
    ],
)
def test_each_refusal_is_one_line_that_says_what_to_do(
    canvas: Canvas, here: Path, cold_grader: Grader, how: canvas_server.How, words: str
) -> None:
    canvas.fail("GET", "/courses", how)
    ran = cold_grader(*FETCH, "ps1")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert words in ran.err
    assert not (here / "ps1").exists()


def test_without_a_token_an_address_or_the_library_a_line_says_what_to_do(
    canvas: Canvas, here: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(*more: str) -> str:
        ran = cold_grader(*FETCH, "ps1", *more)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        return ran.err

    long = ".".join(["a" * 60] * 5)
    for url in ("https://h:port", "https://h:99999", "https://[", "https://a b", f"https://{long}",
                "https://h\n", f"https://{'a' * 64}.edu", "ftp://h"):  # fmt: skip
        assert "is no address of a Canvas" in line("--url", url + "/x")
    assert "the token is not sent unencrypted" in line("--url", "http://canvas.example.edu")
    assert TOKEN not in line("--url", f"https://{TOKEN}@canvas.example.edu")
    monkeypatch.setenv("CANVAS_TOKEN", f"{TOKEN}\n2")
    assert TOKEN not in line()
    monkeypatch.delenv("CANVAS_TOKEN")
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr("keyring.get_password", lambda *about: asked.append(about))
    assert "keyring set attention-grader 127.0.0.1" in line()
    assert asked == [("attention-grader", "127.0.0.1")]

    def broken(*_: str) -> None:
        raise ModuleNotFoundError("no such keyring")

    monkeypatch.setattr("keyring.get_password", broken)
    assert "keyring set attention-grader 127.0.0.1" in line()
    monkeypatch.delenv("CANVAS_URL")
    assert "where is your Canvas?" in line()
    monkeypatch.delitem(sys.modules, "grader.lms.canvas_api")
    monkeypatch.setitem(sys.modules, "canvasapi", None)
    assert "pip install 'attention-grader[canvas]'" in line()


def test_the_help_shows_an_example_of_each_command(cold_grader: Grader) -> None:
    assert "Example: grader canvas fetch 1234 5678" in cold_grader("canvas", "fetch", "--help").out
    assert "--dry-run" in cold_grader("canvas", "push", "--help").out
