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
    # A stack, since recursion has a limit; with names as text, since paths are slow where deep.
    waiting: list[tuple[str, os.DirEntry[str] | None]] = [(folder.name, None)]
    while waiting:
        name, entry = waiting.pop()
        try:
            if entry is None or _is_folder(entry):
                with os.scandir(entry or folder) as inside:
                    own = [one for one in inside if not skipped(one.name, folder=_is_folder(one))]
                own.sort(key=lambda one: one.name, reverse=True)
                waiting += [(f"{name}/{one.name}" if entry else one.name, one) for one in own]
                continue
        except OSError as error:
            yield Problem(shown(name), reason(error))
            continue
        if suffix(entry.name) in SOURCES:
            yield on_disk(Path(entry), shown(name))
        elif suffix(entry.name) in ARCHIVES:
            yield Problem(shown(name), NESTED)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)
