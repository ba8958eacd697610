"""Questions about an exercise that a student has solved: asked one by one, and recorded.

It is practice: a student or an assistant can run the answer, and the progress is a text file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from grader.questions.question import LETTERS, Question
from grader.records.faults import CallError
from grader.student.answers import UNKNOWN
from grader.student.lesson import Lesson
from grader.student.standing import Standing

if TYPE_CHECKING:
    from grader.grading.desk import Desk
    from grader.intake import Submission

YOUR_REPLY = "your reply: "
PRACTICE = "this is practice: it costs and earns no points"
OFF = "this course asks no questions: course.toml says questions = 0"
UNSOLVED = "questions are about a solved answer: {} is not solved yet; grader check {}"
NONE_SOLVED = "questions are about a solved answer, and none is solved yet"
NONE_FOUND = "no question about your answer to {} was found: {}"
FEW_REPLIES = "too few changes of its lines have an effect that one run shows surely"


def exercise_to_ask(standing: Standing, name: str | None) -> str:
    """The exercise to ask about: by default the last solved one with an answer not asked about.

    Raises `CallError` if the exercise is not solved, or the course asks no questions.
    """
    course = standing.course
    if not course.file.questions:
        raise CallError(OFF)
    if name is not None:
        course.one(name, "questions are about one exercise")
        if not standing.is_solved(name):
            raise CallError(UNSOLVED.format(name, name))
        return name
    solved = [one for one in standing.progress.checked if standing.is_solved(one)]
    solved += [one for one in course.exercises if one not in solved and standing.is_solved(one)]
    if not solved:
        raise CallError(NONE_SOLVED)
    new = [one for one in solved if not standing.was_asked(one)]
    return (new or solved)[-1]


def questions_on(
    desk: Desk, submission: Submission, name: str, seed: str = ""
) -> Sequence[Question]:
    """The questions about an answer; another seed gives others. Raises `CallError` without any."""
    from grader.questions.choice import choose  # loads torch
    from grader.questions.study import Unfit, study

    course = desk.course
    try:
        found = choose(study(desk, submission, name), course.file.questions, course.seed + seed)
    except Unfit as error:
        raise CallError(NONE_FOUND.format(name, error)) from None
    if not found:
        raise CallError(NONE_FOUND.format(name, FEW_REPLIES))
    return found


def hold(
    lesson: Lesson,
    name: str,
    questions: Sequence[Question],
    tell: Callable[[str], object],
    read: Callable[[], str],
) -> int:
    """Ask the questions, tell after each reply what was run, and record how many were right.

    `read` gives a typed reply, and raises `EOFError` if there is none. After a slip, it is asked
    again: a slip is no wrong reply.
    """
    right = 0
    for number, question in enumerate(questions, start=1):
        tell("\n".join(("", f"Question {number} of {len(questions)}", "", *in_words(question))))
        while not question.is_reply(typed := read()):
            tell(_how_to_reply(question))
        good = question.is_right(typed)
        right += good
        tell("\n".join(reply_in_words(question, right=good)))
    digest = lesson.standing.digests.get(name, UNKNOWN)
    lesson.asked(name, right, len(questions), digest)
    return right


def _how_to_reply(question: Question) -> str:
    if not question.choices:
        return "Type a shape, such as (2, 3)."
    return f"Type a letter from a to {LETTERS[len(question.choices) - 1]}."


def in_words(question: Question) -> Iterator[str]:
    """A question as lines of text."""
    yield from (f"{line.line:>5}  {line.text}" for line in question.lines)
    if question.instead:
        yield "would become"
        yield from (f"{line.line:>5}  {line.text}" for line in question.instead)
    if question.lines:
        yield ""
    yield question.text
    for letter, choice in zip(LETTERS, question.choices, strict=False):
        yield f"  {letter}) {choice}"
    if not question.choices:
        yield "  (type it, such as (2, 3))"


def reply_in_words(question: Question, *, right: bool) -> Iterator[str]:
    """What was run, after a reply."""
    letter = ""
    if question.choices:
        letter = f"{LETTERS[question.choices.index(question.reply)]}) "
    yield "Right." if right else f"No. Right is: {letter}{question.reply}"
    yield f"What was run: {question.ran}"
    yield f"To think about: {question.follow_up}"


def summary(name: str, right: int, of: int) -> str:
    """The line below the last question."""
    return f"{right} of {of} right about {name}; {PRACTICE}"
