"""Adoption: give a student's module the reference's weights, by role.

145 people wrote the same classes with their own names, layouts and fusions, and were right. So a
parameter is found by what it is for: first by its name or a declared alias, and only where names
say nothing at all, by trying the assignments that shapes allow on one probe input.

Everything is brought to one form: per role (``W_query``) one matrix (d_out, d_in) in which the
parts of several heads stand below each other. A student's parameter covers some rows of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations, product
from typing import Any

import torch
from torch import Tensor, nn

from grader.jail.remote import RemoteModule
from grader.jail.wire import DTYPES, ParameterInfo
from grader.tensors import Make

MAX_CANDIDATES = 600
# Words that people add to a name without changing what it means.
NOISE = re.compile(r"weights?|bias|projection|proj|layer|linear|lin|matrix|mat|params?|\d+|_")


class Unadoptable(AssertionError):
    """The student's module has no place for a weight; the text is for the student."""


@dataclass(frozen=True)
class Slot:
    """Rows [start, stop) of a student's parameter hold rows [at, …) of a role's matrix."""

    path: str
    role: str
    start: int
    stop: int
    at: int


@dataclass(frozen=True)
class Adoption:
    """How the weights were matched. `missing` and `extra` are for tests of structure."""

    slots: tuple[Slot, ...]
    transposed: frozenset[str]  # student paths that hold (d_in, d_out)
    missing: tuple[str, ...]  # roles of the reference without a partner; zero there from now on
    extra: tuple[str, ...]  # parameters of the student without a partner; biases among them zero

    def joined_gradients(self, theirs: RemoteModule, ours: nn.Module) -> Iterator[
        tuple[str, Tensor | None, Tensor]
    ]:  # fmt: skip
        """Per role: the student's gradient and the reference's, in the same form."""
        grads = {
            role: _cat([_canonical(p.grad, owner) for p, owner in parts])
            for role, parts in _reference_parts(ours).items()
            if role not in self.missing and all(p.grad is not None for p, _ in parts)
        }
        mirrors = theirs.parameters()
        for role, expected in grads.items():
            actual: Tensor | None = torch.zeros_like(expected)
            for slot in (slot for slot in self.slots if slot.role == role):
                grad = mirrors[slot.path].grad
                if grad is None or actual is None:
                    actual = None
                    break
                grad = grad.T if slot.path in self.transposed else grad
                actual[slot.at : slot.at + slot.stop - slot.start] = grad[slot.start : slot.stop]
            yield role, actual, expected


def adopt(theirs: RemoteModule, ours: nn.Module, aliases: Mapping[str, Sequence[str]]) -> Adoption:
    """Copy the reference's weights into the student's module; raise `Unadoptable` if it has none.

    Weights flow in this direction only. Roles of the reference that have no partner (a bias that
    the student left out) are set to zero in `ours`, so that the rest can be compared.
    """
    parts = _reference_parts(ours)
    joined = {
        role: _cat([_canonical(parameter.detach(), owner) for parameter, owner in pieces])
        for role, pieces in parts.items()
    }
    plans = [_Plan(theirs, joined, aliases, by_last) for by_last in (False, True)]
    candidates = plans[0].by_name() or list(
        islice(chain.from_iterable(plan.by_shape() for plan in plans), MAX_CANDIDATES)
    )
    if not candidates:
        raise Unadoptable(plans[0].nothing_fits())
    with torch.no_grad():
        for role in candidates[0].missing:
            for parameter, _ in parts[role]:
                parameter.zero_()
    adoption = _choose(theirs, ours, candidates, plans[0])
    theirs.assign(plans[0].values(adoption))
    theirs.adoption = adoption
    return adoption


def _choose(
    theirs: RemoteModule, ours: nn.Module, candidates: Sequence[Adoption], plan: _Plan
) -> Adoption:  # fmt: skip
    """The candidate under which the student's module gives the reference's result, or the first."""
    if len(candidates) == 1:
        return candidates[0]
    arguments = _probe(theirs)
    training = theirs.structure.training
    with torch.no_grad():
        expected = ours.eval()(*arguments)
        ours.train(training)
        theirs.eval()
        results = theirs.try_all([plan.values(candidate) for candidate in candidates], arguments)
        if training:
            theirs.train()
    agreeing = (c for c, r in zip(candidates, results, strict=False) if _agrees(r, expected))
    return next(agreeing, candidates[0])


# --- the reference's side ------------------------------------------------------------------------


def _reference_parts(module: nn.Module) -> dict[str, list[tuple[nn.Parameter, str]]]:
    """Parameters by role, those of several heads in order; with the class that holds them."""
    owners = {path: type(part).__name__ for path, part in module.named_modules()}
    parts: dict[str, list[tuple[nn.Parameter, str]]] = {}
    for path, parameter in module.named_parameters():
        steps = [step for step in path.split(".") if not step.isdigit() and step != "heads"]
        owner = owners[path.rpartition(".")[0]]
        parts.setdefault(".".join(steps).removesuffix(".weight"), []).append((parameter, owner))
    return parts


def _canonical(value: Tensor | None, owner: str) -> Tensor:
    """(d_out, d_in): as in nn.Linear; a plain parameter is written (d_in, d_out)."""
    assert value is not None
    return value.T if value.dim() == 2 and owner != "Linear" else value


def _cat(tensors: list[Tensor]) -> Tensor:
    return torch.cat(tensors) if len(tensors) > 1 else tensors[0]


# --- the student's side --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Parameters whose paths differ only in numbers: one matrix in parts, or one alone."""

    key: str  # the path without numbers
    infos: tuple[ParameterInfo, ...]

    @property
    def is_bias(self) -> bool:
        return len(self.infos[0].shape) == 1

    @property
    def module(self) -> str:
        """The module's path without numbers, by which a bias finds its weight."""
        return re.sub(r"[._]?(weight|bias)$", "", self.key)


def _groups(infos: Sequence[ParameterInfo], by_last: bool) -> list[_Group]:
    """Group by path without numbers.

    In ``qkv.0`` the number may count heads, or tell queries from keys: `by_last` takes it for the
    latter, and so for part of the name.
    """
    found: dict[str, list[ParameterInfo]] = {}
    for info in infos:
        steps = re.sub(r"[._]?(weight|bias)$", "", info.path).split(".")
        last = len(steps) - 1 if by_last else None
        kept = [s for n, s in enumerate(steps) if not s.isdigit() or n == last]
        suffix = info.path.rpartition(".")[2]
        key = ".".join([*kept, suffix] if suffix in ("weight", "bias") else kept)
        found.setdefault(f"{key}/{len(info.shape)}", []).append(info)
    ordered = {
        key: sorted(group, key=lambda info: [int(n) for n in re.findall(r"(?<!\w)\d+", info.path)])
        for key, group in found.items()
    }
    return [_Group(key.rpartition("/")[0], tuple(group)) for key, group in ordered.items()]


class _Plan:
    """The search for partners of one student's parameters."""

    def __init__(
        self, theirs: RemoteModule, joined: Mapping[str, Tensor],
        aliases: Mapping[str, Sequence[str]], by_last: bool,
    ) -> None:  # fmt: skip
        self.theirs = theirs
        self.joined = joined
        self.groups = _groups(theirs.structure.parameters, by_last)
        self.weights = [role for role in joined if not role.endswith(".bias")]
        # Spelling → the roles it means; a fused projection means several, in order.
        self.spelled: dict[str, tuple[str, ...]] = {}
        for names, spellings in aliases.items():
            meant = tuple(names.split())
            for spelling in (*spellings, *(meant if len(meant) == 1 else ())):
                self.spelled[_core(spelling)] = meant
        for role in self.weights:
            self.spelled.setdefault(_core(role), (role,))

    def named(self, group: _Group) -> tuple[str, ...] | None:
        """The roles that a group's name means, innermost part of the path first."""
        for step in reversed(group.key.split(".")):
            meant = self.spelled.get(_core(step))
            if meant and all(role in self.weights for role in meant):
                return meant
        return None

    def by_name(self) -> list[Adoption]:
        """What the names say, in every layout that fits; none if they do not name every weight.

        Names are final: a weight that is used for something else than its name is a mistake.
        """
        named = {group: self.named(group) for group in self.groups if not group.is_bias}
        chosen = {group: roles for group, roles in named.items() if roles}
        covered = [role for roles in chosen.values() for role in roles]
        if sorted(covered) != sorted(self.weights):
            return []
        found = [self.settle(chosen, layout) for layout in _layouts(chosen, self.joined)]
        if not found:
            shapes = [f"{i.path} has shape {tuple(i.shape)}" for g in chosen for i in g.infos]
            raise Unadoptable(f"the weights cannot have these sizes: {'; '.join(shapes)}")
        return found

    def by_shape(self) -> Iterator[Adoption]:
        """What shapes allow for the weights that no name identifies."""
        named = {group: self.named(group) for group in self.groups if not group.is_bias}
        fixed = {group: roles for group, roles in named.items() if roles}
        covered = [role for roles in fixed.values() for role in roles]
        if len(set(covered)) != len(covered):
            fixed, covered = {}, []
        free = [group for group in named if group not in fixed]
        rest = [role for role in self.weights if role not in covered]
        for choice in _assignments(free, rest):
            for layout in _layouts({**fixed, **choice}, self.joined):
                yield self.settle({**fixed, **choice}, layout)

    def nothing_fits(self) -> str:
        """What to tell a student whose module has no place for the weights."""
        have = [f"{info.path} {tuple(info.shape)}" for info in self.theirs.structure.parameters]
        return (
            f"no parameters were found for {', '.join(self.weights)}: the module has "
            f"{', '.join(have) or 'no parameters at all'}. Weights live in nn.Parameter or "
            "nn.Linear, made in __init__ and kept as attributes"
        )

    def settle(self, chosen: Mapping[_Group, tuple[str, ...]], layout: frozenset[str]) -> Adoption:
        """Slots for weights and for the biases beside them."""
        slots: list[Slot] = []
        extra: list[str] = []
        modules = {group.module: roles for group, roles in chosen.items()}
        for group in self.groups:
            roles = chosen.get(group)
            if group.is_bias:
                weights = modules.get(group.module) or self.named(group) or ()
                roles = tuple(f"{role}.bias" for role in weights)
            known = [role for role in roles or () if role in self.joined]
            rows = sum(_rows(info, info.path in layout) for info in group.infos)
            if not known or len(known) != len(roles or ()) or rows != self.height(known):
                extra += [info.path for info in group.infos]
                continue
            slots += self.slots(group, known, layout)
        covered = {slot.role for slot in slots}
        missing = tuple(role for role in self.joined if role not in covered)
        return Adoption(tuple(slots), layout, missing, tuple(extra))

    def height(self, roles: Sequence[str]) -> int:
        return sum(self.joined[role].shape[0] for role in roles)

    def slots(
        self, group: _Group, roles: Sequence[str], layout: frozenset[str]
    ) -> Iterator[Slot]:  # fmt: skip
        """Lay the roles' rows below each other, and cut them where the student's parts end."""
        pieces = [(info.path, _rows(info, info.path in layout)) for info in group.infos]
        path, left = pieces.pop(0)
        start = 0
        for role in roles:
            at, height = 0, self.joined[role].shape[0]
            while at < height:
                if left == 0:
                    path, left = pieces.pop(0)
                    start = 0
                count = min(left, height - at)
                yield Slot(path, role, start, start + count, at)
                start, left, at = start + count, left - count, at + count

    def values(self, adoption: Adoption) -> dict[str, Tensor]:
        """What to write into each of the student's parameters."""
        infos = {info.path: info for info in self.theirs.structure.parameters}
        values: dict[str, Tensor] = {}
        for slot in adoption.slots:
            info = infos[slot.path]
            if slot.path not in values:
                values[slot.path] = torch.zeros(info.shape, dtype=DTYPES[info.dtype])
            whole = values[slot.path]
            rows = whole.T if slot.path in adoption.transposed else whole
            height = slot.stop - slot.start
            rows[slot.start : slot.stop] = self.joined[slot.role][slot.at : slot.at + height]
        for path in adoption.extra:
            if len(infos[path].shape) == 1 and path.endswith("bias"):
                values[path] = torch.zeros(infos[path].shape, dtype=DTYPES[infos[path].dtype])
        return values


def _core(name: str) -> str:
    return NOISE.sub("", name.lower()) or name.lower()


def _rows(info: ParameterInfo, transposed: bool) -> int:
    return info.shape[-1] if transposed else info.shape[0]


def _layouts(
    chosen: Mapping[_Group, tuple[str, ...]], joined: Mapping[str, Tensor]
) -> Iterator[frozenset[str]]:  # fmt: skip
    """Which parameters are (d_in, d_out), in every way that shapes allow, likeliest first."""
    options: list[list[frozenset[str]]] = []
    for group, roles in chosen.items():
        height = sum(joined[role].shape[0] for role in roles)
        width = joined[roles[0]].shape[1]
        fits: list[frozenset[str]] = []
        linear = all(info.owner == "Linear" for info in group.infos)
        for transposed in (False,) if linear else (True, False):
            shapes = [i.shape[::-1] if transposed else i.shape for i in group.infos]
            if all(len(s) == 2 and s[1] == width for s in shapes) and (
                sum(s[0] for s in shapes) == height
            ):
                paths = (info.path for info in group.infos)
                fits.append(frozenset(paths) if transposed else frozenset())
        if not fits:
            return
        options.append(fits)
    for combination in product(*options):
        yield frozenset().union(*combination)


def _assignments(
    free: Sequence[_Group], roles: Sequence[str]
) -> Iterator[dict[_Group, tuple[str, ...]]]:  # fmt: skip
    """Every way to give all roles to groups, several to one where it is a fused projection."""
    if not free or not roles:
        if not roles:
            yield {}
        return
    for order in permutations(roles):
        for cuts in _compositions(len(roles), len(free)):
            ends = [sum(cuts[: i + 1]) for i in range(len(cuts))]
            yield {
                group: order[end - size : end]
                for group, size, end in zip(free, cuts, ends, strict=True)
                if size
            }


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    # One each is the ordinary case, so it comes first.
    for first in sorted(range(total + 1), key=lambda n: abs(n - 1)):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _probe(theirs: RemoteModule) -> list[Any]:
    """Small inputs for a module, from its contract alone."""
    contract, made_with = theirs.contract, theirs.made_with
    sizes = {
        parameter.name: value
        for parameter, value in zip(contract.call.parameters, made_with, strict=False)
        if type(value) is int
    }
    make = Make("probe", contract.name, "adopt")
    assert contract.forward is not None
    arguments = []
    for parameter in contract.forward.parameters:
        if parameter.optional or parameter.spec is None:
            break
        shape = [
            sizes.setdefault(dimension.label, 3)
            for dimension in parameter.spec.dimensions
            if not dimension.variadic
        ]
        arguments.append(make.normal_like(torch.empty(shape)))
    return arguments


def _agrees(result: Any, expected: Any) -> bool:
    return (
        isinstance(result, Tensor)
        and isinstance(expected, Tensor)
        and result.shape == expected.shape
        and result.dtype == expected.dtype
        and torch.allclose(result, expected, rtol=1e-4, atol=1e-5)
    )
