"""Which of a student's parameters hold which weights of a reference that is made of parts.

A block has norms, an attention and a feed-forward layer; a model has layers of blocks. Each part
is found in the student's tree of modules, and matched by itself, as `matching` does it: what is
alike in every layer is matched once, and a part that is an exercise of its own as that exercise is.

Names decide where they say something. Where they do not, parts are taken in the order in which they
were made, and `adoption` tries the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, permutations, product

import msgspec

from grader.proxies import matching
from grader.proxies.groups import bare, is_floating, is_vector
from grader.proxies.layouts import BY_INPUT, PLAIN, Layout
from grader.proxies.matching import MAX_CANDIDATES, Adoption, NameAliases, Slot, Unadoptable
from grader.proxies.matching import WantedRoles as Wanted
from grader.proxies.norms import Norm, norms_among
from grader.proxies.trees import Layers, branches, layers_of, size_of
from grader.wire import ParameterInfo

LAYER = re.compile(r"(?P<list>.+)\.(?P<number>\d+)\.(?P<role>.+)")
WHOLE = (*PLAIN, *BY_INPUT)  # layouts in which what is stacked has the rows of one, then another
MAX_ORDERS = 24  # in which parts without a name are tried

Roles = tuple[tuple[str, tuple[int, ...]], ...]


@lru_cache(maxsize=256)  # students who took the stub's names have the same
def candidates(wanted: Wanted, aliases: NameAliases) -> tuple[Adoption, ...]:
    """Every way to match them, likeliest first; raises `Unadoptable` if there is none."""
    if any(LAYER.fullmatch(role) for role, _ in wanted.roles):
        found = _in_layers(wanted, aliases)
    else:
        parts = _Parts.of(wanted.roles)
        if parts.is_one:
            return matching.candidates(wanted, aliases)
        found = _in_parts(parts, wanted, aliases)
    return _likeliest(found)


def _likeliest(found: Iterator[Adoption]) -> tuple[Adoption, ...]:
    """One that leaves nothing over is likelier than one that does, where a probe takes both."""
    some = list(islice(found, MAX_CANDIDATES))
    return tuple(sorted(some, key=lambda one: len(one.missing) + len(one.extra)))


# --- layers --------------------------------------------------------------------------------------


def _in_layers(wanted: Wanted, aliases: NameAliases) -> Iterator[Adoption]:
    """A list of blocks, each matched as the first is; and what stands around it."""
    outer: list[tuple[str, tuple[int, ...]]] = []
    blocks: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for role, shape in wanted.roles:
        if place := LAYER.fullmatch(role):
            blocks.setdefault(f"{place['list']}.{place['number']}", []).append(
                (place["role"], shape)
            )
        else:
            outer.append((role, shape))
    inner = tuple(next(iter(blocks.values())))
    layers = layers_of(wanted.parameters, len(blocks), _numbers(inner))
    if layers is None:
        raise Unadoptable(
            f"{len(blocks)} layers are asked for, and the module has no {len(blocks)} parts that "
            "are alike and hold the weights of one layer each: are they in an nn.ModuleList, and "
            "is every layer in them as wide as the statement says?"
        )
    around = candidates(
        Wanted(tuple(outer), _as_tables(layers.around, tuple(outer)), wanted.counts), aliases
    )
    within = candidates(Wanted(inner, layers.first, wanted.counts), aliases)
    if layers.is_stacked:  # by other views, a layer's rows do not stand together
        within = tuple(one for one in within if all(how in WHOLE for _, how in one.layouts))
    shapes = dict(outer)
    # What stands around is quickly tried, but not to the cost of all ways to match a block.
    few = MAX_CANDIDATES // (2 * max(1, len(around)))
    deeper = ((other, one) for one, other in product(around, within[few:]))
    for other, one in chain(product(within[:few], around), deeper):
        yield _copied(_joined(one, *_lifted(other, layers, list(blocks))), wanted, shapes)


def _as_tables(infos: Sequence[ParameterInfo], roles: Roles) -> tuple[ParameterInfo, ...]:
    """A layer whose weight is a table as well, as one: its rows are looked up, not multiplied.

    Where the output shares its table, either of the two may have been made first.
    """
    tables = {shape[::-1] for _, shape in roles if len(shape) == 2}
    return tuple(
        msgspec.structs.replace(info, owner="") if tuple(info.shape) in tables else info
        for info in infos
    )


def _lifted(found: Adoption, layers: Layers, names: Sequence[str]) -> Iterator[Adoption]:
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


def _copied(found: Adoption, wanted: Wanted, shapes: Mapping[str, tuple[int, ...]]) -> Adoption:
    """The same, where a matrix that is left over has the size of a table: it gets its weights too.

    So a model whose output has a table of its own computes what one with a single table does.
    """
    infos = {info.path: info for info in wanted.parameters}
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
    if not is_floating(info) or len(info.shape) != 2:
        return None
    likely = sorted(PLAIN, key=lambda layout: layout != like)  # of a square, both would do
    return next((layout for layout in likely if layout.size(info.shape) == shape), None)


# --- parts ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """The roles of a block: its norms, and what holds matrices, by the name of the part."""

    norms: tuple[Norm, ...]  # of roles
    others: tuple[tuple[str, Roles], ...]  # roles without the part's name

    @classmethod
    def of(cls, roles: Roles) -> _Parts:
        """The parts that a reference's roles stand in."""
        shapes = dict(roles)
        norms: list[Norm] = []
        others: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
        for role, shape in roles:
            weight = role.removesuffix(".bias")
            if not is_vector(shapes.get(weight, ())):
                part, _, own = weight.rpartition(".")
                others.setdefault(part, []).append((own + role[len(weight) :], shape))
            elif role == weight:
                shift = f"{role}.bias" if f"{role}.bias" in shapes else None
                norms.append(Norm(role, role, shift, shape))
        return cls(tuple(norms), tuple((part, tuple(held)) for part, held in others.items()))

    @property
    def is_one(self) -> bool:
        """Whether there is nothing but matrices in one part."""
        return not self.norms and len(self.others) == 1 and self.others[0][0] == ""


def _in_parts(parts: _Parts, wanted: Wanted, aliases: NameAliases) -> Iterator[Adoption]:
    """Norms, and each other part; what names leave open is varied."""
    norms, rest = norms_among(wanted.parameters, parts.norms)
    # Which norm is which is quickly tried: it varies last.
    others = list(islice(_of_others(parts.others, rest, wanted.counts, aliases), MAX_CANDIDATES))
    orders = list(_of_norms(parts.norms, norms, aliases))
    for one, other in product(others, orders):
        yield _joined(other, one)


def _joined(*found: Adoption) -> Adoption:
    """Matches of several parts as one."""
    return Adoption(
        tuple(chain.from_iterable(one.slots for one in found)),
        frozenset(chain.from_iterable(one.layouts for one in found)),
        tuple(chain.from_iterable(one.missing for one in found)),
        tuple(dict.fromkeys(chain.from_iterable(one.extra for one in found))),
    )


def _of_norms(
    roles: Sequence[Norm], found: Sequence[Norm], aliases: NameAliases
) -> Iterator[Adoption]:
    """Every way to give the roles of norms to the student's: as named, else in every order."""
    for order in _orders(roles, found, aliases):
        for turned in (False, True) if any(not one.is_sure for one in found) else (False,):
            yield _norms_matched(roles, order, found, turned)


def _norms_matched(
    roles: Sequence[Norm], order: Sequence[Norm | None], found: Sequence[Norm], turned: bool
) -> Adoption:
    slots: list[Slot] = []
    missing: list[str] = []
    for role, norm in zip(roles, order, strict=True):
        own = norm.turned() if norm is not None and turned and not norm.is_sure else norm
        held = (own.gain, own.shift) if own is not None else (None, None)
        for name, path in zip((role.gain, role.shift), held, strict=True):
            if name is not None and path is not None:
                start = norm.row * role.shape[0] if norm is not None else 0
                slots.append(Slot(path, name, start, start + role.shape[0], 0))
            elif name is not None:
                missing.append(name)
    taken = {slot.path for slot in slots}
    extra = [path for norm in found for path in (norm.gain, norm.shift) if path]
    return Adoption(
        tuple(slots), frozenset(), tuple(missing), tuple(p for p in extra if p not in taken)
    )


def _orders(
    roles: Sequence[Norm], found: Sequence[Norm], aliases: NameAliases
) -> Iterator[tuple[Norm | None, ...]]:
    """Which of the student's norms is which of the reference's; None where there are too few."""
    spelled = _spelled([role.name for role in roles], aliases)
    named = {_meant(norm.name, spelled): norm for norm in found}
    fixed = {name: norm for name, norm in named.items() if name}
    if len([norm for norm in found if _meant(norm.name, spelled)]) != len(fixed):
        fixed = {}  # two have names that mean the same
    left = [norm for norm in found if norm not in fixed.values()]
    open_roles = [role for role in roles if role.name not in fixed]
    fit = [[n for n in left if n.shape == role.shape] for role in open_roles]
    free = max(0, len(open_roles) - len(left))
    for some in islice(permutations([*left, *[None] * free], len(open_roles)), 120):
        if all(n is None or n in able for n, able in zip(some, fit, strict=True)):
            rest = iter(some)
            yield tuple(fixed[r.name] if r.name in fixed else next(rest) for r in roles)


def _of_others(
    parts: Sequence[tuple[str, Roles]],
    infos: tuple[ParameterInfo, ...],
    counts: tuple[int, ...],
    aliases: NameAliases,
) -> Iterator[Adoption]:
    """Every way to match the parts that hold matrices.

    A branch of the student's tree that holds the weights of a part, and no others, is that part.
    What is in no such branch is matched with the roles that are left.
    """
    roles = dict(parts)
    found: dict[str, list[tuple[str, tuple[Adoption, ...]]]] = {}  # by branch: parts that it may be
    taken: set[str] = set()
    for branch, held in branches(infos):
        if any(branch.startswith(f"{other}.") for other in found):
            continue
        able = [
            (part, ways)
            for part in roles
            if (ways := _whole(Wanted(roles[part], held, counts), aliases))
        ]
        if able:
            found[branch] = able
            taken |= {info.path for info in held}
    refused: list[Unadoptable] = []
    matched: list[
        tuple[list[str | None], list[Sequence[Adoption]]]
    ] = []  # by branch, the rest last
    # A branch may hold as many numbers as a part, and be none: then none of them counts.
    for placed in chain(_placed([part for part, _ in parts], found, aliases), [{}]):
        if not placed and matched:
            break
        over = [i for b in found if b not in placed.values() for i in infos if _is_in(i, b)]
        loose = (*(info for info in infos if info.path not in taken), *over)
        rest = [(part, held) for part, held in parts if part not in placed]
        options: list[Sequence[Adoption]] = [
            [_renamed(way, dict.fromkeys(dict(roles[part]), part)) for way in dict(found[b])[part]]
            for part, b in placed.items()
        ]
        try:
            around = list(_loose(rest, loose, counts, aliases))
        except Unadoptable as error:
            refused.append(error)
            continue
        matched.append(([*placed.values(), None], [*options, around]))
    if not matched:
        raise refused[0]
    for alike in (True, False):
        for homes, options in matched:
            forms = [_form(home, infos) for home in homes]
            yield from (_joined(*some) for some in _combined(options, forms, alike=alike))


def _form(branch: str | None, infos: Sequence[ParameterInfo]) -> object:
    """What stands below a branch: the same for two attentions of one class."""
    if branch is None:
        return None
    held = (info for info in infos if _is_in(info, branch))
    return tuple((info.path[len(branch) :], tuple(info.shape)) for info in held)


def _combined(
    ways: Sequence[Sequence[Adoption]], forms: Sequence[object], *, alike: bool
) -> Iterator[tuple[Adoption, ...]]:
    """One way for each branch: where branches are of one form, the same for all of these, or not.

    Who wrote a class once meant the same by it twice. So these are few, and come first.
    """
    if alike:
        sizes = {
            form: min(len(w) for w, f in zip(ways, forms, strict=True) if f == form)
            for form in forms
        }
        for chosen in product(*(range(size) for size in sizes.values())):
            at = dict(zip(sizes, chosen, strict=True))
            yield tuple(way[at[form]] for way, form in zip(ways, forms, strict=True))
        return
    for numbers in product(*(range(len(way)) for way in ways)):
        if len(set(zip(forms, numbers, strict=True))) > len(set(forms)):
            yield tuple(way[number] for way, number in zip(ways, numbers, strict=True))


def _is_in(info: ParameterInfo, branch: str) -> bool:
    return info.path.startswith(f"{branch}.")


def _whole(wanted: Wanted, aliases: NameAliases) -> tuple[Adoption, ...]:
    """How these parameters hold all of these weights, and no other matrix; none if they do not."""
    weights = [role for role, shape in wanted.roles if len(shape) == 2]
    layers = [info for info in wanted.parameters if len(info.shape) > 1]
    # One layer may be as large as an attention, and holds none: its output goes into another layer.
    if size_of(layers) != _numbers(wanted.roles) or len(layers) < min(len(weights), 2):
        return ()
    try:
        found = matching.candidates(wanted, aliases)
    except Unadoptable:
        return ()
    matrices = {role for role, _ in wanted.roles if not role.endswith(".bias")}
    whole = [one for one in found if matrices.isdisjoint(one.missing)]
    # Nothing is lost by leaving out ways that find no place for a bias which others place.
    least = min((len(one.missing) for one in whole), default=0)
    return tuple(one for one in whole if len(one.missing) == least)


def _numbers(roles: Roles) -> int:
    """How many numbers the matrices among these roles hold."""
    return sum(shape[0] * shape[1] for _, shape in roles if len(shape) == 2)


def _placed(
    parts: Sequence[str],
    found: Mapping[str, Sequence[tuple[str, tuple[Adoption, ...]]]],
    aliases: NameAliases,
) -> Iterator[dict[str, str]]:
    """Every way to say which branch is which part: as named, else in the order of both."""
    spelled = _spelled(parts, aliases)
    able = {branch: [part for part, _ in ways] for branch, ways in found.items()}
    named = {branch: _meant(branch, spelled) for branch in found}
    sure = Counter(part for branch, part in named.items() if part in able[branch])
    fixed = {
        part: branch
        for branch, part in named.items()
        if part and part in able[branch] and sure[part] == 1
    }
    free = [branch for branch in found if branch not in fixed.values()]
    open_parts = [part for part in parts if part not in fixed]
    seen: list[dict[str, str]] = []
    for order in islice(permutations(open_parts), MAX_ORDERS):
        left = list(free)
        way = dict(fixed)
        for part in order:
            if branch := next((b for b in left if part in able[b]), None):
                way[part] = branch
                left.remove(branch)
        way = {part: way[part] for part in parts if part in way}
        if way not in seen:
            seen.append(way)
            yield way


def _loose(
    parts: Sequence[tuple[str, Roles]],
    infos: tuple[ParameterInfo, ...],
    counts: tuple[int, ...],
    aliases: NameAliases,
) -> Iterator[Adoption]:
    """Match what stands in no branch of its own with the parts that have none."""
    if not parts:
        yield Adoption((), frozenset(), (), tuple(info.path for info in infos))
        return
    options = []
    for pool, held in _pools(parts, infos, aliases):
        home = {role: part for part, roles in pool for role, _ in roles}
        together = tuple(chain.from_iterable(roles for _, roles in pool))
        ways = matching.candidates(Wanted(together, held, counts), aliases)
        options.append([_renamed(way, home) for way in ways])
    for combination in product(*options):
        yield _joined(*combination)


def _pools(
    parts: Sequence[tuple[str, Roles]], infos: Sequence[ParameterInfo], aliases: NameAliases
) -> Iterator[tuple[list[tuple[str, Roles]], tuple[ParameterInfo, ...]]]:
    """Parts that can be matched together, with the parameters that may be theirs.

    Of two attentions, roles have the same names: what belongs to the second is told by a word in
    its name, as ``cross_q`` beside ``q``; or by a number, as ``q2`` beside ``q1``.
    """
    pool: list[tuple[str, Roles]] = []
    left = list(infos)
    for part, roles in parts:
        names = {role for role, _ in roles}
        if not any(role in names for _, others in pool for role, _ in others):
            pool.append((part, roles))
            continue
        spelled = _spelled([part], aliases)
        own = [i for i in left if any(_plain(w) in spelled for w in re.split(r"[._]", i.path))]
        own = own or _second_of_two(left)
        left = [info for info in left if info not in own]
        yield [(part, roles)], tuple(own)
    yield pool, tuple(left)


def _second_of_two(infos: Sequence[ParameterInfo]) -> list[ParameterInfo]:
    """Of what is alike but for a number in its name, the second half."""
    alike: dict[object, list[ParameterInfo]] = {}
    for info in infos:
        alike.setdefault((bare(info.path), tuple(info.shape)), []).append(info)
    halves = (held[len(held) // 2 :] for held in alike.values() if len(held) % 2 == 0)
    return list(chain.from_iterable(halves))


def _renamed(found: Adoption, home: Mapping[str, str]) -> Adoption:
    """A match of a part's roles, under the names that they have in the whole."""

    def named(role: str) -> str:
        return f"{home[role]}.{role}".lstrip(".")

    return replace(
        found,
        slots=tuple(replace(slot, role=named(slot.role)) for slot in found.slots),
        missing=tuple(named(role) for role in found.missing),
    )


# --- names ---------------------------------------------------------------------------------------


def _spelled(names: Sequence[str], aliases: NameAliases) -> dict[str, str]:
    """Each spelling of these names, and the name that it means."""
    known = {_plain(name): name for name in names if name}
    for name, spellings in aliases:
        if name in names:
            known |= {_plain(spelling): name for spelling in spellings}
    return known


def _meant(path: str, spelled: Mapping[str, str]) -> str | None:
    """The name that a path means, its last step first."""
    steps = reversed(path.split("."))
    return next((spelled[_plain(step)] for step in steps if _plain(step) in spelled), None)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")
