"""Matches a student's parameters with the weights of a block, or of a single part.

A block consists of norms and of parts with matrices, such as an attention and a feed-forward layer.
`norms` finds the norms by their vectors. `parts` finds the other parts among the remaining
parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product, starmap

from grader.proxies import matching, norms, parts
from grader.proxies.groups import is_vector
from grader.proxies.names import NameAliases
from grader.proxies.slots import (
    MAX_CANDIDATES,
    Adoption,
    Roles,
    WantedRoles,
    in_turn,
    joined,
    likeliest,
)
from grader.wire import ParameterInfo


@lru_cache(maxsize=256)  # students who keep the stub's names share a cache entry
def candidates(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    """All ways to match the roles with parameters; raises `Unadoptable` if there are none.

    The likeliest come first.
    """
    block = _Block.of(wanted.roles)
    owners = {info.path: info.owner for info in wanted.parameters}
    if block.is_one_part:
        return likeliest(matching.candidates(wanted, aliases), owners)
    return likeliest(_in_parts(block, wanted, aliases), owners)


def count_norms(roles: Roles) -> int:
    """The number of norms among these roles."""
    return len(_Block.of(roles).norms)


def _in_parts(block: _Block, wanted: WantedRoles, aliases: NameAliases) -> Iterator[Adoption]:
    """All combinations of matches of the norms and of the other parts."""
    readings: dict[tuple[ParameterInfo, ...], list[Adoption]] = {}
    for found, rest in norms.readings(wanted.parameters, block.norms):
        readings.setdefault(rest, []).extend(norms.candidates(block.norms, found, aliases))

    def matched(rest: tuple[ParameterInfo, ...], orders: Sequence[Adoption]) -> Iterator[Adoption]:
        # The norms have few matches. Therefore each match of the other parts is tried with every
        # match of the norms.
        ways = parts.candidates(block.others, rest, wanted.counts, aliases)
        yield from starmap(joined, product(islice(ways, MAX_CANDIDATES), orders))

    return in_turn([matched(rest, orders) for rest, orders in readings.items()])


@dataclass(frozen=True)
class _Block:
    """The roles of a block: its norms, and its parts with matrices."""

    norms: tuple[norms.Norm, ...]  # given by the roles of their gains and shifts
    others: tuple[parts.Part, ...]

    @classmethod
    def of(cls, roles: Roles) -> _Block:
        """Divide a reference's roles into norms and other parts."""
        shapes = dict(roles)
        found: list[norms.Norm] = []
        others: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for role, shape in roles:
            weight = role.removesuffix(".bias")
            if not is_vector(shapes.get(weight, ())):
                part, _, own = weight.rpartition(".")
                others.setdefault(part, []).append((own + role[len(weight) :], shape))
            elif role == weight:
                bias = f"{role}.bias"
                shift = norms.Vector(bias) if bias in shapes else None
                found.append(norms.Norm(role, norms.Vector(role), shift, shape))
        return cls(tuple(found), tuple((part, tuple(held)) for part, held in others.items()))

    @property
    def is_one_part(self) -> bool:
        """Whether the block is a single part without norms."""
        return not self.norms and len(self.others) == 1 and self.others[0][0] == ""
