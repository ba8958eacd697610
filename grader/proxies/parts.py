"""Matches the parts of a block that hold matrices, such as its attention.

A branch is a submodule of the student's module. If it holds the weights of a part and no other
matrix, it is matched with that part. All other parameters are matched with the remaining parts. If
names do not help, the first branch is paired with the first part, and so on; other orders come
later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, permutations, product

import msgspec

from grader.proxies import matching
from grader.proxies.groups import SUFFIX
from grader.proxies.names import NameAliases, bare, meant, plain, spellings
from grader.proxies.slots import (
    MAX_CANDIDATES,
    Adoption,
    Roles,
    Unadoptable,
    WantedRoles,
    in_turn,
    joined,
    moved,
    renamed,
)
from grader.proxies.trees import branches, size_of
from grader.wire import ParameterInfo

INITIAL = re.compile(r"\b[A-Za-z]")  # the first letter of each step of a path
MAX_ORDERS = 24  # orders that are tried for parts without names; enough for four parts

Part = tuple[str, Roles]  # the name of a part, and its roles without this name
Infos = tuple[ParameterInfo, ...]


@dataclass(frozen=True, eq=False)
class _Branch:
    """A branch of the student's tree, with its matches for each part that it may be."""

    path: str
    infos: Infos
    ways: Mapping[str, tuple[Adoption, ...]]

    @property
    def form(self) -> object:
        """The paths and shapes below the branch, which are equal for modules of the same class."""
        start = len(self.path)
        return tuple((info.path[start:], tuple(info.shape)) for info in self.infos)


# The form of a piece that is matched separately, and its matches.
_Options = tuple[object, Sequence[Adoption]]


def candidates(
    parts: Sequence[Part], infos: Infos, counts: tuple[int, ...], aliases: NameAliases
) -> Iterator[Adoption]:
    """All ways to match these parts, likeliest first; raises `Unadoptable` if there are none."""
    found = _branches_of(parts, infos, counts, aliases)
    refused: list[Unadoptable] = []
    matched: list[list[_Options]] = []
    # If no placement fits, place no branch: a branch of the right size may be something else.
    for placed in chain(_placed([part for part, _ in parts], found, aliases), [{}]):
        if not placed and matched:
            break
        inside = [(b.form, _within(b, part, parts)) for part, b in placed.items()]
        rest = [(part, roles) for part, roles in parts if part not in placed]
        loose = _around(infos, found, list(placed.values()))
        try:
            around = list(islice(_in_pools(rest, loose, counts, aliases), MAX_CANDIDATES))
        except Unadoptable as error:
            refused.append(error)
            continue
        matched.append([*inside, (None, around)])
    if not matched:
        raise refused[0]
    for alike in (True, False):
        for options in matched:
            yield from (joined(*some) for some in _combined(options, alike=alike))


def _combined(options: Sequence[_Options], *, alike: bool) -> Iterator[tuple[Adoption, ...]]:
    """All ways to choose a match for each piece.

    With `alike`, yields only choices in which pieces of the same form get the same match. These
    choices are few, and likely: modules of the same class usually work in the same way. Without
    `alike`, yields only the other choices.
    """
    forms = [form for form, _ in options]
    ways = [some for _, some in options]
    if alike:
        sizes = {form: min(len(w) for f, w in options if f == form) for form in forms}
        for chosen in product(*(range(size) for size in sizes.values())):
            at = dict(zip(sizes, chosen, strict=True))
            yield tuple(some[at[form]] for form, some in options)
        return
    for numbers in product(*(range(len(some)) for some in ways)):
        if len(set(zip(forms, numbers, strict=True))) > len(set(forms)):
            yield tuple(some[number] for some, number in zip(ways, numbers, strict=True))


# --- parts in separate branches -------------------------------------------------------------------


def _branches_of(
    parts: Sequence[Part], infos: Infos, counts: tuple[int, ...], aliases: NameAliases
) -> list[_Branch]:
    """The branches that may be one of these parts, those near the root first."""
    found: list[_Branch] = []
    for path, held in branches(infos):
        if any(path.startswith(f"{above.path}.") for above in found):
            continue
        able = {part: _whole(WantedRoles(roles, held, counts), aliases) for part, roles in parts}
        if any(able.values()):
            found.append(_Branch(path, held, {part: ways for part, ways in able.items() if ways}))
    return found


def _whole(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    """The matches in which these parameters hold all of the weights, and no other matrix."""
    weights = [role for role, shape in wanted.roles if len(shape) == 2]
    layers = [info.shape for info in wanted.parameters if len(info.shape) > 1]
    # A part with several weights needs several matrices, whatever the size of a single matrix.
    size = size_of(shape for _, shape in wanted.roles)
    if size_of(layers) != size or len(layers) < min(len(weights), 2):
        return ()
    try:
        found = matching.candidates(wanted, aliases)
    except Unadoptable:
        return ()
    matrices = {role for role, _ in wanted.roles if not role.endswith(".bias")}
    whole = [one for one in found if matrices.isdisjoint(one.missing)]
    # Matches that miss a bias are dropped if another match has it.
    least = min((len(one.missing) for one in whole), default=0)
    return tuple(one for one in whole if len(one.missing) == least)


def _within(branch: _Branch, part: str, parts: Sequence[Part]) -> list[Adoption]:
    """The matches of a part in a branch, with the names that its roles have in the block."""
    home = dict.fromkeys((role for role, _ in dict(parts)[part]), part)
    return [renamed(way, home) for way in branch.ways[part]]


def _placed(
    parts: Sequence[str], found: Sequence[_Branch], aliases: NameAliases
) -> Iterator[dict[str, _Branch]]:
    """All ways to assign branches to parts: by name, then the rest in every order of parts."""
    fixed = _named(parts, found, aliases)
    free = [branch for branch in found if branch not in fixed.values()]
    open_parts = [part for part in parts if part not in fixed]
    seen: list[dict[str, _Branch]] = []
    for order in islice(permutations(open_parts), MAX_ORDERS):
        left = list(free)
        way = dict(fixed)
        for part in order:
            if branch := next((b for b in left if part in b.ways), None):
                way[part] = branch
                left.remove(branch)
        way = {part: way[part] for part in parts if part in way}
        if way not in seen:
            seen.append(way)
            yield way


def _named(
    parts: Sequence[str], found: Sequence[_Branch], aliases: NameAliases
) -> dict[str, _Branch]:
    """The branches whose names mean a part, unless another branch's name means the same part."""
    spelled = spellings(parts, aliases)
    named = [(meant(branch.path, spelled), branch) for branch in found]
    able = [(part, branch) for part, branch in named if part is not None and part in branch.ways]
    sure = Counter(part for part, _ in able)
    return {part: branch for part, branch in able if sure[part] == 1}


# --- parts without a separate branch --------------------------------------------------------------


def _around(infos: Infos, found: Sequence[_Branch], placed: Sequence[_Branch]) -> Infos:
    """The parameters outside of the placed branches, those outside of all branches first."""
    taken = {info.path for branch in found for info in branch.infos}
    over = chain.from_iterable(branch.infos for branch in found if branch not in placed)
    return (*(info for info in infos if info.path not in taken), *over)


@dataclass(frozen=True)
class _Pool:
    """Parts that are matched together, with the parameters that may belong to them."""

    parts: Sequence[Part]
    infos: Infos
    affix: str = ""  # what all names share, and what says nothing of a role: ``ca_*`` or ``*_ca``

    def matches(self, counts: tuple[int, ...], aliases: NameAliases) -> Sequence[Adoption]:
        """All matches, with the names that roles have in the block."""
        home = {role: part for part, roles in self.parts for role, _ in roles}
        together = tuple(chain.from_iterable(roles for _, roles in self.parts))
        return self._restored(matching.candidates(self._wanted(together, counts), aliases), home)

    def whole(self, counts: tuple[int, ...], aliases: NameAliases) -> Sequence[Adoption]:
        """The matches of a single part, if the parameters hold all of it and no other matrix.

        Their paths are without the affix.
        """
        ((_, roles),) = self.parts
        return _whole(self._wanted(roles, counts), aliases)

    def _wanted(self, roles: Roles, counts: tuple[int, ...]) -> WantedRoles:
        infos = (msgspec.structs.replace(info, path=self.short(info.path)) for info in self.infos)
        return WantedRoles(roles, tuple(infos), counts)

    def _restored(self, ways: Sequence[Adoption], home: Mapping[str, str]) -> Sequence[Adoption]:
        paths = {self.short(info.path): info.path for info in self.infos}
        return [renamed(moved(way, paths), home) for way in ways]

    def short(self, path: str) -> str:
        """A path without the affix."""
        before, _, after = self.affix.partition("*")
        name = SUFFIX.sub("", path)
        return name.removeprefix(before).removesuffix(after) + path[len(name) :]


def _in_pools(
    parts: Sequence[Part], infos: Infos, counts: tuple[int, ...], aliases: NameAliases
) -> Iterator[Adoption]:
    """All ways to match the parts that have no branch with these parameters."""
    if not parts:
        yield Adoption((), frozenset(), (), tuple(info.path for info in infos))
        return

    def matched(pools: Sequence[_Pool]) -> Iterator[Adoption]:
        options: list[_Options] = []
        for pool in pools:
            form = tuple((tuple(info.shape), info.owner) for info in pool.infos)
            options.append((form, pool.matches(counts, aliases)))
        for alike in (True, False):
            yield from (joined(*some) for some in _combined(options, alike=alike))

    yield from in_turn(map(matched, _poolings(parts, infos, counts, aliases)))


def _poolings(
    parts: Sequence[Part], infos: Infos, counts: tuple[int, ...], aliases: NameAliases
) -> list[list[_Pool]]:
    """The ways to divide parts and parameters into pools, likeliest first.

    Two attentions have the same roles, so each needs a pool of its own.
    """
    twins = [one for one in parts if any(one is not two and _overlap(one, two) for two in parts)]
    if not twins:
        return [[_Pool(parts, infos)]]
    others = [part for part in parts if part not in twins]
    found = _families(twins[0], infos, counts, aliases)
    ways: list[list[_Pool]] = []
    for some in _assigned([part for part, _ in twins], found, aliases):
        own = [
            _Pool([part], some[part[0]].infos, some[part[0]].affix)
            for part in twins
            if part[0] in some
        ]
        taken = {info for pool in own for info in pool.infos}
        rest = [*(part for part in twins if part[0] not in some), *others]
        left = tuple(info for info in infos if info not in taken)
        ways.append([*own, _Pool(rest, left)] if rest else own)
    if ways and not any(family.off for family in found):
        return ways
    return [list(_in_halves(parts, infos, aliases)), *ways]


def _overlap(one: Part, two: Part) -> bool:
    """Whether two parts have a role of the same name."""
    return not {role for role, _ in one[1]}.isdisjoint(role for role, _ in two[1])


@dataclass(frozen=True)
class _Family:
    """Parameters of one part, whose names begin or end alike: ``ca_q``, ``ca_kv``, ``ca_out``."""

    infos: Infos
    affix: str  # what their names share
    off: int  # how many biases it lacks, and how many parameters it has without a role


def _families(
    part: Part, infos: Infos, counts: tuple[int, ...], aliases: NameAliases
) -> list[_Family]:
    """The families that hold all matrices of a part; no two share a parameter.

    If families hold nothing else, and lack no bias, all others are left out.
    """
    alike: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        name = SUFFIX.sub("", info.path)
        for end in range(1, len(name)):
            alike.setdefault(f"{name[:end]}*", []).append(info)
            alike.setdefault(f"*{name[end:]}", []).append(info)
    # Of several affixes of the same parameters, the longest counts.
    longest = {tuple(alike[affix]): affix for affix in sorted(alike, key=len)}
    found: list[_Family] = []
    for held, affix in longest.items():
        pool = _Pool([part], held, affix)
        if not (ways := pool.whole(counts, aliases)):
            continue
        found.append(_Family(held, affix, len(ways[0].missing) + len(ways[0].extra)))
        # Beside ``cross_q`` there may be ``q``, a family whose names share nothing.
        plain_names = {pool.short(info.path) for info in held}
        others = tuple(info for info in infos if info.path in plain_names)
        if others and (ways := _Pool([part], others).whole(counts, aliases)):
            found.append(_Family(others, "", len(ways[0].missing) + len(ways[0].extra)))
    found.sort(key=lambda family: (family.off, infos.index(family.infos[0])))
    if found and not found[0].off:
        found = [family for family in found if not family.off]
    apart: list[_Family] = []
    for family in found:
        if not any(set(family.infos) & set(other.infos) for other in apart):
            apart.append(family)
    return sorted(apart, key=lambda family: infos.index(family.infos[0]))


def _assigned(
    parts: Sequence[str], families: Sequence[_Family], aliases: NameAliases
) -> list[dict[str, _Family]]:
    """The ways to give families to parts: by name, or else in the order of the parts first."""
    spelled = spellings(parts, aliases)

    def contradictions(way: Mapping[str, _Family]) -> int:
        named = ((part, _meant_by(family.affix, spelled)) for part, family in way.items())
        return sum(name is not None and name != part for part, name in named)

    if len(families) < len(parts):  # most people add something to the names of a later part
        some = permutations(reversed(parts), len(families))
        ways = [dict(zip(names, families, strict=True)) for names in some]
    else:
        orders = permutations(families, len(parts))
        ways = [dict(zip(parts, order, strict=True)) for order in orders]
    least = min(map(contradictions, ways), default=0)
    return [way for way in ways if families and contradictions(way) == least][:MAX_ORDERS]


def _meant_by(affix: str, spelled: Mapping[str, str]) -> str | None:
    """The part that an affix means, as a whole or by one of its words."""
    words = [affix.replace("*", ""), *re.split(r"[._*]", affix)]
    return next((spelled[plain(w)] for w in words if plain(w) in spelled), None)


def _in_halves(parts: Sequence[Part], infos: Infos, aliases: NameAliases) -> Iterator[_Pool]:
    """Pools by the names of single parameters, without regard to their sizes.

    These names differ by a word (``q`` and ``cross_q``), a number (``q1`` and ``q2``) or a letter
    (``aq`` and ``bq``).
    """
    pool: list[Part] = []
    left = list(infos)
    for part, roles in parts:
        names = {role for role, _ in roles}
        if not any(role in names for _, others in pool for role, _ in others):
            pool.append((part, roles))
            continue
        spelled = spellings([part], aliases)
        own = tuple(i for i in left if any(plain(w) in spelled for w in re.split(r"[._]", i.path)))
        if not own:
            first, own = _halves(left)
            alike = [one for one in pool if any(role in names for role, _ in one[1])]
            pool = [one for one in pool if one not in alike]
            left = [info for info in left if info not in first]
            yield _Pool(alike, tuple(first))
        left = [info for info in left if info not in own]
        yield _Pool([(part, roles)], tuple(own))
    yield _Pool(pool, tuple(left))


def _halves(infos: Sequence[ParameterInfo]) -> tuple[Infos, Infos]:
    """Two halves of the parameters: their names differ only in a number, or else in a letter."""
    for key in (bare, partial(INITIAL.sub, "")):
        alike: dict[object, list[ParameterInfo]] = {}
        for info in infos:
            alike.setdefault((key(info.path), tuple(info.shape)), []).append(info)
        even = [held for held in alike.values() if len(held) % 2 == 0]
        if even:
            break
    first = chain.from_iterable(held[: len(held) // 2] for held in even)
    return tuple(first), tuple(chain.from_iterable(held[len(held) // 2 :] for held in even))
