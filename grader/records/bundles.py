"""Bundles: folders that were written with a list of their files and the sums of these.

By the list a later release knows its own files again, and what a person changed or added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grader.records.faults import CallError
from grader.records.files import drafted, files_in, require_empty

# As `sha256sum -c` reads it.
SUMS = Path("exercises", "recorded", "SHA256SUMS")  # at the top, where there are no exercises


@contextmanager
def bundled(to: Path, *, private: bool = False) -> Iterator[Path]:
    """A draft of a bundle, as `drafted`; what an earlier bundle in `to` had and it lacks goes."""
    # Last comes the list: a run that was cut off is told from a whole one by the files it left.
    with drafted(to, private=private, earlier=sums, last=_list_in) as draft:
        yield draft


def require_free(to: Path, replace: bool) -> None:
    """Raise `CallError` unless `to` is new, empty, or an earlier bundle.

    With `replace`, changed files of an earlier bundle may be lost. Files that are not of the bundle
    (someone's progress, notes) stay in any case.
    """
    if not (to / _list_in(to)).is_file():
        require_empty(to)
        return
    changed = [path for path, digest in sums(to).items() if is_other(to / path, digest)]
    if changed and not replace:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise CallError(
            f"{to / changed[0]}{more} changed since the release: --replace would lose that"
        )


def write_sums(folder: Path) -> None:
    """Write down what is in a bundle."""
    listed = folder / _list_in(folder)
    listed.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{_digest(folder / path)}  {path.as_posix()}\n" for path in files_in(folder))
    listed.write_bytes("".join(lines).encode())


def _list_in(folder: Path) -> Path:
    return SUMS if (folder / SUMS.parts[0]).is_dir() else Path(SUMS.name)


def sums(folder: Path) -> Mapping[Path, str]:
    """The SHA-256 sums of a bundle's files as they were written; none where it is no bundle."""
    listed = folder / _list_in(folder)
    if not listed.is_file():
        return {}
    lines = listed.read_text("utf-8", errors="replace").splitlines()
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    # Only names below the folder: the list may come from elsewhere.
    return {
        Path(name): digest
        for digest, name in pairs
        if not Path(name).is_absolute() and ".." not in Path(name).parts
    }


def is_other(path: Path, digest: str) -> bool:
    """Whether a file is not what was written under this sum."""
    return path.is_file() and _digest(path) != digest


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
