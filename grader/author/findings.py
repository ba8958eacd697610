"""The findings of an audit, the faults that an author accepts, and counts of findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Literal, get_args

import msgspec

from grader.author.slips import place_of_excuse, refuse_idle_excuses
from grader.course.course import Course
from grader.course.file import decode_table
from grader.records.descriptions import about

FindingKind = Literal[
    "exercise", "reference", "stub", "accepted", "mistake", "mutant", "test", "rule", "margin",
    "question",
]  # fmt: skip
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
EXCUSES = "audit.toml"  # a file in the folder of the mistakes


@dataclass(frozen=True)
class Audited:
    """A finding of the audit: whether an answer, test or rule of an exercise is in order."""

    exercise: str
    unit: str
    kind: FindingKind
    name: str
    well: bool
    text: str  # the fault, if any; else the first message, or the tests that catch a mutant
    place: str = ""  # the file and line of what the finding is about; a missing part has no line
    named: bool | None = None  # whether the grading named a caught mistake rightly
    # Whether the finding is `well` only because of `EXCUSES`, or because a course may have no
    # question about an answer.
    excused: bool = False
    points: float | None = None  # the points that a known answer earns
    given: tuple[str, ...] = ()  # the names of mistakes that the grading gave
    # Of the comparison nearest to its tolerance: the difference divided by the tolerance.
    ratio: float | None = None
    witness: str = ""  # the smallest input that shows a fault, or that there is none
    differs: bool | None = None  # whether such an input was found; None without a search
    advice: str = ""  # how to correct a fault
    suggestion: str = ""  # Python text that declares a living mutant as a mistake
    seed: int = 1  # the number of the audit's seed; 1 is the course's own


class Excuses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults that an author accepts, each with the reason."""

    equivalent: Annotated[
        Mapping[str, str], about("Mutants that compute the same results as the reference.")
    ] = {}
    kept: Annotated[
        Mapping[str, str],
        about("Tests that catch only wrong answers that other tests catch too."),
    ] = {}
    undiagnosed: Annotated[
        Mapping[str, str], about("Mistakes that tests catch, but that cannot be named.")
    ] = {}
    near: Annotated[
        Mapping[str, str], about("Known answers whose results come near a tolerance.")
    ] = {}


def read_excuses(course: Course) -> tuple[Excuses, Excuses]:
    """All excuses, and this course's own, which must be needed; raises `CallError` for a bad file.

    A private course need not need the excuses of its public course: its seed and tests may differ.
    """
    found = own = Excuses()
    for path in course.layers("mistakes", EXCUSES):
        read = decode_table(path, path.read_text("utf-8"), Excuses)
        refuse_idle_excuses(course, path, [*chain(*msgspec.structs.astuple(read))])
        pairs = (
            (name, getattr(found, name), getattr(read, name)) for name in Excuses.__struct_fields__
        )
        found = Excuses(**{name: {**before, **more} for name, before, more in pairs})
        if course.private is None or course.is_private(path):
            own = read
    return found, own


def unneeded(
    course: Course, excuses: Excuses, exercise: str, findings: Sequence[Audited]
) -> Iterator[Audited]:
    """Findings about the course's own needless excuses.

    They are for answers or tests that are in order or do not exist.
    """
    needed = {finding.name for finding in findings if finding.excused or not finding.well}
    kinds: tuple[tuple[FindingKind, Mapping[str, str]], ...] = (
        ("mutant", excuses.equivalent),
        ("test", excuses.kept),
        ("mistake", excuses.undiagnosed),
        ("margin", excuses.near),
    )
    for kind, names in kinds:
        for name in names:
            if name.partition("/")[0] == exercise and name not in needed:
                text = f"{EXCUSES} excuses this, but no excuse is needed"
                place = place_of_excuse(course.layers("mistakes", EXCUSES)[-1], name)
                advice = "remove its line"
                unit = findings[0].unit
                yield Audited(exercise, unit, kind, name, False, text, place, advice=advice)


# --- counting ------------------------------------------------------------------------------------


def audit_totals(findings: Sequence[Audited]) -> dict[str, dict[str, tuple[int, int]]]:
    """For each unit and kind of finding: the number of findings in order, and of all findings.

    Excused findings, such as a surviving mutant, do not count as in order. For mistakes, the first
    number is the number of caught mistakes. The entry "named" counts the mistakes that were named
    rightly.
    """
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for unit in dict.fromkeys(finding.unit for finding in findings):
        row: dict[str, tuple[int, int]] = {}
        for kind in KINDS:
            own = [f for f in findings if (f.unit, f.kind) == (unit, kind)]
            row[kind] = sum(f.well and not f.excused for f in own), len(own)
            if kind == "mistake":
                row[kind] = sum(f.named is not None for f in own), len(own)
                row["named"] = sum(f.named is True for f in own), len(own)
        counted[unit] = row
    return counted


def nearest_margins(findings: Sequence[Audited]) -> list[Audited]:
    """The findings nearest to a tolerance: the largest ratio up to 1, and the smallest above 1."""
    measured = [(f.ratio, f) for f in findings if f.ratio is not None]
    below = max((m for m in measured if m[0] <= 1), key=lambda m: m[0], default=None)
    above = min((m for m in measured if m[0] > 1), key=lambda m: m[0], default=None)
    return [one[1] for one in (below, above) if one is not None]
