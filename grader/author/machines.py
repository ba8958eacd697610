"""Repeats an audit as on older processors, and compares audits' verdicts.

Verdicts must not depend on the processor. Results are rounded differently on other processors,
since torch's libraries choose kernels that suit the processor. Environment variables can make
these libraries choose kernels as on an older processor. The libraries read the variables only
when a process starts, so each setting is audited in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from grader.author.findings import Audited, FindingKind

_SCALAR = {"ATEN_CPU_CAPABILITY": "default"}
SETTINGS: tuple[Mapping[str, str], ...] = (
    {},
    _SCALAR,
    {**_SCALAR, "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"},
)


class NotAudited(Exception):
    """Raised if an audit's process failed, with its exit code; the process printed the reason."""


@dataclass(frozen=True)
class SettingVerdict:
    """The part of a finding that must not depend on the processor or the seed."""

    well: bool
    excused: bool
    points: float | None
    given: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """A finding with different verdicts under different settings, or with different seeds.

    A verdict is None if the audit under that setting lacks the finding.
    """

    kind: FindingKind
    name: str
    verdicts: tuple[SettingVerdict | None, ...]


def label(setting: Mapping[str, str]) -> str:
    """A setting as one would type it in a shell: ``NAME=value NAME=value``."""
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "as it is"


def audited(setting: Mapping[str, str], arguments: Sequence[str]) -> list[Audited]:
    """Run `grader audit` under a setting with these arguments, and return its findings."""
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "grader", "audit", "--json", *arguments],
        env={**os.environ, **setting},
        stdout=subprocess.PIPE,
        check=False,
    )
    if ran.returncode not in (0, 1):
        raise NotAudited(ran.returncode)
    return msgspec.json.decode(ran.stdout, type=list[Audited])


def differences(audits: Sequence[Sequence[Audited]]) -> Iterator[Difference]:
    """The findings whose verdicts differ between these audits, of several settings or seeds."""
    tables = [
        {(f.kind, f.name): SettingVerdict(f.well, f.excused, f.points, f.given) for f in findings}
        for findings in audits
    ]
    for kind, name in dict.fromkeys(case for table in tables for case in table):
        verdicts = tuple(table.get((kind, name)) for table in tables)
        if len({*verdicts}) > 1:
            yield Difference(kind, name, verdicts)
