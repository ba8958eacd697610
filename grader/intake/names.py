"""Names that others chose: what they say a file is, and how they are shown and written.

No name is trusted: it may be long, hidden, a way out of a folder, or an order to a terminal.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

SOURCES = (".py", ".ipynb")
ZIP = ".zip"
ARCHIVES = (ZIP, ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")  # only zips are read
# What people hand in where sources are asked for. Not read, and never passed over: someone's work.
DOCUMENTS = (".doc", ".docx", ".htm", ".html", ".odt", ".pages", ".pdf", ".rtf")
# Folders in which nobody writes answers: parts of the course, and other people's.
SKIPPED = frozenset(
    {
        "afterwards", "checks", "experiments", "recorded",
        "__pycache__", "__MACOSX", "node_modules", "site-packages", "venv",
    }
)  # fmt: skip
_RENAMED = re.compile(
    r"(?i)(?P<real>.+\.(py|ipynb))\.(download|json|txt)", re.S
)  # by a browser, or by mail

MAX_SHOWN = 200  # characters of a name that is shown, or is a student's key
_CUT = "…"  # in no name that is whole: `shown` escapes it
_DIGITS = 32  # of a hash that nobody can meet on purpose
_STEM = 40  # characters of a file's name, of at most four bytes each
_DEVICES = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)\d")  # no file on Windows is called so
_TAIL = 60  # of a long name, with its suffix


def suffix(name: str) -> str:
    """``.py`` for ``softmax.py``, and for ``SOFTMAX.PY``."""
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 (PurePath keeps every name in memory)


def skipped(name: str, *, folder: bool) -> bool:
    """Whether a file or a folder with this name is nobody's answer."""
    return name.startswith(".") or (folder and name in SKIPPED)


def real_name(name: str) -> str:
    """``softmax.py`` for ``softmax.py.txt``; any other name as it is."""
    renamed = _RENAMED.fullmatch(name)
    return renamed["real"] if renamed else name


def handed_in(name: str) -> bool:
    """Whether a file of this name is somebody's hand-in, one that is not read included."""
    known = (*SOURCES, *ARCHIVES, *DOCUMENTS)
    return suffix(name) in known or real_name(name) != name


def escaped(name: str) -> str:
    """A name or a path with all of its characters, and none that a terminal would obey."""
    return "".join(
        c if c.isprintable() and c not in ("\\", _CUT) else c.encode("unicode_escape").decode()
        for c in name
    )


def shown(name: str) -> str:
    r"""A name as people, terminals and tables see it: printable, of bounded length.

    Different names are never shown alike, so the result is a key as well: what is not printable
    becomes its escape (``\x1b``), a backslash two, and what is cut out of the middle its hash.
    """
    text = escaped(name)
    if len(text) <= MAX_SHOWN:
        return text
    head = MAX_SHOWN - _DIGITS - _TAIL - 2 * len(_CUT)
    return f"{text[:head]}{_CUT}{_digest(name)}{_CUT}{text[-_TAIL:]}"


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """For each name a file's, without suffix: letters and digits of any script, and hyphens.

    It is never hidden, a way out of the folder, a device, or too long. Names that a file system
    could take for one another (it may not tell ``Ada`` from ``ada``) also carry a hash.
    """
    stems = {name: _stem(name) for name in names}
    alike = Counter(stem.casefold() for stem in stems.values())
    return {
        name: stem if alike[stem.casefold()] == 1 else f"{stem}.{_digest(name)}"
        for name, stem in stems.items()
    }


def _stem(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name)
    stem = re.sub(r"[^\w]+", "-", plain)[:_STEM].strip("-")
    return f"_{stem}" if not stem or _DEVICES.fullmatch(stem) else stem


def _digest(name: str) -> str:
    data = name.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_DIGITS // 2).hexdigest()
