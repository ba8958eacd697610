"""The sample submissions, each with the exact grade that it deserves, exercise by exercise."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import Submission, find_submissions
from grader.records.faults import CallError
from grader.records.files import zipped
from grader.records.grade import HEART, ExerciseResult, Grade, TestResult
from grader.sandbox.jails import Warm
from grader.student.checking import open_checker
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support.evidence import assert_only_what_passed_is_paid, earned
from tests.support.places import REAL, ROOT, SAMPLES
from tests.tools.readme import README
from tests.tools.samples import completed

COURSE: Course = load_course(REAL)
FULL = {name: exercise.points for name, exercise in COURSE.exercises.items()}


def full(*names: str) -> dict[str, float]:
    """All the points of these exercises."""
    return {name: FULL[name] for name in names}


# Points by exercise; an exercise that is not named earns none.
DESERVED: dict[str, dict[str, float]] = {
    "ada": FULL,
    "blank": {},
    "bob_four_classes": full(
        "SelfAttention_v1", "SelfAttention_v2", "CausalAttention", "MultiHeadAttention"
    ),
    "cleo_notebook": full(
        "attention_scores_for_query", "attention_scores_loop", "attention_scores",
        "attention_weights", "context_vector", "simple_self_attention",
    ),
    "dana_mistakes": {
        **full("prefix_sum_matrix", "softmax_naive", "causal_mask", "merge_heads"),
        "softmax_stable": 1.737,  # right where the scores are near each other
        "masked_softmax": 2.357,  # right but for rows with every key hidden
        "repeat_kv": 0.125,  # right for a single head, which a test of its own asks for
        "CachedAttention": 0.625,  # right as long as one call has all the tokens
        "flash_attention": 2.5,  # right, and nothing is tiled: half, without its heart
        "linear_attention": 1.5,  # right, and quadratic: likewise
    },
    "eve_syntax_error": full("prefix_sum_matrix", "running_mean_matrix", "running_mean_matmul"),
    "finn_empty": {},
    "gil_endless_loop": full("normalize_by_sum", "softmax_rows", "softmax_stable"),
}  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    files = COURSE.tests_of()
    order = Order(COURSE, COURSE.hidden_seed(), files, isolation="weak", keeps_sheet=True)
    with order.desk() as opened:
        yield opened


@pytest.fixture(scope="module")
def grades(desk: Desk) -> dict[str, Grade]:
    return {s.student: grade_submission(desk, s) for s in find_submissions([SAMPLES], COURSE)}


def statuses(grade: Grade, exercise: str) -> set[str]:
    (result,) = (result for result in grade.exercises if result.name == exercise)
    return {test.status for test in result.tests}


def told(grade: Grade, exercise: str) -> str:
    (result,) = (result for result in grade.exercises if result.name == exercise)
    return "\n".join(test.message for test in result.tests if test.message)


def test_every_sample_is_graded(grades: dict[str, Grade]) -> None:
    assert sorted(grades) == sorted(DESERVED)


@pytest.mark.parametrize("student", DESERVED)
def test_each_exercise_has_exactly_the_points_that_it_deserves(
    student: str, grades: dict[str, Grade]
) -> None:
    assert earned(grades[student]) == DESERVED[student]
    assert grades[student].total == round(sum(DESERVED[student].values()), 3)
    assert grades[student].max == sum(one.points for one in COURSE.exercises.values())


@pytest.mark.parametrize("student", DESERVED)
def test_a_test_has_points_only_if_it_passed(student: str, grades: dict[str, Grade]) -> None:
    assert_only_what_passed_is_paid(grades[student])


@pytest.mark.parametrize("student", ["ada", "bob_four_classes", "dana_mistakes"])
def test_another_seed_gives_other_inputs_and_the_same_points(
    student: str, desk: Desk, grades: dict[str, Grade]
) -> None:
    (submission,) = (s for s in find_submissions([SAMPLES], COURSE) if s.student == student)
    other = dataclasses.replace(desk, seed="another seed", sheet=None)  # no points hang on names
    assert earned(grade_submission(other, submission)) == earned(grades[student])


def test_stubs_of_all_units_are_missing_answers(desk: Desk) -> None:
    stubs = [COURSE.stub_file(unit.name) for unit in COURSE.units]
    sources = tuple(SourceText(stub.name, (stub.read_text("utf-8"),)) for stub in stubs)
    grade = grade_submission(desk, Submission("blank", sources))
    assert all(statuses(grade, name) == {"missing"} for name in FULL)


def test_the_untouched_sample_is_a_stub() -> None:
    stub = COURSE.stub_file("averaging").read_text("utf-8")
    blank = (SAMPLES / "blank" / "averaging.py").read_text("utf-8")
    assert blank == stub, "run `python -m tests.tools.samples`"


def test_the_readme_shows_these_grades() -> None:
    shown = README.read_text("utf-8")
    (most,) = re.findall(r"^ student .* of (\S+)$", shown, re.MULTILINE)
    assert float(most) == sum(FULL.values()), "run `python -m tests.tools.samples`"
    for student, deserved in DESERVED.items():
        (total,) = re.findall(rf"^ {student} .* (\S+)$", shown, re.MULTILINE)
        assert float(total) == round(sum(deserved.values()), 1)


def test_an_answer_that_the_sample_lacks_is_written_by_command(desk: Desk) -> None:
    library = desk.replays.library
    texts = {unit.name: completed(COURSE, library, unit.name, "") for unit in COURSE.units}
    sources = tuple(SourceText(f"{unit}.py", (text,)) for unit, text in texts.items())
    assert earned(grade_submission(desk, Submission("made", sources))) == FULL


def test_an_empty_folder_is_told_as_empty(grades: dict[str, Grade]) -> None:
    assert grades["finn_empty"].status == "empty"


def test_a_syntax_error_is_told_with_its_line(grades: dict[str, Grade]) -> None:
    for name in ("normalize_by_sum", "softmax_naive", "softmax_rows"):
        assert statuses(grades["eve_syntax_error"], name) == {"error", "skipped"}
        assert "softmax.py line 12" in told(grades["eve_syntax_error"], name)
    assert statuses(grades["eve_syntax_error"], "softmax_stable") == {"missing"}


def test_an_endless_loop_costs_its_exercise_only(grades: dict[str, Grade]) -> None:
    assert "timeout" in statuses(grades["gil_endless_loop"], "softmax_naive")
    assert statuses(grades["gil_endless_loop"], "softmax_rows") == {"passed"}


def test_a_forbidden_function_is_told_with_its_line(grades: dict[str, Grade]) -> None:
    message = told(grades["dana_mistakes"], "scaled_dot_product_attention")
    assert "self_attention.py line 13" in message
    assert "scaled_dot_product_attention" in message


@pytest.mark.parametrize(
    ("exercise", "words"),
    [
        ("softmax_rows", "sum to one"),
        ("masked_softmax", "zero"),
    ],
)
def test_a_mistake_is_told_in_words(exercise: str, words: str, grades: dict[str, Grade]) -> None:
    assert words in told(grades["dana_mistakes"], exercise)


# --- what a student's own check says of the same files -------------------------------------------
#
# A submission is packed as `grader pack` does it, and checked as `grader check --in answers.zip`
# does it. There is one more submission, with the first known mistake in each exercise.

ALL_WRONG = "all_wrong"
CHECKED = sorted({*DESERVED, ALL_WRONG} - {"finn_empty"})


@pytest.fixture(scope="module")
def all_wrong(desk: Desk) -> Mapping[str, str]:
    """The references, each exercise with the first of its known mistakes; by the files' names."""
    library = desk.replays.library
    texts = {f"{unit}.py": text for unit, text in library.sources.items()}
    for name in COURSE.exercises:
        texts[f"{COURSE.unit_of[name]}.py"] += f"\n\n{library.of(name, 'mistake')[0].definition}\n"
    return texts


@pytest.fixture(scope="module")
def wrong(desk: Desk, all_wrong: Mapping[str, str]) -> Grade:
    """The grade of the submission that gets everything wrong."""
    sources = tuple(SourceText(name, (text,)) for name, text in all_wrong.items())
    unnamed = dataclasses.replace(desk, sheet=None)  # no points hang on a mistake's name
    return grade_submission(unnamed, Submission(ALL_WRONG, sources))


@pytest.fixture(scope="module")
def paid(grades: Mapping[str, Grade], wrong: Grade) -> Mapping[str, Mapping[str, ExerciseResult]]:
    """What each submission earned, by exercise."""
    return {
        student: {result.name: result for result in grade.exercises}
        for student, grade in {**grades, ALL_WRONG: wrong}.items()
    }


def test_mistakes_in_every_exercise_are_paid_for_nothing_but_tests_that_passed(
    wrong: Grade,
) -> None:
    assert_only_what_passed_is_paid(wrong)


Check = Callable[[str], Mapping[str, ExerciseResult]]


@pytest.fixture(scope="module")
def checked(
    warm: Warm, all_wrong: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Check:
    """Check a submission's zip, once."""
    folder = tmp_path_factory.mktemp("desk")
    # Without known mistakes, whose names nothing here hangs on: to look for them takes longest.
    shutil.copytree(REAL, folder / "exercises")
    kept = shutil.ignore_patterns("mistakes")
    shutil.copytree(ROOT / "solutions", folder / "solutions", ignore=kept)
    course = load_course(folder / "exercises")
    known: dict[str, Mapping[str, ExerciseResult]] = {}

    def check(student: str) -> Mapping[str, ExerciseResult]:
        if student not in known:
            answers = folder / f"{student}.zip"
            answers.write_bytes(zipped(files_of(student, all_wrong)))
            with sharing(warm), open_checker(course, folder=answers) as checker:
                known[student] = {result.name: result for result in checker.check()}
        return known[student]

    return check


def files_of(student: str, all_wrong: Mapping[str, str]) -> dict[str, bytes]:
    """The files of a sample, or of the submission that gets everything wrong."""
    if student == ALL_WRONG:
        return {name: text.encode() for name, text in all_wrong.items()}
    (place,) = SAMPLES.glob(f"{student}*")
    paths: list[Path] = sorted(place.iterdir()) if place.is_dir() else [place]
    return {path.name: path.read_bytes() for path in paths}


def unpassed(result: ExerciseResult, *, hidden: bool) -> list[TestResult]:
    """The tests of a result that did not pass, though they were run."""
    return [
        test
        for test in result.tests
        if test.hidden is hidden and test.status not in ("passed", "skipped")
    ]


@pytest.mark.parametrize("student", CHECKED)
def test_a_check_ends_as_the_public_part_of_the_grade_does_test_by_test_and_rule_by_rule(
    student: str, checked: Check, paid: Mapping[str, Mapping[str, ExerciseResult]]
) -> None:
    for name, result in checked(student).items():
        ends, grades = ended(result), ended(paid[student][name])
        assert [(t.name, t.status, t.message) for t in ends] == [
            (t.name, t.status, t.message) for t in grades
        ]
        for here, there in zip(ends, grades, strict=True):
            assert there.rules.items() <= here.rules.items(), name
            # The name of a mistake, which this check has not, leaves out the rules that it keeps.
            assert there.mistake or there.rules == here.rules, name


def ended(result: ExerciseResult) -> list[TestResult]:
    """The public tests, and the engine's own looks; the heart is asked in grades only."""
    return [test for test in result.tests if not test.hidden and test.name != HEART]


@pytest.mark.parametrize("student", CHECKED)
def test_an_exercise_that_a_check_calls_solved_is_paid_in_full_but_for_rules_not_checked_here(
    student: str, checked: Check, paid: Mapping[str, Mapping[str, ExerciseResult]]
) -> None:
    for name, result in checked(student).items():
        grade = paid[student][name]
        lost = [test for test in unpassed(grade, hidden=True) if result.solved]
        assert all(test.rules.keys() & result.unchecked.keys() for test in lost), name
        assert (grade.points == grade.max) is (result.solved and not lost), name


@pytest.mark.parametrize("student", CHECKED)
def test_a_hidden_test_that_fails_quotes_a_rule_that_the_check_quotes_too(
    student: str, checked: Check, paid: Mapping[str, Mapping[str, ExerciseResult]], desk: Desk
) -> None:
    """Each hidden test that fails quotes a rule that a failing public check quotes as well.

    Exempt are rules that are graded and not checked here, and rules whose own check was not tried,
    since something before it is wrong. One rule is enough: a test that quotes two, and fails, says
    that one of them is broken.
    """
    tests = [test for tests in desk.tests.values() for test in tests if not test.hidden]
    quoted = {(test.exercise, test.name): test.rules for test in tests}
    for name, result in checked(student).items():
        said = {rule for test in result.tests for rule in test.rules}
        not_tried = [test.name for test in result.tests if test.status == "skipped"]
        said |= {rule for test in not_tried for rule in quoted[name, test]}
        for test in unpassed(paid[student][name], hidden=True):
            # A test has no rules where its exercise is not there.
            assert not test.rules or test.rules.keys() & (said | result.unchecked.keys()), name


def test_of_an_empty_zip_a_check_says_so_and_a_grade_pays_nothing(
    checked: Check, paid: Mapping[str, Mapping[str, ExerciseResult]]
) -> None:
    with pytest.raises(CallError, match=r"no \.py file and no notebook"):
        checked("finn_empty")
    assert not any(result.points for result in paid["finn_empty"].values())
