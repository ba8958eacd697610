"""The table of the judges' verdicts and ours on the same answers, and the answers left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.benchmarks.adapters import LEFT_OUT, TASKS

REFERENCE = "reference"
COVERAGE = (
    "The library of answers was written against our grader, so this is coverage of those judges on "
    "our library, and no rate in a class."
)
UNCOUNTED = (
    ("same", True, "wrong answers that give what the reference gives on the judge's inputs"),
    ("unnamed", True, "wrong answers whose weights the adapter cannot set"),
    ("unnamed", False, "right ones whose weights it cannot set"),
    ("unfit", False, "right ones that do not fit it"),
)


@dataclass(frozen=True)
class Fate:
    """The verdicts of one judge and of ours on one answer."""

    task: int  # its place in TASKS
    id: str
    wrong: bool
    fate: str  # accepted, refused; same, unfit or unnamed: not measured
    why: str
    ours: bool  # whether our grader gives it all points


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    def __str__(self) -> str:
        return f"{self.count} of {self.of}"


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    exercise: str
    judge: str
    wrong_accepted: Share
    right_refused: Share
    our_wrong_accepted: Share
    our_right_refused: Share


def rows(fates: Sequence[Fate]) -> list[Row]:
    """A row for each task whose adapted reference is accepted, and one for each judge's sum."""
    found = []
    for judge in dict.fromkeys(task.judge for task in TASKS):
        own = [n for n in fitting(fates) if TASKS[n].judge == judge]
        found += [
            row(f"`{TASKS[n].exercise}`", judge, [f for f in fates if f.task == n]) for n in own
        ]
        found.append(row("all", judge, [f for f in fates if f.task in own]))
    return found


def fitting(fates: Sequence[Fate]) -> list[int]:
    """The tasks that are measured."""
    return [f.task for f in fates if f.id == REFERENCE and f.fate == "accepted"]


def row(exercise: str, judge: str, fates: Sequence[Fate]) -> Row:
    """The counts of some answers."""
    counted = [fate for fate in fates if fate.fate in ("accepted", "refused")]
    wrong = [fate for fate in counted if fate.wrong]
    right = [fate for fate in counted if not fate.wrong]
    return Row(
        exercise,
        judge,
        Share(sum(fate.fate == "accepted" for fate in wrong), len(wrong)),
        Share(sum(fate.fate == "refused" for fate in right), len(right)),
        Share(sum(fate.ours for fate in wrong), len(wrong)),
        Share(sum(not fate.ours for fate in right), len(right)),
    )


def left_out(fates: Sequence[Fate]) -> Iterator[str]:
    """The answers that are not in the table, with reasons."""
    for one in LEFT_OUT:
        which = ", ".join(f"`{slug}`" for slug in one.answers) or "all answers"
        yield f"`{one.exercise}` at {one.judge} (`{one.task}`), {which}: {one.reason}."
    measured = fitting(fates)
    for fate in fates:
        if fate.id == REFERENCE and fate.task not in measured:
            task = TASKS[fate.task]
            why = f"the adapted reference is not accepted: {fate.why}"
            yield f"`{task.exercise}` at {task.judge} (`{task.task}`), all answers: {why}."
    for judge in dict.fromkeys(task.judge for task in TASKS):
        own = [f for f in fates if f.task in measured and TASKS[f.task].judge == judge]
        counts = (
            f"{sum(f.fate == fate and f.wrong == wrong for f in own)} {what}"
            for fate, wrong, what in UNCOUNTED
        )
        yield f"at {judge}: {', '.join(counts)}."


def report(fates: Sequence[Fate], dated: Mapping[str, str]) -> Iterator[str]:
    """The table in Markdown, with its notes."""
    yield (
        "| exercise | judge | wrong answers accepted | right answers refused "
        "| ours: wrong accepted, right refused |"
    )
    yield "|---|---|---|---|---|"
    for one in rows(fates):
        theirs = f"{one.wrong_accepted} | {one.right_refused}"
        ours = f"{one.our_wrong_accepted}, {one.our_right_refused}"
        yield f"| {one.exercise} | {one.judge} | {theirs} | {ours} |"
    yield ""
    yield COVERAGE
    yield ""
    yield "Left out:"
    yield ""
    yield from (f"- {line}" for line in left_out(fates))
    yield ""
    versions = [f"{name} {value}" for name, value in dated.items() if name != "date"]
    yield f"Measured on {dated['date']} with {', '.join(versions)}."


def figures(fates: Sequence[Fate], dated: Mapping[str, str]) -> dict[str, Any]:
    """All of it as data: each answer by its name, too."""
    answers = [
        {"judge": TASKS[fate.task].judge, "exercise": TASKS[fate.task].exercise, **asdict(fate)}
        for fate in fates
    ]
    return {
        "versions": dict(dated),
        "rows": [asdict(one) for one in rows(fates)],
        "left out": [*left_out(fates)],
        "answers": answers,
    }
