"""Adoption: copies the reference's weights into a student's module.

Each weight of the reference has a role, such as ``W_query``. `models` lists the ways to match these
roles with the student's parameters, by names and shapes. If there are several ways, each is tried
on a probe input, the likeliest first.

All weights are converted to a common form: each role has a matrix of shape (d_out, d_in), in which
the rows of several heads are stacked. A student's parameter holds some rows of a role's matrix.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract
from grader.course.references import WEIGHT_SCALE
from grader.course.tensors import Make
from grader.course.tolerances import RECOGNISED
from grader.proxies import models, norms
from grader.proxies.groups import is_called_bias, is_floating, is_vector
from grader.proxies.layouts import FLAT, LINEAR, PLAIN, Layout
from grader.proxies.remote import RemoteModule
from grader.proxies.slots import Adoption, Slot, WantedRoles
from grader.wire.payload import DTYPES

# The part of a path in a reference that names a head; it is removed, since all heads share a role.
HEAD = re.compile(r"(?<![^.])heads\.\d+\.")
NEARER = 1e-3  # the largest gap of a match that is much nearer, as a share of the likeliest's gap
MOST_ALONE = 8  # most parameters whose influence is tested one by one
FEW = 16  # matches that are tried before all others
MAX_TRIED = 2**24  # most bytes of weights that all trials together may send


def give_weights(theirs: RemoteModule, ours: nn.Module) -> Adoption:
    """Copy the reference's weights into the student's module; raise `Unadoptable` if that fails.

    If the student's module lacks a role, such as a bias, the role's weights in `ours` are set to
    zero (a norm's gain to one). Then the results of both modules can still be compared.
    """
    if theirs.is_lazy:
        theirs.call_first(probe(theirs.contract, theirs.made_with))
    held = _pieces_of(ours)
    matrices = {
        role: _join([(parameter.detach(), owner) for parameter, owner in pieces])
        for role, pieces in held.items()
    }
    made_with = tuple(n for n in theirs.made_with if type(n) is int and n > 1)
    wanted = WantedRoles(
        tuple((role, tuple(matrix.shape)) for role, matrix in matrices.items()),
        tuple(theirs.structure.parameters),
        made_with,
    )
    aliases = tuple((name, tuple(also)) for name, also in theirs.aliases.items())
    found = models.candidates(wanted, aliases)
    size = 8 * sum(mirror.numel() for mirror in theirs.parameters().values())
    most = max(1, MAX_TRIED // max(size, 1))
    adoption, agrees = _choose(theirs, ours, found, matrices, most)
    _leave_out(held, adoption.missing)
    theirs.assign(_values(adoption, matrices, theirs))
    if not agrees:
        theirs.assign(_for_extra_layers(adoption, theirs))
    theirs.adoption = adoption
    return adoption


def _choose(
    theirs: RemoteModule,
    ours: nn.Module,
    found: Sequence[Adoption],
    matrices: Mapping[str, Tensor],
    most: int,
) -> tuple[Adoption, bool]:
    """Choose the match that gives the reference's result, or else the likeliest match.

    A match whose result is much nearer to the reference's replaces the likeliest match: two small
    slips in an answer, such as another eps and no bias, must not cost it the right match.

    At most `most` matches are tried. A single match is not tried if it leaves no matrix without a
    role. The second value is False if no tried match gives the reference's result. It is True if
    that result is unknown, since a recording lacks it.

    If an earlier module of the class was matched, matches with the same habit (`Adoption.habit`)
    are tried first. They also count as the likeliest if no match gives the reference's result, as
    with right but inexact answers, such as a tanh GELU.
    """
    if len(found) == 1 and not _unclaimed(found[0], theirs):
        return found[0], True
    arguments = probe(theirs.contract, theirs.made_with)
    # If biases are zero on both sides, a match that misses them agrees too, but is wrong.
    least = min(len(one.missing) for one in found)
    habits = theirs.habits
    likely: list[Adoption] = []
    others: list[Adoption] = []
    gaps: list[tuple[float, Adoption]] = []  # between the results of a match and the reference's
    for one in found:
        known = one.habit in habits and len(one.missing) == least
        (likely if known else others).append(one)
    # Begin with the latest habit: an earlier habit may be wrong if the weights were identities.
    likely.sort(key=lambda one: habits.index(one.habit), reverse=True)
    likely, others = likely[:most], others[: max(0, most - len(likely))]
    expected: dict[tuple[str, ...], Any] = {}
    for some in chain(_in_messages(likely), _in_messages(others)):
        trials = [_values(one, matrices, theirs) for one in some]
        results = _results(theirs, trials, arguments)
        for one, result in zip(some, results, strict=False):
            if one.missing not in expected:
                expected[one.missing] = _result_without(ours, one.missing, arguments)
            if _agrees(result, expected[one.missing]):
                theirs.remember_habit(one.habit)
                return one, True
            gaps.append((_gap(result, expected[one.missing]), one))
    likeliest = _much_nearer(gaps) or (likely or found)[0]
    return likeliest, all(result is None for result in expected.values())


def _much_nearer(gaps: Sequence[tuple[float, Adoption]]) -> Adoption | None:
    """The match with the smallest gap, if the gap of the first match is far larger.

    None if the first match gives NaN: that is a mistake of the answer, whatever its weights are.
    """
    smallest, nearest = min(gaps, key=itemgetter(0), default=(math.inf, None))
    first = gaps[0][0] if gaps else math.inf
    return nearest if first < math.inf and smallest < NEARER * first else None


def _in_messages(found: Sequence[Adoption]) -> Iterator[Sequence[Adoption]]:
    """Divide matches into few messages: the first match is usually right, or else an early one."""
    yield from filter(None, (found[:1], found[1:FEW], found[FEW:]))


def _results(
    theirs: RemoteModule, weights: Sequence[Mapping[str, Tensor]], arguments: Sequence[Any]
) -> list[Any]:
    """The results of the student's module in evaluation mode, for each of these sets of weights."""
    if not weights:
        return []
    training = theirs.training
    theirs.eval()
    results = theirs.try_all(weights, arguments)
    if training:
        theirs.train()
    results += [None] * (len(weights) - len(results))  # an exception ends the message early
    return results


def _result_without(ours: nn.Module, missing: Sequence[str], arguments: Sequence[Any]) -> Any:
    """The reference's result in evaluation mode if these roles have no effect; None if unknown."""
    silent = without_biases(ours, missing) if missing else ours
    training = silent.training
    try:
        with torch.no_grad():
            return silent.eval()(*arguments)
    except AssertionError:  # a recording has such results only for roles that people often lack
        return None
    finally:
        silent.train(training)


def also_learned(theirs: RemoteModule) -> list[str]:
    """The paths of learned parameters without a role that influence the result.

    Parameters of unused layers do not influence the result, so they do not count.
    """
    adoption: Adoption = theirs.adoption
    infos = {info.path: info for info in theirs.structure.parameters}
    learned = {path for path, info in infos.items() if info.learned and is_floating(info)}
    return influential(theirs, [path for path in adoption.extra if path in learned])


def influential(theirs: RemoteModule, paths: Sequence[str]) -> list[str]:
    """The parameters among `paths` whose values influence the result in evaluation mode."""
    if not paths:
        return []
    own = {path: value for path, value in theirs.values().items() if path in paths}
    make = Make("adoption", theirs.name, "also learned")
    others = {path: make.normal_like(own[path], name=path) for path in paths}
    # First all parameters change together: a layer may have no influence while another is zero.
    few = paths if len(paths) <= MOST_ALONE else []
    trials = [own, own, others, *({**own, path: others[path]} for path in few)]
    before, again, together, *alone = _results(
        theirs, trials, probe(theirs.contract, theirs.made_with)
    )
    theirs.assign(own)
    if not _agrees(again, before) or _agrees(together, before):
        return []
    found = [path for path, after in zip(few, alone, strict=True) if not _agrees(after, before)]
    return found or list(paths)


def joined_gradients(
    theirs: RemoteModule, ours: nn.Module
) -> Iterator[tuple[str, Tensor | None, Tensor]]:
    """Yield each adopted role with the student's gradient and the reference's.

    Both gradients have the shape of the role's matrix. The student's is None if a parameter that
    holds the role has no gradient.
    """
    adoption: Adoption = theirs.adoption
    mirrors = theirs.parameters()
    for role, pieces in _pieces_of(ours).items():
        if role in adoption.missing or any(parameter.grad is None for parameter, _ in pieces):
            continue
        expected = _join([(p.grad, owner) for p, owner in pieces if p.grad is not None])
        actual: Tensor | None = torch.zeros_like(expected)
        slots = [slot for slot in adoption.slots if slot.role == role]
        unused = _unused_copies(theirs, slots)
        for slot in (slot for slot in slots if slot.path not in unused):
            grad = mirrors[slot.path].grad
            if grad is None or actual is None:
                actual = None
                break
            layout = adoption.layout(slot.path)
            rows = _as_rows(grad, layout)
            into = actual.T if layout.by_input else actual
            # If two parameters hold the same table, add their gradients.
            into[slot.at : slot.at + slot.stop - slot.start] += rows[slot.start : slot.stop]
        yield role, actual, expected


def _unused_copies(theirs: RemoteModule, slots: Sequence[Slot]) -> list[str]:
    """The paths of a role's parameters that are never used, because another holds the same rows.

    An unused copy has no gradient and no influence on the result, and another parameter with the
    same rows has a gradient.
    """
    mirrors = theirs.parameters()
    learning = [slot for slot in slots if mirrors[slot.path].grad is not None]
    silent = {
        slot.path
        for slot in slots
        if mirrors[slot.path].grad is None and _rows_of(slot) in map(_rows_of, learning)
    }
    if not silent:
        return []
    matter = influential(theirs, sorted(silent))
    return [path for path in silent if path not in matter]


def _rows_of(slot: Slot) -> tuple[int, int]:
    """The range of rows that a slot holds of its role's matrix."""
    return slot.at, slot.at + slot.stop - slot.start


def without_biases(ours: nn.Module, roles: Sequence[str]) -> nn.Module:
    """A copy of a reference's module in which these roles have no effect."""
    silent = copy.deepcopy(ours)
    _leave_out(_pieces_of(silent), roles)
    return silent


def _leave_out(held: Mapping[str, list[tuple[nn.Parameter, str]]], roles: Sequence[str]) -> None:
    """Make these roles ineffective: set a norm's gain to one and everything else to zero."""
    with torch.no_grad():
        for role in roles:
            for parameter, _ in held[role]:
                gain = is_vector(parameter.shape) and not role.endswith(".bias")
                parameter.fill_(1.0 if gain else 0.0)


def biases(ours: nn.Module) -> list[str]:
    """The biases among a reference's roles, which a student's module may lack."""
    return [role for role in _pieces_of(ours) if role.endswith(".bias")]


def roles_at_zero(ours: nn.Module) -> list[str]:
    """The roles of a reference's module whose weights are all zero."""
    held = _pieces_of(ours)
    return [role for role, pieces in held.items() if not any(bool(p.any()) for p, _ in pieces)]


# --- the common form: rows are outputs, columns are inputs ---------------------------------------


def _as_rows(value: Tensor, layout: Layout) -> Tensor:
    """Reshape a parameter to the matrix of all rows that it holds, and a bias to a vector."""
    _, width = layout.size(value.shape)
    if width is None:
        return value.reshape(-1)
    if layout.view == "spread":
        return value.movedim(0, -1).reshape(-1, width)
    return (value.mT if layout.view == "swapped" else value).reshape(-1, width)


def _from_rows(rows: Tensor, shape: Sequence[int], layout: Layout) -> Tensor:
    """Reshape rows to a parameter of this shape: the inverse of `_as_rows`."""
    if layout.view == "spread":
        return rows.reshape((*shape[1:], shape[0])).movedim(-1, 0).contiguous()
    if layout.view != "swapped":
        return rows.reshape(tuple(shape))
    return rows.reshape((*shape[:-2], shape[-1], shape[-2])).mT.contiguous()


# --- the reference's side ------------------------------------------------------------------------


def _pieces_of(module: nn.Module) -> dict[str, list[tuple[nn.Parameter, str]]]:
    """A reference's parameters by role, in the order of heads, each with its owner's class."""
    owners = {path: type(part).__name__ for path, part in module.named_modules()}
    parameters = dict(module.named_parameters())
    added_to = norms.added_to({path: tuple(p.shape) for path, p in parameters.items()})
    found: dict[str, list[tuple[nn.Parameter, str]]] = {}
    for path, parameter in parameters.items():
        owner = owners[path.rpartition(".")[0]]
        role = HEAD.sub("", path).removesuffix(".weight")
        if path in added_to:  # like the bias of a layer of torch
            role = f"{HEAD.sub('', added_to[path])}.bias"
        found.setdefault(role, []).append((parameter, owner))
    return found


def _join(pieces: Sequence[tuple[Tensor, str]]) -> Tensor:
    """Stack the rows of several heads' parameters into the matrix of a role.

    A parameter that no `nn.Linear` owns has shape (d_in, d_out).
    """
    return torch.cat([_as_rows(value, _of_reference(value, owner)) for value, owner in pieces])


def _of_reference(value: Tensor, owner: str) -> Layout:
    if is_vector(value.shape):
        return FLAT
    return LINEAR if owner == "Linear" else PLAIN[0]


def _values(
    adoption: Adoption, matrices: Mapping[str, Tensor], theirs: RemoteModule
) -> dict[str, Tensor]:
    """The values to write into the student's parameters, by path."""
    infos = {info.path: info for info in theirs.structure.parameters}
    rows: dict[str, Tensor] = {}
    for slot in adoption.slots:
        info, layout = infos[slot.path], adoption.layout(slot.path)
        if slot.path not in rows:
            empty = torch.zeros(info.shape, dtype=DTYPES[info.dtype])
            rows[slot.path] = _as_rows(empty, layout).clone()
        height = slot.stop - slot.start
        matrix = matrices[slot.role].T if layout.by_input else matrices[slot.role]
        rows[slot.path][slot.start : slot.stop] = matrix[slot.at : slot.at + height]
    values = {
        path: _from_rows(part, infos[path].shape, adoption.layout(path))
        for path, part in rows.items()
    }
    for path in adoption.extra:
        # A "bias" that is not learned is a constant, such as the mask in GPT-2's code.
        if infos[path].learned and is_floating(infos[path]) and is_called_bias(path):
            values[path] = torch.zeros(infos[path].shape, dtype=DTYPES[infos[path].dtype])
    return values


def _unclaimed(adoption: Adoption, theirs: RemoteModule) -> list[wire.ParameterInfo]:
    """The student's matrices without a role, from layers that the exercise does not have."""
    infos = {info.path: info for info in theirs.structure.parameters}
    extra = [infos[path] for path in adoption.extra]
    return [info for info in extra if len(info.shape) == 2 and is_floating(info)]


def _for_extra_layers(adoption: Adoption, theirs: RemoteModule) -> dict[str, Tensor]:
    """Fixed weights for layers without a role, so that the same mistake gives the same result.

    These weights are written only if the result is wrong. A right answer may have an extra layer
    without effect, which keeps its own weights.
    """
    make, found = Make("adoption", theirs.name, "nobody"), _unclaimed(adoption, theirs)
    return {
        info.path: make.normal_like(
            torch.empty(info.shape, dtype=DTYPES[info.dtype]), WEIGHT_SCALE, name=f"layer {number}"
        )
        for number, info in enumerate(found)
    }


def probe(contract: Contract, made_with: Sequence[Any]) -> list[Any]:
    """Make small inputs for a module from its contract; token ids are below its `vocab_size`."""
    sizes = {
        parameter.name: value
        for parameter, value in zip(contract.call.parameters, made_with, strict=False)
        if type(value) is int
    }
    make = Make("probe", contract.name, "adopt")
    assert contract.forward is not None
    arguments = []
    for parameter in contract.forward.parameters:
        if parameter.optional or parameter.kind != "tensor":
            break
        (spec,) = parameter.specs
        shape = [
            sizes.setdefault(dimension.label, 3)
            for dimension in spec.dimensions or ()
            if not dimension.variadic
        ]
        if spec.whole:
            axes = {f"axis_{axis}": size for axis, size in enumerate(shape)}
            arguments.append(make.integers(0, sizes.get("vocab_size", 2), name=None, **axes))
        else:
            arguments.append(make.normal_like(torch.empty(shape)))
    return arguments


def _agrees(result: Any, expected: Any) -> bool:
    if isinstance(result, (tuple, list)) and isinstance(expected, (tuple, list)):
        # Only the output, which comes first, is compared: a cache may have any form.
        return bool(result) and _agrees(result[0], expected[0])
    return (
        isinstance(result, Tensor)
        and isinstance(expected, Tensor)
        and result.shape == expected.shape
        and result.dtype == expected.dtype
        and result.device == expected.device
        and RECOGNISED.holds(result, expected)
    )


def _gap(result: Any, expected: Any) -> float:
    """The largest difference of two results; infinite if they cannot be compared."""
    if isinstance(result, (tuple, list)) and isinstance(expected, (tuple, list)):
        return _gap(result[0], expected[0]) if result and expected else math.inf
    if not (isinstance(result, Tensor) and isinstance(expected, Tensor)):
        return math.inf
    if (result.shape, result.device) != (expected.shape, expected.device) or not result.numel():
        return math.inf
    gap = float((result.double() - expected.double()).abs().max())
    return math.inf if math.isnan(gap) else gap
