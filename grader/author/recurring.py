"""Finds wrong results that recur in a graded class, and that no known mistake explains.

Wrong answers without a mistake's name run again, in jails and with the gradebook's seed. Answers
with the same results form a group; results are compared as when a mistake is named, see
`grader.grading.diagnosis`. For each group, this module drafts a mistake: a mechanical change of the
reference that gives the group's results, or a description of these results. A draft contains no
text of an answer, since names and comments may be in it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from textwrap import wrap

from grader import wire
from grader.author.changes import change_to, written
from grader.author.mutants import mutants_of
from grader.course.course import Course
from grader.feedback.differences import differing, in_words
from grader.grades.gradebook import existing_gradebook
from grader.grades.lookup import refuse_another_seed
from grader.grading.behaviour import behaves
from grader.grading.desk import Desk
from grader.grading.diagnosis import Answers, alike, flat
from grader.grading.ladder import attempted
from grader.grading.order import Order
from grader.grading.replays import COMMON
from grader.intake import Submission
from grader.mistakes import Variant, text_of_definition
from grader.proxies.calls import CallResult
from grader.records.faults import CallError
from grader.records.grade import BASES, WRONG, ExerciseResult
from grader.records.rows import counted, listed, some_of
from grader.run.workers import share
from grader.sandbox.session import StudentLost
from grader.wire import payload

OTHER_TESTS = (
    "the tests, references or mistakes have changed since the grading: today's are used for the "
    "answers that the grading could not name"
)
WITHOUT_TEXT = "the gradebook lacks the text of {}: grade again to compare all answers"
MOST_SHOWN = 2  # failed tests that a draft describes
WIDTH = 94  # of a comment's line
_TODO = {"TODO: a part of the reference": "TODO"}
_DRAFT = """\
mistake(
    "{}",
    "{}",
    "TODO: what is wrong, in a line",
    hint="TODO: a question that leads there",
    change={},
)"""


@dataclass(frozen=True)
class Group:
    """Answers of a class that give the same wrong results, which no known mistake gives."""

    exercise: str
    answers: int
    draft: str  # Python text for the unit's file of mistakes
    change: bool  # whether the draft is a change that gives the results, or only describes them
    students: tuple[str, ...]  # the names of those who submitted the answers


@dataclass(frozen=True)
class WrongAnswers:
    """A class's wrong answers to one exercise, counted."""

    exercise: str
    wrong: int = 0
    lose: int = 0  # the answers that lose points
    named: int = 0  # that have the name of a known mistake
    other: int = 0  # whose fault is another: a wrong base, a forbidden operation, time, syntax
    alone: int = 0  # that give results that no other answer gives
    groups: tuple[Group, ...] = ()

    @property
    def grouped(self) -> int:
        """The number of answers in groups."""
        return sum(group.answers for group in self.groups)


@dataclass(frozen=True)
class GradedClass:
    """The wrong answers in a gradebook, and how to run those that the grading could not name."""

    counts: Mapping[str, WrongAnswers]  # by exercise, in the course's order
    unnamed: Sequence[tuple[WrongAnswers, Sequence[Submission]]]  # only exercises that have some
    order: Order
    notes: Sequence[str]


def read_class(
    folder: Path, course: Course, only: Sequence[str], seed: str | None = None
) -> GradedClass:
    """Read the wrong answers to the exercises `only` from the gradebook in a folder.

    Raises `CallError` if the folder has no gradebook of this course, if the gradebook has another
    seed than `seed` (default: the course's), or has none of the exercises.
    """
    with existing_gradebook(folder, course.identity) as book:
        seed = seed or course.hidden_seed()
        refuse_another_seed(book, seed, "the seed of that grading")
        grades = {grade.submission: grade for grade in book.grades() if grade.status == "graded"}
        texts = {name: text for name in grades if (text := book.submission(name)) is not None}
        chosen = tuple(name for name in only if name in book.exercises)
    if not chosen:
        raise CallError(f"the gradebook in {folder} has no grades of {some_of(only)}")
    counts = {name: WrongAnswers(name) for name in chosen}
    unnamed: dict[str, list[Submission]] = {name: [] for name in chosen}
    for submission, grade in grades.items():
        for result in grade.exercises:
            name = result.name
            if name not in counts or result.untouched or result.solved:
                continue
            runs = submission in texts and _has_no_reason(result)
            counts[name] = _counting(counts[name], result, other=not runs)
            if runs:
                unnamed[name].append(texts[submission])
    lacking = len(grades) - len(texts)
    to_run = tuple(name for name, answers in unnamed.items() if answers)
    today = course.fingerprint()
    changed = any(grade.course != today for grade in grades.values())
    weak = any("weak" in grade.isolation for grade in grades.values())
    return GradedClass(
        counts,
        [(counts[name], unnamed[name]) for name in to_run],
        Order(
            course,
            seed,
            course.tests_of(to_run),
            to_run,
            isolation="weak" if weak else "strong",  # as it was chosen for these answers
            secrets=(folder,),
        ),
        [
            *[OTHER_TESTS] * changed,
            *[WITHOUT_TEXT.format(counted(lacking, "submission"))] * bool(lacking),
        ],
    )


def recurring(
    graded: GradedClass, jobs: int, report: Callable[[], object] = lambda: None
) -> list[WrongAnswers]:
    """The wrong answers by exercise, grouped; `report` is called after each exercise that ran."""
    found = dict(graded.counts)
    tasks = sorted(graded.unnamed, key=lambda task: len(task[1]), reverse=True)
    for one in share(graded.order, _examine, tasks, jobs):
        found[one.exercise] = one
        report()
    return list(found.values())


def _has_no_reason(result: ExerciseResult) -> bool:
    """Whether a wrong answer's verdict gives neither a mistake's name nor a wrong base."""
    failed = [test for test in result.tests if test.status in WRONG]
    known = any(test.mistake or test.name == BASES for test in failed)
    return not known and any(test.name.startswith("test_") for test in failed)


def _counting(counts: WrongAnswers, result: ExerciseResult, *, other: bool) -> WrongAnswers:
    named = any(test.mistake for test in result.tests)
    return replace(
        counts,
        wrong=counts.wrong + 1,
        lose=counts.lose + (result.points < result.max),
        named=counts.named + named,
        other=counts.other + (other and not named),
    )


# --- one exercise --------------------------------------------------------------------------------


def _examine(desk: Desk, task: tuple[WrongAnswers, Sequence[Submission]]) -> WrongAnswers:
    """Run an exercise's answers again, and group those that still have no name."""
    counts, submissions = task
    named = 0
    kinds: list[tuple[Answers, list[Submission]]] = []  # results, and the answers that give them
    for submission in submissions:
        try:
            with desk.seat(submission, [counts.exercise]) as seat:
                attempt = attempted(desk, seat, counts.exercise)
        except StudentLost:
            continue
        named += attempt.known is not None
        wrong = (given for given in attempt.answers.values() if not given.passed)
        if attempt.known is None and any(given.results for given in wrong):
            fitting = (group for answers, group in kinds if alike(answers, attempt.answers))
            if (group := next(fitting, None)) is None:
                kinds.append((attempt.answers, group := []))
            group.append(submission)
    kinds.sort(key=lambda kind: len(kind[1]), reverse=True)
    taken = {variant.slug for variant in desk.replays.library.of(counts.exercise, "mistake")}
    slugs = (slug for n in count(1) if (slug := f"todo-{n}") not in taken)
    groups = [
        _group(desk, counts.exercise, answers, group, next(slugs))
        for answers, group in kinds
        if len(group) > 1
    ]
    return replace(
        counts,
        named=counts.named + named,
        other=counts.other + len(submissions) - named - sum(len(group) for _, group in kinds),
        alone=len(kinds) - len(groups),
        groups=tuple(groups),
    )


def _group(
    desk: Desk, exercise: str, answers: Answers, submissions: Sequence[Submission], slug: str
) -> Group:
    several = _known(desk, exercise, answers)
    change = None if several else next(_changes(desk, exercise, answers), None)
    about = [
        f"{counted(len(submissions), 'answer')} give this result:",
        *_shown(desk, exercise, answers),
        *(f"the verdict says: {said}" for said in _behaviour(desk, exercise, submissions[0])),
    ]
    draft = _DRAFT.format(exercise, slug, written(change or _TODO)).splitlines()
    if several:
        about.append(
            f"{listed(several, 'and')} give this result: if no test can tell them apart, name one "
            "in the other's `same_as`"
        )
        draft = []
    elif change is None:
        about.append("no small change of the reference gives this result")
        draft = [f"# {line}" for line in draft]
    lines = [f"# {line}" for text in about for line in wrap(text, WIDTH)]
    students = tuple(student for one in submissions for student in one.members)
    return Group(
        exercise, len(submissions), "\n".join([*lines, *draft]), change is not None, students
    )


# --- changes of the reference --------------------------------------------------------------------


def _known(desk: Desk, exercise: str, answers: Answers) -> list[str]:
    """The known mistakes that all give these results, because of which none is named."""
    assert desk.diagnosis is not None
    variants = desk.replays.library.of(exercise, "mistake")
    return [variant.slug for variant in desk.diagnosis.fitting(variants, answers)]


def _changes(desk: Desk, exercise: str, answers: Answers) -> Iterator[Mapping[str, str]]:
    """Changes of the reference that give these results, one after another.

    The mutants of the reference come first, and then those of the exercise's commonest mistakes.
    """
    assert desk.diagnosis is not None
    library = desk.replays.library
    original = text_of_definition(library.sources[library.unit_of[exercise]], exercise)
    mistakes = [v for v in library.of(exercise, "mistake") if v.change][:COMMON]
    bases: list[tuple[str, dict[str, str], str]] = [("", {}, original)]
    for mistake in mistakes:
        if (change := change_to(original, mistake.definition)) is not None:
            ((old, new),) = change.items()
            bases.append((f"{mistake.slug}, ", change, original.replace(old, new)))
    for slug, before, text in bases:
        mutants = mutants_of(text, exercise)
        variants = [
            Variant(exercise, f"{slug}{mutant.id}", "mistake", "", "", mutant.definition)
            for mutant in mutants
        ]
        found = desk.diagnosis.fitting(variants, answers)
        changes = [change_to(text, variant.definition) for variant in found]
        fit = [before | change for change in changes if change and not before.keys() & change]
        yield from sorted(fit, key=lambda change: len(written(change)))


# --- words ---------------------------------------------------------------------------------------


def _shown(desk: Desk, exercise: str, answers: Answers) -> list[str]:
    """How the results of failed tests differ from the reference's results."""
    assert desk.sheet is not None
    shown: dict[str, str] = {}
    for test in desk.tests[exercise]:
        for case in test.cases:
            given = answers.get((test.key, case.label))
            if given is not None and not given.passed and given.results:
                ours = desk.sheet.given(None, test.key, case.label).results
                where = f"{test.name}[{case.label}]" if case.label else test.name
                shown[where] = _difference(given.results, ours)
    told = [f"{where}: {words}" for where, words in shown.items() if words]
    return told[:MOST_SHOWN] or [f"{where}: other results" for where in shown][:1]


def _difference(theirs: Sequence[CallResult], ours: Sequence[CallResult]) -> str:
    """The first difference between results that words can explain, without text of an answer."""
    for own, wanted in zip(flat(theirs), flat(ours), strict=False):
        match own, wanted:
            case wire.Raised(kind=kind), _:
                # An exception's text, and a class of the student's own, may hold a name.
                known = isinstance(getattr(builtins, kind, None), type)
                return f"raises {kind}" if known else "raises an exception of its own"
            case wire.TensorData(), wire.TensorData() if own != wanted:
                with suppress(wire.WireError):
                    if words := _of_tensors(own, wanted):
                        return words
            case wire.TensorData() | int() | float() | bool() | None, _ if own != wanted:
                return f"gives {_kind(own)}, not {_kind(wanted)}"
    return ""


def _of_tensors(theirs: wire.TensorData, ours: wire.TensorData) -> str:
    one, other = payload.unpack_tensor(theirs), payload.unpack_tensor(ours)
    if one.shape != other.shape:
        return f"the shape is {[*one.shape]}, not {[*other.shape]}"
    if one.dtype != other.dtype:
        return f"the dtype is {one.dtype}, not {other.dtype}"
    if one.is_meta or other.is_meta or not bool(differing(one, other).any()):
        return ""
    return in_words(one, other) or ""


def _kind(value: CallResult) -> str:
    match value:
        case wire.TensorData():
            return f"a tensor of shape {[*value.shape]}"
        case int() | float() | None:
            return repr(value)
    return "another kind of value"


def _behaviour(desk: Desk, exercise: str, submission: Submission) -> Iterator[str]:
    """The sentences of a verdict on how an answer behaves."""
    with suppress(StudentLost), desk.seat(submission, [exercise]) as seat:
        observed = behaves(desk, seat, exercise)
        yield from observed.sentences if observed is not None else ()
