"""A table of file names as systems write them, and odd ones, with what a dry run says of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Grader
from tests.support.archives import zipped
from tests.support.places import TINY

TEXT = "def center(x):\n    return x\n"
NOTE = """\
submission_101:
  :submitters:
  - :name: Jane Doe
    :sid: '7'
submission_102:
  :submitters:
  - :name: Bob Roe
  - :name: Cleo Poe
submission_103:
  :submitters: []
"""

# Two honest entries of each system, beside which a name stands.
BESIDE = {
    "Canvas": ("aaa_901_9001_basics.py", "bbb_902_9002_basics.py"),
    "Moodle": tuple(f"{who}_assignsubmission_file_/basics.py" for who in ("Aa_901", "Bb_902")),
    "Gradescope": (),
    "a folder": ("aaa.py", "bbb.py"),
}
OTHER = "not read: submit a .py file or a notebook"
CANVAS = "left out (Canvas does not say whose they are): {}"
MOODLE = "left out (Moodle does not say whose they are): {}"
GRADESCOPE = "left out (Gradescope does not say whose they are): {}"
PLAIN = "left out (no submissions of their own): {}"

TABLE = [
    # files, by the user's id and the upload's
    ("Canvas", "maxmm_3_11_softmax.py", "maxmm: 1 file: softmax.py"),
    ("Canvas", "maxmm_LATE_3_11_softmax.py", "maxmm (late): 1 file: softmax.py"),
    ("Canvas", "maxmm_3_11_basics-1.py", "maxmm (2 times): 1 file: basics.py"),
    ("Canvas", "maxmm_3_11_homework-1.py", "maxmm: 1 file: homework-1.py"),
    ("Canvas", "maxmm_3_11_my_2_3_x.py", "maxmm: 1 file: my_2_3_x.py"),
    ("Canvas", "maxmm_3_11_text.html", f"maxmm: text.html: {OTHER}, not a web page"),
    ("Canvas", "maxmm_3_11_essay.docx", f"maxmm: essay.docx: {OTHER}, not a Word document"),
    (
        "Canvas",
        "maxmm_3_11_softmax.ipynb.txt",
        "maxmm: softmax.ipynb.txt: not read under this name: call it softmax.ipynb",
    ),
    ("Canvas", "müller_van_der_berg_3_11_a.py", "müller_van_der_berg: 1 file: a.py"),
    ("Canvas", "_3_11_a.py", "anon_3: 1 file: a.py"),
    # what was typed in, which has no upload
    ("Canvas", "maxmm_3_text.html", f"maxmm: text.html: {OTHER}; the typed text holds no code"),
    ("Canvas", "maxmm_3_link.html", f"maxmm: link.html: {OTHER}, not a link"),
    ("Canvas", "maxmm_LATE_3_link.html", "maxmm (late): unreadable"),
    # anonymous grading
    ("Canvas", "anon_abc12_11_softmax.py", "anon_abc12: 1 file: softmax.py"),
    ("Canvas", "anon_abc12_LATE_11_softmax.py", "anon_abc12 (late): 1 file: softmax.py"),
    ("Canvas", "LATE_anon_abc12_11_softmax.py", "anon_abc12 (late): 1 file: softmax.py"),
    ("Canvas", "anon_55555_11_softmax.py", "anon_55555: 1 file: softmax.py"),
    (
        "Canvas",
        "anon_abc12_text.html",
        f"anon_abc12: text.html: {OTHER}; the typed text holds no code",
    ),
    # odd ones
    ("Canvas", "softmax.py", CANVAS.format("softmax.py")),
    ("Canvas", "maxmm_softmax.py", CANVAS.format("maxmm_softmax.py")),
    ("Canvas", "maxmm_3_softmax.py", CANVAS.format("maxmm_3_softmax.py")),
    ("Canvas", "maxmm_3_TEXT.html", CANVAS.format("maxmm_3_TEXT.html")),
    ("Canvas", "notes/softmax.py", CANVAS.format("notes")),
    ("Canvas", "a\x1b[2J.py", CANVAS.format(r"a\x1b[2J.py")),
    # a folder for each participant, or none
    ("Moodle", "Jane Doe_12_assignsubmission_file_/a.py", "Jane Doe: 1 file: a.py"),
    ("Moodle", "Jane Doe_12_assignsubmission_file_a.py", "Jane Doe: 1 file: a.py"),
    ("Moodle", "O'Neil_Zoë_12_assignsubmission_file_/a.py", "O'Neil_Zoë: 1 file: a.py"),
    ("Moodle", "Participant_12_assignsubmission_file_/a.py", "Participant: 1 file: a.py"),
    ("Moodle", "Jane Doe_12_assignsubmission_file_/w.pdf", f"Jane Doe: w.pdf: {OTHER}, not a PDF"),
    (
        "Moodle",
        "Jane Doe_12_assignsubmission_onlinetext_/onlinetext.html",
        f"Jane Doe: onlinetext.html: {OTHER}; the typed text holds no code",
    ),
    ("Moodle", "Jane Doe/a.py", MOODLE.format("Jane Doe")),
    ("Moodle", "maxmm_3_11_softmax.py", MOODLE.format("maxmm_3_11_softmax.py")),
    # a folder for each submission, and a note of whose it is
    ("Gradescope", "submission_101/a.py", "Jane Doe: 1 file: a.py"),
    ("Gradescope", "submission_101/hw/a.py", "Jane Doe: 1 file: hw/a.py"),
    ("Gradescope", "submission_102/a.py", "submission_102 (Bob Roe, Cleo Poe): 1 file: a.py"),
    ("Gradescope", "submission_103/a.py", "submission_103: 1 file: a.py"),
    ("Gradescope", "submission_101/a.rtf", f"Jane Doe: a.rtf: {OTHER}, not a text document"),
    ("Gradescope", "submission_104/a.py", GRADESCOPE.format("submission_104")),
    ("Gradescope", "README.md", GRADESCOPE.format("README.md")),
    # what nobody but the instructor named
    ("a folder", "ada.py", "ada: 1 file: ada.py"),
    ("a folder", "__ada.py", "__ada: 1 file: __ada.py"),
    ("a folder", "Ada Lovelace (1).py", "Ada Lovelace (1): 1 file: Ada Lovelace (1).py"),
    ("a folder", "ada/x.py", "ada: 1 file: x.py"),
    ("a folder", "maxmm_3_11_softmax.py", "maxmm_3_11_softmax: 1 file: maxmm_3_11_softmax.py"),
    ("a folder", "ada.docx", f"ada: ada.docx: {OTHER}, not a Word document"),
    ("a folder", "ada.pdf", f"ada: ada.pdf: {OTHER}, not a PDF"),
    ("a folder", "ada.html", f"ada: ada.html: {OTHER}, not a web page"),
    (
        "a folder",
        "ada.ipynb.txt",
        "ada: ada.ipynb.txt: not read under this name: call it ada.ipynb",
    ),
    ("a folder", "ada/essay.odt", f"ada: essay.odt: {OTHER}, not a text document"),
    ("a folder", "aaa.pdf", PLAIN.format("aaa.pdf")),
    ("a folder", "roster.csv", PLAIN.format("roster.csv")),
    ("a folder", "__init__.py", PLAIN.format("__init__.py")),
]


FORMS = [
    pytest.param(form, *row, id=f"{form} of {row[0]}-{row[1]}")
    for row in TABLE
    for form in ("folder", "zip")
    if (form, row[0]) != ("zip", "a folder")  # which is one student's
]


@pytest.mark.parametrize(("form", "system", "name", "line"), FORMS)
def test_a_dry_run_says_what_a_name_means(
    cold_grader: Grader, tmp_path: Path, form: str, system: str, name: str, line: str
) -> None:
    files = dict.fromkeys((*BESIDE[system], name), TEXT)
    if system == "Gradescope":
        files["submission_metadata.yml"] = NOTE
    path = tmp_path / ("class" if form == "folder" else "submissions.zip")
    if form == "zip":
        path.write_bytes(zipped(files))
    else:
        for file, text in files.items():
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).write_text(text, "utf-8")
    ran = cold_grader("grade", path, "--dry-run", "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert line in [said.removeprefix(f"{path}: ") for said in ran.out.splitlines()]
    assert (f"{path}: a download from {system}: " in ran.out) is (system != "a folder")
