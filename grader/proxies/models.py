"""Which of a student's parameters hold the weights of a model: layers, and what is around them.

What is alike in every layer is matched once, as `blocks` matches one block. What stands around the
layers, as tables and a last norm, is matched as a block is as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from math import prod

import msgspec

from grader.proxies import blocks, norms
from grader.proxies.layouts import BY_INPUT, PLAIN, Layout
from grader.proxies.names import NameAliases
from grader.proxies.slots import (
    MAX_CANDIDATES,
    Adoption,
    Roles,
    Slot,
    Unadoptable,
    WantedRoles,
    joined,
)
from grader.proxies.trees import Layers, layers_of, size_of
from grader.wire import ParameterInfo

IN_LAYER = re.compile(r"(?P<layer>.+\.\d+)\.(?P<role>.+)")
WHOLE = (*PLAIN, *BY_INPUT)  # layouts in which what is stacked has the rows of one, then another


def has_layers(roles: Roles) -> bool:
    """Whether some of a reference's roles stand in a list."""
    return any(IN_LAYER.fullmatch(role) for role, _ in roles)


def candidates(wanted: WantedRoles, aliases: NameAliases) -> Iterator[Adoption]:
    """Every way to match them, likeliest first; raises `Unadoptable` if there is none."""
    outer, inner = _by_layer(wanted.roles)
    of_one = next(iter(inner.values()))
    rows = norms.rows_in_stacks(
        wanted.parameters, len(inner), blocks.count_norms(of_one), blocks.count_norms(outer)
    )
    layers = layers_of(wanted.parameters, len(inner), size_of(shape for _, shape in of_one), rows)
    if layers is None:
        raise Unadoptable(
            f"{len(inner)} layers are asked for, and the module has no {len(inner)} parts that "
            "are alike and hold the weights of one layer each: are they in an nn.ModuleList, and "
            "is every layer in them as wide as the statement says?"
        )
    tables = _as_tables(layers.around, outer)
    around = blocks.candidates(WantedRoles(outer, tables, wanted.counts), aliases)
    within = blocks.candidates(WantedRoles(of_one, layers.first, wanted.counts), aliases)
    if layers.is_stacked:  # by other views, a layer's rows do not stand together
        within = tuple(one for one in within if all(how in WHOLE for _, how in one.layouts))
        around = tuple(_after_layers(one, layers) for one in around)
    for of_layer, other in _pairs(within, around):
        whole = joined(other, *_in_each_layer(of_layer, layers, list(inner)))
        yield _with_copies(whole, wanted.parameters, dict(outer))


def _by_layer(roles: Roles) -> tuple[Roles, dict[str, Roles]]:
    """The roles around all layers; and those of each layer, without its name."""
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
    """Each way to match a layer, with each to match what is around.

    The latter is quickly tried, but not to the cost of all ways to match a layer: those that are
    less likely come after all pairs of the likely ones, with the likeliest surroundings first.
    """
    few = MAX_CANDIDATES // (2 * max(1, len(around)))
    rest = ((one, other) for other, one in product(around, within[few:]))
    return chain(product(within[:few], around), rest)


def _after_layers(found: Adoption, layers: Layers) -> Adoption:
    """A match of what is around, below the rows of all layers where a parameter has these too."""
    above = {info.path: len(layers.paths) * prod(info.shape) for info in layers.first}
    slots = (
        replace(s, start=s.start + above.get(s.path, 0), stop=s.stop + above.get(s.path, 0))
        for s in found.slots
    )
    return replace(found, slots=tuple(slots))


def _in_each_layer(found: Adoption, layers: Layers, names: Sequence[str]) -> Iterator[Adoption]:
    """A match of the first layer's weights, as one of each layer's."""
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
    """A layer whose weight is a table as well, as one: its rows are looked up, not multiplied.

    Where the output shares its table, either of the two may have been made first.
    """
    tables = {shape[::-1] for _, shape in roles if len(shape) == 2}
    return tuple(
        msgspec.structs.replace(info, owner="") if tuple(info.shape) in tables else info
        for info in infos
    )


def _with_copies(
    found: Adoption, parameters: Sequence[ParameterInfo], shapes: Mapping[str, tuple[int, ...]]
) -> Adoption:
    """The same, where a matrix that is left over has the size of a table: it gets its weights too.

    So a model whose output has a table of its own computes what one with a single table does.
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
    """How a matrix holds all of a table, and nothing else; None if it cannot."""
    if len(info.shape) != 2:
        return None
    likely = sorted(PLAIN, key=lambda layout: layout != like)  # of a square, both would do
    return next((layout for layout in likely if layout.size(info.shape) == shape), None)
