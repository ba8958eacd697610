"""Finds the norms in a student's module, and matches them with the reference's.

A norm multiplies by a gain, and may add a shift; both are vectors. A vector may be a parameter, or
a row of a parameter. Students group the vectors in these ways:

- a holder for each norm: a module, a list, a dict or a matrix with a gain and a shift;
- vectors of the block itself, with related names: ``gain1`` and ``shift1``, or ``norm_1`` and
  ``norm_1_bias``;
- a holder of all gains, and a holder of all shifts;
- a single holder of all vectors.

If names do not say which way it is, there are several readings. Norms are matched by name. Without
meaningful names, they are taken in the order in which they were made; other orders come later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations, islice, permutations
from math import comb, prod
from posixpath import commonpath

from grader.proxies.groups import is_called_bias, is_row, name_in_dict
from grader.proxies.names import NameAliases, meant, spellings
from grader.proxies.slots import Adoption, Slot
from grader.wire import ParameterInfo

GAIN = frozenset({"gain", "scale", "gamma", "g", "weight", "w", "alpha"})
SHIFT = frozenset({"shift", "beta", "bias", "b", "offset"})
NORM = frozenset({"norm", "ln", "rms", "layernorm", "rmsnorm", "layer", "pre", "post"})
STACKED = (GAIN | SHIFT) - {"g", "w", "b", "weight", "bias"}  # words that name no other matrix
LISTS = frozenset({"ParameterList", "ParameterDict"})
WORD = re.compile(r"[a-z]+|[0-9]+")
MAX_ORDERS = 120  # orders that are tried for norms without names; enough for five norms
MAX_CHOICES = 30  # choices of vectors that are tried as norms; enough for six of eight


@dataclass(frozen=True)
class Vector:
    """A gain or a shift: a row of a parameter, or a whole parameter."""

    path: str
    row: int = 0


@dataclass(frozen=True)
class Norm:
    """A norm, given by the reference's roles or by a student's vectors."""

    name: str
    gain: Vector
    shift: Vector | None
    shape: tuple[int, ...]
    is_sure: bool = True  # whether names distinguish gain and shift

    @property
    def vectors(self) -> tuple[Vector, ...]:
        """The gain, and the shift if there is one."""
        return (self.gain,) if self.shift is None else (self.gain, self.shift)

    def turned(self) -> Norm:
        """The norm with gain and shift swapped."""
        return self if self.shift is None else replace(self, gain=self.shift, shift=self.gain)


# A way to read parameters as norms: the norms, in the order in which they were made, and all
# parameters that belong to none.
Reading = tuple[list[Norm], tuple[ParameterInfo, ...]]


# --- finding norms -------------------------------------------------------------------------------


def readings(infos: Sequence[ParameterInfo], wanted: Sequence[Norm]) -> list[Reading]:
    """The ways to read some of these parameters as the wanted norms, likeliest first."""
    if not wanted:
        return [([], tuple(infos))]
    sizes = {norm.shape[0] for norm in wanted}
    vectors = [info for info in infos if is_row(info.shape) and prod(info.shape) in sizes]
    modules, bare = _by_owner(infos, vectors)
    lacking = len(wanted) - len(modules)
    if lacking <= 0:
        return [_reading(modules, infos)]
    # Ignore the paths' common prefix: ``bs``, as the name of a list of blocks, would mean a shift.
    start = len(commonpath([info.path.replace(".", "/") for info in infos])) if infos else 0
    holders = _holders(infos, vectors, sizes, start)
    each = 2 if any(norm.shift for norm in wanted) else 1
    sure = [held for held in holders if held.is_sure_norm and len(held.vectors) == each]
    if len(sure) == lacking:
        return [_reading([*modules, *(held.as_norm() for held in sure)], infos)]
    matrices = [_words(i.path[start:]) - GAIN for i in infos if i not in vectors]
    by_name = [*modules, *_bare_norms(bare, lacking, each, start, matrices)]
    lacks = len(by_name) < len(wanted) or any(
        role.shift and not norm.shift for role, norm in zip(wanted, by_name, strict=False)
    )
    if not lacks and all(norm.is_sure for norm in by_name):
        return [_reading(by_name, infos)]
    ways = [] if lacks else [by_name]
    ways += [[*modules, *norms] for norms in _in_holders(holders, lacking, each)]
    ways = ways or [by_name]
    if len(by_name) < len(wanted) or not all(norm.is_sure for norm in by_name):
        ways += [[*modules, *norms] for norms in _without_names(bare, lacking, each)]
    return [_reading(norms, infos) for norms in ways]


def _reading(found: Sequence[Norm], infos: Sequence[ParameterInfo]) -> Reading:
    order = {info.path: number for number, info in enumerate(infos)}
    held = {vector.path for norm in found for vector in norm.vectors}

    def made(norm: Norm) -> tuple[int, int]:
        return min((order[vector.path], vector.row) for vector in norm.vectors)

    return sorted(found, key=made), tuple(info for info in infos if info.path not in held)


def _by_owner(
    infos: Sequence[ParameterInfo], vectors: Sequence[ParameterInfo]
) -> tuple[list[Norm], list[ParameterInfo]]:
    """The norms that are modules, and the vectors in modules that hold other parameters too."""
    owned: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        owned.setdefault(info.path.rpartition(".")[0], []).append(info)
    modules: list[Norm] = []
    bare: list[ParameterInfo] = []
    for owner, held in owned.items():
        own = [info for info in held if info in vectors]
        is_module = owner and len(own) == len(held) <= 2 and held[0].owner not in LISTS
        if is_module and {prod(info.shape) for info in own} == {prod(own[0].shape)}:
            rows = tuple(Vector(info.path) for info in own)
            modules.append(_Holder(owner, rows, prod(own[0].shape)).as_norm())
        else:
            bare += own
    # A vector in a dict is a bias if a matrix in another dict has the same key.
    named = {name_in_dict(info) for info in infos if info not in vectors} - {None}
    return modules, [info for info in bare if name_in_dict(info) not in named]


def _bare_norms(
    vectors: Sequence[ParameterInfo],
    count: int,
    each: int,  # 2 if the norms have a shift
    start: int,
    matrices: Sequence[frozenset[str]],  # words in the names of the block's matrices
) -> list[Norm]:
    """Norms whose parameters belong to the block itself, found by their names."""
    words = {info.path: _words(info.path[start:]) for info in vectors}
    shifts = [info for info in vectors if words[info.path] & SHIFT]
    gains = [info for info in vectors if info not in shifts and words[info.path] & (GAIN | NORM)]
    by_name = list(gains)
    others = [info for info in vectors if info not in shifts and info not in gains]
    gains += sorted(others, key=lambda info: is_called_bias(info.path))
    norms = []
    # Names that clearly mean a shift come before names that may mean a layer's bias.
    shifts.sort(key=lambda info: not words[info.path] & {"shift", "beta", "norm", "ln"})
    others = gains[count:] if each == 2 else []
    for gain in gains[:count]:
        stem = words[gain.path] - GAIN - NORM
        able = [s for s in shifts if words[s.path] - SHIFT - NORM == stem]
        # If there is a matrix W2, then b2 is its bias and no shift.
        own = next((s for s in able if words[s.path] - SHIFT not in matrices), None)
        # Otherwise take a vector with the same number: s1 for g1.
        guess = None if own else next((o for o in others if _numbers(o) == _numbers(gain)), None)
        held = own or guess or next(iter(able), None)
        shifts = [info for info in shifts if info is not held]
        others = [info for info in others if info is not held]
        name = "_".join(word for word in WORD.findall(gain.path.lower()) if word not in GAIN)
        shift = Vector(held.path) if held else None
        is_sure = guess is None and gain in by_name
        norms.append(Norm(name, Vector(gain.path), shift, (prod(gain.shape),), is_sure))
    return norms


def _without_names(vectors: Sequence[ParameterInfo], count: int, each: int) -> Iterator[list[Norm]]:
    """Every choice of `count` norms among the block's own vectors, in the order of making.

    None if there are many choices, each of which costs a search for the other parts.
    """
    able = [Vector(info.path) for info in vectors if each == 2 or not is_called_bias(info.path)]
    if comb(len(able), count * each) > MAX_CHOICES:
        return
    for chosen in combinations(able, count * each):
        held = _Holder("", chosen, prod(vectors[0].shape))
        if each == 1:
            yield _stacked(held, chosen)
        else:
            yield _stacked(held, chosen[::2], chosen[1::2])
            yield _stacked(held, chosen[:count], chosen[count:])


# --- holders of several vectors ------------------------------------------------------------------


@dataclass(frozen=True)
class _Holder:
    """A module, a list, a dict or a matrix that consists of vectors of one size."""

    path: str
    vectors: tuple[Vector, ...]
    size: int
    words: frozenset[str] = frozenset()  # the words in its name

    @property
    def is_list(self) -> bool:
        """Whether its vectors are parameters, and not rows of one parameter."""
        return len({vector.path for vector in self.vectors}) == len(self.vectors)

    @property
    def is_sure_norm(self) -> bool:
        """Whether the name is that of one norm; the holder of all gains may be ``norm_weights``.

        A number in place of a name leaves it open: ``norms.0`` may hold the gains of all norms.
        """
        named = bool(self.words & NORM) and not self.words & (GAIN | SHIFT)
        return named and not self.path.rpartition(".")[2].isdigit()

    def as_norm(self) -> Norm:
        """The norm with this gain, and this shift if there are two vectors."""
        gain, *more = self.vectors
        if not more:
            return Norm(self.path, gain, None, (self.size,))
        shifts = [v for v in self.vectors if _words(v.path.rpartition(".")[2]) & SHIFT]
        shift = gain if shifts == [gain] else more[0]
        gain = more[0] if shift is gain else gain
        return Norm(self.path, gain, shift, (self.size,), self.is_list and len(shifts) == 1)


def _holders(
    infos: Sequence[ParameterInfo], vectors: Sequence[ParameterInfo], sizes: Set[int], start: int
) -> list[_Holder]:
    """The lists, dicts and matrices of vectors, in the order in which they were made."""
    lists: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        owner = info.path.rpartition(".")[0] if info.owner in LISTS else info.path
        lists.setdefault(owner, []).append(info)
    found: list[_Holder] = []
    for path, held in lists.items():
        if held[0].owner in LISTS and all(info in vectors for info in held):
            rows = tuple(Vector(info.path) for info in held)
            found.append(_Holder(path, rows, prod(held[0].shape), _words(path[start:])))
        for info in held:
            if info.owner in {"", *LISTS} and info not in vectors:
                found += _in_rows(info, sizes, _words(info.path[start:]))
    return found


def _in_rows(info: ParameterInfo, sizes: Set[int], words: frozenset[str]) -> Iterator[_Holder]:
    """The holders in one parameter, whose rows are vectors.

    A parameter of shape (norms, 2, d) or (2, norms, d) consists of several holders.
    """
    *above, width = info.shape or (0,)
    if not above and words & (NORM - {"layer"}) and not is_called_bias(info.path):
        above, width = [2], width // 2  # a gain and a shift, one after the other
    if width not in sizes or not 1 <= len(above) <= 2:
        return
    height = above[-1]
    for number in range(prod(above[:-1])):
        rows = range(number * height, (number + 1) * height)
        path = f"{info.path}.{number}" if len(above) == 2 else info.path
        yield _Holder(path, tuple(Vector(info.path, row) for row in rows), width, words)


def _in_holders(holders: Sequence[_Holder], count: int, each: int) -> Iterator[list[Norm]]:
    """The ways to read holders as `count` norms of `each` vectors, likeliest first."""
    whole = _likely([held for held in holders if len(held.vectors) == each], count)
    stacks = _likely([held for held in holders if len(held.vectors) == count], each)
    single = _likely([held for held in holders if len(held.vectors) == count * each], 1)
    norms = [[held.as_norm() for held in whole]] if whole else []
    shifts = [held for held in stacks if held.words & SHIFT]
    if stacks:
        gains, *others = sorted(stacks, key=shifts.__contains__)
        is_sure = len(shifts) == len(others)
        found = [_stacked(gains, gains.vectors, *(h.vectors for h in others), is_sure=is_sure)]
        norms = [*found, *norms] if is_sure else [*norms, *found]
    yield from norms
    for held in single if each == 2 and count > 1 else ():
        yield _stacked(held, held.vectors[::2], held.vectors[1::2])
        yield _stacked(held, held.vectors[:count], held.vectors[count:])


def _stacked(
    holder: _Holder, gains: Sequence[Vector], *shifts: Sequence[Vector], is_sure: bool = False
) -> list[Norm]:
    """Norms with these gains and these shifts, if there are any."""
    return [
        Norm(f"{holder.path}.{number}", gain, next(iter(shift), None), (holder.size,), is_sure)
        for number, (gain, *shift) in enumerate(zip(gains, *shifts, strict=True))
    ]


def _likely(holders: Sequence[_Holder], count: int) -> Sequence[_Holder]:
    """The `count` holders whose names are likeliest; none if names and kinds leave it open."""
    for words in (STACKED | NORM, GAIN | SHIFT):
        named = [held for held in holders if held.words & words]
        if len(named) >= count:
            return named[:count]
        # A matrix without such a name may be a weight.
        lists = [held for held in holders if held.is_list]
        if len(lists) == count:
            return lists
    return holders if len(holders) == count else ()


def rows_in_stacks(
    infos: Sequence[ParameterInfo], layers: int, in_layer: int, around: int
) -> dict[str, int]:
    """The number of rows for a layer, in each parameter that stacks all norms of all layers.

    The rows of norms around the layers may follow in the same parameter. A parameter with a single
    row for each layer is excluded: it stacks the same norm of every layer, like any stacked weight.
    """
    heights = _heights(layers, in_layer, around, 1)
    return {info.path: in_layer for info in _stacks(infos, heights)}


def lists_by_layer(
    infos: Sequence[ParameterInfo], layers: int, in_layer: int, around: int
) -> dict[str, str]:
    """Paths with the number of the layer, for lists with the vectors of all norms of all layers.

    With two norms in each layer, ``gains.3`` becomes ``gains.1.1``. Those of norms around the
    layers may follow in the same list.
    """
    lists: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        if info.owner == "ParameterList" and is_row(info.shape):
            lists.setdefault(info.path.rpartition(".")[0], []).append(info)
    paths: dict[str, str] = {}
    for at, held in lists.items():
        each = next((n for n in (1, 2) if len(held) in _heights(layers, in_layer, around, n)), 0)
        for number, info in enumerate(held if each else ()):
            layer, place = divmod(number, in_layer * each)
            # No step of the others ends in a number, since layers are found by that.
            within = f"{layer}.{place}" if layer < layers else f"around.{place}th"
            paths[info.path] = f"{at}.{within}"
    return paths


def _heights(layers: int, in_layer: int, around: int, each: int) -> set[int]:
    """How many vectors hold the norms of all layers, without and with those around the layers."""
    return {layers * in_layer * each, (layers * in_layer + around) * each} - {layers}


def _stacks(infos: Sequence[ParameterInfo], counts: Set[int]) -> list[ParameterInfo]:
    """Parameters outside of torch's layers that may stack the gains or shifts of `counts` norms."""
    named = [info for info in infos if not info.owner and len(info.shape) in (2, 3)]
    named = [info for info in named if info.shape[1:-1] in ((), (2,))]
    words = STACKED | NORM
    return [i for i in named if i.shape[0] in counts and _words(i.path) & words]


def _numbers(info: ParameterInfo) -> list[str]:
    """The numbers in a path; a gain and its shift may have the same numbers."""
    return [word for word in WORD.findall(info.path) if word.isdigit()]


def _words(path: str) -> frozenset[str]:
    """The words and numbers in a path, with known words in the singular."""
    known = GAIN | SHIFT | NORM
    singular = ((word, word.removesuffix("s")) for word in WORD.findall(path.lower()))
    return frozenset(one if one in known else word for word, one in singular)


def added_to(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """The shifts and biases that a reference's own classes hold, each with what it is added to.

    In ``gain`` and ``shift``, or in ``W_q`` and ``b_q``, the names show that two parameters of one
    module belong together. `shapes` maps paths to shapes. Left out are parameters of inner modules
    that are called ``bias``, as in the layers of torch: their roles are named so already.
    """
    found = {}
    for path, shape in shapes.items():
        owner, _, name = path.rpartition(".")
        stem = _words(name) - SHIFT
        if len(shape) != 1 or stem == _words(name) or (owner and name == "bias"):
            continue
        able = [
            other
            for other, size in shapes.items()
            if other != path
            and other.rpartition(".")[0] == owner
            and shape[0] in size
            and _words(other.rpartition(".")[2]) - GAIN == stem
        ]
        if len(able) == 1:
            found[path] = able[0]
    return found


# --- matching norms ------------------------------------------------------------------------------


def candidates(
    roles: Sequence[Norm], found: Sequence[Norm], aliases: NameAliases
) -> Iterator[Adoption]:
    """All ways to match norms: first by name, then the remaining norms in every order."""
    for order in _orders(roles, found, aliases):
        is_open = any(one.shift and not one.is_sure for one in found)
        for turned in (False, True) if is_open else (False,):
            yield _matched(roles, order, found, turned)


def _orders(
    roles: Sequence[Norm], found: Sequence[Norm], aliases: NameAliases
) -> Iterator[tuple[Norm | None, ...]]:
    """Ways to list the student's norms in the reference's order; None stands for a missing norm."""
    spelled = spellings([role.name for role in roles], aliases)
    named = {meant(norm.name, spelled): norm for norm in found}
    fixed = {name: norm for name, norm in named.items() if name}
    if len([norm for norm in found if meant(norm.name, spelled)]) != len(fixed):
        fixed = {}  # two names have the same meaning
    left = [norm for norm in found if norm not in fixed.values()]
    open_roles = [role for role in roles if role.name not in fixed]
    fit = [[n for n in left if n.shape == role.shape] for role in open_roles]
    free = max(0, len(open_roles) - len(left))
    for some in islice(permutations([*left, *[None] * free], len(open_roles)), MAX_ORDERS):
        if all(n is None or n in able for n, able in zip(some, fit, strict=True)):
            rest = iter(some)
            yield tuple(fixed[r.name] if r.name in fixed else next(rest) for r in roles)


def _matched(
    roles: Sequence[Norm], order: Sequence[Norm | None], found: Sequence[Norm], turned: bool
) -> Adoption:
    """A match of roles with norms; `turned` swaps gain and shift unless the norm `is_sure`."""
    slots: list[Slot] = []
    missing: list[str] = []
    for role, norm in zip(roles, order, strict=True):
        own = norm.turned() if norm is not None and turned and not norm.is_sure else norm
        held = (own.gain, own.shift) if own is not None else (None, None)
        for wanted, vector in zip((role.gain, role.shift), held, strict=True):
            if wanted is not None and vector is not None:
                start = vector.row * role.shape[0]
                slots.append(Slot(vector.path, wanted.path, start, start + role.shape[0], 0))
            elif wanted is not None:
                missing.append(wanted.path)
    taken = {slot.path for slot in slots}
    extra = dict.fromkeys(vector.path for norm in found for vector in norm.vectors)
    return Adoption(
        tuple(slots), frozenset(), tuple(missing), tuple(p for p in extra if p not in taken)
    )
