"""The same verdicts on every processor: an audit with less and less of this one.

Processors round differently, since the libraries below torch choose their kernels by what a
processor can do. Those read their settings once, when they start: each audit is a process of its
own, and hands its settings on to its jails.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from grader.audit import Finding, Kind

_SCALAR = {"ATEN_CPU_CAPABILITY": "default"}
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    _SCALAR,
    {**_SCALAR, "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
)


class NotAudited(Exception):
    """An audit did not come to its end, and has said why; with its exit code."""


@dataclass(frozen=True)
class Verdict:
    """What must not depend on the processor: how a case ended, its points and its names."""

    well: bool
    excused: bool
    points: float | None
    given: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """One case, and its verdict in each setting; none where there was no such case."""

    kind: Kind
    name: str
    verdicts: tuple[Verdict | None, ...]


def label(setting: Mapping[str, str]) -> str:
    """A setting as one would type it."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "as it is"


def audited(setting: Mapping[str, str], arguments: Sequence[str]) -> list[Finding]:
    """What `grader audit` finds in a setting; `arguments` are those of the command."""
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "grader", "audit", "--json", *arguments],
        env={**os.environ, **setting}, stdout=subprocess.PIPE, check=False,
    )  # fmt: skip
    if ran.returncode not in (0, 1):
        raise NotAudited(ran.returncode)
    return msgspec.json.decode(ran.stdout, type=list[Finding])


def differences(audits: Sequence[Sequence[Finding]]) -> Iterator[Difference]:
    """The cases whose verdicts are not the same in all of these audits."""
    tables = [
        {(f.kind, f.name): Verdict(f.well, f.excused, f.points, f.given) for f in findings}
        for findings in audits
    ]
    for kind, name in dict.fromkeys(case for table in tables for case in table):
        verdicts = tuple(table.get((kind, name)) for table in tables)
        if len({*verdicts}) > 1:
            yield Difference(kind, name, verdicts)
