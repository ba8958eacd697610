"""The pages of a gradebook: numbers of a class, pairs, names, and what stands on a page or not."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from grader import __version__
from grader.course.course import Course
from grader.grades.gradebook import existing_gradebook, open_gradebook
from grader.intake import Roster, Submission
from grader.intake.names import file_stems
from grader.records.faults import CallError
from grader.records.grade import Grade, TestResult
from grader.records.lateness import Policy
from grader.records.rows import Adjustment, Person, Row
from grader.report import write_anonymous, write_pages
from grader.report.feedback import feedback_page
from grader.report.looks import looks
from grader.report.overview import classroom, correlation, histogram, points_distribution
from grader.report.similarity import Resemblance, similar
from grader.run.tally import mean_of
from grader.wire import SourceText
from tests.conftest import Grader
from tests.support.gradebooks import (
    HINT,
    HOSTILE,
    MISTAKE,
    SEED,
    correct,
    grade,
    handed_in,
    mistaken,
    solved,
    untouched,
    write_class,
)
from tests.support.places import ROOT, TINY

MISTAKEN = mistaken("center")

# --- the numbers of a class ----------------------------------------------------------------------


def row(student: str, *points: float, adjusted: float = 0) -> Row:
    """Points in some exercises, each of at most two."""
    results = [
        solved(f"e{k}") if got == 2 else mistaken(f"e{k}", None, points=got)
        for k, got in enumerate(points)
    ]
    adjustments = (Adjustment("e0", adjusted, ""),) if adjusted else ()
    return Row(student, grade(student, *results), adjustments=adjustments)


def test_totals_are_counted_in_equal_ranges_the_last_with_its_end() -> None:
    bars = points_distribution([0, 1.9, 2, 19.9, 20, 21, -1], 20)
    assert [bar.count for bar in bars] == [3, 1, 0, 0, 0, 0, 0, 0, 0, 3]
    assert (bars[1].low, bars[1].high) == (2, 4)


def test_who_has_no_grade_counts_in_no_number() -> None:
    empty = Row("eve", grade("eve", untouched("e0"), status="empty"))
    failed = Row("finn", grade("finn", solved("e0"), status="grader_error"))
    numbers = classroom([row("ada", 2), row("bob", 0), Row("zoe", None), empty, failed], ["e0"])
    assert (numbers.students, numbers.graded, numbers.mean, numbers.median) == (5, 2, 1, 1)
    (exercise,) = numbers.exercises
    assert (exercise.passed, exercise.mean, exercise.untouched) == (0.5, 0.5, 0)
    assert sum(bar.count for bar in numbers.distribution) == 2


def test_a_submission_on_no_roster_is_to_look_at_and_in_no_number(
    cold_grader: Grader, tmp_path: Path
) -> None:
    roster = Roster((Person("s1", "Ada"), Person("s2", "Bob")))
    with open_gradebook(tmp_path, "tiny") as book:
        for student in ("ada", "stranger"):
            book.record(grade(student, solved("center") if student == "ada" else MISTAKEN))
        book.exercises = ("center",)
        book.set_people({"ada": roster.people[0], "s2": roster.people[1]})
        book.roster = roster
        numbers = classroom(book.rows(), ["center"])
        assert mean_of(book.rows())[0] == 2
    assert (numbers.students, numbers.graded, numbers.mean, numbers.mistakes) == (2, 1, 2, ())
    assert sum(bar.count for bar in numbers.distribution) == 1
    assert cold_grader("report", tmp_path, "--course", TINY).code == 0
    page = (tmp_path / "report.html").read_text("utf-8")
    looks = page.partition('id="look"')[2].partition("</table>")[0]
    assert re.search(
        r"stranger.*not on the roster, and not in the numbers of the class", looks, re.S
    )


def test_who_is_known_by_a_login_alone_is_on_the_roster_and_nobody_else(tmp_path: Path) -> None:
    roster = Roster((Person(login="ada"), Person(login="bob")))
    with open_gradebook(tmp_path, "tiny") as book:
        for student in ("hw-ada", "hw-stranger"):
            book.record(grade(student, solved("center")))
        book.set_people({"hw-ada": roster.people[0], "bob": roster.people[1]})
        book.roster = roster
        assert {row.student for row in book.rows() if row.unlisted} == {"hw-stranger"}
        book.forget("bob")
        assert book.roster.people == (Person(login="ada"),)


def test_without_a_roster_everybody_is_in_the_numbers(tmp_path: Path) -> None:
    with open_gradebook(tmp_path, "tiny") as book:
        book.record(grade("ada", solved("center")))
        book.exercises = ("center",)
        assert classroom(book.rows(), ["center"]).graded == 1


def test_a_class_of_nobody_has_no_numbers() -> None:
    numbers = classroom([Row("zoe", None)], ["e0"])
    assert (numbers.mean, numbers.mistakes, numbers.exercises[0].passed) == (None, (), None)


def test_a_correction_counts_like_any_points() -> None:
    (exercise,) = classroom([row("ada", 1.5, adjusted=0.5), row("bob", 1)], ["e0"]).exercises
    assert (exercise.passed, exercise.mean) == (0.5, 0.75)


def test_an_exercise_is_compared_with_the_rest_of_the_total() -> None:
    rows = [row("ada", 2, 2, 1), row("bob", 1, 1, 1), row("cleo", 0, 0, 1), row("dan", 0, 2, 1)]
    first, second, third = classroom(rows, ["e0", "e1", "e2"]).exercises
    # By hand: points 2, 1, 0, 0 with rests 3, 2, 1, 3; its own points would make it larger.
    assert first.discrimination == pytest.approx(0.4545, abs=1e-4)
    assert second.discrimination == pytest.approx(0.4545, abs=1e-4)
    assert third.discrimination is None  # all have the same


@pytest.mark.parametrize(
    ("first", "second"), [([0, 1], [0, 1]), ([1, 1, 1], [0, 1, 2]), ([0, 1, 2], [1, 1, 1])]
)
def test_a_correlation_of_too_little_is_none(first: list[float], second: list[float]) -> None:
    assert correlation(first, second) is None


def test_mistakes_are_ranked_by_those_who_made_them() -> None:
    often, rare = "The mask is upside down", "The scores are not scaled"
    rows = [
        Row("ada", grade("ada", mistaken("e0", rare), mistaken("e1", often))),
        Row("bob", grade("bob", solved("e0"), mistaken("e1", often))),
        Row("cleo", grade("cleo", mistaken("e0", None), mistaken("e1", rare, follows="e0"))),
    ]
    ranked = classroom(rows, ["e0", "e1"]).mistakes
    assert [(m.exercise, m.title, m.students) for m in ranked] == [
        ("e1", often, ("ada", "bob")),
        ("e0", rare, ("ada",)),
    ]


def test_a_group_is_one_submission_among_the_slowest_and_how_they_were_run() -> None:
    shared = grade("team", solved("e0"), seconds=9)
    rows = [Row("ada", shared), Row("bob", shared), row("cleo", 2)]
    numbers = classroom(rows, ["e0"])
    assert [one.submission for one in numbers.slowest] == ["team", "cleo"]
    assert [setting.count for setting in numbers.settings] == [2]


def test_a_histogram_is_told_in_words_too() -> None:
    svg = histogram(points_distribution([1, 1, 10], 10), "Totals <of all>")
    assert "0 to 1 points: 0; 1 to 2 points: 2;" in svg
    assert svg.endswith("</svg>")
    assert "Totals &lt;of all&gt;" in svg


# --- names of files ------------------------------------------------------------------------------

NAMES = [
    "ada", "Ada", "ADA", "Doe, Jane", "doe-jane", "../../etc/passwd", "..", ".", "", "/", "a/b",
    "a\\b", "CON", "nul", "lpt1", "x" * 200, "x" * 199 + "y", "李" * 200, "Zoë", "Zoe\u0308",
    "\u202eabc", "\x00", "\ud800", "-", "report", "a.html", HOSTILE,
]  # fmt: skip


def test_every_student_has_a_file_of_their_own_whatever_they_are_called() -> None:
    stems = file_stems(NAMES)
    assert len(stems) == len(NAMES)
    assert len({stem.casefold() for stem in stems.values()}) == len(NAMES)
    for stem in stems.values():
        assert re.fullmatch(r"\w[\w-]*(\.[0-9a-f]{32})?", stem)
        assert len(stem.encode()) < 250
        assert stem.partition(".")[0].lower() not in ("con", "nul", "lpt1")


def test_a_file_is_called_like_the_student_where_nobody_else_is() -> None:
    names = ["Doe, Jane", "Zoë", "s123@example.edu", "李小龙"]
    assert [*file_stems(names).values()] == ["Doe-Jane", "Zoë", "s123-example-edu", "李小龙"]


# --- similarity ----------------------------------------------------------------------------------

WORK = "\n".join(
    f"def step{k}(values, weights):\n    total = {k} * values.sum(dim={k % 3})\n"
    f"    return total.{name}({k}) + weights[{k}]"
    for k, name in enumerate(["exp", "log", "sqrt", "cos", "sin", "tanh", "abs", "neg"])
)
RENAMED = re.sub("values|total|weights|step", lambda word: f"my_{word[0]}", WORK)
OTHERS = [
    f"def other{k}(x):\n"
    + "".join(f"    x = x ** {k}{n} - {n}\n" for n in range(20))
    + "    return x"
    for k in range(3)
]


def places(found: Resemblance) -> tuple[str, ...]:
    """Where to read, in one and in the other."""
    assert found.passages is not None
    return tuple(passage.place for passage in found.passages)


def compared(*texts: str, stubs: Sequence[str] = ()) -> list[Resemblance]:
    return similar([handed_in(f"s{k}", text) for k, text in enumerate(texts)], stubs)


def test_other_names_and_comments_hide_nothing() -> None:
    changed = "# mine\n\n" + RENAMED.replace("\n", "  # really\n")
    (pair,) = compared(WORK, OTHERS[0], changed, OTHERS[1])
    assert (pair.one, pair.others, pair.share) == ("s0", ("s2",), 1)
    assert places(pair) == ("basics.py lines 1–24", "basics.py lines 3–26")


def test_what_is_written_alone_is_like_nobody_elses() -> None:
    assert compared(WORK, *OTHERS) == []


def test_what_half_of_a_class_has_says_nothing() -> None:
    assert compared(*[f"{WORK}\n{other}" for other in OTHERS]) == []


UNIT = """\
def center(x):
    middle = x.mean(dim=-1, keepdim=True)
    return x - middle


def weigh(x, mask):
    hidden = x.masked_fill(mask, float("-inf"))
    return hidden.softmax(dim=-1) @ x
"""


@pytest.mark.parametrize("text", [UNIT, "def f(x):\n    return x + 1\n", WORK])
@pytest.mark.parametrize("size", [2, 5, 17])
def test_the_same_text_is_always_listed_as_one_group(text: str, size: int) -> None:
    others = [
        f"def other{k}(x):\n" + "".join(f"    x = x + {k}{n} * x\n" for n in range(9))
        for k in range(17 - size)
    ]
    (group,) = compared(*others, *[text] * size)
    first, *rest = (f"s{k}" for k in range(17 - size, 17))
    assert (group.one, group.others, group.share) == (first, tuple(rest), 1)
    lines = f"basics.py lines 1–{len(text.splitlines())}"
    assert places(group) == (lines, lines)


def test_comments_layout_and_the_kind_of_file_make_no_other_text() -> None:
    cells = tuple(f"# mine\n{part}\n\n" for part in UNIT.split("\n\n\n"))
    notebook = Submission("nb", (SourceText("hw.ipynb", cells),))
    spaced = UNIT.replace(" = ", "=").replace("\n", "   # why\n")
    found = similar([handed_in("a", UNIT), handed_in("b", spaced), notebook], [])
    assert [(one.one, one.others) for one in found] == [("a", ("b", "nb"))]
    assert places(found[0]) == ("basics.py lines 1–8", "basics.py lines 1–8")


def test_texts_that_differ_in_a_name_a_number_or_far_behind_are_not_the_same() -> None:
    assert compared(UNIT, UNIT.replace("middle", "average"), UNIT.replace("-1", "-2")) == []
    long = f"{WORK}\n" + "#" * 200_000
    assert [one.others for one in compared(f"{long}\nx = 1", f"{long}\nx = 2")] == [("s1",)]
    assert compared(f"{long}\nx = 1", f"{long}\nx = 2", f"{long}\nx = 1")[0].others == ("s2",)


def test_a_group_stands_for_its_members_beside_others() -> None:
    found = compared(WORK, OTHERS[0], WORK, RENAMED, WORK, *OTHERS[1:], UNIT)
    assert [(one.one, one.others) for one in found] == [("s0", ("s2", "s4")), ("s0", ("s3",))]


def test_what_nobody_wrote_makes_no_group() -> None:
    assert compared("", "", "# mine", "  \n") == []
    assert compared(UNIT, UNIT, stubs=["import torch\n\n" + UNIT]) == []
    short = "def f(x):\n    raise NotImplementedError\n"
    assert compared(short, short, stubs=[f"import torch\n\n{short}"]) == []
    assert len(compared(UNIT, UNIT, stubs=[short])) == 1


def test_what_stands_in_the_stubs_says_nothing() -> None:
    assert compared(WORK, WORK, stubs=[WORK]) == []
    assert len(compared(WORK, WORK)) == 1


def test_nothing_to_compare_is_no_pair() -> None:
    assert similar([], []) == []
    assert similar([Submission("a", ()), Submission("b", ())], []) == []


def test_a_passage_in_a_notebook_is_told_by_its_cell() -> None:
    notebook = handed_in("s1", "").sources[0]
    cells = type(notebook)("nb.ipynb", ("import torch", RENAMED))
    (pair,) = similar([handed_in("s0", WORK), Submission("s1", (cells,))], [])
    assert places(pair) == ("basics.py lines 1–24", "nb.ipynb cell 2 lines 1–24")


@pytest.mark.parametrize("text", ['"""\\', '"' * 7, "'\\", 'r"""\\"""\\', "f'{", "\ud800 \x00"])
def test_text_that_is_no_python_is_compared_all_the_same(text: str) -> None:
    hostile = text * 20_000
    (pair,) = compared(f"{WORK}\n{hostile}", f"{WORK}\n{OTHERS[0]}")
    assert pair.share > 0.75


def test_pairs_are_the_same_in_every_process() -> None:
    code = (
        "from tests.report.test_report import WORK, OTHERS, compared;"
        "print(compared(WORK + OTHERS[0], WORK + OTHERS[1]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


# --- a student's page ----------------------------------------------------------------------------


class Page(HTMLParser):
    """A page as its text, its elements, and what they point to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.texts))


def page_of(graded: Grade, course: Course, *adjustments: Adjustment) -> str:
    return feedback_page(Row(graded.student, graded, adjustments=adjustments), course)


def test_a_mistake_stands_with_its_question_and_the_public_numbers(tiny: Course) -> None:
    said = Page(page_of(grade("ada", mistaken("weigh")), tiny)).text
    assert MISTAKE in said
    assert HINT in said
    assert "expected 0.25, got 0.75" in said
    assert "1 passed, 1 not run" in said  # that the definition is there goes without saying


def test_nothing_that_is_hidden_stands_on_the_page(tiny: Course) -> None:
    graded = grade("ada", mistaken("weigh"), solved("center"))
    html = page_of(graded, tiny)
    assert "The values are right" in html
    for secret in (SEED, "0.8675309"):
        assert secret not in html


def test_only_the_picture_of_a_public_test_is_shown_and_only_once(tiny: Course) -> None:
    page = page_of(grade("ada", mistaken("weigh")), tiny)
    assert page.count("<figure") == 1
    assert re.findall(r"<svg [^>]*aria-label=\"([^\"]*)", page) == [
        "expected", "yours", "yours − expected",
    ]  # fmt: skip


def test_a_correction_stands_beside_what_was_computed(tiny: Course) -> None:
    adjustment = Adjustment("weigh", -0.25, "handed in by mail")
    said = Page(page_of(grade("ada", mistaken("weigh")), tiny, adjustment)).text
    assert "0.25 of 4 points" in said
    assert "0.5 as computed, −0.25 by your instructor: handed in by mail" in said


def test_where_the_grader_failed_no_points_and_no_traceback_are_told(tiny: Course) -> None:
    broken = grade("ada", solved("weigh"), status="grader_error", message="Traceback: 0.8675309")
    said = Page(page_of(broken, tiny)).text
    assert "? of 4 points" in said
    assert "Not graded yet" in said
    assert "Traceback" not in said


def test_an_exercise_that_is_not_begun_is_one_line(tiny: Course) -> None:
    said = Page(page_of(grade("ada", untouched("weigh")), tiny)).text
    assert "still the stub" in said
    assert "The values are right" not in said


def test_text_of_students_is_text(tiny: Course) -> None:
    ours = Page(page_of(grade("ada", mistaken("weigh")), tiny))
    theirs = Page(page_of(grade(HOSTILE, mistaken("weigh", message=HOSTILE * 30)), tiny))
    assert theirs.tags == ours.tags
    assert "<img src=x onerror=alert(1)>�gnp�[2J" in theirs.text
    assert not {"\u202e", "\x1b"} & set(theirs.text)


# --- all pages -----------------------------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path, tiny: Course) -> Path:
    """The gradebook of a class, with its pages."""
    write_class(tmp_path)
    with existing_gradebook(tmp_path, tiny.name) as book:
        write_pages(book, tiny)
    return tmp_path


def test_everyone_with_a_grade_has_a_page_and_the_report_links_to_it(out: Path) -> None:
    pages = {path.name for path in (out / "feedback").iterdir()}
    assert {"ada.html", "bob.html", "dan.html", "eve.html", "finn.html"} < pages
    assert len(pages) == 6  # zoe is absent
    report = Page((out / "report.html").read_text("utf-8"))
    links = {value for name, value in report.attributes if name == "href" and "feedback/" in value}
    assert len(links) == 6
    assert links >= {"feedback/ada.html", "feedback/dan.html"}


def test_pages_ask_for_nothing_from_anywhere(out: Path) -> None:
    for path in (out / "report.html", *(out / "feedback").iterdir()):
        page = Page(path.read_text("utf-8"))
        assert not {"link", "img", "iframe", "form", "object"} & set(page.tags)
        assert not [name for name, _ in page.attributes if name == "src" or name.startswith("on")]
        places = {value for name, value in page.attributes if name == "href"}
        assert not [place for place in places if not place.startswith(("#", "feedback/"))]
        assert "default-src 'none'; script-src 'sha256-" in dict(page.attributes)["content"] or any(
            "default-src 'none'" in value for _, value in page.attributes
        )


def test_the_report_holds_no_seed(out: Path) -> None:
    assert SEED not in (out / "report.html").read_text("utf-8")


def test_pages_of_those_who_are_gone_go_and_others_stay(out: Path, tiny: Course) -> None:
    (out / "feedback" / "notes.html").write_text("<p>an instructor's own", "utf-8")
    with existing_gradebook(out, tiny.name) as book:
        book.forget("ada")
        write_pages(book, tiny)
    names = {path.name for path in (out / "feedback").iterdir()}
    assert "ada.html" not in names
    assert {"bob.html", "notes.html"} < names
    assert "Lovelace" not in (out / "report.html").read_text("utf-8")


def test_the_same_gradebook_gives_the_same_pages(out: Path, tiny: Course) -> None:
    before = {path: path.read_bytes() for path in out.rglob("*.html")}
    with existing_gradebook(out, tiny.name) as book:
        write_pages(book, tiny)
    assert {path: path.read_bytes() for path in out.rglob("*.html")} == before


def test_pages_that_cannot_be_written_are_one_line_and_leave_the_old_ones(
    tmp_path: Path, tiny: Course
) -> None:
    write_class(tmp_path)
    (tmp_path / "feedback").write_text("a file", "utf-8")
    with (
        existing_gradebook(tmp_path, tiny.name) as book,
        pytest.raises(CallError, match="feedback"),
    ):
        write_pages(book, tiny)
    assert {path.name for path in tmp_path.iterdir()} == {"grades.db", "feedback"}


# --- what failed only through an earlier mistake --------------------------------------------------

FOLLOWING = "Failed only through an earlier mistake"


def write_following(folder: Path, student: str, *adjustments: Adjustment) -> None:
    """A class of one, whose `weigh` follows from a mistake in `center`."""
    with open_gradebook(folder, "tiny") as book:
        book.exercises = ("center", "weigh")
        book.record(grade(student, mistaken("center"), mistaken("weigh", follows="center")))
        for adjustment in adjustments:
            correct(book, student, adjustment)


def report_of(folder: Path, course: Course) -> str:
    with existing_gradebook(folder, course.name) as book:
        write_pages(book, course)
    return Page((folder / "report.html").read_text("utf-8")).text


def test_the_report_lists_what_follows_with_the_points_at_stake(
    tmp_path: Path, tiny: Course
) -> None:
    write_following(tmp_path / "our grades", "O'Neil, Ada")
    said = report_of(tmp_path / "our grades", tiny)
    assert FOLLOWING in said
    why = f"Follows from center: {MISTAKE}"
    line = ["grader", "adjust", "our grades/", "O'Neil, Ada", "weigh", "+1.5", "--reason", why]
    assert shlex.join(line) in said
    assert said.count("grader adjust '") == 1  # the mistake in center itself is Ada's own


def test_what_a_person_has_decided_is_listed_in_place_of_the_line(
    tmp_path: Path, tiny: Course
) -> None:
    write_following(tmp_path, "ada", Adjustment("weigh", 1, "read her code"))
    said = report_of(tmp_path, tiny)
    assert "corrected by +1: read her code" in said
    assert "ada weigh +1.5" not in said


def test_a_class_in_which_nothing_follows_has_no_such_list(out: Path) -> None:
    assert FOLLOWING not in (out / "report.html").read_text("utf-8")


def test_what_is_void_for_a_forbidden_operation_is_not_at_stake(
    tmp_path: Path, tiny: Course
) -> None:
    used = TestResult("operations", "It is written by hand", "failed", hidden=False)
    weigh = mistaken("weigh", follows="center")
    weigh = msgspec.structs.replace(weigh, tests=(weigh.tests[0], used, *weigh.tests[1:]))
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises = ("center", "weigh")
        book.record(grade("ada", mistaken("center"), weigh))
    assert FOLLOWING not in report_of(tmp_path, tiny)


def test_a_hostile_name_does_not_leave_the_line_for_the_shell(tmp_path: Path, tiny: Course) -> None:
    write_following(tmp_path, "$(reboot); `x` '\"")
    said = report_of(tmp_path, tiny)
    assert shlex.quote("$(reboot); `x` '\"") in said


def test_without_names_there_is_no_line_that_names_anyone(tmp_path: Path, tiny: Course) -> None:
    write_following(tmp_path, "ada", Adjustment("weigh", 1, "read her code"))
    write_following(tmp_path, "bob")
    said = Page(anonymous(tmp_path, tiny)).text
    assert FOLLOWING in said
    assert "grader adjust student" not in said
    assert "corrected by +1" in said
    assert "read her code" not in said


# --- without names -------------------------------------------------------------------------------


def anonymous(folder: Path, course: Course) -> str:
    with existing_gradebook(folder, course.name) as book:
        write_anonymous(book, course)
    return (folder / "report-anonymous.html").read_text("utf-8")


def test_nothing_on_an_anonymous_page_says_who_anyone_is(tmp_path: Path, tiny: Course) -> None:
    write_class(tmp_path)
    html = anonymous(tmp_path, tiny)
    assert {path.name for path in tmp_path.iterdir()} == {"grades.db", "report-anonymous.html"}
    page = Page(html)
    told = page.text + " ".join(value for _, value in page.attributes)
    for word in ("ada", "bob", "dan", "eve", "finn", "zoe", "team-7", "Lovelace", "taken"):
        assert not re.search(rf"\b{word}\b", told), word
    for word in ("Bob", "Byron", "s100", "example.edu", "feedback/", "basics.py", "misled"):
        assert word not in told, word
    assert told.count("absent") >= 1


def test_pseudonyms_stay_and_are_others_in_another_gradebook(tmp_path: Path, tiny: Course) -> None:
    pages = []
    for name in ("one", "one", "two"):
        if not (tmp_path / name).exists():
            write_class(tmp_path / name)
        pages.append(set(re.findall(r"student-[0-9a-f]{6}\b", anonymous(tmp_path / name, tiny))))
    assert pages[0] == pages[1]
    assert len(pages[0]) == 7
    assert not pages[0] & pages[2]


def test_a_ring_of_five_stands_in_one_line_of_the_report(tmp_path: Path, tiny: Course) -> None:
    ring = {"ada", "bob", "cleo", "dan", "eve"}
    alone = {f"s{k}": UNIT.replace("middle", f"m{k}") for k in range(12)}
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises = ("center",)
        for student, text in (dict.fromkeys(ring, UNIT) | alone).items():
            book.record(grade(student, solved("center")), handed_in(student, text))
        write_pages(book, tiny)
    section = (tmp_path / "report.html").read_text("utf-8").partition('id="alike"')[2]
    (line,) = [line for line in section.splitlines() if "<td" in line and "ada" in line]
    assert set(re.findall(r"<bdi>(\w+)</bdi>", line)) == ring
    hidden = anonymous(tmp_path, tiny).partition('id="alike"')[2]
    (line,) = [line for line in hidden.splitlines() if "<td" in line and "100" in line]
    assert len(re.findall(r"student-[0-9a-f]{6}", line)) == 5


# --- what it is about, and what is alike ---------------------------------------------------------


def test_the_report_says_what_it_is_about_whenever_it_is_written(
    tmp_path: Path, tiny: Course
) -> None:
    due = datetime(2026, 12, 4, 23, tzinfo=UTC)
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises, book.policy = ("center",), Policy(due)
        for student, moment in (("ada", "2026-12-03T10:00:00Z"), ("bob", "2026-12-04T11:00:00Z")):
            graded = msgspec.structs.replace(grade(student, solved("center")), submitted=moment)
            book.record(graded, handed_in(student, "x = 1"))
    said = report_of(tmp_path, tiny)
    for fact in (
        "due at 2026-12-04 23:00 UTC",
        "the newest submission came at 2026-12-04 11:00 UTC",
        "2 submissions graded with torch 2.13.0, tests and references 0f",
        f"Written by attention-grader {__version__}.",
    ):
        assert fact in said
    nameless = Page(anonymous(tmp_path, tiny)).text
    assert "due at" in nameless
    assert "newest submission" not in nameless


def test_what_is_alike_stands_side_by_side_but_never_without_names(
    tmp_path: Path, tiny: Course
) -> None:
    write_class(tmp_path)
    with existing_gradebook(tmp_path, tiny.name) as book:
        write_pages(book, tiny)
    html = (tmp_path / "report.html").read_text("utf-8")
    pairs = html.partition('id="alike"')[2].partition("</table>")[0]
    assert pairs.count("basics.py lines 1–7") == 4  # in the summary, and above each column
    assert pairs.count("hidden = scores.masked_fill(mask") == 2
    assert "<details" in pairs
    assert '<details class="quiet" open' not in pairs
    assert "masked_fill" not in anonymous(tmp_path, tiny)


def test_only_the_beginning_of_a_long_passage_is_shown(tmp_path: Path, tiny: Course) -> None:
    long = "\n".join(f"x{k} = center(x) + {k} * '</pre><b>'" for k in range(90))
    with open_gradebook(tmp_path, "tiny") as book:
        book.exercises = ("center",)
        for student in ("ada", "bob"):
            book.record(grade(student, solved("center")), handed_in(student, long))
        write_pages(book, tiny)
    pairs = (tmp_path / "report.html").read_text("utf-8").partition('id="alike"')[2]
    assert pairs.count("+ 59 * ") == 2
    assert "+ 60 * " not in pairs
    assert "</pre><b>" not in pairs


# --- the command ---------------------------------------------------------------------------------


def test_the_command_writes_both_pages(tmp_path: Path, cold_grader: Grader) -> None:
    write_class(tmp_path)
    ran = cold_grader("report", tmp_path, "--course", TINY)
    assert (ran.code, ran.err) == (0, "")
    assert "6 pages for students" in ran.out
    assert str(tmp_path / "report.html") in ran.out
    assert "Similarity" in (tmp_path / "report.html").read_text("utf-8")


def test_submissions_need_not_be_compared(tmp_path: Path, cold_grader: Grader) -> None:
    write_class(tmp_path)
    assert cold_grader("report", tmp_path, "--no-similarity", "--course", TINY).code == 0
    assert "Similarity" not in (tmp_path / "report.html").read_text("utf-8")


def test_who_is_forgotten_or_corrected_is_so_on_the_pages_too(
    out: Path, cold_grader: Grader
) -> None:
    assert cold_grader("forget", out, "ada", "--yes", "--course", TINY).code == 0
    for path in out.rglob("*.html"):
        assert "Lovelace" not in path.read_text("utf-8")
    assert not (out / "feedback" / "ada.html").exists()
    change = ("adjust", out, "dan", "weigh", "1", "--reason", "read again", "--course", TINY)
    assert cold_grader(*change).code == 0
    assert "read again" in (out / "feedback" / "dan.html").read_text("utf-8")


def test_a_folder_without_a_gradebook_is_refused(tmp_path: Path, cold_grader: Grader) -> None:
    ran = cold_grader("report", tmp_path, "--course", TINY)
    assert ran.code == 2
    assert "there is no gradebook" in ran.err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("option", ["--anonymous", "--similarity"])
def test_without_the_extra_one_line_says_how_to_get_it(
    tmp_path: Path, cold_grader: Grader, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    write_class(tmp_path)
    monkeypatch.setattr("grader.report.rendering.NEEDED", "jinja_that_is_not_there")
    ran = cold_grader("report", tmp_path, option, "--course", TINY)
    assert ran.code == 2
    assert "pip install 'attention-grader[instructor]'" in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["grades.db"]


# --- what to look at -----------------------------------------------------------------------------


def test_what_is_most_urgent_comes_first_with_the_next_step(tmp_path: Path) -> None:
    slow = msgspec.structs.replace(
        grade("slow", mistaken("e0")),
        exercises=(
            msgspec.structs.replace(
                solved("e0"), tests=(TestResult("test_big", "Big", "timeout", 0, 2),)
            ),
        ),
    )
    rows = [
        Row("absent", None),
        Row("alike", grade("alike", solved("e0"))),
        Row("conflict", None, conflict="two files"),
        Row("fine", grade("fine", solved("e0"))),
        Row("slow", slow),
        Row("stranger", grade("stranger", solved("e0")), unlisted=True),
        Row("unreadable", grade("unreadable", untouched("e0"), status="unreadable", message="no")),
    ]
    found = looks(rows, [Resemblance("alike", ("fine",), 1.0, None)])
    assert [rows[look.place].student for look in found] == [
        "conflict", "stranger", "unreadable", "alike", "fine", "slow", "absent",
    ]  # fmt: skip
    assert found[0].why == ["not graded: two files"]
    assert found[5].why == ["stopped by the limit of time or memory: e0/test_big"]
    assert all(look.step for look in found[:-1])


def test_units_and_tests_have_their_share() -> None:
    rows = [Row(name, grade(name, solved("e0"), mistaken("e1"))) for name in ("a", "b", "c")]
    rows.append(Row("d", grade("d", solved("e0"), untouched("e1"))))
    numbers = classroom(rows, ["e0", "e1"])
    assert [(unit.name, unit.max) for unit in numbers.units] == [("basics", 4)]
    assert numbers.units[0].mean == pytest.approx((2 + 0.375) / 4)
    values = {test.title: (test.passed, test.tested) for test in numbers.exercises[1].tests}
    assert values == {"The values are right": (0, 3), "The shape is right": (1, 3)}


def test_a_students_page_begins_with_what_cost_most(tiny: Course) -> None:
    results = [
        mistaken("center", "The first mistake", points=1.5),
        mistaken("weigh", "The dearest mistake", points=0.25),
    ]
    page = page_of(grade("ada", *results), tiny)
    costs = page.partition('id="costs"')[2].partition("</ol>")[0]
    assert re.findall(r'href="#(\w+)".*?lost ([\d.]+): ([\w ]+)', costs) == [
        ("weigh", "1.75", "The dearest mistake"),
        ("center", "0.5", "The first mistake"),
    ]
    assert 'id="costs"' not in page_of(grade("ada", results[0], solved("weigh")), tiny)


def test_points_on_a_page_have_at_most_two_decimals(tiny: Course) -> None:
    page = page_of(grade("ada", mistaken("center", points=1.234)), tiny)
    text = Page(page).text
    assert "1.23 of 2" in text
    assert "1.234" not in text
