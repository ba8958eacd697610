"""Matches a student's parameters with the weights of a reference of any kind.

The student's tree of modules may differ from the reference's at every level, so each level is
matched separately:

1. A model has equal layers. `blocks` matches the first layer as a block, and this match is repeated
   for the other layers. The parameters around the layers, such as tables and a final norm, are
   matched as another block.
2. A block has norms, which `norms` finds by their vectors, and parts with matrices, which `parts`
   finds in branches of the tree.
3. A single part, such as an attention, is matched by `matching`.

At every level names come first, since using a weight for another purpose than its name says is a
mistake. If names do not help, parts are taken in the order in which they were made, since most
people make them in the order of use; other orders come later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, product
from math import prod

import msgspec

from grader.proxies import blocks, norms
from grader.proxies.groups import is_floating
from grader.proxies.layouts import BY_INPUT, PLAIN, Layout
from grader.proxies.names import NameAliases
from grader.proxies.slots import (
    MAX_CANDIDATES,
    Adoption,
    Roles,
    Slot,
    Unadoptable,
    WantedRoles,
    in_turn,
    joined,
    likeliest,
    moved,
)
from grader.proxies.trees import Layers, layers_of, size_of
from grader.wire import ParameterInfo

IN_LAYER = re.compile(r"(?P<layer>.+\.\d+)\.(?P<role>.+)")
AFTER_NUMBER = re.compile(r"(?<=\d)_(?=[^\W\d])")  # in ``l0_q``: the name of a layer ends here
# The two parameters that torch's weight_norm makes of one weight: today, and in its older form.
WEIGHT_NORM = (
    re.compile(r"(.*)\.parametrizations\.\w+\.original[01]"),
    re.compile(r"(.*)\.weight_[gv]"),
)
WHOLE = (*PLAIN, *BY_INPUT)  # layouts in which each layer's rows are adjacent in a stack


@lru_cache(maxsize=256)  # students who keep the stub's names share a cache entry
def candidates(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    """All ways to match the roles with parameters; raises `Unadoptable` if there are none.

    The likeliest come first. Parameters that cannot hold weights, such as integers, are never
    matched.
    """
    _require_plain_weights(wanted.parameters)
    held = tuple(info for info in wanted.parameters if is_floating(info))
    others = tuple(info.path for info in wanted.parameters if info not in held)
    able = replace(wanted, parameters=held)
    if any(IN_LAYER.fullmatch(role) for role, _ in wanted.roles):
        found = likeliest(_with_layers(able, aliases))
    else:
        found = blocks.candidates(able, aliases)
    return tuple(replace(one, extra=(*one.extra, *others)) for one in found)


def _require_plain_weights(infos: Sequence[ParameterInfo]) -> None:
    """Raise `Unadoptable` for layers under weight_norm, which have no weight to write."""
    for form in WEIGHT_NORM:
        found = [match[1] for info in infos if info.owner and (match := form.fullmatch(info.path))]
        twice = sorted({layer for layer in found if found.count(layer) == 2})
        if twice:
            raise Unadoptable(
                f"torch's weight_norm computes the weight of {', '.join(twice)} from a length and "
                "a direction, so the weight cannot be set: use the layer as it is"
            )


def _with_layers(wanted: WantedRoles, aliases: NameAliases) -> Iterator[Adoption]:
    """All ways to match a model; its parameters also under paths that say more of their layers."""
    outer, inner = _by_layer(wanted.roles)
    in_lists = norms.lists_by_layer(wanted.parameters, *_counts(outer, inner))
    in_steps = {info.path: AFTER_NUMBER.sub(".", info.path) for info in wanted.parameters}
    ways = [_in_layers(wanted, outer, inner, aliases)]
    for paths in (in_lists, in_steps):
        if any(path != other for path, other in paths.items()):
            ways.append(_under_other_paths(paths, wanted, outer, inner, aliases))
    yield from in_turn(ways)


def _counts(outer: Roles, inner: Mapping[str, Roles]) -> tuple[int, int, int]:
    """The numbers of layers, of norms in each layer, and of norms around the layers."""
    of_one = next(iter(inner.values()))
    return len(inner), blocks.count_norms(of_one), blocks.count_norms(outer)


def _under_other_paths(
    paths: Mapping[str, str],
    wanted: WantedRoles,
    outer: Roles,
    inner: Mapping[str, Roles],
    aliases: NameAliases,
) -> Iterator[Adoption]:
    others = tuple(paths.get(info.path, info.path) for info in wanted.parameters)
    own = dict(zip(others, (info.path for info in wanted.parameters), strict=True))
    if len(own) == len(others):
        moved_infos = zip(wanted.parameters, others, strict=True)
        infos = tuple(msgspec.structs.replace(info, path=path) for info, path in moved_infos)
        for one in _in_layers(replace(wanted, parameters=infos), outer, inner, aliases):
            yield moved(one, own)


def _in_layers(
    wanted: WantedRoles, outer: Roles, inner: Mapping[str, Roles], aliases: NameAliases
) -> Iterator[Adoption]:
    """All ways to match a model; raises `Unadoptable` if no layers are found."""
    of_one = next(iter(inner.values()))
    rows = norms.rows_in_stacks(wanted.parameters, *_counts(outer, inner))
    found = layers_of(wanted.parameters, len(inner), size_of(shape for _, shape in of_one), rows)
    if not found:
        raise Unadoptable(
            f"the model should have {len(inner)} layers, but has no {len(inner)} equal parts that "
            "each hold a layer's weights. Are the layers in an nn.ModuleList, and is every "
            "layer as wide as the statement says?"
        )
    yield from in_turn([_among(layers, outer, inner, wanted, aliases) for layers in found])


def _among(
    layers: Layers,
    outer: Roles,
    inner: Mapping[str, Roles],
    wanted: WantedRoles,
    aliases: NameAliases,
) -> Iterator[Adoption]:
    """All ways to match these layers, and the parameters around them."""
    tables = _as_tables(layers.around, outer)
    of_one = next(iter(inner.values()))
    around = blocks.candidates(WantedRoles(outer, tables, wanted.counts), aliases)
    within = blocks.candidates(WantedRoles(of_one, layers.first, wanted.counts), aliases)
    if layers.is_stacked:  # other layouts mix the rows of different layers
        within = tuple(one for one in within if all(how in WHOLE for _, how in one.layouts))
        around = tuple(_after_layers(one, layers) for one in around)
    for of_layer, other in _pairs(within, around):
        whole = joined(other, *_in_each_layer(of_layer, layers, list(inner)))
        yield _with_copies(whole, wanted.parameters, dict(outer))


def _by_layer(roles: Roles) -> tuple[Roles, dict[str, Roles]]:
    """The roles outside of layers, and the roles of each layer, without the layer's name."""
    outer: list[tuple[str, tuple[int, ...]]] = []
    inner: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for role, shape in roles:
        if place := IN_LAYER.fullmatch(role):
            inner.setdefault(place["layer"], []).append((place["role"], shape))
        else:
            outer.append((role, shape))
    return tuple(outer), {layer: tuple(held) for layer, held in inner.items()}


def _pairs(
    within: Sequence[Adoption], around: Sequence[Adoption]
) -> Iterator[tuple[Adoption, Adoption]]:
    """All pairs of a match of a layer and a match of the parameters around the layers.

    The likely matches of a layer come first, each with all matches around the layers.
    """
    few = MAX_CANDIDATES // (2 * max(1, len(around)))
    rest = ((one, other) for other, one in product(around, within[few:]))
    return chain(product(within[:few], around), rest)


def _after_layers(found: Adoption, layers: Layers) -> Adoption:
    """In parameters that begin with rows of layers, shift slots of other roles past the rows."""
    above = {info.path: len(layers.paths) * prod(info.shape) for info in layers.first}
    slots = (
        replace(s, start=s.start + above.get(s.path, 0), stop=s.stop + above.get(s.path, 0))
        for s in found.slots
    )
    return replace(found, slots=tuple(slots))


def _in_each_layer(found: Adoption, layers: Layers, names: Sequence[str]) -> Iterator[Adoption]:
    """Repeat a match of the first layer's weights for each layer."""
    shapes = {info.path: info.shape for info in layers.first}
    for number, (name, paths) in enumerate(zip(names, layers.paths, strict=True)):
        slots = []
        for slot in found.slots:
            height, _ = found.layout(slot.path).size(shapes[slot.path])
            above = number * height if layers.is_stacked else 0
            start, stop = slot.start + above, slot.stop + above
            role = f"{name}.{slot.role}"
            slots.append(replace(slot, path=paths[slot.path], role=role, start=start, stop=stop))
        yield Adoption(
            tuple(slots),
            frozenset((paths[path], layout) for path, layout in found.layouts),
            tuple(f"{name}.{role}" for role in found.missing),
            tuple(paths[path] for path in found.extra),
        )


# --- tables --------------------------------------------------------------------------------------


def _as_tables(infos: Sequence[ParameterInfo], roles: Roles) -> tuple[ParameterInfo, ...]:
    """Remove the owner's class from parameters shaped like tables, so that they match as tables.

    The owner of a weight that a table and an output layer share is the module that was made first,
    so the owner may be an `nn.Linear`.
    """
    tables = {shape[::-1] for _, shape in roles if len(shape) == 2}
    return tuple(
        msgspec.structs.replace(info, owner="") if tuple(info.shape) in tables else info
        for info in infos
    )


def _with_copies(
    found: Adoption, parameters: Sequence[ParameterInfo], shapes: Mapping[str, tuple[int, ...]]
) -> Adoption:
    """Give a table's weights also to unmatched matrices of its size.

    Thus a model with a separate output table computes the same as a model with a shared table.
    """
    infos = {info.path: info for info in parameters}
    layouts = dict(found.layouts)
    slots: list[Slot] = []
    for path in found.extra:
        for slot in found.slots:
            shape = shapes.get(slot.role, ())
            layout = _layout_of_copy(infos[path], shape, found.layout(slot.path))
            if layout is not None:
                slots.append(Slot(path, slot.role, 0, shape[0], 0))
                layouts[path] = layout
                break
    copies = {slot.path for slot in slots}
    return replace(
        found,
        slots=(*found.slots, *slots),
        layouts=frozenset(layouts.items()),
        extra=tuple(path for path in found.extra if path not in copies),
    )


def _layout_of_copy(info: ParameterInfo, shape: tuple[int, ...], like: Layout) -> Layout | None:
    """The layout in which a matrix is a copy of a table of this shape; None if no layout fits."""
    if len(info.shape) != 2:
        return None
    likely = sorted(PLAIN, key=lambda layout: layout != like)  # a square fits both layouts
    return next((layout for layout in likely if layout.size(info.shape) == shape), None)
