"""A known mistake that does not end, or takes too much, costs a name and nothing else."""

from __future__ import annotations

import dataclasses
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from grader.course.course import Course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.opening import sheet_of
from grader.grading.rows import Rows
from grader.intake import Submission
from grader.mistakes import Library, Variant, load_library
from grader.sandbox.session import Limits
from grader.unsandboxed import forked
from grader.wire import SourceText

pytestmark = pytest.mark.skipif(not forked.possible(), reason="mistakes run without limits here")

WRONG = "def center(x):\n    return x + sum(x) / len(x)"
LIMITS = Limits(test_seconds=0.3, memory_mb=256)

UNFIT = {
    "never ends": "while True:\n        pass",
    "sleeps": "import time\n    time.sleep(1e6)",
    "cannot be interrupted": "import signal, time\n    signal.signal(signal.SIGTERM, "
    "signal.SIG_IGN)\n    while True:\n        pass",
    "ends its process": "import os\n    os._exit(0)",
    "takes all memory": "held = []\n    while True:\n        held.append(bytearray(2**24))",
    "raises what nobody catches": "raise BaseException",
    "closes its files": "import os\n    os.closerange(0, 1000)\n    return x",
}


@contextmanager
def desk_that_knows(desk: Desk, course: Course, body: str, kept: Path | None) -> Iterator[Desk]:
    """A desk whose first known mistake in `center` has this body."""
    odd = Variant("center", "odd", "mistake", "Odd", "?", f"def center(x):\n    {body}\n")
    library = load_library(course)
    library = Library([odd, *library.variants], library.sources, library.unit_of)
    rows = Rows(kept)
    other = dataclasses.replace(desk)
    other.limits = LIMITS
    other.sheet = sheet_of(other, library, rows)
    with closing(other):
        yield other
    rows.close()


def names(desk: Desk, right: str) -> set[str | None]:
    source = SourceText("ada.py", (f"{right}\n\n{WRONG}\n",))
    graded = grade_submission(desk, Submission("ada", (source,)))
    result = next(result for result in graded.exercises if result.name == "center")
    return {test.mistake for test in result.tests if test.status in ("failed", "error")}


@pytest.mark.parametrize("body", UNFIT.values(), ids=UNFIT.keys())
def test_the_other_mistakes_are_still_named(
    desk: Desk, right: str, tiny: Course, body: str
) -> None:
    with desk_that_knows(desk, tiny, body, None) as other:
        assert names(other, right) == {"The mean is added"}


def test_what_did_not_end_is_kept_for_no_other_grading(
    desk: Desk, right: str, tiny: Course, tmp_path: Path
) -> None:
    with desk_that_knows(desk, tiny, UNFIT["never ends"], tmp_path / "kept.db") as other:
        names(other, right)
    assert kept_of(tmp_path / "kept.db", "center/odd") == 0
    assert kept_of(tmp_path / "kept.db", "center/adds") > 0


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_during_a_mistake_ends_the_grading_and_is_no_outcome(
    desk: Desk, right: str, tiny: Course, tmp_path: Path
) -> None:
    body = (
        f"import os, signal\n    os.kill({os.getpid()}, signal.SIGINT)\n"
        "    while True:\n        pass"
    )
    with desk_that_knows(desk, tiny, body, tmp_path / "kept.db") as other:
        with pytest.raises(KeyboardInterrupt):
            names(other, right)
        assert kept_of(tmp_path / "kept.db", "center/odd") == 0


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_during_a_mistake_that_runs_without_limits_is_no_outcome_either(
    desk: Desk, right: str, tiny: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "possible", lambda: False)
    body = "import os, signal\n    os.kill(os.getpid(), signal.SIGINT)\n    return x"
    with (
        desk_that_knows(desk, tiny, body, tmp_path / "kept.db") as other,
        pytest.raises(KeyboardInterrupt),
    ):
        names(other, right)
    assert kept_of(tmp_path / "kept.db", "center/odd") == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C counts: a process in which tests run side by side ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def kept_of(file: Path, mistake: str) -> int:
    """How many rows of a mistake a file holds."""
    with closing(sqlite3.connect(file)) as opened:
        rows = opened.execute("SELECT count(*) FROM rows WHERE name = ?", (mistake,))
        return int(rows.fetchone()[0])
