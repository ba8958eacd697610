"""The source files in a folder, at any depth, in order of their paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from grader.intake.files import Found, Problem, on_disk, reason
from grader.intake.names import ARCHIVES, SOURCES, shown, skipped, suffix

NESTED = "an archive inside a submission is not looked into: unpack it, and hand in what it holds"


def folder_files(folder: Path) -> Iterator[Found]:
    """List a folder's source files. Links are never followed."""
    waiting: list[os.DirEntry[str] | Path] = [folder]  # a stack: recursion has a limit
    while waiting:
        entry = waiting.pop()
        path = Path(entry)
        name = shown(folder.name if entry is folder else path.relative_to(folder).as_posix())
        try:
            if entry is folder or (isinstance(entry, os.DirEntry) and _is_folder(entry)):
                with os.scandir(path) as inside:
                    own = [one for one in inside if not skipped(one.name, folder=_is_folder(one))]
                waiting += sorted(own, key=lambda one: one.name, reverse=True)
                continue
        except OSError as error:
            yield Problem(name, reason(error))
            continue
        if suffix(name) in SOURCES:
            yield on_disk(path, name)
        elif suffix(name) in ARCHIVES:
            yield Problem(name, NESTED)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
