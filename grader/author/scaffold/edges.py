"""Finds numbers at edges that tell something: zero, a parameter's own value, equal numbers, inf."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from grader.author.scaffold.example import Example, find_example
from grader.author.scaffold.kinds import Among, Kind, Normal, Uniform
from grader.author.scaffold.trial import Case, Key, Refused, Trial, differs
from grader.author.trials import Late, no_longer_than
from grader.course.contract import ContractBroken, ContractError
from grader.course.tensors import Make

FEW = (0.0, 1.0)  # many of a few numbers are equal
INFINITE = (-math.inf, math.inf)
DRAWS = 5  # of each combination of sizes
SECONDS = 3.0  # CPU time to run a definition: a loop may never end at infinity


def with_infinity(trial: Trial) -> Trial:
    """The trial with infinity and NaN among its numbers, if the reference takes them."""
    values = (-1.0, *FEW, *INFINITE, math.nan)
    return _drawn_at(trial, values) if _takes(trial, values) else trial


def find_edges(trial: Trial, wrong: Sequence[Any]) -> tuple[Trial, Example] | None:
    """The trial with numbers at edges, and an example that shows what the result is there.

    `wrong` are definitions that agree with the reference on the trial's own inputs. At the edges
    that are chosen, the most of them differ. None if no definition differs at edges that the
    reference takes.
    """
    most = 0
    found: tuple[Trial, Example] | None = None
    for values in _edges(trial):
        edged = _drawn_at(trial, values)
        if edged == trial or not _takes(trial, values):
            continue
        caught = [one for one in wrong if _always_differs(edged, one)]
        if len(caught) > most and (example := find_example(edged, caught)):
            most, found = len(caught), (edged, example)
        if most == len(wrong):
            break
    return found


def _edges(trial: Trial) -> Iterator[tuple[float, ...]]:
    """The numbers to try, the most usual first."""
    first = (values[0] for values in trial.domains.values())
    own = [float(value) for value in first if type(value) in (int, float) and math.isfinite(value)]
    finite = sorted({*FEW, *own, *(-value for value in own)})
    for more in ((), INFINITE, (math.nan,), (*INFINITE, math.nan)):
        yield (*finite, *more)


def _drawn_at(trial: Trial, values: Sequence[float]) -> Trial:
    """The trial with these numbers; of numbers in a range, with its ends and those within."""

    def at_edges(kind: Kind) -> Kind:
        match kind:
            case Normal():
                return Among(tuple(values))
            case Uniform(low, high):
                within = {value for value in values if low < value < high}
                return Among(tuple(sorted({low, high} | within)))
        return kind

    return trial.drawn_as(at_edges)


def _takes(trial: Trial, values: Sequence[float]) -> bool:
    """Whether the reference takes these numbers, each alone and all together.

    A test draws them from a seed, so no draw may give NaN.
    """
    with suppress(Refused, ContractBroken, ContractError, Late), no_longer_than(SECONDS):
        for some in (*((value,) for value in values), tuple(values)):
            edged = _drawn_at(trial, some)
            for case, draw in itertools.product(trial.cases, range(DRAWS)):
                arguments = _arguments(edged, case, draw)
                edged.check(arguments, edged.call(arguments))
        return True
    return False


def _always_differs(edged: Trial, wrong: Any) -> bool:
    """Whether a definition differs from the reference in each draw, of whatever seed."""
    draws = (_arguments(edged, largest(edged), draw) for draw in range(DRAWS))
    with suppress(Late), no_longer_than(SECONDS):
        return all(differs(edged, wrong, arguments) for arguments in draws)
    return False


def largest(trial: Trial) -> Case:
    """The sizes with the most numbers, so that many of them are equal."""
    return max(trial.cases, key=lambda case: math.prod(case.sizes.values()))


def _arguments(edged: Trial, case: Case, draw: int) -> Mapping[Key, Any]:
    return edged.arguments(case, Make("edges", edged.name, str(draw)))
