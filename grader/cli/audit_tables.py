"""Prints an author's audit, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from grader.cli.tables import add_numbers
from grader.feedback.terminal import safe
from grader.records.rows import counted, number

if TYPE_CHECKING:
    from grader.author.findings import Audited
    from grader.author.machines import Difference, SettingVerdict
    from grader.author.recurring import WrongAnswers

AUDITED = {
    "reference": "refs", "stub": "stubs", "accepted": "accepted", "mistake": "mistakes",
    "named": "named", "mutant": "mutants", "test": "tests", "rule": "rules",
    "margin": "margins",
}  # fmt: skip
EXCUSED = {
    "mutant": "Mutants that no test has to catch", "mistake": "Mistakes that need no name",
    "test": "Tests that may repeat others",
    "margin": "Known answers that may come near a tolerance",
    "question": "References about which `grader ask` has fewer questions",
}  # fmt: skip


RECURRING = ("wrong", "lose points", "named", "in groups", "alone", "other reasons")
OTHER_REASONS = (
    "other reasons: a wrong exercise that the answer uses, a forbidden operation, the signature, "
    "time or memory, text that is no Python"
)


def audit_report(
    findings: Sequence[Audited],
    near: Sequence[Audited],
    totals: Mapping[str, Mapping[str, tuple[int, int]]],
) -> Iterator[Table | Text]:
    """The report on an audit: excused findings, findings `near` a tolerance, and a table.

    The table has a row for each unit. Its cells count the findings that are as they should be, and
    all findings, as in ``35/35``.
    """
    for kind, title in EXCUSED.items():
        excused = [f for f in findings if f.kind == kind and f.excused]
        if excused:
            yield Text(f"{title}: {len(excused)}", style="bold")
        for finding in excused:
            yield Text(f"  {finding.name}: {finding.text}")
    if near:
        yield Text("Nearest to a tolerance, from below and from above:", style="bold")
    for finding in near:
        # Of an error, 1 would be a fault. Counts are the same on every machine.
        exact = finding.ratio == 1
        said = (
            "a count that equals its limit" if exact else f"{finding.ratio:.3g} times the tolerance"
        )
        yield Text(f"  {finding.name}: {said}")
    sums = {
        kind: (
            sum(row[kind][0] for row in totals.values()),
            sum(row[kind][1] for row in totals.values()),
        )
        for kind in AUDITED
    }
    rows = {**totals, "all": sums}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("unit", no_wrap=True, overflow="ellipsis")
    for kind, title in AUDITED.items():
        add_numbers(table, title, (_share(row[kind]) for row in rows.values()))
    for unit, row in rows.items():
        style = "bold" if unit == "all" else None
        table.add_row(unit, *(_share(row[kind]) for kind in AUDITED), style=style)
    yield table


def recurring_report(found: Sequence[WrongAnswers]) -> Iterator[Table | Text]:
    """The report on a class's wrong answers: a table by exercise, and the drafts of mistakes."""
    rows: dict[str, Sequence[int]] = {
        one.exercise: (one.wrong, one.lose, one.named, one.grouped, one.alone, one.other)
        for one in found
        if one.wrong
    }
    rows["all"] = [*map(sum, zip(*rows.values(), strict=True))] or [0] * len(RECURRING)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("exercise", no_wrap=True, overflow="ellipsis")
    for place, title in enumerate(RECURRING):
        add_numbers(table, title, (str(row[place]) for row in rows.values()))
    for name, row in rows.items():
        table.add_row(name, *map(str, row), style="bold" if name == "all" else None)
    yield table
    if rows["all"][-1]:
        yield Text(f"{OTHER_REASONS}\n")
    groups = [group for one in found for group in one.groups]
    for group in sorted(groups, key=lambda group: -group.answers):
        yield Text(f"{group.exercise}: {group.answers} answers, one result", style="bold")
        if group.students:
            yield Text(safe(f"  {', '.join(sorted(group.students))}"))
        yield Text(f"{group.draft}\n")
    if not groups:
        yield Text("no two answers without a known mistake's name give the same results")


def faults(findings: Sequence[Audited]) -> Iterator[str]:
    """The lines about all faults; a fault with several seeds is shown for the first of them."""
    shown: set[tuple[str, str]] = set()
    for finding in findings:
        if not finding.well and (finding.kind, finding.name) not in shown:
            shown.add((finding.kind, finding.name))
            first, *more = finding_lines(finding)
            yield first if finding.seed == 1 else f"{first} (with seed {finding.seed})"
            yield from more


def watched(findings: Sequence[Audited], seconds: float) -> Iterator[str]:
    """The lines about an audit during `--watch`: all faults, and a summary."""
    yield from faults(findings)
    names = ", ".join(dict.fromkeys(finding.exercise for finding in findings))
    yield f"{names}: {_summary(findings)}, in {seconds:.1f} s"


def _summary(findings: Sequence[Audited]) -> str:
    wrong = sum(not finding.well for finding in findings)
    ending = f"{wrong} not as they should be" if wrong else "all as they should be"
    return f"{counted(len(findings), 'case')}, {ending}"


def seeds_table(findings: Sequence[Audited], seeds: int) -> Table:
    """A table of the findings that differ by seed, with a column for each seed.

    The last rows have the margins nearest to a tolerance, from below and from above.
    """
    from grader.author.findings import nearest_margins
    from grader.author.machines import differences

    audits = [[f for f in findings if f.seed == seed] for seed in range(1, seeds + 1)]
    by_name = [{(f.kind, f.name): f for f in audit} for audit in audits]
    differing = [
        found
        for found in differences(audits)
        if any((found.kind, found.name) in audit for audit in by_name[1:])
    ]
    table = Table(
        title=f"Findings that differ by seed: {len(differing)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("seed")
    for seed in range(1, seeds + 1):
        table.add_column(str(seed), no_wrap=True)
    for found in differing:
        cells = [_by_seed(audit.get((found.kind, found.name))) for audit in by_name]
        table.add_row(f"{found.kind} {found.name}", *cells)
    for title, above in (("nearest margin, from below", False), ("from above", True)):
        ratios = [[n.ratio for n in nearest_margins(audit) if n.ratio] for audit in audits]
        near = [next((r for r in own if (r > 1) is above), None) for own in ratios]
        table.add_row(title, *("-" if ratio is None else f"{ratio:.3g}" for ratio in near))
    return table


def _by_seed(finding: Audited | None) -> str:
    """A finding in a word or two: its state, the points and the names of mistakes."""
    if finding is None:
        return "-"
    if finding.kind == "mutant" and not finding.excused:
        return "caught" if finding.well else "survives"
    state = "excused" if finding.excused else "well" if finding.well else "wrong"
    points = "" if finding.points is None else f", {number(finding.points)} points"
    return f"{state}{points}{''.join(f', {name!r}' for name in finding.given)}"


def audited_setting(label: str, findings: Sequence[Audited]) -> Iterator[str]:
    """The lines about an audit in one setting of torch's libraries: counts, and each failure."""
    yield f"{label}: {_summary(findings)}"
    yield from (f"  {line}" for line in faults(findings))


def finding_lines(finding: Audited) -> Iterator[str]:
    """The lines about a fault: its place and text, and what to do."""
    # The name of an exercise's fault is its text.
    name = finding.exercise if finding.kind == "exercise" else finding.name
    first, *more = finding.text.splitlines()
    yield f"{finding.place}: {finding.kind} {name}: {first}"
    yield from (f"  {line}" for line in more)
    if finding.witness:
        yield f"  {finding.witness}"
    if finding.advice:
        yield f"  → {finding.advice}"


def differing_settings(labels: Sequence[str], found: Sequence[Difference]) -> Iterator[str]:
    """The lines about each difference between audits, with the verdict in each setting."""
    for difference in found:
        yield f"{difference.kind} {difference.name} differs:"
        for label, verdict in zip(labels, difference.verdicts, strict=True):
            yield f"  {label}: {_verdict(verdict)}"
    if not found:
        yield f"verdicts, names and points are the same in {counted(len(labels), 'setting')}"


def _verdict(verdict: SettingVerdict | None) -> str:
    if verdict is None:
        return "no such case"
    state = "excused" if verdict.excused else "as it should be" if verdict.well else "wrong"
    points = "" if verdict.points is None else f", earned {number(verdict.points)}"
    names = "".join(f", called {name!r}" for name in verdict.given)
    return state + points + names


def _share(counts: tuple[int, int]) -> str:
    return f"{counts[0]}/{counts[1]}"
