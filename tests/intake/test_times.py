"""When a submission came in: from the system, from git, or from a table."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.intake import Arrivals, Times, read_roster, read_times, take_in
from grader.intake.commits import commit_time
from grader.lms import DOWNLOADS
from grader.records.faults import CallError
from grader.records.rows import Person
from tests.conftest import Grader
from tests.support.archives import zipped
from tests.support.places import TINY

TEXT = "def center(x):\n    return x\n"
CLOCK = "2026-11-30T21:15:00+02:00"


@pytest.fixture
def tiny() -> Course:
    return load_course(TINY / "exercises")


@pytest.fixture
def berlin(tmp_path: Path) -> Path:
    """A course over the tiny one, in Berlin."""
    folder = tmp_path / "course"
    folder.mkdir()
    text = f'overlay = "{TINY / "exercises"}"\nzone = "Europe/Berlin"\n'
    (folder / "course.toml").write_text(text, "utf-8")
    return folder


def times_of(arrivals: Arrivals) -> dict[str, str | None]:
    """The time of each submission."""
    return {
        one.student: None if one.submitted is None else f"{one.submitted:%Y-%m-%d %H:%M:%S}"
        for one in arrivals.submissions
    }


# --- systems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("created", "time"),
    [
        ("2026-11-30 14:02:11.123456789 -08:00", "2026-11-30 22:02:11"),
        ("2026-11-30 14:02:11 Z", "2026-11-30 14:02:11"),
        ("2026-11-30 14:02:11", "2026-11-30 14:02:11"),
        ("0001-01-01 00:00:00 +14:00", None),
        ("9999-12-31 23:59:59 -14:00", None),
        ("yesterday", None),
        ("[2026, 11]", None),
    ],
)
def test_gradescope_writes_when_a_submission_was_created(
    tmp_path: Path, tiny: Course, created: str, time: str | None
) -> None:
    (tmp_path / "assignment_1_export.zip").write_bytes(
        zipped(
            {
                "x/submission_metadata.yml": (
                    "submission_7:\n  :submitters:\n  - :name: Jane Doe\n    :sid: '1'\n"
                    f"  :created_at: {created}\n"
                ),
                "x/submission_7/basics.py": TEXT,
            }
        )
    )
    arrivals = take_in([tmp_path / "assignment_1_export.zip"], tiny, downloads=DOWNLOADS)
    assert times_of(arrivals) == {"Jane Doe": time}


def test_nbgrader_writes_a_timestamp_beside_a_submission(tmp_path: Path, tiny: Course) -> None:
    for student, text in {"ada": "2015-02-02 15:58:23.948203 UTC\n", "bob": "soon"}.items():
        own = tmp_path / "submitted" / student / "ps1"
        own.mkdir(parents=True)
        (own / "basics.py").write_text(TEXT, "utf-8")
        (own / "timestamp.txt").write_text(text, "utf-8")
    arrivals = take_in([tmp_path / "submitted"], tiny, downloads=DOWNLOADS)
    assert times_of(arrivals) == {"ada": "2015-02-02 15:58:23", "bob": None}


def test_only_the_timestamp_that_nbgrader_wrote_counts(tmp_path: Path, tiny: Course) -> None:
    own = tmp_path / "submitted" / "ada" / "ps1"
    (own / "notes").mkdir(parents=True)
    (own / "basics.py").write_text(TEXT, "utf-8")
    (own / "timestamp.txt").write_text("2026-11-30 15:58:23 UTC", "utf-8")
    (own / "notes" / "timestamp.txt").write_text("2026-12-30 15:58:23 UTC", "utf-8")
    arrivals = take_in([tmp_path / "submitted"], tiny, downloads=DOWNLOADS)
    assert times_of(arrivals) == {"ada": "2026-11-30 15:58:23"}


def test_a_timestamp_that_cannot_be_read_is_no_time(tmp_path: Path, tiny: Course) -> None:
    own = tmp_path / "submitted" / "ada" / "ps1"
    own.mkdir(parents=True)
    (own / "basics.py").write_text(TEXT, "utf-8")
    os.mkfifo(own / "timestamp.txt")
    files = {"ada/ps1/basics.py": TEXT, "ada/ps1/timestamp.txt": "2026-11-30 15:58:23 UTC"}
    data = zipped({f"submitted/{name}": text for name, text in files.items()})
    (tmp_path / "submitted.zip").write_bytes(damaged(data, "submitted/ada/ps1/timestamp.txt"))
    for path in (tmp_path / "submitted", tmp_path / "submitted.zip"):
        arrivals = take_in([path], tiny, downloads=DOWNLOADS)
        assert times_of(arrivals) == {"ada": None}


def damaged(data: bytes, name: str) -> bytes:
    """The zip with one wrong byte in the content of a file."""
    place = data.index(name.encode()) + len(name) + 2
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


# --- git -----------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Callable[[str], Path]:
    """Make a repository with one commit, at a time that the test knows."""

    def made(name: str) -> Path:
        folder = tmp_path / "class" / name
        folder.mkdir(parents=True)
        (folder / "basics.py").write_text(TEXT, "utf-8")
        clock = {"GIT_AUTHOR_DATE": CLOCK, "GIT_COMMITTER_DATE": CLOCK}
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@x.edu", "-c", "commit.gpgsign=false")
        for command in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-qm", "x")):
            subprocess.run(["git", *command], cwd=folder, check=True, env={**os.environ, **clock})
        return folder

    return made


def test_a_clone_has_the_time_of_its_newest_commit_and_a_line_says_what_it_is_worth(
    clone: Callable[[str], Path], tiny: Course
) -> None:
    folder = clone("hw-ada")
    (folder.parent / "bob.py").write_text(TEXT, "utf-8")
    arrivals = take_in([folder.parent], tiny)
    assert times_of(arrivals) == {"bob": None, "hw-ada": "2026-11-30 19:15:00"}
    assert (
        "1 time from git commits, which students can set; --times FILE replaces them"
        in arrivals.notices
    )


def test_packed_references_and_objects_are_read_too(clone: Callable[[str], Path]) -> None:
    folder = clone("hw-ada")
    for command in (("pack-refs", "--all"), ("gc", "-q")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    assert commit_time(folder) == datetime(2026, 11, 30, 19, 15, tzinfo=UTC)


def test_nothing_in_a_students_repository_makes_git_run_a_program(
    clone: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, ran = clone("hw-ada"), tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n", "utf-8")
    program.chmod(0o755)
    (folder / ".git" / "config").write_text(
        f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\thooksPath = {tmp_path}\n"
        f"[gpg]\n\tprogram = {program}\n[log]\n\tshowSignature = true\n"
        f"[include]\n\tpath = {tmp_path / 'more'}\n[alias]\n\tcat-file = !{program}\n",
        "utf-8",
    )
    assert commit_time(folder) is not None
    assert not ran.exists()


@pytest.mark.parametrize(
    "head",
    ["ref: ../../../etc/passwd", "ref: refs/heads/../../../x", "ref: refs/heads/none", "0" * 40,
     "x" * 5_000_000, "", "--upload-pack=touch", "ref: refs/heads/--help"],
)  # fmt: skip
def test_a_head_that_names_no_commit_gives_no_time(clone: Callable[[str], Path], head: str) -> None:
    folder = clone("hw-ada")
    (folder / ".git" / "HEAD").write_text(head, "utf-8")
    assert commit_time(folder) is None


def test_links_and_borrowed_objects_are_not_followed(
    clone: Callable[[str], Path], tmp_path: Path
) -> None:
    mine, theirs = clone("hw-ada"), clone("hw-bob")
    (mine / ".git" / "objects" / "info" / "alternates").write_text(
        f"{theirs / '.git' / 'objects'}\n", "utf-8"
    )
    assert commit_time(mine) is None
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(theirs / ".git")
    assert commit_time(linked) is None
    (theirs / ".git" / "HEAD").unlink()
    (theirs / ".git" / "HEAD").symlink_to("/etc/passwd")
    assert commit_time(theirs) is None


@pytest.mark.parametrize("linked", ["a folder", "an object", "packs"])
def test_links_among_the_objects_are_not_followed(
    clone: Callable[[str], Path], linked: str
) -> None:
    mine, theirs = clone("hw-ada") / ".git", clone("hw-bob") / ".git"
    commit = (theirs / "refs" / "heads" / "main").read_text("utf-8").strip()
    place = {
        "a folder": Path(commit[:2]),
        "an object": Path(commit[:2], commit[2:]),
        "packs": Path("pack"),
    }[linked]
    if linked == "packs":
        subprocess.run(["git", "gc", "-q"], cwd=theirs.parent, check=True)
    shutil.rmtree(mine / "objects")
    (mine / "objects" / place).parent.mkdir(parents=True)
    (mine / "objects" / place).symlink_to(theirs / "objects" / place)
    (mine / "HEAD").write_text(commit, "utf-8")
    assert commit_time(theirs.parent) is not None
    assert commit_time(mine.parent) is None


def test_git_does_not_wait_for_a_pipe_among_the_objects(clone: Callable[[str], Path]) -> None:
    folder = clone("hw-ada")
    commit = (folder / ".git" / "refs" / "heads" / "main").read_text("utf-8").strip()
    place = folder / ".git" / "objects" / commit[:2] / commit[2:]
    place.unlink()
    os.mkfifo(place)
    assert commit_time(folder) is None  # git would wait until it is stopped after 20 seconds


@pytest.mark.parametrize("name", ["hw:ada", '"hw"', "hw\\ada", "hw\nada", "#hw ada"])
def test_a_clone_may_have_any_name(clone: Callable[[str], Path], name: str) -> None:
    assert commit_time(clone(name)) is not None


def test_a_name_with_a_colon_leads_to_no_other_folder(
    clone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, mine = clone("b"), clone("a:b")
    subprocess.run(
        ["git", "-c", "user.name=B", "-c", "user.email=b@x.edu", "commit", "-qm", "y",
         "--allow-empty"], cwd=theirs, check=True,
    )  # fmt: skip
    commit = (theirs / ".git" / "refs" / "heads" / "main").read_text("utf-8")
    (mine / ".git" / "HEAD").write_text(commit, "utf-8")
    monkeypatch.chdir(theirs.parent)
    assert commit_time(mine) is None


def test_a_small_pack_that_unpacks_to_much_gives_no_time(tmp_path: Path) -> None:
    large = b"\0" * (64 << 20)
    assert commit_time(packed_clone(tmp_path / "small", b"")) is not None
    assert commit_time(packed_clone(tmp_path / "large", large)) is None


def packed_clone(folder: Path, base: bytes) -> Path:
    """A clone whose commit is stored as its difference from an object with the content `base`."""
    commit = (
        b"tree %040d\nauthor A <a> 1796066100 +0000\ncommitter A <a> 1796066100 +0000\n\nx\n" % 0
    )
    pieces = [commit[at : at + 127] for at in range(0, len(commit), 127)]
    literal = b"".join(bytes([len(piece)]) + piece for piece in pieces)
    delta = varint(len(base)) + varint(len(commit)) + literal
    names = [hashlib.sha1(b"commit %d\0" % len(one) + one).digest() for one in (base, commit)]
    pack = b"PACK" + struct.pack(">II", 2, 2)
    entries = []
    for name, data in (
        (names[0], head(1, len(base)) + zlib.compress(base, 9)),
        (names[1], head(7, len(delta)) + names[0] + zlib.compress(delta)),
    ):
        entries.append((name, zlib.crc32(data), len(pack)))
        pack += data
    pack += hashlib.sha1(pack).digest()
    entries.sort()
    fan = (sum(name[0] <= first for name, _, _ in entries) for first in range(256))
    index = b"\xfftOc" + struct.pack(">257I", 2, *fan)
    index += b"".join(name for name, _, _ in entries)
    index += struct.pack(">4I", *(one[1] for one in entries), *(one[2] for one in entries))
    index += pack[-20:]
    index += hashlib.sha1(index).digest()
    packs = folder / ".git" / "objects" / "pack"
    packs.mkdir(parents=True)
    (packs / f"pack-{pack[-20:].hex()}.pack").write_bytes(pack)
    (packs / f"pack-{pack[-20:].hex()}.idx").write_bytes(index)
    (folder / ".git" / "HEAD").write_text(names[1].hex(), "utf-8")
    return folder


def varint(number: int) -> bytes:
    """A number in sevens of bits, the lowest first, as a pack stores lengths."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def head(kind: int, size: int) -> bytes:
    """The beginning of an object in a pack: its kind, and its size."""
    first = kind << 4 | size & 0xF
    return bytes([first | 0x80]) + varint(size >> 4) if size >> 4 else bytes([first])


def test_without_git_there_is_no_time(
    clone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = clone("hw-ada")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_time(folder) is None


# --- a table -------------------------------------------------------------------------------------


def table(folder: Path, text: str) -> Path:
    """A table of times."""
    file = folder / "times.csv"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("2026-11-30T14:02:11Z", "2026-11-30 14:02:11"),
        ("2026-11-30 14:02:11 UTC", "2026-11-30 14:02:11"),
        ("2026-11-30 14:02:11 utc", "2026-11-30 14:02:11"),
        ("2026-11-30 14:02", "2026-11-30 13:02:00"),
        ("2026-11-30 14:02-05:00", "2026-11-30 19:02:00"),
        ('"Monday, 30 November 2026, 2:02 PM"', "2026-11-30 13:02:00"),
        ("2026-07-01 14:02", "2026-07-01 12:02:00"),
    ],
)
def test_a_table_writes_times_as_people_and_systems_do(
    tmp_path: Path, berlin: Path, written: str, time: str
) -> None:
    (tmp_path / "ada.py").write_text(TEXT, "utf-8")
    course = load_course(berlin)
    times = read_times(
        table(tmp_path, f"Student;Time\nada;{written}\n".replace(";", ",")), course.zone
    )
    assert times_of(take_in([tmp_path / "ada.py"], course, times=times)) == {"ada": time}


def test_moodles_worksheet_is_a_table_of_times(tmp_path: Path, berlin: Path) -> None:
    course = load_course(berlin)
    (tmp_path / "c-hw-7.zip").write_bytes(
        zipped(
            {
                "Jane Doe_12345_assignsubmission_file_/basics.py": TEXT,
                "Bob Roe_12346_assignsubmission_file_/basics.py": TEXT,
            }
        )
    )
    worksheet = table(
        tmp_path,
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
        "Last modified (submission),Last modified (grade),Feedback comments\n"
        'Participant 12345,Jane Doe,jane@x.edu,Submitted,,10.00,Yes,"Monday, 30 November 2026, '
        '11:59 PM",-,\n'
        "Participant 12346,Bob Roe,bob@x.edu,No submission,,10.00,Yes,-,-,\n"
        'Participant 12399,Eve,eve@x.edu,Submitted,,10.00,Yes,"Monday, 30 November 2026, 1:00 '
        'AM",-,\n',
    )
    arrivals = take_in(
        [tmp_path / "c-hw-7.zip"],
        course,
        downloads=DOWNLOADS,
        times=read_times(worksheet, course.zone),
    )
    assert times_of(arrivals) == {"Bob Roe": None, "Jane Doe": "2026-11-30 22:59:00"}
    assert "times of students without a submission here: Participant 12399" in arrivals.notices


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty: its first line must name a column student"),
        ("student,points\nada,1\n", "is not a table of times"),
        (
            "student,time\nada,soon\nbob,2026-13-01\n",
            "line 2: 'soon' is no time: write a date and a time",
        ),
        ("student,time\nada,soon\nbob,2026-13-01\n", "line 3: '2026-13-01' is no time"),
        (
            "student,time\nada,2026-11-30 14:02\n",
            "line 2: '2026-11-30 14:02' has no zone: set `zone`",
        ),
        ("student,time\nada,1026-11-30 14:02Z\n", "no time at which somebody can have submitted"),
        (
            "student,time\nada,2026-11-30 14:02Z\nada,2026-11-30 15:02Z\n",
            "line 3: 'ada' has another time in line 2",
        ),
        (
            "student,time\nada,2026-11-30 14:02Z\nADA,2026-11-30 15:02Z\n",
            "line 3: 'ADA' has another time in line 2",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_every_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CallError) as error:
        read_times(table(tmp_path, text), None)
    assert told in str(error.value)


def test_a_zone_that_only_this_computer_knows_by_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        with pytest.raises(CallError, match="'2026-11-30 23:59 EST' is no time"):
            read_times(table(tmp_path, "student,time\nada,2026-11-30 23:59 EST\n"), UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_two_lines_that_name_a_student_in_two_ways_must_agree(tmp_path: Path, tiny: Course) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name,email\n1,Ada Byron,ada@x.edu\n", "utf-8")
    (tmp_path / "1.py").write_text(TEXT, "utf-8")
    lines = "student,time\n1,2026-11-30 14:02Z\nada@x.edu,2026-11-30 15:02Z\n"
    with pytest.raises(CallError, match="line 3: '1' has another time in line 2"):
        take_in(
            [tmp_path / "1.py"],
            tiny,
            read_roster(roster),
            times=read_times(table(tmp_path, lines), UTC),
        )


def test_moodles_number_for_a_student_may_be_the_id_of_another(
    tmp_path: Path, berlin: Path
) -> None:
    course = load_course(berlin)
    entry = "{}_assignsubmission_file_/basics.py"
    (tmp_path / "c-hw-7.zip").write_bytes(
        zipped({entry.format("Jane Doe_777"): TEXT, entry.format("Bob Roe_888"): TEXT})
    )
    worksheet = table(
        tmp_path,
        "Identifier,Full name,ID number,Last modified (submission)\n"
        'Participant 777,Jane Doe,888,"Monday, 30 November 2026, 11:59 PM"\n'
        'Participant 888,Bob Roe,999,"Monday, 30 November 2026, 1:00 PM"\n',
    )
    times = read_times(worksheet, course.zone)
    arrivals = take_in([tmp_path / "c-hw-7.zip"], course, downloads=DOWNLOADS, times=times)
    assert times_of(arrivals) == {
        "Bob Roe": "2026-11-30 12:00:00",
        "Jane Doe": "2026-11-30 22:59:00",
    }


def test_two_students_of_one_name_get_no_time_from_the_name_alone(
    tmp_path: Path, berlin: Path
) -> None:
    course = load_course(berlin)
    roster = tmp_path / "roster.csv"
    roster.write_text("id,name\n1,Jane Doe\n2,Jane Doe\n", "utf-8")
    for number in ("1", "2"):
        (tmp_path / f"{number}.py").write_text(TEXT, "utf-8")
    paths = [tmp_path / "1.py", tmp_path / "2.py"]

    def times(text: str) -> Times:
        return read_times(table(tmp_path, text), course.zone)

    by_name = times("name,time\nJane Doe,2026-11-30 14:02\nJane Doe,2026-11-30 14:02\n")
    by_id = times("id,name,time\n1,Jane Doe,2026-11-30 14:02\n2,Jane Doe,2026-11-30 15:02\n")
    people = read_roster(roster)
    assert times_of(take_in(paths, course, people, times=by_id)) == {
        "1": "2026-11-30 13:02:00",
        "2": "2026-11-30 14:02:00",
    }
    assert times_of(take_in(paths, course, people, times=by_name)) == dict.fromkeys(
        "12", "2026-11-30 13:02:00"
    )


def test_the_gradebook_keeps_the_table_and_a_dry_run_shows_the_times(
    grader: Grader, tmp_path: Path, berlin: Path
) -> None:
    (tmp_path / "ada.py").write_text(TEXT, "utf-8")
    file = table(tmp_path, "student,time\nada,2026-11-30 14:02\n")
    call = ("grade", tmp_path / "ada.py", "--course", berlin, "--only", "center")
    ran = grader(*call, "--times", file, "--dry-run")
    assert "ada (2026-11-30 14:02 CET): 1 file: ada.py" in ran.out
    out = ("--out", tmp_path / "grades", "--no-pages", "--quiet", "--seed", "s")
    for more in ((*out, "--times", file), out):
        assert grader(*call, *more).code == 0
        lines = (tmp_path / "grades" / "results.jsonl").read_text("utf-8")
        assert '"submitted":"2026-11-30T13:02:00Z"' in lines
    grader("forget", tmp_path / "grades", "ada", "--yes", "--course", berlin)
    assert b"2026-11-30" not in (tmp_path / "grades" / "grades.db").read_bytes()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('zone = "Berlin"', "course.toml:2: zone 'Berlin' does not exist"),
        (
            '[[assignment]]\nname = "a"\nexercises = ["basics"]\ndue = 2026-12-01T23:59:00',
            "course.toml:5: due has no zone: set `zone` for the course",
        ),
        (
            '[[assignment]]\nname = "a"\nexercises = ["basics"]\nlate_by = "us"',
            'course.toml:5: late_by = "us" needs the time `due`',
        ),
        (
            '[[assignment]]\nname = "a"\nexercises = ["basics"]\ndue = 2026-12-01T23:59:00Z\n'
            'late_by = "us"\nlate = "ten"',
            "course.toml:7: late: 'ten' is no part of a rule",
        ),
        (
            '[[assignment]]\nname = "a"\nexercises = ["basics"]\nmanual = ["essay"]',
            "course.toml:5: manual: there is no [[manual]] question called 'essay'",
        ),
        (
            '[[manual]]\nname = "total"\npoints = 2',
            "course.toml:3: name: the name 'total' is taken",
        ),
        ('[[manual]]\nname = "essay"\npoints = 0', "course.toml:4: points must be positive"),
    ],
)
def test_what_course_toml_says_about_time_is_checked(
    cold_grader: Grader, tmp_path: Path, lines: str, told: str
) -> None:
    (tmp_path / "course.toml").write_text(f'overlay = "{TINY / "exercises"}"\n{lines}\n', "utf-8")
    ran = cold_grader("grade", tmp_path, "--dry-run", "--course", tmp_path)
    assert (ran.code, told in ran.err, ran.err.count("\n")) == (2, True, 1), ran.err


def test_canvas_numbers_in_a_table_are_nobodys_ids(tmp_path: Path) -> None:
    table = tmp_path / "times.csv"
    table.write_text("canvas id,time\n7,2026-11-20T10:00:00Z\n8,2026-11-21T10:00:00Z\n", "utf-8")
    times = read_times(table, None)
    ada = Person(id="8", name="8", email="8", login="8", canvas="7")
    found = times.of(["8"], ada)
    assert found is not None
    assert found.day == 20
    assert times.strangers([(["8"], ada)]) == ["8"]
    assert times.contradictions([(["8"], ada)]) == []


def test_canvas_numbers_beside_names_count_only_if_the_roster_has_them(tmp_path: Path) -> None:
    table = tmp_path / "times.csv"
    table.write_text("login,canvas id,time\nada,7,2026-11-20T10:00:00Z\n", "utf-8")
    times = read_times(table, None)
    assert times.of(["ada"], Person(login="ada")) is not None
    assert times.of(["ada"], Person(login="ada", canvas="8")) is None
