"""Counts what a student, a grading machine and each extra install: packages, and megabytes.

``python -m tests.tools.packages`` prints the table of ``docs/operations/packages.md``. It measures
the files of the packages that are installed here, and thus needs the extra ``dev``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.places import ROOT

EXTRAS = ("grading", "notebooks", "instructor", "canvas", "cluster", "mcp", "otter", "docs", "dev")
OURS = "attention-grader"
MB = 10**6


def main() -> None:
    """Print the table."""
    students = set(packages(()))
    without = {OURS, *_needed(OURS, frozenset(), leaving_out="torch")}
    print("| installed | packages | MB |\n|---|---|---|")
    print(_row("a student's install, without torch", without))
    print(_row("torch for a CPU, and what only torch needs", students - without))
    for extra in EXTRAS:
        print(_row(f"`[{extra}]` adds", set(packages((extra,))) - students))


def packages(extras: tuple[str, ...]) -> set[str]:
    """The names of all packages that an install with these extras brings."""
    return {OURS, *_needed(OURS, frozenset(extras))}


def _needed(
    name: str, extras: frozenset[str], leaving_out: str = "", seen: set[str] | None = None
) -> Iterator[str]:
    seen = set() if seen is None else seen
    for line in _requirements(name):
        wanted = Requirement(line)
        there = canonicalize_name(wanted.name)
        applies = wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        known = f"{there}[{','.join(sorted(wanted.extras))}]"
        if not applies or there == leaving_out or known in seen:
            continue
        seen.add(known)
        if there != OURS:
            yield there
        yield from _needed(there, frozenset(wanted.extras), leaving_out, seen)


def _requirements(name: str) -> list[str]:
    if name != OURS:
        return list(metadata.requires(name) or ())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [
        *project["dependencies"],
        *(
            f'{line.partition(";")[0]}; extra == "{extra}"'
            for extra, lines in project["optional-dependencies"].items()
            for line in lines
        ),
    ]


def _row(title: str, names: set[str]) -> str:
    return f"| {title} | {len(names)} | {sum(map(_size, names - {OURS})) / MB:.0f} |"


def _size(name: str) -> int:
    """The bytes of a package's files, without what Python compiled of them."""
    files = metadata.files(name) or ()
    sizes = (file.size or 0 for file in files if "__pycache__" not in file.parts)
    return sum(sizes)


if __name__ == "__main__":
    main()
