"""The versions of the libraries that a bundle installs: those with which the release was made."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


def pip_files(pyproject: str, torch_index: str | None) -> dict[str, str]:
    """The files, by name, that tell pip which versions to install, and from where.

    `torch_index` is the address of a second package index, if there is one.
    """
    files = {"constraints.txt": _pins(pyproject)}
    if torch_index:
        files["pip.conf"] = f"[global]\nextra-index-url = {torch_index}\n"
    return files


def _pins(pyproject: str) -> str:
    """A file of constraints for pip, for all that a bundle's `pyproject.toml` makes pip install.

    A library that is not installed here gets no line: it belongs to another system. The suffix of a
    version, such as ``+cpu``, is left out, since it depends on the package index.
    """
    project = tomllib.loads(pyproject)
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    found = dict(_installed(asked))
    return "".join(f"{name}=={found[name]}\n" for name in sorted(found))


def _installed(asked: list[str]) -> Iterator[tuple[str, str]]:
    """The name and version of each installed library that these requirements need, at any depth."""
    waiting, seen = [*map(Requirement, asked)], set[tuple[str, frozenset[str]]]()
    while waiting:
        wanted = waiting.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        if (name, extras) in seen or not _applies(wanted, frozenset()):
            continue
        seen.add((name, extras))
        try:
            there = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        yield name, Version(there.version).public
        further = [Requirement(line) for line in there.requires or ()]
        waiting += [_unconditional(one) for one in further if _applies(one, extras)]


def _applies(wanted: Requirement, extras: frozenset[str]) -> bool:
    marker = wanted.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})


def _unconditional(wanted: Requirement) -> Requirement:
    wanted.marker = None  # it applies, possibly because of an extra that is unknown further on
    return wanted
