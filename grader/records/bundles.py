"""Bundles: folders that a release writes, with a list of the files and their checksums.

With the list, a later release can distinguish the files that an earlier release wrote from files
that a person changed or added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grader.records.faults import CallError
from grader.records.files import drafted, files_in, require_empty

# The list of files, in the format of `sha256sum -c`. A bundle without a folder ``exercises`` has
# the list at its top.
SUMS = Path("exercises", "recorded", "SHA256SUMS")


@contextmanager
def bundled(to: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a draft folder for a bundle; at the end, move its files to `to`, as `drafted` does.

    Files of an earlier bundle that the new bundle lacks are removed.
    """
    # The list of files is moved last, so that an interrupted run does not look complete.
    with drafted(to, private=private, earlier=sums, last=_list_in) as draft:
        yield draft


def require_free(to: Path, replace: bool) -> None:
    """Raise `CallError` unless a bundle can be written to `to`.

    `to` must be new, empty, or an earlier bundle without changed files. With `replace`, an earlier
    bundle may have changed files, which the release overwrites. Files that do not belong to the
    bundle (someone's progress, notes) always stay.
    """
    if not (to / _list_in(to)).is_file():
        require_empty(to)
        return
    changed = [path for path, digest in sums(to).items() if is_other(to / path, digest)]
    if changed and not replace:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise CallError(
            f"{to / changed[0]}{more} changed since the release: --replace overwrites the changes"
        )


def write_sums(folder: Path) -> None:
    """Write the list of a bundle's files."""
    listed = folder / _list_in(folder)
    listed.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{_digest(folder / path)}  {path.as_posix()}\n" for path in files_in(folder))
    listed.write_bytes("".join(lines).encode())


def _list_in(folder: Path) -> Path:
    return SUMS if (folder / SUMS.parts[0]).is_dir() else Path(SUMS.name)


def sums(folder: Path) -> Mapping[Path, str]:
    """The SHA-256 sum of each file in a bundle's list; empty if the folder is no bundle."""
    listed = folder / _list_in(folder)
    if not listed.is_file():
        return {}
    lines = listed.read_text("utf-8", errors="replace").splitlines()
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    # Skip paths outside the folder, since the list may be forged.
    return {
        Path(name): digest
        for digest, name in pairs
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def is_other(path: Path, digest: str) -> bool:
    """Whether a file exists and its checksum differs from `digest`."""
    return path.is_file() and _digest(path) != digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
