"""`grader audit --watch` audits what is being edited, at every save."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from grader.author.findings import Audited
from grader.author.watch import watch
from grader.course.course import load_course
from tests.conftest import Grader
from tests.support.places import TINY

pytestmark = pytest.mark.usefixtures("one_warm_process")


class Author:
    """Makes an edit after each audit, and stops after the last; keeps what was shown."""

    def __init__(self, *edits: tuple[Path, str, str]) -> None:
        self.edits = list(edits)
        self.shown: list[Sequence[Audited] | str] = []

    def __call__(self, found: Sequence[Audited] | str, _: float) -> None:
        self.shown.append(found)
        if not self.edits:
            raise KeyboardInterrupt
        path, old, new = self.edits.pop(0)
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")

    @property
    def audited(self) -> list[set[str] | str]:
        """The exercises of each audit, or the line that says why there was none."""
        return [
            one if isinstance(one, str) else {finding.exercise for finding in one}
            for one in self.shown
        ]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A copy of the tiny course."""
    return Path(shutil.copytree(TINY, tmp_path / "tiny"))


def test_a_save_repeats_the_audit_of_the_exercises_of_its_unit(course: Path) -> None:
    library = course / "solutions" / "mistakes" / "basics.py"
    author = Author((library, '{"x - ": "x + "}', '{"x.mean()": "torch.mean(x)"}'))
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: load_course(course / "exercises"), ["center", "Projection"], author)
    assert author.audited == [{"center", "Projection"}, {"center"}]
    before, after = (
        [f.well for f in found if isinstance(f, Audited) and f.name == "center/adds"]
        for found in author.shown
    )
    assert (before, after) == ([True, True], [False, True]), "a mistake, and its margin"


def test_a_slip_in_a_saved_file_is_told_and_the_watch_goes_on(course: Path) -> None:
    graders = course / "solutions" / "graders" / "test_basics.py"
    author = Author((graders, "import pytest", "import pytes"), (graders, "pytes\n", "pytest\n"))
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: load_course(course / "exercises"), ["center"], author)
    _, slip, after = author.audited
    assert "pytes" in slip
    assert after == {"center"}


def test_ctrl_c_ends_the_command_with_130(
    course: Path, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.author.watch.saves", stopped)
    ran = grader("audit", "center", "--watch", "--course", course / "exercises")
    assert ran.code == 130
    assert "exercise center: has 1 hint, not three" in ran.out
    assert "in " in ran.out
    assert ran.err == "grader: stopped; nothing was written\n"


def test_watch_goes_with_no_option_that_prints_otherwise(course: Path, grader: Grader) -> None:
    ran = grader("audit", "--watch", "--json", "--course", course / "exercises")
    assert ran.code == 2
