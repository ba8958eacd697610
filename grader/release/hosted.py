"""The first cell of a notebook for a hosted service: it installs the kit from a wheel's address.

A hosted service opens the notebook's file alone, on a machine that has torch and not the kit. The
wheel brings the course, so that checks need no other file.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from grader import __version__
from grader.records.faults import CallError
from grader.release import texts

KIT = "attention-grader"
SCHEMES = ("https", "http", "file")

# The first line of each other code cell.
GUARD = (
    'assert "grader" in globals(), "Run the first code cell of this notebook: it installs the kit."'
)

ABOUT = """\
**Is this notebook open on a machine that is not yours, as in Colab?** Run the next cell first, in
each new session: it installs the exercises. If they are installed already, it installs nothing.

**Save your work elsewhere.** After the session, the machine is deleted with all its files. Download
the notebook (File, then Download), or save a copy in your drive (in Colab: File, then Save a copy
in Drive). This file holds your answers, and it is the file to submit. `grader.pack()` does not see
it on such a machine.

The next cell writes a folder `attention`, which records what you solved. To keep this record too,
mount your drive, and go to a folder there before you run the next cell. In Colab, a cell with these
lines does so:

```python
from google.colab import drive
drive.mount("/content/drive")
%cd /content/drive/MyDrive
```"""


@dataclass(frozen=True)
class Wheel:
    """The kit's wheel at an address that pip can open."""

    url: str
    version: str

    def install_cell(self) -> str:
        """The text of the cell that installs this wheel, and never replaces torch."""
        fields = {"url": self.url, "version": self.version}
        return texts.template("hosted.txt", **fields).strip()


def wheel_at(url: str) -> Wheel:
    """The wheel at this address; nothing is fetched.

    Raises `CallError` if pip would not accept the file's name, or if this name belongs to another
    package or to another version than this kit, whose notebooks would not fit it.
    """
    example = f"attention_grader-{__version__}-py3-none-any.whl"
    try:
        parts = urlsplit(url)
        name = unquote(parts.path.rpartition("/")[2])
        package, version, _, _ = parse_wheel_filename(name)
    except ValueError:  # of `urlsplit`, or of an invalid name
        raise CallError(
            f"--wheel-url: {url!r} does not end in a wheel's name: pip needs one such as {example}"
        ) from None
    if parts.scheme not in SCHEMES or not url.isprintable() or {*url} & {'"', "\\", " "}:
        raise CallError(f"--wheel-url: {url!r} is not an address that begins with https://")
    if package != KIT or version != Version(__version__):
        raise CallError(
            f"--wheel-url: {name} is not the wheel of this kit, {KIT} {__version__}: "
            "build it with `make dist`, and keep its name"
        )
    return Wheel(url, str(version))
