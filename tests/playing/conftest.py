"""A course with a model in it, and two unlike students who have written it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import mine
from tests.support.places import REAL, ROOT

GPTS = ROOT / "tests" / "support" / "gpts"
SETS = ("modules", "by_hand")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course of the four exercises, with the answers of `modules`; tests run beside it."""
    course = tmp_path / "exercises"
    shutil.copytree(REAL / "afterwards" / "play", course / "afterwards" / "play")
    shutil.copyfile(GPTS / "course.toml", course / "course.toml")
    answer(course, "modules")
    monkeypatch.chdir(tmp_path)
    yield course
    mine.forget()


def answer(folder: Path, which: str, more: str = "") -> None:
    """Write the answers of one of the two, and what is added at the end, into the course."""
    text = (GPTS / f"{which}.py").read_text("utf-8")
    (folder / "gpt.py").write_text(f"{text}\n\n{more}", "utf-8")
