"""Files that are written whole or not at all, and zips that are the same bytes every time."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can tell


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file; who reads meanwhile, or after a crash, sees the old one or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def zipped(files: Mapping[str, Path], programs: Collection[str] = ()) -> bytes:
    """A zip of files under these names; `programs` are the names of those that can be run."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = (0o755 if name in programs else 0o644) << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
