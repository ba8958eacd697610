"""The data of a match: which rows of a student's parameters hold which of a reference's weights.

Each of the reference's weights has a role, such as ``W_query``; it is a matrix or a bias.
`WantedRoles` describes a search: roles, and the parameters among which to find them. An `Adoption`
is a match, made of `Slot`s. The match of a model is joined from the matches of its parts.
`Unadoptable` says why there is no match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

from grader.proxies.layouts import FLAT, Layout
from grader.proxies.names import bare
from grader.wire import ParameterInfo

MAX_CANDIDATES = 600  # most matches of a student's parameters that a search returns
LAYER = re.compile(r"\.\d+\.")  # the number of a layer in a role, such as blocks.2.norm1

Roles = tuple[tuple[str, tuple[int, ...]], ...]  # each role with the shape of its matrix or bias


class Unadoptable(AssertionError):
    """Raised if a student's module has no place for a weight; the text is for the student."""


@dataclass(frozen=True)
class Slot:
    """Rows [start, stop) of a student's parameter hold rows [at, …) of a role's matrix.

    In a layout with `by_input`, they hold columns [at, …) instead.
    """

    path: str
    role: str
    start: int
    stop: int
    at: int


@dataclass(frozen=True)
class Adoption:
    """A match of parameters with roles. Tests of structure read `missing` and `extra`."""

    slots: tuple[Slot, ...]
    layouts: frozenset[tuple[str, Layout]]  # the path and the layout of each weight
    missing: tuple[str, ...]  # roles without a parameter; set to zero in the reference
    extra: tuple[str, ...]  # parameters without a role; biases among them are set to zero

    @cached_property
    def habit(self) -> object:
        """The way in which a class stores weights: layouts, and the order of roles.

        Sizes and numbers of layers are left out. Therefore all correct matches of modules of one
        class have equal habits.
        """
        roles = dict.fromkeys((bare(s.path), LAYER.sub(".", s.role)) for s in self.slots)
        laid = frozenset((bare(path), layout) for path, layout in self.layouts)
        return laid, tuple(roles)

    @cached_property
    def _layout_of(self) -> Mapping[str, Layout]:
        return dict(self.layouts)

    def layout(self, path: str) -> Layout:
        """The layout of a parameter; parameters without an entry are biases."""
        return self._layout_of.get(path, FLAT)

    def homes(self) -> dict[str, set[str]]:
        """The roles that each layer of the student's module holds, by the layer's path."""
        roles: dict[str, set[str]] = {}
        for slot in self.slots:
            roles.setdefault(slot.path.rpartition(".")[0], set()).add(slot.role)
        return roles

    def in_roles(self) -> str:
        """The missing roles and the extra parameters, with roles in place of the layers' names."""
        homes = self.homes()
        extra = [
            f"{role} {path.rpartition('.')[2]}"
            for path in self.extra
            for role in sorted(homes.get(path.rpartition(".")[0], {"elsewhere"}))
        ]
        return f"lacks {sorted(self.missing)}, has {sorted(set(extra))}"


def joined(*found: Adoption) -> Adoption:
    """Join the matches of several parts into one."""
    return Adoption(
        tuple(chain.from_iterable(one.slots for one in found)),
        frozenset(chain.from_iterable(one.layouts for one in found)),
        tuple(chain.from_iterable(one.missing for one in found)),
        tuple(dict.fromkeys(chain.from_iterable(one.extra for one in found))),
    )


def renamed(found: Adoption, home: Mapping[str, str]) -> Adoption:
    """A match of a part, with the names that its roles have in the whole."""

    def named(role: str) -> str:
        return f"{home[role]}.{role}".lstrip(".")

    return replace(
        found,
        slots=tuple(replace(slot, role=named(slot.role)) for slot in found.slots),
        missing=tuple(named(role) for role in found.missing),
    )


def moved(found: Adoption, paths: Mapping[str, str]) -> Adoption:
    """A match of parameters under other paths, with their own paths."""
    return replace(
        found,
        slots=tuple(replace(slot, path=paths[slot.path]) for slot in found.slots),
        layouts=frozenset((paths[path], layout) for path, layout in found.layouts),
        extra=tuple(paths[path] for path in found.extra),
    )


def in_turn(ways: Iterable[Iterator[Adoption]]) -> Iterator[Adoption]:
    """The first match of each way, then the second of each, and so on.

    Raises `Unadoptable` if all ways do.
    """
    left, refused, found = list(ways), None, False
    while left:
        for way in list(left):
            try:
                yield next(way)
                found = True
            except StopIteration:
                left.remove(way)
            except Unadoptable as error:
                refused = refused or error
                left.remove(way)
    if refused is not None and not found:
        raise refused


def likeliest(
    found: Iterable[Adoption], owners: Mapping[str, str] | None = None
) -> tuple[Adoption, ...]:
    """The first `MAX_CANDIDATES` matches, those with the fewest missing and extra weights first.

    `owners` gives the classes that own the parameters. With it, matches that agree in these numbers
    are sorted by how many layouts they mix in a class: most people store all weights alike. So a
    square matrix lies as the others do, even in a wrong answer, where no result can tell.
    """

    def mixed(one: Adoption) -> int:
        return len({(owners[path], how) for path, how in one.layouts}) if owners else 0

    some = islice(found, MAX_CANDIDATES)
    return tuple(sorted(some, key=lambda one: (len(one.missing) + len(one.extra), mixed(one))))


@dataclass(frozen=True)
class WantedRoles:
    """A search: find places for these roles among these parameters."""

    roles: Roles
    parameters: tuple[ParameterInfo, ...]
    counts: tuple[int, ...]  # integers that the module was made with, such as the number of heads
