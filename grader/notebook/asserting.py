"""A public check as an assertion, for systems that ask for one at a time: otter's tests call this.

Each call checks the whole exercise: a check's verdict stands on those before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.feedback import terminal
from grader.notebook.asking import check
from grader.records.grade import ExerciseResult, TestResult
from grader.records.wording import mistake_of

NOT_TRIED = "not tried, because something before it is wrong: {title}"


def require(exercise: str, test: str) -> None:
    """Raise `AssertionError` unless this check passes on what the notebook has defined.

    `test` is the name of a public check, or ``operations`` for what the exercise forbids. Raises
    `CallError` where there is nothing to check.
    """
    (result,) = check(exercise).results
    found = next((one for one in result.tests if one.name == test), None)
    if found is None or found.status != "passed":
        raise AssertionError(terminal.safe("\n".join(_told(result, found))))


def _told(result: ExerciseResult, found: TestResult | None) -> Iterator[str]:
    """Why a check did not pass: its own reason, or the first one where it was not tried."""
    first = next(one for one in result.tests if one.status != "passed")
    if found is None or found.status in ("missing", "skipped"):
        # `exists` and `signature` are nobody's own check: what they say is said here.
        asked = first.name in ("exists", "signature")
        yield first.message or "" if asked else NOT_TRIED.format(title=first.title)
        return
    yield from filter(None, (found.message, mistake_of(found), found.hint))
