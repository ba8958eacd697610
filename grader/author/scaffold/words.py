"""Puts into words what was written, and what is left for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from grader.author.findings import Audited
from grader.author.scaffold.draft import Outcome
from grader.records.rows import counted

LEFT = "left for a person: "


def lines_of(name: str, outcome: Outcome) -> Iterator[str]:
    """The lines for a terminal."""
    yield from _pieces("written", outcome.written)
    yield from _pieces("left as it was", outcome.kept)
    for reason in outcome.left_out:
        yield f"left out: {reason}"
    findings = outcome.findings
    mutants = [one for one in findings if one.kind == "mutant"]
    dead = sum(one.well and not one.excused for one in mutants)
    share = f" ({dead / len(mutants):.0%})" if mutants else ""
    mistakes = sum(one.kind == "mistake" and one.well for one in findings)
    yield (
        f"{name}: the tests catch {dead} of {counted(len(mutants), 'mutant')}{share}, and name "
        f"{counted(mistakes, 'mistake')}"
    )
    wrong = [one for one in findings if not one.well]
    slots = [one.text.removeprefix(LEFT) for one in wrong if one.text.startswith(LEFT)]
    others = [one for one in wrong if one.kind != "mutant" and not one.text.startswith(LEFT)]
    living = [one for one in wrong if one.kind == "mutant"]
    if not wrong:
        yield "nothing is left for you: the audit is green"
        return
    yield "left for you:"
    if slots:
        yield f"  to write, where the files say TODO: {', '.join(slots)}"
    for finding in others:
        advice = f"; {finding.advice}" if finding.advice else ""
        what = "" if finding.kind == "exercise" else f"{finding.kind} {finding.name}: "
        yield f"  {finding.place}: {what}{finding.text}{advice}"
    yield from _living(living)


def _pieces(verb: str, files: Mapping[Path, Sequence[str]]) -> Iterator[str]:
    for path, pieces in files.items():
        yield f"{verb}: {path} ({' and '.join(pieces)})"


def _living(mutants: Sequence[Audited]) -> Iterator[str]:
    """The living mutants, grouped by the line that they change."""
    if not mutants:
        return
    yield "  changes that no test notices: test them, name them, or excuse them in audit.toml"
    for line, group in groupby(mutants, key=lambda one: one.name.partition(":")[0]):
        changes = [one.name.partition(":")[2] for one in group]
        yield f"    {line.rpartition('/')[2].replace('L', 'line ')}: {'; '.join(changes)}"
