"""Finds layers and branches in a student's tree of modules, by the paths of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import msgspec

from grader.proxies.names import last_number, stem
from grader.wire import ParameterInfo


@dataclass(frozen=True)
class Layers:
    """The parameters of equal layers, and those around the layers."""

    around: tuple[ParameterInfo, ...]
    first: tuple[ParameterInfo, ...]  # those of the first layer, with paths that all layers share
    paths: tuple[Mapping[str, str], ...]  # for each layer, maps shared paths to its own
    # Whether each parameter stacks the rows of all layers, followed by rows around the layers.
    is_stacked: bool = False


def layers_of(
    infos: Sequence[ParameterInfo], count: int, numbers: int, rows: Mapping[str, int]
) -> list[Layers]:
    """The ways to find `count` layers, each with at least `numbers` elements in its matrices.

    Layers may form a list, have separate names, or be spread over several lists, such as a list of
    attentions and a list of norms. `rows` gives the rows for each layer in stacked parameters.
    """
    spread = _spread(infos, count, numbers, apart=False)
    if spread is None:
        stacked = _stacked(infos, count, numbers, rows)
        return [] if stacked is None else [stacked]
    # A list of two vectors may be the gains of two layers, or the last norm.
    other = _spread(infos, count, numbers, apart=True)
    return [spread] if other in (None, spread) else [spread, other]


def _spread(
    infos: Sequence[ParameterInfo], count: int, numbers: int, *, apart: bool
) -> Layers | None:
    """Layers with parameters of their own; with `apart`, a list of vectors belongs to no layer."""
    around: list[ParameterInfo] = []
    found: list[dict[str, ParameterInfo]] = [{} for _ in range(count)]
    _gather("", infos, around, found, apart=apart)
    # More elements are fine: a layer may have gains in a matrix, or an extra matrix.
    if size_of(info.shape for info in found[0].values()) < numbers:
        return None
    return Layers(
        tuple(around),
        tuple(msgspec.structs.replace(i, path=path) for path, i in found[0].items()),
        tuple({path: info.path for path, info in layer.items()} for layer in found),
    )


def _stacked(
    infos: Sequence[ParameterInfo], count: int, numbers: int, rows: Mapping[str, int]
) -> Layers | None:
    """Layers whose weights are stacked, such as a ``qkv`` of shape (layers, d, 3 · d)."""
    first: list[ParameterInfo] = []
    around: list[ParameterInfo] = []
    for info in infos:
        height, *rest = info.shape or (0,)
        own = rows.get(info.path, 0)
        if own:
            first.append(msgspec.structs.replace(info, shape=(own, *rest)))
            height -= own * count
        elif height == count and not info.owner:
            first.append(msgspec.structs.replace(info, shape=tuple(rest)))
            continue
        if height or not own:
            shape = (height, *rest) if own else info.shape
            around.append(msgspec.structs.replace(info, shape=shape))
    if size_of(info.shape for info in first if info.path not in rows) != numbers:
        return None
    paths = {info.path: info.path for info in first}
    return Layers(tuple(around), tuple(first), (paths,) * count, is_stacked=True)


def _gather(
    at: str,
    infos: Sequence[ParameterInfo],
    around: list[ParameterInfo],
    found: list[dict[str, ParameterInfo]],
    *,
    apart: bool,
) -> None:
    """Add each parameter below a path to its layer in `found`, or else to `around`."""
    children = _children(at, infos)
    alike = list(_series(_alike(at, children), len(found)))
    for steps in alike:
        in_list = all(step.isdigit() for step in steps)
        # A norm may hold parameters a_2 and b_2, which are not two layers.
        stems = {stem(step) for step in steps}
        numbered = len(stems) == 1 and all(last_number(step) is not None for step in steps)
        # Three lists, each with a module for every layer, are not three layers.
        single = in_list or not _is_list(f"{at}{steps[0]}.", children[steps[0]], len(found))
        loose = apart and children[steps[0]][0].owner == "ParameterList"
        whole = (numbered and not loose) or _holds_matrix(children[steps[0]])
        # A single layer has no equal layers, so its name must have the first number to be a layer.
        only = last_number(steps[0]) in ((0,) if in_list else (0, 1))
        if len(steps) == len(found) and single and whole and (only or len(found) > 1):
            in_order = sorted(steps, key=lambda step: last_number(step) or 0)
            shared = at + stem(steps[0])
            if in_list and sum(len(others) == len(found) for others in alike) > 1:
                # In a list of attentions and layers in turn, each kind needs a path of its own.
                shared = at + in_order[0]
            for layer, step in zip(found, in_order, strict=True):
                for info in children[step]:
                    rest = info.path[len(at) + len(step) :]
                    layer[f"{shared}{rest}".strip(".").replace("..", ".")] = info
            continue
        for step in steps:
            below = f"{at}{step}."
            deeper = [info for info in children[step] if info.path.startswith(below)]
            around += [info for info in children[step] if not info.path.startswith(below)]
            if deeper:
                _gather(below, deeper, around, found, apart=apart)


def _children(at: str, infos: Sequence[ParameterInfo]) -> dict[str, list[ParameterInfo]]:
    """The parameters below a path, grouped by the next step."""
    children: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        step = info.path[len(at) :].partition(".")[0]
        children.setdefault(step, []).append(info)
    return children


def _alike(at: str, children: Mapping[str, Sequence[ParameterInfo]]) -> list[list[str]]:
    """Group the steps that have equal parameters below them."""
    found: dict[object, list[str]] = {}
    for step, held in children.items():
        start = len(at) + len(step)
        form = tuple((info.path[start:], tuple(info.shape), info.owner) for info in held)
        found.setdefault(form, []).append(step)
    return list(found.values())


def _is_list(at: str, infos: Sequence[ParameterInfo], count: int) -> bool:
    """Whether a path is a list of `count` equal modules."""
    children = _children(at, infos)
    listed = len(children) == count and all(step.isdigit() for step in children)
    return listed and len(_alike(at, children)) == 1


def _series(alike: Iterable[list[str]], count: int) -> Iterator[list[str]]:
    """Groups of equal steps; a group that is too large is split by names without numbers."""
    for steps in alike:
        if len(steps) <= count:
            yield steps
            continue
        series: dict[str, list[str]] = {}
        for step in steps:
            series.setdefault(stem(step), []).append(step)
        yield from series.values()


def _holds_matrix(infos: Sequence[ParameterInfo]) -> bool:
    return any(len(info.shape) > 1 for info in infos)


def branches(
    infos: Sequence[ParameterInfo],
) -> Iterator[tuple[str, tuple[ParameterInfo, ...]]]:
    """Every path with parameters below it, and these parameters; paths near the root come first."""
    below: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        steps = info.path.split(".")
        for depth in range(1, len(steps)):
            below.setdefault(".".join(steps[:depth]), []).append(info)
    for path in sorted(below, key=lambda path: path.count(".")):
        yield path, tuple(below[path])


def size_of(shapes: Iterable[Sequence[int]]) -> int:
    """The number of elements in the matrices among these shapes."""
    return sum(prod(shape) for shape in shapes if len(shape) > 1)
