"""Finds the norms in a student's module, and matches them with the reference's.

A norm multiplies by a gain, and may add a shift. Students store norms in three ways:

- as a module that holds one or two vectors;
- as vectors of the block itself, with related names: ``gain1`` and ``shift1``, or ``norm_1`` and
  ``norm_1_bias``;
- as rows of a matrix of all gains, and of a matrix of all shifts.

Norms are matched by name. Without meaningful names, they are taken in the order in which they were
made; other orders come later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice, permutations
from math import prod
from posixpath import commonpath

from grader.proxies.groups import is_row, name_in_dict
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


@dataclass(frozen=True)
class Norm:
    """A norm, given by the reference's roles or by the paths of a student's parameters."""

    name: str
    gain: str | None
    shift: str | None
    shape: tuple[int, ...]
    is_sure: bool = True  # whether names distinguish gain and shift
    row: int = 0  # the gain's row, in a parameter that holds several norms
    shift_row: int = 0

    def turned(self) -> Norm:
        """The norm with gain and shift swapped."""
        return replace(
            self, gain=self.shift, shift=self.gain, row=self.shift_row, shift_row=self.row
        )


# --- finding norms -------------------------------------------------------------------------------


def norms_among(
    infos: Sequence[ParameterInfo], wanted: Sequence[Norm]
) -> tuple[list[Norm], tuple[ParameterInfo, ...]]:
    """The norms among these parameters, in the order they were made, and all other parameters."""
    if not wanted:
        return [], tuple(infos)
    sizes = {norm.shape[0] for norm in wanted}
    vectors = [info for info in infos if is_row(info.shape) and prod(info.shape) in sizes]
    modules, bare = _by_owner(infos, vectors)
    lacking = len(wanted) - len(modules)
    # Ignore the paths' common prefix: ``bs``, as the name of a list of blocks, would mean a shift.
    start = len(commonpath([info.path.replace(".", "/") for info in infos])) if infos else 0
    matrices = [_words(i.path[start:]) - GAIN for i in infos if i not in vectors]
    found = [*modules, *(_bare_norms(bare, lacking, start, matrices) if lacking > 0 else ())]
    unshifted = any(a.shift and not b.shift for a, b in zip(wanted, found, strict=False))
    if len(found) < len(wanted) or unshifted:
        found = _stacked_norms(infos, len(wanted), sizes) or found
    held = {path for norm in found for path in (norm.gain, norm.shift)}
    order = {info.path: number for number, info in enumerate(infos)}
    found.sort(key=lambda norm: min(order[path] for path in (norm.gain, norm.shift) if path))
    return found, tuple(info for info in infos if info.path not in held)


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
            modules.append(_of_module(owner, own))
        else:
            bare += own
    # A vector in a dict is a bias if a matrix in another dict has the same key.
    named = {name_in_dict(info) for info in infos if info not in vectors} - {None}
    return modules, [info for info in bare if name_in_dict(info) not in named]


def _of_module(owner: str, own: Sequence[ParameterInfo]) -> Norm:
    first, *more = own
    shape = (prod(first.shape),)
    shifts = [info for info in own if _words(info.path.rpartition(".")[2]) & SHIFT]
    if not more:
        return Norm(owner, first.path, None, shape)
    (second,) = more
    if shifts == [first]:
        first, second = second, first
    return Norm(owner, first.path, second.path, shape, len(shifts) == 1)


def _bare_norms(
    vectors: Sequence[ParameterInfo],
    count: int,
    start: int,
    matrices: Sequence[frozenset[str]],  # words in the names of the block's matrices
) -> list[Norm]:
    """Norms whose parameters belong to the block itself, found by their names."""
    words = {info.path: _words(info.path[start:]) for info in vectors}
    shifts = [info for info in vectors if words[info.path] & SHIFT]
    gains = [info for info in vectors if info not in shifts and words[info.path] & (GAIN | NORM)]
    gains += [info for info in vectors if info not in shifts and info not in gains]
    norms = []
    # Names that clearly mean a shift come before names that may mean a layer's bias.
    shifts.sort(key=lambda info: not words[info.path] & {"shift", "beta", "norm", "ln"})
    others = gains[count:]
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
        named = "_".join(word for word in WORD.findall(gain.path.lower()) if word not in GAIN)
        shape = (prod(gain.shape),)
        norms.append(Norm(named, gain.path, held.path if held else None, shape, guess is None))
    return norms


def _stacked_norms(infos: Sequence[ParameterInfo], count: int, sizes: set[int]) -> list[Norm]:
    """Norms whose gains are the rows of a matrix, and whose shifts are the rows of another.

    A parameter of shape (norms, 2, d) may hold both, and either the gains or the shifts may come
    first.
    """
    for info in _stacks(infos, {count}):
        if info.shape[1:-1] == (2,) and info.shape[-1] in sizes:
            path, shape = info.path, info.shape[-1:]
            rows = range(0, 2 * count, 2)
            return [Norm(f"{path}.{r}", path, path, shape, False, r, r + 1) for r in rows]
    held = [i for i in infos if i.owner != "Linear" and i.shape[:1] == (count,) == i.shape[:-1]]
    held = [info for info in held if info.shape[1] in sizes]
    shifts, is_sure = [info.path for info in held if _words(info.path) & SHIFT], True
    named = [i for i in held if _words(i.path) & (GAIN | NORM) and i.path not in shifts]
    if not named and not shifts and len(held) == 2:  # the right sizes, but no helpful names
        named, shifts = held[:1], [held[1].path]
        is_sure = False
    return [
        Norm(f"{gain.path}.{row}", gain.path, shift, gain.shape[1:], is_sure, row, row)
        for gain, shift in zip(named[:1], [*shifts, None], strict=False)
        for row in range(count)
    ]


def rows_in_stacks(
    infos: Sequence[ParameterInfo], layers: int, in_layer: int, around: int
) -> dict[str, int]:
    """The number of rows for a layer, in each parameter that stacks all norms of all layers.

    The rows of norms around the layers may follow in the same parameter. A parameter with a single
    row for each layer is excluded: it stacks the same norm of every layer, like any stacked weight.
    """
    heights = {layers * in_layer, layers * in_layer + around} - {layers}
    return {info.path: in_layer for info in _stacks(infos, heights)}


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


# --- matching norms ------------------------------------------------------------------------------


def candidates(
    roles: Sequence[Norm], found: Sequence[Norm], aliases: NameAliases
) -> Iterator[Adoption]:
    """All ways to match norms: first by name, then the remaining norms in every order."""
    for order in _orders(roles, found, aliases):
        for turned in (False, True) if any(not one.is_sure for one in found) else (False,):
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
        rows = (own.row, own.shift_row) if own is not None else (0, 0)
        for name, path, row in zip((role.gain, role.shift), held, rows, strict=True):
            if name is not None and path is not None:
                start = row * role.shape[0]
                slots.append(Slot(path, name, start, start + role.shape[0], 0))
            elif name is not None:
                missing.append(name)
    taken = {slot.path for slot in slots}
    extra = [path for norm in found for path in (norm.gain, norm.shift) if path]
    return Adoption(
        tuple(slots), frozenset(), tuple(missing), tuple(p for p in extra if p not in taken)
    )
