"""Matches a student's parameters with the weights of a single part, by names, then by shapes.

Right answers differ: 145 people wrote the same classes with different names, layouts and fused
projections. A parameter is matched by its name or a declared alias, and by its shape only if names
do not help. Values do not matter here; `adoption` tries each match on an input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice, permutations, product

from grader.proxies.groups import Group, grouped, name_in_dict
from grader.proxies.layouts import BY_INPUT, CUT, FLAT, LINEAR, PLAIN, SPREAD, Layout
from grader.proxies.names import NameAliases, core, plain
from grader.proxies.slots import MAX_CANDIDATES, Adoption, Slot, Unadoptable, WantedRoles, likeliest

MAX_FREE = 8  # most weights without a known name; right answers have fewer
FEW = 4  # most roles for which all orders are tried, even if names say otherwise


@lru_cache(maxsize=256)  # students who keep the stub's names share a cache entry
def candidates(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    """All ways to match the roles with parameters; raises `Unadoptable` if there are none.

    The likeliest come first.
    """
    plans = [
        _Plan(wanted, aliases, grouped(wanted.parameters, by_last=by_last, by_shape=by_shape))
        for by_shape, by_last in product((False, True), repeat=2)
    ]
    found = plans[0].by_name() or _by_shape(plans[:2]) or _by_shape(plans[2:])
    if not found:
        raise Unadoptable(plans[0].nothing_fits())
    return likeliest(found)


def _by_shape(plans: Iterable[_Plan]) -> list[Adoption]:
    return list(islice(chain.from_iterable(plan.by_shape() for plan in plans), MAX_CANDIDATES))


@dataclass(frozen=True)
class _Choice:
    """The roles that a group of weights holds, in order, and how often they alternate."""

    roles: tuple[str, ...]
    turns: int = 1  # 2 for q k v q k v, as in a projection that is split by two heads


def _orders(named: Mapping[Group, tuple[str, ...]]) -> Iterator[dict[Group, tuple[str, ...]]]:
    """Put the roles of each fused group in every order, since its name leaves the order open."""
    orders = product(*(list(permutations(roles)) for roles in named.values()))
    return (dict(zip(named, order, strict=True)) for order in orders)


class _Plan:
    """A search for the roles that a student's groups of parameters hold."""

    def __init__(self, wanted: WantedRoles, aliases: NameAliases, groups: list[Group]) -> None:
        self.wanted = wanted
        self.shapes = dict(wanted.roles)
        self.groups = groups
        self._named: dict[Group, tuple[str, ...] | None] = {}
        self._held: dict[tuple[Group, tuple[str, ...]], bool] = {}
        self.weights = [role for role in self.shapes if not role.endswith(".bias")]
        # The roles that each spelling means; the name of a fused projection means several roles.
        self.spelled: dict[str, tuple[str, ...]] = {plain(r): (r,) for r in self.weights}
        for names, spellings in aliases:
            meant = tuple(names.split())
            if all(role in self.weights for role in meant):
                self.spelled |= {plain(spelling): meant for spelling in spellings}

    def named(self, group: Group) -> tuple[str, ...] | None:
        """The roles that a group's name means; the last meaningful step of its path decides."""
        if group not in self._named:
            self._named[group] = self._meant(group)
        return self._named[group]

    def _meant(self, group: Group) -> tuple[str, ...] | None:
        for step in reversed(group.key.split(".")):
            kept = core(step)
            meant = self.spelled.get(plain(step)) or self.spelled.get(kept)
            if meant is None and group.is_bias:  # b_q, bq, qb
                meant = self.spelled.get(kept.removeprefix("b")) or self.spelled.get(
                    kept.removesuffix("b")
                )
            if meant:
                return meant
        return None

    def by_name(self) -> list[Adoption]:
        """The matches by name, in every layout that fits; none if names do not cover all weights.

        Names are final: using a weight for another purpose than its name says is a mistake. There
        may still be several matches: the name ``qkv`` leaves the order of its roles open, and a
        square matrix may be (d_in, d_out) or (d_out, d_in).
        """
        named = {group: self.named(group) for group in self.groups if group.is_weight}
        chosen = {group: roles for group, roles in named.items() if roles}
        covered = [role for roles in chosen.values() for role in roles]
        if sorted(covered) != sorted(self.weights):
            return []
        found = list(islice(self.settled(_orders(chosen)), MAX_CANDIDATES))
        if not found:
            raise Unadoptable(self.wrong_sizes(chosen))
        return found

    def wrong_sizes(self, named: Mapping[Group, tuple[str, ...]]) -> str:
        """The message for weights with the right names but wrong sizes."""
        for group, roles in named.items():
            if len(roles) > 1 and any(self.holds(group, (role,)) for role in roles):
                return (
                    f"{group.infos[0].path} has room for one of {', '.join(roles)}: is it the same "
                    "layer several times, as in [layer] * 3?"
                )
        shapes = [f"{i.path} has shape {tuple(i.shape)}" for g in named for i in g.infos]
        return f"the weights cannot have these sizes: {'; '.join(shapes)}"

    def by_shape(self) -> Iterator[Adoption]:
        """The matches by shape, for weights that no name identifies."""
        named = {group: self.named(group) for group in self.groups if group.is_weight}
        # A short name may match by chance: a name counts only if the group can hold the weight.
        fixed = {g: roles for g, roles in named.items() if roles and self.holds(g, roles)}
        covered = [role for roles in fixed.values() for role in roles]
        if len(set(covered)) != len(covered):
            fixed, covered = {}, []
        rest = [role for role in self.weights if role not in covered]
        free = [group for group in named if group not in fixed and self.could_hold(group, rest)]
        # If no group is left for some roles, names mislead: a group with a role's name may be a
        # copy, and a table may hold several roles. Then names are ignored, except with many roles:
        # a search of all orders would take minutes for some blocks.
        if rest and not free and len(self.weights) <= FEW:
            fixed, rest = {}, self.weights
            free = [group for group in named if self.could_hold(group, rest)]
        if len(free) > MAX_FREE:
            return iter(())
        return self.settled(
            {**order, **choice}
            for order in _orders(fixed)
            for choice in _assignments(free, rest, self.holds)
        )

    def could_hold(self, group: Group, roles: Sequence[str]) -> bool:
        """Whether some of these roles would fill the group's rows exactly."""
        subsets = chain.from_iterable(combinations(roles, n + 1) for n in range(len(roles)))
        return any(self.holds(group, subset) for subset in subsets)

    def holds(self, group: Group, roles: tuple[str, ...]) -> bool:
        """Whether these roles would fill the group's rows exactly, in some layout."""
        if (group, roles) not in self._held:
            layout = next(_layouts({group: roles}, self.shapes), None)
            self._held[group, roles] = layout is not None
        return self._held[group, roles]

    def nothing_fits(self) -> str:
        """The message for a module that has no place for the weights."""
        named = {group: self.named(group) or () for group in self.groups if group.is_weight}
        homes = {role: group.infos[0].path for group, roles in named.items() for role in roles}
        lacking = [role for role in self.weights if role not in homes] or self.weights
        taken = {info.path for group, roles in named.items() if roles for info in group.infos}
        over = [
            f"{info.path} {tuple(info.shape)}"
            for info in self.wanted.parameters
            if info.path not in taken
        ]
        found = ", ".join(f"{path} is {role}" for role, path in homes.items())
        left = ", ".join(over) or ("nothing else" if found else "no floating-point parameters")
        return (
            f"no parameters were found for {', '.join(lacking)}: "
            f"{f'{found}, and ' if found else ''}the module has {left}. Make each "
            "weight an nn.Parameter or nn.Linear in __init__, and assign it to an attribute"
        )

    def settled(self, choices: Iterable[Mapping[Group, tuple[str, ...]]]) -> Iterator[Adoption]:
        """The matches of each choice, in every layout that fits and with every number of turns."""
        for choice in choices:
            for layout in _layouts(choice, self.shapes):
                for turns in product(*(self.turns(*one, layout) for one in choice.items())):
                    chosen = {
                        group: _Choice(roles, count)
                        for (group, roles), count in zip(choice.items(), turns, strict=True)
                    }
                    yield from self.settle(chosen, layout)

    def turns(self, group: Group, roles: tuple[str, ...], layout: _Layouts) -> list[int]:
        """How often the roles of a fused projection may alternate: once, per head or per row."""
        if len(roles) == 1 or layout[group].by_input:
            return [1]
        heights = {self.shapes[role][0] for role in roles}
        counts = dict.fromkeys([*self.wanted.counts, *heights])
        return [1, *(n for n in counts if all(height % n == 0 for height in heights))]

    def settle(self, choice: Mapping[Group, _Choice], layout: _Layouts) -> Iterator[Adoption]:
        """Complete a choice of roles for the weights with all ways to match the biases."""
        slots: list[Slot] = []
        left: list[Group] = []
        nameless: list[Group] = []
        modules = {group.module: chosen for group, chosen in choice.items()}
        alike = {group.stem: chosen for group, chosen in choice.items()}
        for group in self.groups:
            chosen = choice.get(group)
            if group.is_bias and chosen is None:
                weights = (
                    modules.get(group.module)
                    or alike.get(group.stem)
                    or self.weights_of(group, choice)
                )
                names = tuple(f"{role}.bias" for role in weights.roles)
                chosen = _Choice(names, weights.turns)
                nameless += [] if names else [group]
            if chosen is None or not self.fits(group, chosen, layout):
                left.append(group)
            else:
                slots += self.slots(group, chosen, layout)
        covered = {slot.role for slot in slots}
        missing = tuple(role for role in self.shapes if role not in covered)
        laid = frozenset((i.path, how) for group, how in layout.items() for i in group.infos)
        for named in self.of_nameless(nameless, missing):
            also = [self.slots(group, _Choice(roles), layout) for group, roles in named.items()]
            yield Adoption(
                (*slots, *chain.from_iterable(also)),
                laid,
                () if named else missing,
                tuple(i.path for group in left if group not in named for i in group.infos),
            )

    def of_nameless(
        self, biases: Sequence[Group], missing: tuple[str, ...]
    ) -> list[dict[Group, tuple[str, ...]]]:
        """All ways to assign biases without a helpful name to the roles that lack a bias.

        If the biases fit no roles, or if a weight is missing too, the only way assigns no bias.
        """
        if len(biases) > MAX_FREE or not all(role.endswith(".bias") for role in missing):
            return [{}]
        fit = _assignments(biases, missing, lambda group, some: self.fits(group, _Choice(some), {}))
        return list(islice(fit, MAX_CANDIDATES)) or [{}]

    def weights_of(self, bias: Group, choice: Mapping[Group, _Choice]) -> _Choice:
        """The choice of roles for the weights to which a bias belongs by its name.

        If biases are in a dict, each has the key of its weight in the dict of weights.
        """
        name = name_in_dict(bias.infos[0])
        same = (chosen for group, chosen in choice.items() if name_in_dict(group.infos[0]) == name)
        roles = self.named(bias) or ()
        alike = (chosen for chosen in choice.values() if sorted(chosen.roles) == sorted(roles))
        return next(chain(same if name else (), alike), _Choice(roles))

    def fits(self, group: Group, choice: _Choice, layout: _Layouts) -> bool:
        """Whether the roles exist and fill the group's rows exactly."""
        if not choice.roles or any(role not in self.shapes for role in choice.roles):
            return False
        how = layout.get(group, FLAT)
        rows = sum(how.size(info.shape)[0] for info in group.infos)
        return rows == sum(self.shapes[role][how.by_input] for role in choice.roles)

    def slots(self, group: Group, choice: _Choice, layout: _Layouts) -> Iterator[Slot]:
        """Stack the roles' rows, and cut them where the student's parameters end."""
        how = layout.get(group, FLAT)
        pieces = iter([(info.path, how.size(info.shape)[0]) for info in group.infos])
        path, left, start = "", 0, 0
        for turn in range(choice.turns):
            for role in choice.roles:
                share = self.shapes[role][how.by_input] // choice.turns
                at, end = turn * share, (turn + 1) * share
                while at < end:
                    if left == 0:
                        (path, left), start = next(pieces), 0
                    count = min(left, end - at)
                    yield Slot(path, role, start, start + count, at)
                    start, left, at = start + count, left - count, at + count


_Layouts = Mapping[Group, Layout]  # by group of weights; groups without an entry are biases


def _layouts(
    choice: Mapping[Group, tuple[str, ...]], shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[_Layouts]:
    """All combinations of the groups' layouts that fit, likeliest first.

    Most people store all matrices of a part in the same way.
    """
    options = [
        [how for how in _ways(group, roles) if _fills(group, how, [shapes[r] for r in roles])]
        for group, roles in choice.items()
    ]
    if not all(options):
        return
    several = [some for some in options if len(some) > 1]
    kinds = several[0] if len(several) > 1 else ()
    uniform = [
        tuple(kind if kind in some else some[0] for some in options)
        for kind in kinds
        if all(kind in some for some in several)
    ]
    others = (ways for ways in product(*options) if ways not in uniform)
    for ways in chain(uniform, others):
        yield dict(zip(choice, ways, strict=True))


def _ways(group: Group, roles: Sequence[str]) -> Iterator[Layout]:
    """The layouts that a group may have, judging by its owner and the number of its parts."""
    linear = all(info.owner == "Linear" for info in group.infos)
    several = len(group.infos) > 1
    stacked = len(group.infos[0].shape) > 2
    fused = len(roles) > 1
    yield from (LINEAR,) if linear else PLAIN
    if linear:
        yield from BY_INPUT[1:] if several and not fused else ()
        return
    if fused != (stacked or several):  # one role in parts, or several roles in one matrix
        yield from BY_INPUT
    if stacked and not fused:
        yield CUT
    if stacked:
        yield SPREAD


def _fills(group: Group, how: Layout, wanted: Sequence[tuple[int, ...]]) -> bool:
    """Whether matrices of these shapes fill a group's rows exactly, in this layout."""
    sizes = [how.size(info.shape) for info in group.infos]
    widths = {width for _, width in sizes}
    heights = sum(shape[how.by_input] for shape in wanted)
    same_width = len(widths) == 1 and {shape[not how.by_input] for shape in wanted} == widths
    return same_width and sum(rows for rows, _ in sizes) == heights


def _assignments(
    free: Sequence[Group],
    roles: Sequence[str],
    holds: Callable[[Group, tuple[str, ...]], bool],
) -> Iterator[dict[Group, tuple[str, ...]]]:
    """All ways to give all roles to groups that can hold them; a fused group gets several roles."""
    if free and roles:
        for order in permutations(roles):
            yield from _distributed(free, order, holds)
    elif not roles:
        yield {}


def _distributed(
    free: Sequence[Group],
    order: tuple[str, ...],
    holds: Callable[[Group, tuple[str, ...]], bool],
) -> Iterator[dict[Group, tuple[str, ...]]]:
    """All ways to give consecutive roles to consecutive groups.

    A way is abandoned as soon as a group cannot hold its roles. Eight weights and five roles have
    95,000 ways, of which nearly all fail at the first group.
    """
    if not order:
        yield {}
    if not order or not free:
        return
    first, *others = free
    # A single role for each group is the usual case, so it comes first.
    for size in sorted(range(len(order) + 1), key=lambda n: abs(n - 1)):
        if size and not holds(first, order[:size]):
            continue
        own = {first: order[:size]} if size else {}
        for rest in _distributed(others, order[size:], holds):
            yield own | rest
