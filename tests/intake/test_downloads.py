"""Roads in: downloads of a whole assignment, built to the letter of what the systems write."""

from __future__ import annotations

import io
import os
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

from grader import intake
from grader.course.course import Course
from grader.intake import NO_ROSTER, Arrivals, Roster, read_roster
from grader.intake import files as limits
from grader.lms import DOWNLOADS
from grader.records.faults import CallError
from grader.records.rows import Person

TEXT = "def center(x):\n    return x\n"
Files = Mapping[str, str | bytes]
Download = Callable[..., Path]


def zipped(files: Files) -> bytes:
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def folder(place: Path, files: Files) -> Path:
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


@pytest.fixture(params=["zip", "folder"])
def download(request: pytest.FixtureRequest, tmp_path: Path) -> Download:
    """Write a download as the system hands it out, or as it was unpacked."""

    def write(files: Files, name: str = "submissions") -> Path:
        if request.param == "folder":
            return folder(tmp_path / name, files)
        (tmp_path / f"{name}.zip").write_bytes(zipped(files))
        return tmp_path / f"{name}.zip"

    return write


def take_in(paths: Sequence[Path], course: Course, roster: Roster = NO_ROSTER) -> Arrivals:
    """As `grader grade` does."""
    return intake.take_in(paths, course, roster, DOWNLOADS)


def files_of(arrived: Arrivals) -> dict[str, list[str]]:
    return {one.student: [source.name for source in one.sources] for one in arrived.submissions}


def roster_of(place: Path, *lines: str) -> Roster:
    (place / "roster.csv").write_text("\n".join(lines), "utf-8")
    return read_roster(place / "roster.csv")


# --- Canvas --------------------------------------------------------------------------------------


def test_a_canvas_download_is_a_submission_for_each_user(download: Download, tiny: Course) -> None:
    path = download(
        {
            "doejane_LATE_12345_678_basics.py": TEXT,
            "roebob_12346_680_basics.ipynb": '{"nbformat": 4, "nbformat_minor": 5, "cells": []}',
            "roebob_12346_681_tools.py": TEXT,
        }
    )
    arrived = take_in([path], tiny)
    assert files_of(arrived) == {"doejane": ["basics.py"], "roebob": ["basics.ipynb", "tools.py"]}
    assert [one.late for one in arrived.submissions] == [True, False]
    assert arrived.people["doejane"].canvas == "12345"
    assert arrived.notices == (f"{path}: a download from Canvas: 2 submissions, 1 late",)


def test_a_zip_that_a_student_handed_in_to_canvas_is_looked_into(
    download: Download, tiny: Course
) -> None:
    inner = zipped({"hw/basics.py": TEXT, "hw/layers.py": TEXT})
    arrived = take_in([download({"doejane_1_2_hw.zip": inner})], tiny)
    assert files_of(arrived) == {"doejane": ["basics.py", "layers.py"]}


def test_a_resubmission_to_canvas_has_its_own_name_again_and_a_mark(
    download: Download, tiny: Course
) -> None:
    arrived = take_in([download({"doejane_1_2_basics-2.py": TEXT})], tiny)
    assert files_of(arrived) == {"doejane": ["basics.py"]}
    assert arrived.submissions[0].attempts == 3


def test_a_name_that_a_student_ended_in_a_number_is_no_resubmission(
    download: Download, tiny: Course
) -> None:
    arrived = take_in([download({"doejane_1_2_homework-3.py": TEXT})], tiny)
    assert files_of(arrived) == {"doejane": ["homework-3.py"]}
    assert arrived.submissions[0].attempts == 1


def test_of_two_downloads_the_later_upload_of_a_student_counts(
    download: Download, tiny: Course
) -> None:
    first = download(
        {"doejane_1_10_basics.py": "x = 1", "roebob_2_11_basics.py": TEXT}, "monday-submissions"
    )
    second = download({"doejane_1_30_basics-1.py": "x = 2"}, "friday-submissions")
    arrived = take_in([second, first], tiny)
    jane, bob = arrived.submissions
    assert (jane.sources[0].cells, jane.attempts) == (("x = 2",), 2)
    assert (bob.student, bob.attempts) == ("roebob", 1)


def test_the_same_download_given_twice_is_one_hand_in(download: Download, tiny: Course) -> None:
    files = {"doejane_1_10_basics.py": TEXT}
    arrived = take_in([download(files, "submissions"), download(files, "submissions (1)")], tiny)
    assert [one.attempts for one in arrived.submissions] == [1]


def test_two_users_of_one_name_are_told_apart_by_their_numbers(
    download: Download, tiny: Course
) -> None:
    path = download({"doejane_1_10_basics.py": TEXT, "doejane_2_11_basics.py": TEXT})
    assert [*files_of(take_in([path], tiny))] == ["doejane_1", "doejane_2"]


def test_an_anonymous_download_from_canvas_keeps_its_numbers(
    download: Download, tiny: Course
) -> None:
    path = download({"anon_7_10_basics.py": TEXT, "anon_8_11_basics.py": TEXT})
    assert [*files_of(take_in([path], tiny))] == ["anon_7", "anon_8"]


def test_anonymous_students_of_canvas_go_by_letters_and_digits_that_are_no_user_id(
    download: Download, tiny: Course
) -> None:
    names = (
        "anon_abc12_11_basics.py",
        "anon_abc12_12_layers.py",
        "anon_55555_LATE_13_basics.py",
        "LATE_anon_d3f_14_basics.py",
        "anon_g5h_text.html",
    )
    arrived = take_in([download(dict.fromkeys(names, TEXT))], tiny)
    assert files_of(arrived) == {
        "anon_55555": ["basics.py"],
        "anon_abc12": ["basics.py", "layers.py"],
        "anon_d3f": ["basics.py"],
        "anon_g5h": [],
    }
    assert [one.late for one in arrived.submissions] == [True, False, True, False]
    assert not any(person.canvas for person in arrived.people.values())


@pytest.mark.parametrize("name", ["maxmm_3_text.html", "maxmm_LATE_3_link.html"])
def test_what_was_typed_into_canvas_is_a_submission_beside_the_others(
    download: Download, tiny: Course, name: str
) -> None:
    path = download({name: "<p>hello", "doejane_1_10_basics.py": TEXT})
    arrived = take_in([path], tiny)
    assert files_of(arrived) == {"doejane": ["basics.py"], "maxmm": []}
    assert arrived.submissions[1].late is ("LATE" in name)
    assert arrived.people["maxmm"].canvas == "3"


CODE = "import torch\n\n\ndef center(x):\n    y = x\n    return y if (x < 1).all() else x\n"


def page(body: str) -> str:
    """A page as Canvas makes it of a typed text."""
    head = "<html><head><title>Homework: Max</title><style>p = 1</style></head><body>"
    return f"<!DOCTYPE html>\n{head}\n<h1>A course: Homework</h1>\n{body}\n</body></html>"


def escaped(text: str, space: str = "&nbsp;") -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace(" ", space)


IN_PRE = f"<pre><code>{escaped(CODE, ' ')}</code></pre>"


@pytest.mark.parametrize(
    "body",
    [
        IN_PRE,
        f"<p>Hello, this is my answer:</p>\n{IN_PRE}<p>Thanks, Max</p>",
        f"<p>{escaped(CODE).replace(chr(10), '<br />')}</p>",
        "".join(f"<p>{escaped(line) or '&nbsp;'}</p>\n" for line in CODE.splitlines()),
        "".join(f"<div><span>{escaped(line)}</span></div>\r\n" for line in CODE.splitlines()),
    ],
)
def test_code_that_was_typed_into_canvas_is_read(
    download: Download, tiny: Course, body: str
) -> None:
    path = download({"maxmm_3_text.html": page(body), "doejane_1_10_basics.py": TEXT})
    _, arrived = take_in([path], tiny).submissions
    assert (arrived.status, arrived.problems) == ("ready", ())
    lines = [line for line in arrived.sources[0].cells[0].splitlines() if line]
    assert lines == [line for line in CODE.splitlines() if line]


def test_code_that_was_typed_into_moodle_is_read_where_no_file_came(
    download: Download, tiny: Course
) -> None:
    typed = "_assignsubmission_onlinetext_/onlinetext.html"
    path = download(
        {
            f"Jane Doe_5{typed}": page(IN_PRE),
            f"Bob Roe_6{typed}": page(IN_PRE),
            "Bob Roe_6_assignsubmission_file_/basics.py": TEXT,
        }
    )
    assert files_of(take_in([path], tiny)) == {
        "Jane Doe": ["onlinetext.py"],
        "Bob Roe": ["basics.py"],
    }


@pytest.mark.parametrize("end", ["", "_"], ids=["since Moodle 4.1", "before"])
def test_moodles_folders_may_end_in_an_underscore(
    download: Download, tiny: Course, end: str
) -> None:
    path = download(
        {
            f"Jane Doe_5_assignsubmission_file{end}/basics.py": TEXT,
            f"Bob Roe_6_assignsubmission_file{end}/homework/basics.py": TEXT,
            f"Cleo Poe_7_assignsubmission_onlinetext{end}/onlinetext.html": page(IN_PRE),
        },
        "CS1-PS1-4711",
    )
    assert files_of(take_in([path], tiny)) == {
        "Bob Roe": ["homework/basics.py"],
        "Cleo Poe": ["onlinetext.py"],
        "Jane Doe": ["basics.py"],
    }


def test_a_typed_text_without_code_says_so(download: Download, tiny: Course) -> None:
    path = download({"maxmm_3_text.html": page("<p>see my e-mail</p>"), "a_1_10_b.py": TEXT})
    max_ = take_in([path], tiny).submissions[1]
    assert max_.problems == (
        "text.html: not read: submit a .py file or a notebook; the typed text holds no code",
    )


@pytest.mark.parametrize(
    "body",
    [
        '<meta http-equiv="Refresh" content="0; url=https://example.org/nb?a=1&amp;b=2" />',
        '<a href="https://example.org/nb?a=1&amp;b=2">my notebook</a>',
    ],
)
def test_the_address_of_a_submitted_link_is_shown(
    download: Download, tiny: Course, body: str
) -> None:
    path = download({"maxmm_3_link.html": page(body), "doejane_1_10_basics.py": TEXT})
    max_ = take_in([path], tiny).submissions[1]
    assert max_.problems == (
        "link.html: not read: submit a .py file or a notebook, not a link to "
        "https://example.org/nb?a=1&b=2",
    )


def test_an_address_cannot_control_a_terminal(download: Download, tiny: Course) -> None:
    body = '<a href="https://example.org/\x1b[2J&#27;">x</a>'
    path = download({"maxmm_3_link.html": page(body), "doejane_1_10_basics.py": TEXT})
    (line,) = take_in([path], tiny).submissions[1].problems
    assert line.isprintable()


@pytest.mark.parametrize("unit", ["<a", "<", "<!", "x", "&", "xmlns=", "x = ", "http://", "<p>"])
def test_a_long_page_is_read_in_proportion_to_its_length(
    download: Download, tiny: Course, unit: str
) -> None:
    """A time that grew with the square of the length would exceed the limit of a test by far."""
    long = unit * (2**21 // len(unit))
    path = download({"a_3_text.html": f"<p>{long}", "b_4_link.html": long, "c_1_10_b.py": TEXT})
    assert len(take_in([path], tiny).submissions) == 3


@pytest.mark.parametrize(
    ("name", "kind"), [("hw.docx", "a Word document"), ("HW.PDF", "a PDF"), ("hw.doc", "a Word")]
)
def test_a_document_is_named_in_the_line_that_refuses_it(
    download: Download, tiny: Course, name: str, kind: str
) -> None:
    path = download({f"maxmm_3_20_{name}": b"%PDF", "doejane_1_10_basics.py": TEXT})
    (line,) = take_in([path], tiny).submissions[1].problems
    assert line.startswith(f"{name}: not read: submit a .py file or a notebook, not {kind}")


def test_a_file_that_a_student_called_text_html_is_an_upload(
    download: Download, tiny: Course
) -> None:
    path = download({"doejane_1_10_text.html": "<p>hello", "roebob_2_11_basics.py": TEXT})
    assert [*files_of(take_in([path], tiny))] == ["doejane", "roebob"]


@pytest.mark.parametrize(
    ("names", "system"),
    [
        (("doejane_1_10_basics.py", "maxmm_3_text.html"), "Canvas"),
        (("Jane Doe_1_assignsubmission_file_a.py", "Bob_2_assignsubmission_file_a.py"), "Moodle"),
    ],
)
def test_a_few_odd_names_in_a_download_are_named_and_nobodys(
    download: Download, tiny: Course, names: Sequence[str], system: str
) -> None:
    path = download({**dict.fromkeys(names, TEXT), "by\x1b_mail.py": TEXT})
    arrived = take_in([path], tiny)
    assert len(arrived.submissions) == 2
    assert arrived.notices == (
        f"{path}: a download from {system}: 2 submissions"
        + (", 1 without a readable file" if system == "Canvas" else ""),
        rf"{path}: left out ({system} does not say whose they are): by\x1b_mail.py",
    )


def test_a_folder_in_which_most_names_are_not_canvas_s_is_none_of_its_downloads(
    tmp_path: Path, tiny: Course
) -> None:
    names = ("ada_2026_11_hw.py", "bob.py", "cleo.py")
    path = folder(tmp_path / "class", dict.fromkeys(names, TEXT))
    assert [*files_of(take_in([path], tiny))] == ["ada_2026_11_hw", "bob", "cleo"]


def test_names_of_an_instructor_with_dates_in_them_are_not_taken_for_canvas(
    tmp_path: Path, tiny: Course
) -> None:
    names = ("ada_2026_11_hw.py", "bob_2026_11_hw.py")
    path = folder(tmp_path / "class", dict.fromkeys(names, TEXT))
    assert [*files_of(take_in([path], tiny))] == ["ada_2026_11_hw", "bob_2026_11_hw"]


def test_a_student_cannot_hand_in_for_others_by_the_names_in_a_zip(
    tmp_path: Path, tiny: Course
) -> None:
    for name, files in {"mallory": {"doejane_1_99_basics.py": "x"}, "ada": {"a.py": TEXT}}.items():
        (tmp_path / f"{name}.zip").write_bytes(zipped(files))
    arrived = take_in(sorted(tmp_path.glob("*.zip")), tiny)
    assert files_of(arrived) == {"ada": ["a.py"], "mallory": ["doejane_1_99_basics.py"]}
    assert files_of(take_in([tmp_path], tiny)) == files_of(arrived)
    (line,) = (line for line in arrived.notices if "mallory.zip" in line)
    assert line == (
        f"{tmp_path / 'mallory.zip'}: read as one student's submission, since a student can name "
        "files in a zip as Canvas does. If this zip is your download, unpack it, or give every zip "
        "a name such as hw1_submissions.zip"
    )


LOOK_ALIKES: Sequence[Files] = (
    {"doejane_1_99_basics.py": "x", "roebob_2_98_basics.py": "x"},
    {"Jane Doe_1_assignsubmission_file_basics.py": "x"},
    {"submission_metadata.yml": "", "submission_1/basics.py": "x"},
    {"submitted/doejane/ps1/basics.py": "x"},
)


@pytest.mark.parametrize("files", LOOK_ALIKES)
@pytest.mark.parametrize(
    "name", ["mallory", "mallory_7_70_submissions", "Mallory_7_assignsubmission_file_submissions"]
)
def test_a_students_zip_that_is_graded_alone_is_one_student_s(
    tmp_path: Path, tiny: Course, files: Files, name: str
) -> None:
    path = tmp_path / f"{name}.zip"
    path.write_bytes(zipped(files))
    arrived = take_in([path], tiny)
    assert [one.student for one in arrived.submissions] == [name]
    assert arrived.people == {}
    (line,) = arrived.notices
    assert line.startswith(f"{path}: read as one student's")


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("submissions", LOOK_ALIKES[0]),
        ("submissions (2)", LOOK_ALIKES[0]),
        ("CS_101-Homework_1_submissions", LOOK_ALIKES[0]),
        ("CS101-Homework 1-12345", LOOK_ALIKES[1]),
        ("Submissions-2", LOOK_ALIKES[1]),
        ("submitted", LOOK_ALIKES[3]),
    ],
)
def test_a_zip_that_is_called_as_a_system_calls_it_is_a_download(
    tmp_path: Path, tiny: Course, name: str, files: Files
) -> None:
    (tmp_path / f"{name}.zip").write_bytes(zipped(files))
    arrived = take_in([tmp_path / f"{name}.zip"], tiny)
    assert "a download from" in arrived.notices[0]


def test_of_a_students_zip_no_more_is_looked_at_than_is_read(
    tmp_path: Path, tiny: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ada.py").write_text(TEXT)
    (tmp_path / "mallory.zip").write_bytes(zipped({"doejane_1_99_basics.py": "x"}))
    monkeypatch.setattr(limits, "MAX_DIRECTORY", 50)
    arrived = take_in([tmp_path], tiny)
    assert [one.status for one in arrived.submissions] == ["ready", "unreadable"]
    assert not any("read as one student's" in line for line in arrived.notices)


def test_a_gradebook_is_nothing_that_was_handed_in(tmp_path: Path, tiny: Course) -> None:
    folder(tmp_path / "grades", {"grades.db": "", "feedback/ada.html": ""})
    with pytest.raises(CallError, match="is a gradebook: name the submissions instead"):
        take_in([tmp_path / "grades"], tiny)


# --- Moodle --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rest", ["_/basics.py", "_basics.py"])
def test_a_moodle_download_is_a_submission_for_each_participant(
    download: Download, tiny: Course, rest: str
) -> None:
    path = download(
        {
            f"Jane Doe_12345_assignsubmission_file{rest}": TEXT,
            "Jane Doe_12345_assignsubmission_onlinetext_/onlinetext.html": "<p>see file",
            f"Zoë O_Neil_12346_assignsubmission_file{rest}": TEXT,
        }
    )
    arrived = take_in([path], tiny)
    assert files_of(arrived) == {"Jane Doe": ["basics.py"], "Zoë O_Neil": ["basics.py"]}
    assert arrived.people["Jane Doe"].moodle == "12345"
    assert arrived.notices == (f"{path}: a download from Moodle: 2 submissions",)


def test_a_text_that_was_typed_into_moodle_is_named_where_nothing_else_came(
    download: Download, tiny: Course
) -> None:
    names = (
        "Jane Doe_5_assignsubmission_onlinetext_/onlinetext.html",
        "Bob_6_assignsubmission_file_/basics.py",
    )
    arrived = take_in([download(dict.fromkeys(names, TEXT))], tiny)
    assert [(one.student, one.status) for one in arrived.submissions] == [
        ("Bob", "ready"),
        ("Jane Doe", "unreadable"),
    ]
    assert arrived.submissions[1].problems[0].startswith("onlinetext.html: not read")


@pytest.mark.parametrize(
    ("own", "number"),
    [
        ("mallory_7_70_", "doejane_1_99_basics.py"),
        (
            "Mallory_7_assignsubmission_file_",
            "Jane Doe_1_assignsubmission_file_basics.py",
        ),
    ],
)
def test_a_student_cannot_hand_in_for_others_by_the_name_of_a_file(
    download: Download, tiny: Course, own: str, number: str
) -> None:
    arrived = take_in([download({f"{own}{number}": TEXT})], tiny)
    assert [one.student.lower() for one in arrived.submissions] == ["mallory"]
    (person,) = arrived.people.values()
    assert "7" in (person.canvas, person.moodle)


# --- Gradescope ----------------------------------------------------------------------------------

METADATA = textwrap.dedent("""\
    ---
    submission_101:
      :submitters:
      - :name: Jane Doe
        :sid: '12345'
        :email: jane@example.edu
      :created_at: 2026-11-02 10:00:00.000000000 Z
      :score: 0.0
      :status: processed
      :history:
      - :id: 99
        :created_at: 2026-11-01 10:00:00.000000000 Z
    submission_102:
      :submitters:
      - :name: Bob Roe
        :sid: '12346'
        :email: bob@example.edu
      - :name: Cleo Poe
        :sid: '12347'
        :email: cleo@example.edu
      :created_at: 2026-11-03 10:00:00.000000000 Z
    """)


def test_a_gradescope_download_is_a_submission_for_each_group(
    download: Download, tiny: Course
) -> None:
    path = download(
        {
            "assignment_5_export/submission_metadata.yml": METADATA,
            "assignment_5_export/submission_101/basics.py": TEXT,
            "assignment_5_export/submission_102/hw/basics.py": TEXT,
        }
    )
    if path.is_dir():
        path = path / "assignment_5_export"
    arrived = take_in([path], tiny)
    jane, pair = arrived.submissions
    assert (jane.student, jane.members, jane.attempts) == ("Jane Doe", ("Jane Doe",), 2)
    assert (pair.student, pair.members) == ("submission_102", ("Bob Roe", "Cleo Poe"))
    assert files_of(arrived) == {"Jane Doe": ["basics.py"], "submission_102": ["hw/basics.py"]}
    assert arrived.people["Cleo Poe"].email == "cleo@example.edu"


def test_metadata_that_gradescope_did_not_write_are_told(download: Download, tiny: Course) -> None:
    path = download({"submission_metadata.yml": "&a [*a, ", "submission_1/basics.py": TEXT})
    with pytest.raises(CallError, match=r"submission_metadata\.yml is not as Gradescope writes it"):
        take_in([path], tiny)


def test_a_folder_that_gradescope_s_note_does_not_list_is_named(
    download: Download, tiny: Course
) -> None:
    files = {f"submission_{n}/basics.py": TEXT for n in (101, 102, 103)}
    path = download({"submission_metadata.yml": METADATA, **files})
    arrived = take_in([path], tiny)
    assert len(arrived.submissions) == 2
    assert (
        f"{path}: left out (Gradescope does not say whose they are): submission_103"
        in arrived.notices
    )


# --- nbgrader, git clones, mixtures --------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "submitted"])
def test_a_tree_of_nbgrader_is_a_submission_for_each_student(
    tmp_path: Path, tiny: Course, given: str
) -> None:
    cells = '{"nbformat": 4, "nbformat_minor": 5, "cells": []}'
    folder(
        tmp_path / "course",
        {
            "source/ps1/basics.ipynb": cells,
            "submitted/ada/ps1/basics.ipynb": cells,
            "submitted/ada/ps1/timestamp.txt": "2026-11-02 10:00:00 UTC",
            "submitted/ada/ps2/layers.ipynb": cells,
            "submitted/bob/ps1/basics.ipynb": cells,
        },
    )
    arrived = take_in([tmp_path / "course" / given], tiny)
    assert files_of(arrived) == {
        "ada": ["ps1/basics.ipynb", "ps2/layers.ipynb"],
        "bob": ["ps1/basics.ipynb"],
    }
    assert "a download from nbgrader: 2 submissions" in arrived.notices[0]


def test_a_folder_of_clones_zips_and_files_says_what_it_holds(tmp_path: Path, tiny: Course) -> None:
    path = folder(
        tmp_path / "class",
        {
            "hw-ada/.git/config": "",
            "hw-ada/basics.py": TEXT,
            "hw-bob/.git/config": "",
            "hw-bob/src/basics.py": TEXT,
            "cleo.zip": zipped({"basics.py": TEXT}),
            "dana.py": TEXT,
        },
    )
    arrived = take_in([path], tiny)
    assert [*files_of(arrived)] == ["cleo", "dana", "hw-ada", "hw-bob"]
    assert arrived.notices == (f"{path}: 4 submissions: 1 archive, 1 file, 2 git clones",)


def test_a_download_and_files_of_others_are_one_batch(tmp_path: Path, tiny: Course) -> None:
    canvas = tmp_path / "submissions.zip"
    canvas.write_bytes(zipped({"doejane_1_2_basics.py": TEXT}))
    (tmp_path / "late.py").write_text(TEXT, "utf-8")
    assert [*files_of(take_in([canvas, tmp_path / "late.py"], tiny))] == ["doejane", "late"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_in_a_download_are_not_followed(tmp_path: Path, tiny: Course) -> None:
    (tmp_path / "secret.py").write_text("SECRET = 1", "utf-8")
    canvas = folder(tmp_path / "canvas", {"doejane_1_2_basics.py": TEXT})
    (canvas / "roebob_2_3_basics.py").symlink_to(tmp_path / "secret.py")
    assert files_of(take_in([canvas], tiny)) == {"doejane": ["basics.py"]}


def test_an_entry_that_leads_out_of_a_download_is_nobodys(tmp_path: Path, tiny: Course) -> None:
    files = {"doejane_1_2_basics.py": TEXT, "../roebob_2_3_basics.py": TEXT}
    (tmp_path / "submissions.zip").write_bytes(zipped(files))
    assert [*files_of(take_in([tmp_path / "submissions.zip"], tiny))] == ["doejane"]


# --- the roster ----------------------------------------------------------------------------------

CLASS = (
    "Name,Student ID,E-mail,Section", "Jane Doe,s1,jane@x.edu,A", '"O\'Neil, Zoë",s2,zoe@x.edu,B',
    "Bob Roe,s3,bob@x.edu,A",
)  # fmt: skip


def test_who_is_on_the_roster_and_handed_in_nothing_is_told(
    tmp_path: Path, download: Download, tiny: Course
) -> None:
    path = download({"doejane_1_2_basics.py": TEXT, "oneilzoe_2_3_basics.py": TEXT})
    arrived = take_in([path], tiny, roster_of(tmp_path, *CLASS))
    assert {student: person.id for student, person in arrived.people.items()} == {
        "doejane": "s1",
        "oneilzoe": "s2",
        "s3": "s3",
    }
    assert arrived.people["doejane"].canvas == "1"
    assert arrived.people["oneilzoe"].extra == {"Section": "B"}
    assert arrived.notices[1:] == ("1 on the roster without a submission: s3 Bob Roe",)


@pytest.mark.parametrize(
    "name",
    ["s1", "jane", "JANE@x.edu", "Jane Doe", "Doe, Jane", "doejane", "jane_doe", "Jané Doe"],
)
def test_a_student_is_found_by_any_name_that_a_system_gives(
    tmp_path: Path, tiny: Course, name: str
) -> None:
    folder(tmp_path / "class", {f"{name}/basics.py": TEXT, "zzz/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *CLASS))
    assert arrived.people[name].id == "s1"
    assert "1 submitted but not on the roster: zzz" in arrived.notices


def test_two_people_of_one_name_are_not_guessed_between(tmp_path: Path, tiny: Course) -> None:
    roster = roster_of(tmp_path, "id,name", "s1,Jane Doe", "s2,Jane Doe")
    folder(tmp_path / "class", {"Jane Doe/basics.py": TEXT, "s2/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster)
    assert set(arrived.people) == {"s1", "s2"}
    assert "not on the roster: 'Jane Doe'; did you mean s1 Jane Doe?" in arrived.notices


@pytest.mark.parametrize(
    ("handed_in", "near"),
    [
        ("dana_dias", "40077 Dana Diaz"),
        ("Diaz, Diana", "40077 Dana Diaz"),
        ("dana diaz garcia", "40077 Dana Diaz"),
        ("4077", "40077 Dana Diaz"),
        ("homework-40707", "40077 Dana Diaz"),
        ("r.marin", "50123 Rosa Marín"),
    ],
)
def test_who_may_be_a_stranger_is_asked_and_not_decided(
    tmp_path: Path, tiny: Course, handed_in: str, near: str
) -> None:
    lines = ("id,name,email", "40077,Dana Diaz,dd1@x.edu", "50123,Rosa Marín,rmarino@x.edu")
    folder(tmp_path / "class", {f"{handed_in}/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *lines))
    assert f"not on the roster: '{handed_in}'; did you mean {near}?" in arrived.notices
    assert {*arrived.people} == {"40077", "50123"}


@pytest.mark.parametrize("handed_in", ["40078", "elif diaz", "dana", "homework", "\x1b[2J"])
def test_nobody_is_named_for_a_stranger_who_is_not_near(
    tmp_path: Path, tiny: Course, handed_in: str
) -> None:
    folder(tmp_path / "class", {f"{handed_in}/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, "id,name", "40077,Dana Diaz"))
    assert not any("did you mean" in line for line in arrived.notices)


def test_a_group_of_the_roster_gets_the_grade_of_its_submission(
    tmp_path: Path, tiny: Course
) -> None:
    roster = roster_of(tmp_path, "id;name;group", "s1;Jane;Team 7", "s2;Bob;Team 7", "s3;Cleo;")
    folder(tmp_path / "class", {"team7/basics.py": TEXT, "cleo/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster)
    assert [one.members for one in arrived.submissions] == [("cleo",), ("s1", "s2")]


TEAM = (
    "id,name,email,group",
    *("s1,Jane Doe,jane@x,7", "s2,Bob Roe,bob@x,7", "s3,Cleo Poe,cleo@x,7", "s4,Dan,dan@x,"),
)


def team_of(tmp_path: Path, tiny: Course, **texts: str) -> Arrivals:
    """What arrives from a class with a group of three, and what it submitted."""
    folder(tmp_path / "class", {f"{name}/basics.py": text for name, text in texts.items()})
    return take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *TEAM))


def test_a_member_submits_for_a_group_under_their_own_name(tmp_path: Path, tiny: Course) -> None:
    arrived = team_of(tmp_path, tiny, jane=TEXT, dan=TEXT)
    assert [one.members for one in arrived.submissions] == [("dan",), ("s1", "s2", "s3")]
    assert (
        "'jane' (s1 Jane Doe) submitted for a group: s2 Bob Roe and s3 Cleo Poe get the same grade"
    ) in arrived.notices
    assert not any("without a submission" in line for line in arrived.notices)


def test_the_member_who_submitted_is_known_to_the_learning_system(
    tmp_path: Path, tiny: Course, download: Download
) -> None:
    path = download({"doejane_7_70_hw.py": TEXT, "dan_8_80_hw.py": TEXT})
    arrived = take_in([path], tiny, roster_of(tmp_path, *TEAM))
    assert {key: arrived.people[key].canvas for key in ("s1", "s2")} == {"s1": "7", "s2": ""}


def test_two_members_with_one_text_are_no_conflict(tmp_path: Path, tiny: Course) -> None:
    arrived = team_of(tmp_path, tiny, jane=TEXT, bob=f"{TEXT}\n", dan=TEXT)
    assert [(one.student, one.members) for one in arrived.submissions] == [
        ("bob", ("s1", "s2", "s3")),
        ("dan", ("dan",)),
    ]
    assert not arrived.conflicts
    assert (
        "'jane' (s1 Jane Doe) has the same text as 'bob' (s2 Bob Roe): the members of a group "
        "share one grade"
    ) in arrived.notices


def test_two_members_with_different_texts_are_a_conflict_of_the_whole_group(
    tmp_path: Path, tiny: Course
) -> None:
    arrived = team_of(tmp_path, tiny, jane=TEXT, bob="x = 1", dan=TEXT)
    assert [one.student for one in arrived.submissions] == ["dan"]
    (why,) = {*arrived.conflicts.values()}
    assert {*arrived.conflicts} == {"s1", "s2", "s3"}
    assert why.startswith(
        "'bob' (s2 Bob Roe) and 'jane' (s1 Jane Doe) are of one group, with different texts: keep "
        "only one; if the roster's groups are not teams"
    )


def test_a_member_whose_file_cannot_be_read_takes_nothing_from_the_group(
    tmp_path: Path, tiny: Course
) -> None:
    folder(tmp_path / "class", {"jane.docx": "PK", "bob.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *TEAM))
    assert [(one.student, one.members) for one in arrived.submissions] == [
        ("bob", ("s1", "s2", "s3"))
    ]
    assert any("'jane' (s1 Jane Doe) cannot be read" in line for line in arrived.notices)


def test_a_member_with_two_files_of_one_name_is_told_with_their_places(
    tmp_path: Path, tiny: Course
) -> None:
    folder(tmp_path / "class", {"jane/basics.py": TEXT, "jane.py": "x = 1", "dan.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *TEAM))
    assert [one.student for one in arrived.submissions] == ["dan"]
    assert {*arrived.conflicts} == {"s1", "s2", "s3"}
    assert "two submissions are called 'jane': " in arrived.conflicts["s2"]


def test_a_member_stands_in_for_a_group_whose_file_cannot_be_read(
    tmp_path: Path, tiny: Course
) -> None:
    folder(tmp_path / "class", {"7.docx": "PK", "jane.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *TEAM))
    assert [(one.student, one.members) for one in arrived.submissions] == [
        ("jane", ("s1", "s2", "s3"))
    ]


def test_the_text_of_a_group_and_the_same_text_of_a_member_are_one(
    tmp_path: Path, tiny: Course
) -> None:
    arrived = team_of(tmp_path, tiny, **{"7": TEXT, "jane": TEXT})
    assert [(one.student, one.members) for one in arrived.submissions] == [
        ("7", ("s1", "s2", "s3"))
    ]
    assert not arrived.conflicts


def test_two_submissions_of_a_groups_name_with_different_texts_are_a_conflict(
    tmp_path: Path, tiny: Course
) -> None:
    lines = [line.replace(",7", ",Team 7") for line in TEAM]
    folder(tmp_path / "class", {"team7/basics.py": TEXT, "Team_7/basics.py": "x = 1"})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *lines))
    assert (arrived.submissions, {*arrived.conflicts}) == ((), {"s1", "s2", "s3"})


def test_a_student_with_two_submissions_is_told_with_both(tmp_path: Path, tiny: Course) -> None:
    folder(tmp_path / "class", {"s1/basics.py": TEXT, "jane/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *CLASS))
    assert arrived.submissions == ()
    (why,) = {*arrived.conflicts.values()}
    assert "two grades, of 'jane' and of 's1': keep only one" in why


def test_who_is_in_a_conflict_is_left_out_and_is_neither_absent_nor_a_stranger(
    tmp_path: Path, tiny: Course
) -> None:
    names = ("s1", "jane", "zoe", "Jane Doe")
    folder(tmp_path / "class", {f"{name}/basics.py": TEXT for name in names})
    arrived = take_in([tmp_path / "class"], tiny, roster_of(tmp_path, *CLASS))
    assert [one.student for one in arrived.submissions] == ["zoe"]
    assert {student: person.id for student, person in arrived.people.items()} == {
        "s1": "s1",
        "zoe": "s2",
        "s3": "s3",
    }
    grades = "s1 Jane Doe would get 3 grades, of 'Jane Doe', of 'jane' and of 's1'"
    why = f"{grades}: keep only one submission"
    assert arrived.conflicts == dict.fromkeys(["Jane Doe", "s1", "jane"], why)
    assert arrived.notices[1:] == ("1 on the roster without a submission: s3 Bob Roe",)


def submitted(*groups: Sequence[tuple[str, str]]) -> Files:
    """A download from Gradescope: the submitters of each submission by name and number."""
    text = "---\n" + "".join(
        f"submission_{n}:\n  :submitters:\n"
        + "".join(
            f"  - :name: {name}\n    :email: {sid}@x.edu\n    :sid: {sid}\n" for name, sid in group
        )
        for n, group in enumerate(groups)
    )
    files = {f"submission_{n}/basics.py": TEXT for n in range(len(groups))}
    return {"submission_metadata.yml": text, **files}


TWO_JANES = ("id,name,email", "s1,Jane Doe,s1@x.edu", "s2,Jane Doe,s2@x.edu")


@pytest.mark.parametrize(
    ("groups", "members"),
    [
        pytest.param(
            [[("Jane Doe", "s1"), ("Bob", "b")], [("Jane Doe", "s2"), ("Cleo", "c")]],
            [("Jane Doe_s1", "Bob"), ("Jane Doe_s2", "Cleo")],
            id="in two groups",
        ),
        pytest.param(
            [[("Jane Doe", "s1"), ("Jane Doe", "s2")]],
            [("Jane Doe_s1", "Jane Doe_s2")],
            id="in one group",
        ),
        pytest.param(
            [[("Jane Doe", "s1")], [("Jane Doe", "s2"), ("Cleo", "c")]],
            [("Jane Doe_s1",), ("Jane Doe_s2", "Cleo")],
            id="one alone and one in a group",
        ),
    ],
)
def test_two_people_of_one_name_each_get_their_own_grade(
    tmp_path: Path,
    tiny: Course,
    download: Download,
    groups: Sequence[Sequence[tuple[str, str]]],
    members: Sequence[Sequence[str]],
) -> None:
    path = download(submitted(*groups))
    arrived = take_in([path], tiny, roster_of(tmp_path, *TWO_JANES))
    assert [one.members for one in arrived.submissions] == members
    assert arrived.people["Jane Doe_s1"].id == "s1"
    assert arrived.people["Jane Doe_s2"].id == "s2"
    assert not arrived.conflicts
    assert not any("without a submission" in line for line in arrived.notices)


def test_one_person_in_two_groups_gets_nobodys_grade_and_the_others_theirs(
    tmp_path: Path, tiny: Course, download: Download
) -> None:
    path = download(
        submitted([("Jane Doe", "s1"), ("Bob", "b")], [("Jane Doe", "s1"), ("Cleo", "c")])
    )
    arrived = take_in([path], tiny, roster_of(tmp_path, *TWO_JANES))
    assert [one.members for one in arrived.submissions] == [("Bob",), ("Cleo",)]
    assert {*arrived.conflicts} == {"Jane Doe", "s1"}


# --- rosters as people have them -----------------------------------------------------------------

ONE_CLASS = ("Student ID,Name,Email,Section", "s1,Jane Doe,jane@x.edu,A", "s2,Bob Roe,bob@x.edu,B")
GITHUB = '"identifier","github_username","github_id","name"'


def read(place: Path, data: str | bytes) -> Roster:
    path = place / "roster.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_roster(path)


@pytest.mark.parametrize(
    "data",
    [
        "\n".join(ONE_CLASS),
        "\r".join(ONE_CLASS),
        "\r".join(ONE_CLASS) + "\r",
        "\r\n".join(ONE_CLASS),
        "sep=;\n" + "\n".join(ONE_CLASS).replace(",", ";"),
        "sep=;\r\n" + "\r\n".join(ONE_CLASS).replace(",", ";"),
        "sep=,\r" + "\r".join(ONE_CLASS),
        '"sep=\t"\n' + "\n".join(ONE_CLASS).replace(",", "\t"),
        "\ufeffSEP=|\n" + "\n".join(ONE_CLASS).replace(",", "|"),
        ("\ufeff" + "\r\n".join(ONE_CLASS)).encode("utf-16"),
    ],
)
def test_a_roster_is_read_as_any_program_writes_it(tmp_path: Path, data: str | bytes) -> None:
    roster = read(tmp_path, data)
    assert [(p.id, p.name, p.email, p.extra) for p in roster.people] == [
        ("s1", "Jane Doe", "jane@x.edu", {"Section": "A"}),
        ("s2", "Bob Roe", "bob@x.edu", {"Section": "B"}),
    ]
    assert not roster.notes


def test_a_clones_copy_of_the_engine_is_no_answer(tmp_path: Path, tiny: Course) -> None:
    """To look through its files took a student's time, and ended a short limit without points."""
    clone = {"exercises/basics.py": TEXT, "grader/guest/server.py": "", "grader/mine.py": TEXT}
    own = {"grader/basics.py": TEXT, "helpers/grader/mine.py": TEXT}
    place = folder(tmp_path / "all", {f"ada/{name}": text for name, text in clone.items()})
    folder(place, {f"bob/{name}": text for name, text in own.items()})
    (place / "eve.zip").write_bytes(zipped({f"kit/{name}": text for name, text in clone.items()}))
    assert files_of(take_in([place], tiny)) == {
        "ada": ["exercises/basics.py"],
        "bob": ["grader/basics.py", "helpers/grader/mine.py"],
        "eve": ["exercises/basics.py"],
    }


def test_the_roster_of_github_classroom_names_students_and_clones(
    tmp_path: Path, tiny: Course
) -> None:
    lines = [
        GITHUB,
        '"Jane Doe","janehub","1",""',
        '"40007","doe","2",""',
        '"bob@x.edu","jane-doe","3",""',
        '"","nameless","4",""',
        '"Cleo Poe","","",""',
    ]
    roster = read(tmp_path, "\n".join(lines))
    assert [(p.id, p.name, p.email, p.login) for p in roster.people] == [
        ("", "Jane Doe", "", "janehub"),
        ("40007", "", "", "doe"),
        ("", "", "bob@x.edu", "jane-doe"),
        ("", "", "", "nameless"),
        ("", "Cleo Poe", "", ""),
    ]
    names = ("ps1-JaneHub", "ps1-jane-doe", "ps1-doe", "nameless", "Cleo Poe")
    folder(tmp_path / "class", {f"{name}/basics.py": TEXT for name in names})
    arrived = take_in([tmp_path / "class"], tiny, roster)
    found = {name: roster.find(Person(), name) for name in names}
    assert [*found.values()] == ["Jane Doe", "bob@x.edu", "40007", "nameless", "Cleo Poe"]
    assert {*arrived.people} == {*names}
    assert len(arrived.notices) == 1


def test_a_login_that_fits_two_people_is_nobodys(tmp_path: Path) -> None:
    roster = read(tmp_path, "id,username\ns1,ada\ns2,ADA\n")
    assert roster.find(Person(), "hw-ada") is None


def test_a_worksheet_of_moodle_is_a_roster_without_its_numbers(tmp_path: Path) -> None:
    roster = read(
        tmp_path, "Identifier,Full name,Email address\nParticipant 7,Jane Doe,jane@x.edu\n"
    )
    assert [*roster.keys] == ["jane@x.edu"]


def test_a_row_that_is_there_twice_is_one_student_and_a_line(tmp_path: Path, tiny: Course) -> None:
    roster = read(tmp_path, "\n".join([*ONE_CLASS, ONE_CLASS[1]]))
    assert [p.id for p in roster.people] == ["s1", "s2"]
    line = (
        f"{tmp_path / 'roster.csv'}:4: s1 Jane Doe is in line 2 already; the lines are the same, "
        "so they count as one student"
    )
    folder(tmp_path / "class", {"s1/basics.py": TEXT, "s2/basics.py": TEXT})
    assert take_in([tmp_path / "class"], tiny, roster).notices[1:] == (line,)


def test_a_student_in_two_sections_is_one_student(tmp_path: Path) -> None:
    roster = read(tmp_path, "\n".join([*ONE_CLASS, "s1,Jane Doe,jane@x.edu,C"]))
    assert roster.people[0].extra == {"Section": "A and C"}
    (note,) = roster.notes
    assert note.endswith(
        "roster.csv:4: s1 Jane Doe is in line 2 already; the lines differ only in Section, so they "
        "count as one student"
    )


def test_of_two_rows_of_a_student_one_may_lack_a_cell(tmp_path: Path) -> None:
    roster = read(tmp_path, "id,name,email\ns1,Jane,\ns1,,jane@x.edu\n")
    assert [(p.name, p.email) for p in roster.people] == [("Jane", "jane@x.edu")]
    assert "the lines differ only in name and e-mail" in roster.notes[0]


def test_a_row_without_a_student_is_left_out_with_a_line(tmp_path: Path) -> None:
    roster = read(tmp_path, "\n".join([*ONE_CLASS, ",,,C", ",,,Manual Posting", ",,,"]))
    assert len(roster.people) == 2
    (note,) = roster.notes
    assert note.endswith("roster.csv:4: left out, since it has no id, name or e-mail")


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("hw.tar.gz", "hw"), ("HW.TAR.GZ", "HW"), ("hw.tar.bz2", "hw"), ("hw.tar.xz", "hw"),
        ("hw.tgz", "hw"), ("hw.v2.tar.gz", "hw.v2"), ("hw.gz", "hw"), (".x.tar.gz", None),
    ],
)  # fmt: skip
def test_an_archive_is_called_by_its_name_without_all_suffixes(
    tmp_path: Path, tiny: Course, name: str, student: str | None
) -> None:
    folder(tmp_path / "class", {name: b"", "zzz/basics.py": TEXT})
    arrived = take_in([tmp_path / "class"], tiny)
    assert [one.student for one in arrived.submissions if one.student != "zzz"] == (
        [] if student is None else [student]
    )


@pytest.mark.skipif(
    os.name == "nt", reason="Windows stores file names as text, so none can hold such bytes"
)
def test_a_name_with_bytes_that_are_no_text_finds_its_student(tmp_path: Path, tiny: Course) -> None:
    place = tmp_path / "moodle" / os.fsdecode(b"J\xfcrg Doe_12_assignsubmission_file_")
    place.mkdir(parents=True)
    (place / "basics.py").write_text(TEXT, "utf-8")
    roster = read(tmp_path, "id,name\ns1,Jürg Doe\n")
    arrived = take_in([tmp_path / "moodle"], tiny, roster)
    assert [one.student for one in arrived.submissions] == ["Jürg Doe"]
    assert arrived.people["Jürg Doe"].id == "s1"


def test_no_key_and_no_data_of_a_student_holds_surrogates(download: Download, tiny: Course) -> None:
    files = dict(submitted([(r'"J\ud83d\ude00 \ud800\udcfc"', "s1")]))
    listed = str(files["submission_metadata.yml"]).replace(":sid: s1", r':sid: "\udcff1"')
    files["submission_metadata.yml"] = listed
    (student, person), *_ = take_in([download(files)], tiny).people.items()
    assert f"{student}{person.name}{person.id}".encode()
    assert person.name.startswith("J\N{GRINNING FACE} ")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["a,b", "1,2"], "has no column for an id, a name or an email; it reads: a, b"),
        ([""], "has no column"),
        (["PK\x03\x04\rid", "\r,"], "is no CSV: A roster begins with"),
        (
            ["id,name", "s1,Jane", "s1,Bob"],
            r"roster\.csv:3: s1 is there twice: line 2 has the name 'Jane', and line 3 has 'Bob'\. "
            r"Correct one of the lines, or remove it",
        ),
        (
            ["name,section", "Jane,A", "Jane,B"],
            r"roster\.csv:3: Jane is there twice: line 2 differs",
        ),
        (["id,group", "s1,a", "s1,b"], r"roster\.csv:3: .* line 2 has the group 'a', and line 3"),
        (["id,name"], r"roster\.csv has no student below its first line"),
        (["id,name", "", ",", ",Points Possible"], r"has no student below its first line"),
        (["id,name", "s1,Jane", 's2,"Bob', "s3,Cleo"], r"roster\.csv:3: the quotes in this row"),
        (["id,name", 's1,"Jane', 's2,"Roe, Bob"', "s3,Cleo"], r"roster\.csv:2: the quotes in this"),
        (
            ["id,name,x", 's1,"Jane,a', "s2,Bob,b", 's3,Cleo,c"'],
            r"roster\.csv:2: the quotes in this",
        ),
        (["sep=;", "id;name", 's1;"Jane'], r"roster\.csv:3: the quotes in this row do not match"),
        (["", "id,name", "", "s1,Jane", ",", "s1,Bob"], r"roster\.csv:6: s1 is there twice"),
        (["id,name", '"s1","Jane\nDoe"', "", 's1,"Bob\nRoe"'], r"roster\.csv:5: s1 is there twice"),
    ],
)
def test_a_roster_that_cannot_be_used_is_told(
    tmp_path: Path, lines: Sequence[str], problem: str
) -> None:
    with pytest.raises(CallError, match=problem):
        roster_of(tmp_path, *lines)


@pytest.mark.parametrize("header", ["id;name", "id\tname"])
def test_a_roster_may_begin_with_blank_lines(tmp_path: Path, header: str) -> None:
    row = header.replace("id", "s1").replace("name", "Doe, Jane")
    (person,) = roster_of(tmp_path, "", "\r", header, row).people
    assert (person.id, person.name) == ("s1", "Doe, Jane")


def test_a_gradebook_of_canvas_is_a_roster_without_its_odd_rows(tmp_path: Path) -> None:
    roster = roster_of(
        tmp_path,
        "Student,ID,Section",
        "    Points Possible,,",
        '"Doe, Jane",7,A',
        '"Student, Test",9,A',
    )
    assert [person.id for person in roster.people] == ["7"]


def test_a_roster_may_come_from_excel(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_bytes(
        "Last name;First name;ID\r\nDoe;Jané;1\r\n".encode("cp1252")
    )
    (person,) = read_roster(tmp_path / "roster.csv").people
    assert (person.name, person.id) == ("Jané Doe", "1")
