"""Handles names that students and systems chose: classifies, shows and writes them safely.

No name is trusted: a name may be very long, hide its file, lead out of a folder, or control a
terminal.
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
TAR, COMPRESSED = ".tar", (".gz", ".bz2", ".xz")
ARCHIVES = (ZIP, TAR, *COMPRESSED, ".tgz", ".7z", ".rar")  # only zips are read
# Documents that students submit instead of sources. They are not read, but count as a submission.
DOCUMENTS = (".doc", ".docx", ".htm", ".html", ".odt", ".pages", ".pdf", ".rtf")
# Folders that hold no answers: parts of the course, and installed packages.
SKIPPED = frozenset(
    {
        "afterwards", "checks", "experiments", "recorded",
        "__pycache__", "__MACOSX", "node_modules", "site-packages", "venv",
    }
)  # fmt: skip
_RENAMED = re.compile(
    r"(?i)(?P<real>.+\.(py|ipynb))\.(download|json|txt)", re.S
)  # the name of a file that a browser or a mail program renamed

MAX_SHOWN = 200  # characters of a shown name or a student's key
_CUT = "…"  # marks a cut in a shown name; this character is escaped if the name itself has it
_DIGITS = 32  # digits of a hash; enough to rule out deliberate collisions
_STEM = 40  # characters of a file's name, at most four bytes each
_DEVICES = re.compile(r"(?i)con|prn|aux|nul|(com|lpt)\d")  # reserved on Windows
_TAIL = 60  # characters kept at the end of a long name, for its suffix


def suffix(name: str) -> str:
    """A name's suffix in lower case: ``.py`` for ``softmax.py`` and for ``SOFTMAX.PY``."""
    return _split(name)[1].lower()


def _split(name: str) -> tuple[str, str]:
    """A name, divided before its suffix."""
    return os.path.splitext(name)  # noqa: PTH122 (PurePath keeps every name in memory)


def skipped(name: str, *, folder: bool) -> bool:
    """Whether a file or a folder is ignored because of its name."""
    return name.startswith(".") or (folder and name in SKIPPED)


def real_name(name: str) -> str:
    """The name before a browser or mail program renamed the file: ``x.py`` for ``x.py.txt``."""
    renamed = _RENAMED.fullmatch(name)
    return renamed["real"] if renamed else name


def stem_of(name: str) -> str:
    """A file's name without its suffix: ``hw`` for ``hw.py`` and for ``hw.tar.gz``."""
    stem, last = _split(real_name(name))
    compressed = last.lower() in COMPRESSED and suffix(stem) == TAR
    return stem[: -len(TAR)] if compressed and stem[: -len(TAR)] else stem


def well_formed(text: str) -> str:
    """The text without surrogates, which no file can hold.

    A pair of surrogates stands for one character. A single surrogate stands for a byte that is not
    UTF-8, which is read as cp1252, as in files.
    """
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join(_repaired(c) if "\ud800" <= c <= "\udfff" else c for c in joined)


def _repaired(surrogate: str) -> str:
    try:
        return surrogate.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    except UnicodeEncodeError:  # it stands for no byte
        return "\N{REPLACEMENT CHARACTER}"


def may_be_submission(name: str) -> bool:
    """Whether a file of this name may be a submission, even of a type that is not read."""
    known = (*SOURCES, *ARCHIVES, *DOCUMENTS)
    return suffix(name) in known or real_name(name) != name


def escaped(name: str) -> str:
    """A name or a path with its unprintable characters escaped, so that it is safe to print."""
    return "".join(
        c if c.isprintable() and c not in ("\\", _CUT) else c.encode("unicode_escape").decode()
        for c in name
    )


def shown(name: str) -> str:
    r"""A name for people, terminals and tables: printable, and of bounded length.

    Different names give different results, so that the result also serves as a key. Unprintable
    characters are escaped (``\x1b``), a backslash is doubled, and a hash replaces the middle of a
    long name.
    """
    text = escaped(name)
    if len(text) <= MAX_SHOWN:
        return text
    head = MAX_SHOWN - _DIGITS - _TAIL - 2 * len(_CUT)
    return f"{text[:head]}{_CUT}{_digest(name)}{_CUT}{text[-_TAIL:]}"


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """A safe file name without suffix for each name: letters and digits of any script, and hyphens.

    The file name is never hidden, never too long, never reserved for a device, and never leads out
    of the folder. Names that a file system could confuse, such as ``Ada`` and ``ada``, also get a
    hash.
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
