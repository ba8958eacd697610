"""Finds inputs that a reference takes: kinds of numbers, sizes, and other values."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from grader.author.scaffold.edges import with_infinity
from grader.author.scaffold.kinds import Integers, Kind, kinds_for, scalars_for, unknown_scalars
from grader.author.scaffold.source import defaults_of, methods
from grader.author.scaffold.trial import (
    Case,
    Key,
    NoNumbers,
    Refused,
    Trial,
    expressions,
    names_in,
    names_of_sizes,
    same,
    specs_drawn,
    tensors_in,
)
from grader.course.contract import Contract, ContractBroken, ContractError
from grader.course.tensors import Make
from grader.course.tolerances import UNMOVED
from grader.records.faults import CallError

MOST_TRIES = 150  # of sizes
MOST_KINDS = 60  # combinations of kinds
CASES = 4  # of sizes: three for values, one for other tests
MOST_ELEMENTS = 10  # that an int may count
MOST_VALUES = 3  # of a parameter that is no tensor


def find_inputs(
    name: str, definition: Any, contract: Contract, given: Mapping[str, Mapping[str, Any]]
) -> Trial:
    """Find inputs that a reference takes; `given` are the values of the author's example.

    Raises `CallError`, with the reference's own error, if there are none.
    """
    bare = Trial(name, definition, contract, {}, _domains(definition, contract, given))
    sizes = names_of_sizes(contract)
    choices: list[list[tuple[Kind, ...]]] = []
    keys = [(key, parameter) for key, parameter in bare.parameters if specs_drawn(parameter)]
    for (function, one), parameter in keys:
        values = [*tensors_in(given.get(function, {}).get(one))]
        of_each = [
            kinds_for(spec, part, [label for label in sizes if label not in names_in(spec)])
            for spec, part in itertools.zip_longest(specs_drawn(parameter), values)
        ]
        choices.append(list(itertools.product(*of_each)))
    own = _own_sizes(bare, given)
    last = "no input was tried"
    found: tuple[int, Trial] | None = None  # the doubts about the best inputs so far
    for kinds in itertools.islice(itertools.product(*choices), MOST_KINDS):
        trial = replace(bare, kinds={key: some for (key, _), some in zip(keys, kinds, strict=True)})
        try:
            trial = replace(trial, cases=_cases(trial, own))
        except Refused as refused:
            last = str(refused)
            continue
        doubt = sum(_doubt(trial, key, given, own) for key, _ in keys) + _is_constant(trial)
        if found is None or doubt < found[0]:
            found = doubt, trial
        if not doubt:
            break
    if found is not None:
        trial = found[1]
        if _is_constant(trial) and not _is_constant(edged := with_infinity(trial)):
            trial = edged
        trial = replace(trial, evaluates=_varies(trial))
        return replace(trial, domains=_narrowed(trial))
    raise CallError(
        f"{name} takes none of the inputs that were tried, and raises: {last[:300]}; show one that "
        f'it takes with --example "{name}(…)"'
    )


def _domains(
    definition: Any, contract: Contract, given: Mapping[str, Mapping[str, Any]]
) -> dict[Key, Sequence[Any]]:
    bare = Trial(contract.name, definition, contract, {}, {})
    functions = dict(methods(definition))
    found: dict[Key, Sequence[Any]] = {}
    for (function, name), parameter in bare.parameters:
        dataclass = parameter.kind == "dataclass"
        if (specs_drawn(parameter) and not dataclass) or bare.is_size(parameter):
            continue
        defaults = defaults_of(functions[function])
        if name in given.get(function, {}):
            found[function, name] = scalars_for(given[function][name])
        elif name in defaults:
            found[function, name] = scalars_for(defaults[name])
        else:
            annotation = functions[function].__annotations__.get(name)
            kinds = {"int": int, "float": float, "bool": bool}
            found[function, name] = unknown_scalars(kinds.get(str(annotation), annotation))
            if not found[function, name]:
                raise CallError(
                    f"{contract.name}: no value for {name} is known: show one with "
                    f'--example "{contract.name}(…)"'
                )
    return found


def _own_sizes(trial: Trial, given: Mapping[str, Mapping[str, Any]]) -> Mapping[str, int] | None:
    """The sizes of the author's example; None without an example."""
    sizes: dict[str, int] = {}
    for (function, name), parameter in trial.parameters:
        value = given.get(function, {}).get(name)
        if type(value) is int:
            sizes[name] = value
        for spec, tensor in zip(specs_drawn(parameter), tensors_in(value), strict=False):
            sizes |= dict(zip(expressions(spec), tensor.shape, strict=False))
    return sizes if {*names_of_sizes(trial.contract)} <= {*sizes} else None


def _cases(trial: Trial, own: Mapping[str, int] | None) -> list[Case]:
    """Sizes that the reference takes, pairwise distinct as far as possible."""
    names = names_of_sizes(trial.contract)
    found: list[Case] = []
    last: str | None = None
    least = _least(trial)
    for sizes in _sizes(names, own, least):
        case = Case(sizes)
        try:
            arguments = trial.arguments(case, Make("trial", trial.name, str(case)))
            trial.check(arguments, trial.call(arguments))
        except NoNumbers:
            raise  # a lucky draw is no proof that the reference takes such numbers
        except (Refused, ContractBroken, ContractError) as refused:
            last = last or str(refused)
            continue
        if case not in found:
            found.append(case)
        if len(found) == CASES or not names:
            break
    if not found:
        raise Refused(last or "nothing was tried")
    return found


def _least(trial: Trial) -> int:
    """The least size to try: larger than each int that could count elements, such as a `k`."""
    ints = [values[0] for values in trial.domains.values() if type(values[0]) is int]
    return max([2, *(value + 1 for value in ints if value < MOST_ELEMENTS)])


def _sizes(
    names: Sequence[str], own: Mapping[str, int] | None, least: int
) -> Iterator[dict[str, int]]:
    chance = random.Random(0)
    most = least + max(6, 2 * len(names))
    for _ in range(MOST_TRIES):
        yield dict(zip(names, chance.sample(range(least, most), len(names)), strict=True))
    for _ in range(MOST_TRIES):  # sizes that divide one another, such as heads and features
        yield {name: chance.choice((1, 2, 3, 4, 6, 8, 12)) for name in names}
    if own is not None:
        yield {name: own[name] for name in names}


def _doubt(
    trial: Trial,
    key: Key,
    given: Mapping[str, Mapping[str, Any]],
    own: Mapping[str, int] | None,
) -> int:
    """The doubt about the end of a range of integers: none if the reference raises beyond it.

    A size is more likely the end than a constant if the author's example stays below the size. The
    reference may tolerate what right answers refuse, such as an id that is no class.
    """
    doubt = 0
    for kind in trial.kinds[key]:
        if not isinstance(kind, Integers) or len(trial.kinds[key]) > 1:
            continue
        if not isinstance(kind.high, str):
            doubt += 2
        elif not _raises_beyond(trial, key, kind.high):
            values = [*tensors_in(given.get(key[0], {}).get(key[1]))]
            below = own is not None and bool(values) and int(values[0].max()) < own[kind.high]
            doubt += 1 if below else 3
    return doubt


def _is_constant(trial: Trial) -> bool:
    """Whether all numbers of all results are equal, so that tests would not tell much."""
    results = [one for case in trial.cases for one in tensors_in(trial.run(case))]
    return len({number for one in results for number in one.flatten().tolist()}) == 1


def _raises_beyond(trial: Trial, key: Key, size: str) -> bool:
    """Whether the reference takes the last integer below a size, and raises for the size."""
    case = trial.cases[0]
    for integer, raises in ((case.sizes[size] - 1, False), (case.sizes[size], True)):
        arguments = trial.arguments(case, Make("trial", trial.name, "bound"))
        filled = np.full_like if isinstance(arguments[key], np.ndarray) else torch.full_like
        arguments[key] = filled(arguments[key], integer)
        try:
            trial.call(arguments)
        except Refused:
            if not raises:
                return False
        else:
            if raises:
                return False
    return True


def _varies(trial: Trial) -> bool:
    """Whether a module gives other results when it is called again, as dropout does."""
    if not trial.is_module:
        return False
    arguments = trial.arguments(trial.cases[0], Make("trial", trial.name, "again"))
    first = trial.call(arguments)
    with suppress(Refused):
        still = replace(trial, evaluates=True)
        once, again = still.call(arguments), still.call(arguments)
        return not same(first, once, UNMOVED) and same(once, again, UNMOVED)
    return False


def _counts_too_many(value: Any, trial: Trial) -> bool:
    """Whether an int is larger than a size, so that right answers may refuse it."""
    sizes = [size for case in trial.cases for size in case.sizes.values()]
    return type(value) is int and 0 <= value < MOST_ELEMENTS and value > min(sizes, default=value)


def _narrowed(trial: Trial) -> dict[Key, Sequence[Any]]:
    """The values of each domain that the reference takes, in all sizes."""
    found: dict[Key, Sequence[Any]] = {}
    for key, values in trial.domains.items():
        taken = [
            value
            for value in values
            if not _counts_too_many(value, trial)
            and all(trial.takes(replace(case, values={key: value})) for case in trial.cases)
        ]
        found[key] = taken[:MOST_VALUES] or values[:1]
    return found
