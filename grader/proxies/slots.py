"""What a match is: which rows of which of a student's parameters hold which weights.

The reference's weights have roles, as ``W_query``: each is one matrix, or a bias. `WantedRoles` are
what is looked for, and among which parameters. An `Adoption` is what is found, as one `Slot` after
another; that of a model is joined from those of its parts. `Unadoptable` says why there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice

from grader.proxies.layouts import FLAT, Layout
from grader.proxies.names import bare
from grader.wire import ParameterInfo

MAX_CANDIDATES = 600  # ways to match one student's parameters: the others are not looked for
LAYER = re.compile(r"\.\d+\.")  # in a role of a model: blocks.2.norm1

Roles = tuple[tuple[str, tuple[int, ...]], ...]  # each with the shape of its matrix


class Unadoptable(AssertionError):
    """The student's module has no place for a weight; the text is for the student."""


@dataclass(frozen=True)
class Slot:
    """Rows [start, stop) of a student's parameter hold rows [at, …) of a role's matrix.

    In a layout by input, they hold its columns.
    """

    path: str
    role: str
    start: int
    stop: int
    at: int


@dataclass(frozen=True)
class Adoption:
    """How the weights were matched. `missing` and `extra` are for tests of structure."""

    slots: tuple[Slot, ...]
    layouts: frozenset[tuple[str, Layout]]  # of the student's weights, by path
    missing: tuple[str, ...]  # roles of the reference without a partner; zero there from now on
    extra: tuple[str, ...]  # parameters of the student without a partner; biases among them zero

    @cached_property
    def habit(self) -> object:
        """What matches of one class share, whatever its sizes: the layout, and roles in order.

        And however many layers it has.
        """
        roles = dict.fromkeys((bare(s.path), LAYER.sub(".", s.role)) for s in self.slots)
        laid = frozenset((bare(path), layout) for path, layout in self.layouts)
        return laid, tuple(roles)

    @cached_property
    def _layout_of(self) -> Mapping[str, Layout]:
        return dict(self.layouts)

    def layout(self, path: str) -> Layout:
        """The layout of a parameter; what has none is a bias."""
        return self._layout_of.get(path, FLAT)

    def homes(self) -> dict[str, set[str]]:
        """The paths of the student's layers that hold adopted weights, with the roles of these."""
        roles: dict[str, set[str]] = {}
        for slot in self.slots:
            roles.setdefault(slot.path.rpartition(".")[0], set()).add(slot.role)
        return roles

    def in_roles(self) -> str:
        """What the student's module has and lacks, whatever it is called and however it is cut."""
        homes = self.homes()
        beside = [
            f"{role} {path.rpartition('.')[2]}"
            for path in self.extra
            for role in sorted(homes.get(path.rpartition(".")[0], {"elsewhere"}))
        ]
        return f"lacks {sorted(self.missing)}, has {sorted(set(beside))}"


def joined(*found: Adoption) -> Adoption:
    """Matches of several parts as one."""
    return Adoption(
        tuple(chain.from_iterable(one.slots for one in found)),
        frozenset(chain.from_iterable(one.layouts for one in found)),
        tuple(chain.from_iterable(one.missing for one in found)),
        tuple(dict.fromkeys(chain.from_iterable(one.extra for one in found))),
    )


def renamed(found: Adoption, home: Mapping[str, str]) -> Adoption:
    """A match of a part's roles, under the names that they have in the whole."""

    def named(role: str) -> str:
        return f"{home[role]}.{role}".lstrip(".")

    return replace(
        found,
        slots=tuple(replace(slot, role=named(slot.role)) for slot in found.slots),
        missing=tuple(named(role) for role in found.missing),
    )


def likeliest(found: Iterable[Adoption]) -> tuple[Adoption, ...]:
    """The first of these ways; before others, those that leave nothing over.

    Where a probe takes both, they are likelier.
    """
    some = islice(found, MAX_CANDIDATES)
    return tuple(sorted(some, key=lambda one: len(one.missing) + len(one.extra)))


@dataclass(frozen=True)
class WantedRoles:
    """Places for these roles, among these parameters."""

    roles: Roles
    parameters: tuple[ParameterInfo, ...]
    counts: tuple[int, ...]  # that the module was made with: one may be its number of heads
