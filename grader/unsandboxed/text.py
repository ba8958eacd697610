"""Find the statements that a check would load from a submission's text, without running them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.guest.loader import LoadedSubmission
from grader.wire import SourceText, Wanted
from grader.wire.definitions import skeleton


@dataclass(frozen=True)
class Extent:
    """The code of an answer and of all statements that it uses; empty without an answer."""

    code: frozenset[str]
    unknown: frozenset[str]  # names that this code looks up, and that no statement defines


def extents(
    sources: Sequence[SourceText], units: Mapping[str, str], names: Iterable[str]
) -> Mapping[str, Extent]:
    """The `Extent` of each exercise in `names`; `units` gives the unit of every exercise."""
    wanted = tuple(Wanted(name, unit, "") for name, unit in units.items())
    loaded = LoadedSubmission(sources, (), wanted)
    found = {}
    for name in names:
        winner = loaded.winner(name)
        reached = loaded.reach(winner) if winner is not None else ()
        code = frozenset(skeleton(statement.node) for statement in reached)
        found[name] = Extent(code, frozenset().union(*map(loaded.unknown, reached)))
    return found
