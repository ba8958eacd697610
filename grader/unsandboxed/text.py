"""A submission's text as a check would load it. Nothing of it runs here, and no torch is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.guest.loader import LoadedSubmission
from grader.wire import SourceText, Wanted
from grader.wire.definitions import skeleton


@dataclass(frozen=True)
class Extent:
    """The code of an answer and of all that it uses; empty where there is no answer."""

    code: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()  # names that this code looks up, and no text makes


def extents(
    sources: Sequence[SourceText], units: Mapping[str, str], names: Iterable[str]
) -> Mapping[str, Extent]:
    """The extents of these exercises; `units` has the unit of every exercise of the course."""
    wanted = tuple(Wanted(name, unit, "") for name, unit in units.items())
    loaded = LoadedSubmission(sources, (), wanted)
    found = {}
    for name in names:
        winner = loaded.winner(name)
        reached = loaded.reach(winner) if winner is not None else ()
        code = frozenset(skeleton(statement.node) for statement in reached)
        found[name] = Extent(code, frozenset().union(*map(loaded.unknown, reached)))
    return found
