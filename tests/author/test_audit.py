"""The audit says what is wrong with a course's tests, and only that."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from grader.author.audit import audit_course
from grader.author.findings import Audited, audit_totals
from grader.course.course import Course, load_course
from grader.records.faults import CallError
from tests.conftest import Grader
from tests.support.places import TINY

pytestmark = pytest.mark.usefixtures("one_warm_process")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, to be spoilt."""
    shutil.copytree(TINY, tmp_path / "tiny")
    return load_course(tmp_path / "tiny" / "exercises")


def add(course: Course, text: str) -> None:
    library = course.solutions / "mistakes" / "basics.py"
    library.write_text(library.read_text("utf-8") + text, "utf-8")


def excuse(course: Course, text: str) -> None:
    (course.solutions / "mistakes" / "audit.toml").write_text(text, "utf-8")


def found(course: Course, kind: str, *only: str) -> dict[str, Audited]:
    findings = audit_course(course, only or ("center",), jobs=1)
    return {finding.name: finding for finding in findings if finding.kind == kind}


def test_known_answers_are_graded_as_what_they_are(course: Course) -> None:
    findings = audit_course(course, ("center", "staircase", "weigh"), jobs=1)
    for kind in ("reference", "stub", "accepted", "mistake"):
        assert {finding.well for finding in findings if finding.kind == kind} == {True}
    counted = audit_totals(findings)["basics"]
    assert counted["reference"] == counted["stub"] == (3, 3)
    assert counted["mistake"] == (6, 6)
    assert counted["named"] == (6, 6)  # two of them are declared to be alike


def test_a_mistake_that_keeps_its_points_is_told(course: Course) -> None:
    add(course, 'mistake("center", "none", "N", hint="?", change={"x.mean()": "torch.mean(x)"})\n')
    finding = found(course, "mistake")["center/none"]
    assert (finding.well, finding.text) == (False, "keeps its points")


def test_a_right_answer_that_is_refused_is_told_with_the_reason(course: Course) -> None:
    add(course, 'accepted("center", "other", "O", change={"x.mean()": "x.median()"})\n')
    finding = found(course, "accepted")["center/other"]
    assert not finding.well
    assert "elements differ" in finding.text or "The median is subtracted" in finding.text


def test_the_reason_names_the_case_that_did_not_pass(course: Course) -> None:
    change = '{"x - x.mean()": "x - x.mean() * (len(x) != 5)"}'
    add(course, f'accepted("center", "other", "O", change={change})\n')
    assert ": [tokens = 5] " in found(course, "accepted")["center/other"].text


def test_two_mistakes_that_nobody_can_tell_apart_must_be_declared(course: Course) -> None:
    add(
        course,
        'mistake("center", "more", "M", hint="?", change={"- x.mean()": "+ torch.mean(x)"})\n',
    )
    mistakes = found(course, "mistake")
    assert not mistakes["center/adds"].well
    assert "not named" in mistakes["center/adds"].text
    excuse(course, '[undiagnosed]\n"center/adds" = "as more"\n"center/more" = "as adds"\n')
    assert {finding.well for finding in found(course, "mistake").values()} == {True}


def test_mutants_are_killed_and_a_missing_test_lets_them_live(course: Course) -> None:
    killed = found(course, "mutant", "staircase")
    assert killed
    for tests in (*course.grader_files(), *course.check_files()):
        with tests.open("a", encoding="utf-8") as file:
            file.write("\nassert_agrees = assert_that = lambda *_, **__: None\n")
    survivors = {f.name for f in found(course, "mutant", "staircase").values() if not f.well}
    assert survivors


# --- each hidden test earns its keep --------------------------------------------------------------

EXTRA = {
    "the same again": """
@rung.value("center")
def test_center_again(student, reference, make):
    \"\"\"The mean is gone from every element.\"\"\"
    x = make.normal(3.0, tokens=7)
    assert_agrees(student.center(x), reference.center(x))
""",
    "on a later rung": """
@rung.property("center")
def test_center_again(student, reference, make):
    \"\"\"The mean is gone from every element.\"\"\"
    x = make.normal(3.0, tokens=7)
    assert_agrees(student.center(x), reference.center(x))
""",
}


def grow(course: Course, text: str) -> None:
    graders = course.solutions / "graders" / "test_basics.py"
    graders.write_text(graders.read_text("utf-8") + text, "utf-8")


def test_a_test_that_tells_of_what_others_tell_of_must_say_why_it_stays(course: Course) -> None:
    grow(course, EXTRA["the same again"])
    name = "center/test_center_again"
    finding = found(course, "test")[name]
    assert not finding.well
    assert "but other tests catch each too" in finding.text
    excuse(course, f'[kept]\n"{name}" = "for the love of it"\n')
    finding = found(course, "test")[name]
    assert (finding.well, finding.excused, finding.text) == (True, True, "for the love of it")


def test_a_test_that_is_never_reached_by_a_wrong_answer_has_no_excuse(course: Course) -> None:
    grow(course, EXTRA["on a later rung"])
    name = "center/test_center_again"
    excuse(course, f'[kept]\n"{name}" = "for the love of it"\n')
    finding = found(course, "test")[name]
    assert (finding.well, finding.text) == (False, "catches no wrong answer")


def test_a_test_says_of_which_mistake_it_alone_tells(course: Course) -> None:
    finding = found(course, "test", "staircase")[
        "staircase/test_staircase_agrees_with_the_reference"
    ]
    assert finding.well
    assert "alone catches" in finding.text
    assert "staircase/" in finding.text


# --- what an exercise needs ----------------------------------------------------------------------

LACKING = {
    "has no public test": ("exercises/checks/test_basics.py", '"center"', '"staircase"'),
    "has 1 hint, not three": ("exercises/course.toml", "", ""),
}


@pytest.mark.parametrize(("told", "edit"), LACKING.items())
def test_what_an_exercise_lacks_is_told(
    course: Course, told: str, edit: tuple[str, str, str]
) -> None:
    path = course.folder.parent / edit[0]
    text = path.read_text("utf-8")
    assert edit[1] in text
    path.write_text(text.replace(edit[1], edit[2]), "utf-8")
    assert f"center/{told}" in found(course, "exercise")


def test_an_answer_that_remembers_the_public_checks_must_not_get_every_point(
    course: Course,
) -> None:
    told = "staircase/is solved by remembering the answers of the public checks"
    assert told not in found(course, "exercise", "staircase")
    checks = course.folder / "checks" / "test_basics.py"
    checks.write_text(checks.read_text("utf-8").replace("[1, 3]", "[1, 2, 3, 4, 7]"), "utf-8")
    assert told in found(course, "exercise", "staircase")


CENTER = '"""Subtract the mean from each element.'
EXAMPLE = """

    >>> center(torch.tensor([1.0, 3.0]))
    tensor([-1.,  2.])
    \"\"\"
"""


def print_example(course: Course) -> tuple[str, str]:
    """Give `center` a wrong example; return its place, and the sentence that tells of it."""
    stubs = course.stub_file("basics")
    text = stubs.read_text("utf-8").replace(f'{CENTER}"""', CENTER + EXAMPLE.rstrip(), 1)
    stubs.write_text(text, "utf-8")
    line = text[: text.index(">>>")].count("\n") + 1
    return f"{stubs}:{line}", (
        "the example `center(torch.tensor([1.0, 3.0]))` is wrong: "
        "expected tensor([-1.,  2.]), got tensor([-1.,  1.])"
    )


def test_a_printed_example_must_be_true_of_the_reference(course: Course) -> None:
    place, said = print_example(course)
    assert found(course, "exercise")[f"center/{said}"].place == place


def test_a_bundle_is_refused_for_a_wrong_example(course: Course, grader: Grader) -> None:
    place, said = print_example(course)
    ran = grader("release", "student", "--course", course.folder, "--to", course.folder / "x")
    assert (ran.code, ran.err) == (2, f"grader: {place}: {said}\n")


def test_a_reference_alone_proves_no_test(course: Course) -> None:
    library = course.solutions / "mistakes" / "basics.py"
    library.write_text("", "utf-8")
    lacking = {
        "center/not proved: the tests have met no known mistake": "add mistake(…) to "
        "solutions/mistakes/basics.py",
        "center/not proved: the tests have met no second right answer": "add accepted(…) to "
        "solutions/mistakes/basics.py",
    }
    findings = found(course, "exercise")
    assert lacking.items() <= {name: one.advice for name, one in findings.items()}.items()


# --- tests that crash ----------------------------------------------------------------------------

CRASHES = {
    "a name that is not defined": ("lenght(x)", "NameError: name 'lenght' is not defined"),
    "what a proxy lacks": ("student.center.weight", "AuthorError: "),
    "a call that breaks the contract": ("student.center(3)", "ContractError: "),
}


@pytest.mark.parametrize(("line", "said"), CRASHES.values(), ids=CRASHES)
def test_a_test_that_crashes_proves_nothing(course: Course, line: str, said: str) -> None:
    add(course, 'mistake("center", "none", "N", hint="?", change={"x.mean()": "torch.mean(x)"})\n')
    grow(
        course,
        f"""
@rung.property("center")
def test_center_crashes(student, make):
    \"\"\"It crashes.\"\"\"
    x = student.center(make.normal(tokens=4))
    {line}
""",
    )
    findings = {(f.kind, f.name): f for f in audit_course(course, ("center",), jobs=1)}
    crash = findings["test", "center/test_center_crashes"]
    place = rf"test_basics\.py:\d+: {re.escape(said)}"
    assert not crash.well
    assert re.search(place, crash.text), crash.text
    assert findings["mistake", "center/none"].text == "keeps its points"
    assert not findings["reference", "center/reference"].well
    caught = [f for f in findings.values() if f.kind == "mutant" and "crashes" in f.text]
    assert not caught


# --- the smallest input that shows a difference --------------------------------------------------


def remove_test(course: Course, rung: str) -> None:
    """Take the hidden test of this rung away, such as ``stability("weigh"``."""
    graders = course.solutions / "graders" / "test_basics.py"
    before, found, after = graders.read_text("utf-8").partition(f"@rung.{rung}")
    assert found
    _, more, rest = after.partition("\n\n\n")
    graders.write_text(before + (rest if more else ""), "utf-8")


def test_a_living_mutant_comes_with_an_input_that_shows_it(course: Course) -> None:
    remove_test(course, 'stability("weigh"')
    mutants = found(course, "mutant", "weigh")
    overflowing = mutants["weigh/L3:scores - largest->scores"]
    assert re.fullmatch(
        r"on scores = \[\[.+\]\] the reference gives \[\[.+\]\], this gives \[\[.*nan.*\]\]; "
        "no hidden test has such an input",
        overflowing.witness,
    )
    assert overflowing.advice.startswith("add such an input to a hidden test")
    alike = mutants["weigh/L4:dim=-1->dim=1"]
    assert re.fullmatch(r"no difference .* was found in \d+ inputs", alike.witness)
    assert alike.advice.startswith("if it computes the same, name it in audit.toml")


def test_a_refused_right_answer_comes_with_an_input_that_shows_the_difference(
    course: Course,
) -> None:
    change = '{"x - x.mean()": "x - x.mean() * (len(x) != 2)"}'
    add(course, f'accepted("center", "other", "O", change={change})\n')
    witness = found(course, "accepted")["center/other"].witness
    assert re.fullmatch(r"on x = \[.+, .+\] the reference .+, this (gives|has) .+", witness)


def test_no_difference_is_shown_where_the_reference_has_no_slope(course: Course) -> None:
    """The gradient of the root of 0 is NaN: no answer agrees with it, and no test asks for it."""
    file = course.solutions / "basics.py"
    text = file.read_text("utf-8").replace("x - x.mean()", "x - x.mean() + 0 * x.abs().sqrt()")
    file.write_text(text, "utf-8")
    mutants = found(course, "mutant", "center")
    (alike,) = (one for name, one in mutants.items() if "sqrt->" in name)
    assert re.fullmatch(r"no difference .* was found in \d+ inputs", alike.witness)


def test_a_margin_is_that_of_the_answer_itself(course: Course) -> None:
    change = '{"x - ": "x.nothing - "}'
    add(course, f'mistake("center", "raises", "R", hint="?", change={change})\n')
    margin = found(course, "margin")["center/raises"]
    assert margin.text == "nothing is compared", "the mistake before it compares in this process"


# --- several seeds -------------------------------------------------------------------------------

BY_SEED = """
@rung.property("center")
def test_center_by_seed(student, make):
    \"\"\"It depends on the seed.\"\"\"
    assert_that(make.uniform(one=1).item() < 0.5, "the draw is large")
    student.center(make.normal(tokens=2))
"""


def test_what_differs_by_seed_is_shown_in_a_table(course: Course, grader: Grader) -> None:
    grow(course, BY_SEED)
    ran = grader("audit", "center", "--seeds", "4", "--course", course.folder)
    assert ran.code == 1
    table = ran.out[ran.out.index("Findings that differ by seed") :].splitlines()
    (row,) = (line.split("  ") for line in table if "reference center/reference" in line)
    cells = [cell.strip() for cell in row[1:] if cell.strip()]
    assert {cell.partition(",")[0] for cell in cells} == {"well", "wrong"}
    assert len(cells) == 4


def test_findings_of_all_seeds_are_in_the_json(course: Course, grader: Grader) -> None:
    ran = grader("audit", "center", "--seeds", "2", "--json", "--course", course.folder)
    findings = json.loads(ran.out)
    kinds = [{f["kind"] for f in findings if f["seed"] == seed} for seed in (1, 2)]
    assert kinds[0] - kinds[1] == {"exercise", "stub", "question"}, "these depend on no seed"
    assert {"witness", "differs", "advice", "suggestion"} <= findings[0].keys()


# --- where a fault is ----------------------------------------------------------------------------


def test_every_fault_begins_with_the_file_and_line_where_a_person_acts(
    course: Course, grader: Grader
) -> None:
    toml, library = course.folder / "course.toml", course.solutions / "mistakes" / "basics.py"
    graders = course.solutions / "graders" / "test_basics.py"
    add(course, 'mistake("weigh", "none", "N", hint="?", change={"weights /": "weights/"})\n')
    add(course, 'accepted("weigh", "ones", "O", change={"weights /": "1 + 0 * weights /"})\n')
    remove_test(course, 'stability("weigh"')
    grow(course, EXTRA["the same again"].replace("center", "weigh").replace("tokens", "a=2, b"))
    excuse(course, '[kept]\n"weigh/gone" = "it was there once"\n')
    ran = grader("audit", "weigh", "--course", course.folder)
    places = {
        "exercise weigh: has 0 hints": (toml, '[[unit.exercise]]\nname = "weigh"'),
        "mistake weigh/none: keeps its points": (library, '"weigh", "none"'),
        "accepted weigh/ones: ": (library, '"weigh", "ones"'),
        "mutant weigh/L3:scores - largest->scores: survives": (
            course.reference_file("basics"), "weights = torch.exp(scores - largest)",
        ),
        "test weigh/test_weigh_again: catches ": (
            graders, '@rung.value("weigh")\ndef test_weigh_again'
        ),
        "test weigh/gone: audit.toml excuses": (library.with_name("audit.toml"), "weigh/gone"),
    }  # fmt: skip
    for said, (path, text) in places.items():
        before, written, _ = path.read_text("utf-8").partition(text)
        assert written, text
        assert f"{path}:{before.count(chr(10)) + 1}: {said}" in ran.out, f"{said}\n{ran.out}"
    faults = [line for line in ran.out.splitlines() if re.search(r": (\w+) weigh[/:]", line)]
    assert not [line for line in faults if not line.startswith(str(toml.parents[1]))]


# --- excuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["equivalent", "kept", "undiagnosed"])
def test_an_excuse_that_nothing_needs_is_told(course: Course, table: str) -> None:
    excuse(course, f'[{table}]\n"center/gone" = "it was there once"\n')
    findings = audit_course(course, ("center",), jobs=1)
    assert [f.name for f in findings if "no excuse is needed" in f.text] == ["center/gone"]


def test_an_excuse_of_an_unknown_kind_is_refused(course: Course) -> None:
    excuse(course, '[pardoned]\n"center/adds" = "nice"\n')
    with pytest.raises(CallError, match="pardoned"):
        audit_course(course, ("center",), jobs=1)


def test_a_mistake_is_not_excused_for_being_given_another_name(course: Course) -> None:
    library = course.solutions / "mistakes" / "basics.py"
    text = library.read_text("utf-8")
    same = '    same_as={"upside-down": "one half transposed is the other"},\n'
    assert same in text
    library.write_text(text.replace(same, ""), "utf-8")
    excuse(course, '[undiagnosed]\n"staircase/mirrored" = "nobody knows"\n')
    finding = found(course, "mistake", "staircase")["staircase/mirrored"]
    assert finding.named is False


def test_the_command_prints_a_table_and_ends_with_one_if_anything_is_wrong(
    grader: Grader,
) -> None:
    ran = grader("audit", "center", "--course", TINY)
    assert ran.code == 1  # the tiny course has one hint where three are wanted
    assert "has 1 hint, not three" in ran.out
    assert "mutants" in ran.out


def test_the_command_lists_what_is_excused_with_the_reason(grader: Grader, course: Course) -> None:
    grow(course, EXTRA["the same again"])
    excuse(course, '[kept]\n"center/test_center_again" = "for the love of it"\n')
    ran = grader("audit", "center", "--course", course.folder)
    assert "  center/test_center_again: for the love of it" in ran.out


def test_the_command_gives_its_findings_as_json(grader: Grader) -> None:
    ran = grader("audit", "center", "--json", "--course", TINY)
    findings = json.loads(ran.out)
    assert {finding["kind"] for finding in findings} >= {"reference", "mistake", "mutant", "test"}
    assert {finding["exercise"] for finding in findings} == {"center"}


def test_several_processes_find_the_same_as_one(course: Course) -> None:
    names = ("center", "staircase", "weigh")
    assert audit_course(course, names, jobs=2) == audit_course(course, names, jobs=1)


def test_a_fault_of_the_course_is_one_line_from_several_processes_too(
    course: Course, cold_grader: Grader
) -> None:
    grow(course, "\n\ndef test_of_nothing():\n    pass\n")
    ran = cold_grader("audit", "center", "staircase", "--jobs", "2", "--course", course.folder)
    assert ran.code == 2
    assert "test_basics.py" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    ["exercises/checks/test_extra.py", "solutions/graders/test_extra.py",
     "solutions/mistakes/extra.py"],
)  # fmt: skip
def test_a_file_that_no_unit_reads_is_an_error(course: Course, name: str) -> None:
    path = course.folder.parent / name
    path.write_text("not even Python (\n", "utf-8")
    with pytest.raises(CallError, match=r"extra.*no unit of course\.toml is called 'extra'"):
        found(course, "reference")


def test_references_with_too_few_questions_are_named(course: Course, grader: Grader) -> None:
    ran = grader("audit", "center", "Projection", "--course", course.folder)
    _, told, after = ran.out.partition("References about which `grader ask` has fewer questions: 1")
    assert told
    assert after.split("\n")[1] == "  Projection/questions: 0 of 3 questions"
