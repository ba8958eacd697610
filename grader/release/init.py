"""A course out of the kit's own wheel: what `grader release student` wrote before it was built."""

from __future__ import annotations

import shutil
from pathlib import Path

import grader
from grader.records.faults import CallError
from grader.records.files import drafted, files_in, require_empty

CARRIED = Path(grader.__file__).parent / "bundle"


def init(to: Path) -> list[Path]:
    """Copy the course that this install carries into a new or empty folder; return its files."""
    if not (CARRIED / "exercises" / "course.toml").is_file():
        raise CallError(
            "this install carries no course: make one with `grader release student --to DIR`"
        )
    require_empty(to)
    names = [path for path in files_in(CARRIED) if "__pycache__" not in path.parts]
    with drafted(to) as draft:
        for name in names:
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CARRIED / name, draft / name)
    return [to / name for name in names]
