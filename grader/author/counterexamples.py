"""Finds a small input on which an answer and the reference give different results.

The search starts from the calls that an exercise's hidden tests make. It cuts their tensors to
small sizes, and also fills them with small numbers. Inputs that the reference refuses do not count.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor, nn

from grader.author.trials import Late, no_longer_than
from grader.course.contract import (
    Binding,
    Contract,
    ContractError,
    Parameter,
    bind,
    expected_shape,
)
from grader.course.references import draw_weights
from grader.course.tensors import Make
from grader.course.tolerances import REORDERED
from grader.grading.desk import Desk
from grader.grading.play import replay
from grader.records.rows import counted
from grader.testing.values import assert_agrees
from grader.unsandboxed.in_process import undisturbed, unseen_prints
from grader.wire.payload import tensors_of

INPUTS = 200  # inputs that are tried
ALIKE, SCALES = 2, (3, 200)  # inputs of one form, each with numbers of these sizes
SECONDS = 3.0  # CPU time of a search
MOST_CALLS = 12  # calls of tests from which the search starts, the smallest first
SIZES = (1, 2, 3)  # sizes to which dimensions are cut
MOST_NUMBERS = 24  # a larger tensor is shown by its shape
OTHER = "no hidden test has such an input"
OWN = "a hidden test has such an input, but does not look at the difference"


@dataclass(frozen=True)
class Call:
    """A call of an exercise: the arguments, and those of the constructor of a module."""

    arguments: tuple[Any, ...]
    made_with: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Shown:
    """The outcome of a search, as a sentence."""

    found: bool
    text: str


class Search:
    """Searches for inputs on which answers to one exercise differ from the reference."""

    def __init__(self, desk: Desk, exercise: str) -> None:
        self._make = desk.make(exercise, "counterexamples", "")
        self._contract = desk.oracle.contracts[exercise]
        self._reference = desk.definitions[exercise]
        self._calls = _calls_of(desk, exercise)

    def difference(self, answer: Any, *, passes: bool) -> Shown:
        """The smallest input found on which an answer differs.

        `passes` says whether the answer passes all hidden tests.
        """
        tried = 0
        with no_longer_than(SECONDS), undisturbed(), unseen_prints():
            try:
                for call, own in islice(self._inputs(), 2 * INPUTS):
                    expected = _result(self._reference, call, self._make)
                    if isinstance(expected, Exception) or not _is_finite(expected.value):
                        continue
                    tried += 1
                    got = _result(answer, call, self._make, expected.weights)
                    if isinstance(got, OtherWeights):
                        return Shown(False, f"no input was tried: {got}")
                    if said := _difference(expected, got):
                        where = f"; {OWN if own else OTHER}" if passes else ""
                        return Shown(True, f"on {self._shown(call)} {said}{where}")
                    if tried == INPUTS:
                        break
            except Late:
                pass
        if not tried:
            return Shown(False, "no small input was found for which the reference gives numbers")
        inputs = counted(tried, "input")
        return Shown(False, f"no difference from the reference was found in {inputs}")

    def _inputs(self) -> Iterator[tuple[Call, bool]]:
        """Small calls, and whether a test makes the call; the smallest come first."""
        cut = [(small, call) for call in self._calls for small in _cut(self._contract, call)]
        times: Counter[str] = Counter()
        for small, call in sorted(cut, key=lambda pair: _elements(pair[0])):
            times[_form(small)] += 1
            if times[_form(small)] <= ALIKE:
                for scale in SCALES:
                    yield _filled(small, self._make, scale), False
                yield small, _form(small) == _form(call)

    def _shown(self, call: Call) -> str:
        """The arguments as text: ``x = [[1.0, 2.0]]``."""
        signature = self._contract.called
        made = _named(self._contract.call.parameters, call.made_with)
        return ", ".join([*made, *_named(signature.parameters, call.arguments)])


def _named(parameters: Sequence[Parameter], values: Sequence[Any]) -> list[str]:
    return [f"{p.name} = {_text(v)}" for p, v in zip(parameters, values, strict=False)]


def _text(value: Any) -> str:
    """A value as text; numbers have four digits, and a large tensor is given by its shape."""
    match value:
        case Tensor():
            kind = "" if value.dtype == torch.float32 else f" ({_dtype(value)})"
            if value.numel() > MOST_NUMBERS:
                return f"a tensor of shape {tuple(value.shape)}{kind}"
            return f"{_rounded(value.tolist())}{kind}"
        case tuple() | list():
            return f"({', '.join(map(_text, value))})"
    return repr(value)


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


# --- the calls of the tests ----------------------------------------------------------------------


def _calls_of(desk: Desk, exercise: str) -> list[Call]:
    """The calls that the hidden tests make to an exercise: one for each form, small ones first."""
    found: dict[str, Call] = {}

    def keep(call: Call) -> None:
        if all(tensor.device.type == "cpu" for tensor in tensors_of(call.arguments)):
            found.setdefault(_form(call), call)  # a meta tensor has no values

    unmeasured = replace(desk, margins=None)  # the audit measures known answers alone
    definitions = {**desk.definitions, exercise: _overheard(desk.definitions[exercise], keep)}
    for test in desk.tests[exercise]:
        for case in test.cases if test.hidden else ():
            replay(unmeasured, definitions, test, case)
    return sorted(found.values(), key=_elements)[:MOST_CALLS]


def _overheard(reference: Any, keep: Any) -> Any:
    """The reference; `keep` gets each of its calls."""
    if not isinstance(reference, type):

        def function(*arguments: Any) -> Any:
            keep(Call(_detached(arguments)))
            return reference(*arguments)

        return function

    class Overheard(reference):  # type: ignore[misc]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._made_with = arguments

        def forward(self, *arguments: Any) -> Any:
            keep(Call(_detached(arguments), self._made_with))
            return super().forward(*arguments)

    return Overheard


def _mapped(change: Callable[[Tensor], Tensor], value: Any) -> Any:
    """A value with other tensors, also in tuples and lists."""
    if isinstance(value, Tensor):
        return change(value)
    nested = type(value) in (tuple, list)
    return type(value)(_mapped(change, part) for part in value) if nested else value


def _detached(arguments: Any) -> Any:
    """A copy of arguments, without a graph of gradients."""
    return _mapped(lambda tensor: tensor.detach().clone(), arguments)


def _form(call: Call) -> str:
    """The shapes and dtypes of a call's tensors, and its other arguments."""

    def form(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"{tuple(value.shape)} {value.dtype}"
        return str([*map(form, value)]) if isinstance(value, tuple | list) else repr(value)

    return form([call.made_with, call.arguments])


def _elements(call: Call) -> int:
    whole = [n for n in (*call.made_with, *call.arguments) if type(n) is int]
    return sum(t.numel() for t in tensors_of(call.arguments)) + sum(map(abs, whole))


# --- smaller calls -------------------------------------------------------------------------------


def _cut(contract: Contract, call: Call) -> Iterator[Call]:
    """A call with its named dimensions cut to all combinations of small sizes, and as it is."""
    yield call
    try:
        known = bind(contract, call.arguments, call.made_with)
    except ContractError:  # a test passes a wrong argument on purpose
        return
    free = {name: sorted({*SIZES, n}) for name, n in known.sizes.items() if name.isidentifier()}
    for sizes in islice(product(*free.values()), 4**4):
        chosen = {**known.sizes, **dict(zip(free, sizes, strict=True))}
        leading = tuple(min(size, 2) for size in known.leading)
        binding = replace(known, sizes=chosen, leading=leading)
        small = _resized(contract, call, binding)
        if small is not None:
            yield small


def _resized(contract: Contract, call: Call, binding: Binding) -> Call | None:
    """The call with other sizes; None if a tensor would have to grow."""
    signature = contract.called
    made = [
        _of_size(p, v, binding)
        for p, v in zip(contract.call.parameters, call.made_with, strict=False)
    ]
    arguments = [
        _of_size(p, v, binding) for p, v in zip(signature.parameters, call.arguments, strict=False)
    ]
    if any(value is _TOO_SMALL for value in (*made, *arguments)):
        return None
    return Call(tuple(arguments), tuple(made))


_TOO_SMALL = object()


def _of_size(parameter: Parameter, value: Any, binding: Binding) -> Any:
    if parameter.kind == "int" and type(value) is int:
        return binding.sizes[parameter.name]
    dimensions = parameter.specs[0].dimensions if parameter.kind == "tensor" else None
    if dimensions is not None and isinstance(value, Tensor):
        try:
            _, shape = expected_shape(dimensions, binding)
        except ContractError:
            return _TOO_SMALL
        if len(shape) != value.dim() or any(a > b for a, b in zip(shape, value.shape, strict=True)):
            return _TOO_SMALL
        return value[tuple(slice(size) for size in shape)].clone()
    return value


def _filled(call: Call, make: Make, scale: int) -> Call:
    """The call with small whole numbers in tensors of floats; other tensors keep their values."""

    def fill(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        low = 0 if bool((tensor >= 0).all()) else -scale
        drawn = make.integers(low, scale + 1, elements=tensor.numel())
        return drawn.view(tensor.shape).to(tensor.dtype)

    return replace(call, arguments=_mapped(fill, call.arguments))


# --- comparing -----------------------------------------------------------------------------------


class OtherWeights(Exception):
    """Raised for a module whose weights cannot be those of the reference."""


@dataclass(frozen=True)
class Result:
    """A call's result, the gradients of its tensors, and the arguments after the call."""

    value: Any
    gradients: tuple[Tensor | None, ...]
    after: tuple[Any, ...]
    weights: Mapping[str, Any]


def _result(
    definition: Any, call: Call, make: Make, weights: Mapping[str, Any] | None = None
) -> Result | Exception:
    """The result of a call; a module gets drawn weights, or the given weights."""
    try:
        torch.manual_seed(0)
        made, weights = _made(definition, call, make, weights)
        plain = copy.deepcopy(call.arguments)
        value = made(*plain)
        torch.manual_seed(0)
        return Result(value, _gradients(made, call.arguments), plain, weights)
    except Exception as error:
        return error


def _made(
    definition: Any, call: Call, make: Make, weights: Mapping[str, Any] | None
) -> tuple[Any, Mapping[str, Any]]:
    if not isinstance(definition, type):
        return definition, {}
    module = definition(*call.made_with)
    assert isinstance(module, nn.Module)
    if weights is None:
        draw_weights(module, make, "counterexamples")
    elif weights.keys() == module.state_dict().keys():
        module.load_state_dict(dict(weights))
    else:
        raise OtherWeights(
            f"its weights are {[*module.state_dict()]}, those of the reference {[*weights]}"
        )
    return module.eval(), {name: t.clone() for name, t in module.state_dict().items()}


def _gradients(made: Any, arguments: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
    leaves = copy.deepcopy(arguments)
    floats = [tensor for tensor in tensors_of(leaves) if tensor.is_floating_point()]
    for tensor in floats:
        tensor.requires_grad_()
    # The call gets copies, since torch refuses to change a leaf of the graph in place.
    results = [t for t in tensors_of(made(*_mapped(Tensor.clone, leaves))) if t.requires_grad]
    if not results or not floats:
        return ()
    total = sum((t * torch.arange(1, t.numel() + 1).view(t.shape)).sum() for t in results)
    assert isinstance(total, Tensor)
    return torch.autograd.grad(total, floats, allow_unused=True)


def _is_finite(value: Any) -> bool:
    return all(bool(t.isfinite().all()) for t in tensors_of(value) if t.is_floating_point())


def _difference(ours: Result, theirs: Result | Exception) -> str:
    """How an answer differs from the reference; empty if it does not."""
    if isinstance(theirs, Exception):
        return f"this raises {type(theirs).__name__}: {theirs}"
    if not _agree(theirs.value, ours.value):
        return f"the reference gives {_text(ours.value)}, this gives {_text(theirs.value)}"
    if not all(map(_same_argument, tensors_of(theirs.after), tensors_of(ours.after))):
        return "this changes its arguments"
    for mine, other in zip(ours.gradients, theirs.gradients, strict=False):
        # Where the reference has no slope, as √x at 0, its NaN is no result to agree with.
        if _is_finite(mine) and not _agree(other, mine):
            return f"the reference has the gradient {_text(mine)}, this has {_text(other)}"
    return "this has no gradient" if len(ours.gradients) > len(theirs.gradients) else ""


def _same_argument(theirs: Tensor, ours: Tensor) -> bool:
    """Whether an argument is the same after two calls; its NaN, too."""
    return theirs.shape == ours.shape and REORDERED.holds(theirs.double(), ours.double())


def _agree(theirs: Any, ours: Any) -> bool:
    try:
        assert_agrees(theirs, ours, within=REORDERED)
    except AssertionError:
        return False
    return True
