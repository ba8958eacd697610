"""Goes through all of torch's operators: does a count, or a ban, miss what one of them does?

``make operators``. It prints a table, and exits with 1 if there is a finding:

- *too cheap*: a number of an operator's result depends on more numbers of its input than the
  operator costs (see `grader.guest.operations`). This is measured: each number of the input is
  changed, and the results are compared. The inputs are the samples of torch's own tests.
- *twin*: one call of an operator gives what an exercise forbids.
- *new*: an operator that is as cheap as a view or a sum of two numbers, and that nobody has looked
  at. With ``--write``, the list of those that somebody has looked at is written anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import signal
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grader.course.course import load_course
from grader.guest import operations
from grader.guest.trace import Record, traced
from tests.support.places import REAL

SEEN = Path(__file__).with_suffix(".json")  # the cheap operators that somebody has looked at
LARGEST = 130  # numbers in the inputs of a sample
TRIED, SAMPLES = 40, 4  # the samples of an operator that are looked at, and those that are used
TOO_LONG = 3  # seconds for one operator with all guesses


@dataclass(frozen=True)
class Finding:
    """An operator that a count or a ban misses."""

    kind: str
    operator: str
    what: str


# --- operators that are too cheap ----------------------------------------------------------------


def too_cheap(only: Callable[[int], bool] = lambda _: True) -> Iterator[Finding]:
    """Operators of torch's tests whose results depend on more numbers than they cost."""
    from torch.testing._internal.common_methods_invocations import op_db

    for number, info in enumerate(op_db):
        made_of_nothing = info.name.startswith(("empty", "new_empty"))
        if not only(number) or torch.float32 not in info.dtypes or made_of_nothing:
            continue
        with suppress(Exception):  # samples that need another device, or a library
            samples = info.sample_inputs("cpu", torch.float32)  # type: ignore[no-untyped-call]
            given = [
                ([sample.input, *sample.args], sample.kwargs)
                for sample in itertools.islice(samples, TRIED)
            ]
            fit = [one for one in given if 1 < _size(one[0]) <= LARGEST]
            for inputs, keywords in sorted(fit, key=lambda one: -_size(one[0]))[:SAMPLES]:
                found = _measured(partial(_called, info.op, keywords), inputs)
                if found and found[0] > found[1]:
                    what = f"a number depends on {found[0]} numbers, and {found[1]} are counted"
                    yield Finding("too cheap", info.name, what)
                    break


def _size(given: Any) -> int:
    return sum(t.numel() for t in operations.tensors_in(given) if t.is_floating_point())


def _called(operator: Callable[..., Any], keywords: Mapping[str, Any], *given: Any) -> Any:
    return operator(*given, **keywords)


def _measured(call: Callable[..., Any], given: list[Any]) -> tuple[int, int] | None:
    """On how many numbers a number of the result depends at most, and how many are counted."""
    inputs = [t for t in operations.tensors_in(given) if t.is_floating_point()]
    record = Record(frozenset(), lambda: None, [])
    copies = _copies(given)
    torch.manual_seed(0)
    with traced(record, observe=True):
        result = call(*copies)
    first = _numbers(result)
    depends = torch.zeros(len(first), dtype=torch.int64)
    for number, tensor in enumerate(inputs):
        for place in range(tensor.numel()):
            changed = torch.zeros(len(first), dtype=torch.bool)
            for other in (0.37, -2.9, 25.0):
                moved = _copies(given)
                inside = [t for t in operations.tensors_in(moved) if t.is_floating_point()]
                inside[number].view(-1)[place] += other
                torch.manual_seed(0)
                after = _numbers(call(*moved))
                if len(after) != len(first):
                    return None
                changed |= ~torch.isclose(after, first, rtol=1e-6, atol=1e-9, equal_nan=True)
            depends += changed
    # A product of n numbers depends on n numbers of both factors; often something is added. Several
    # operations may add the numbers that they cost, or multiply them: a maximum of sums.
    count, width = max(record.operations.count, 1), record.operations.widest
    counted = max((2 * width + 1) * count, width ** min(count, 3))
    return int(depends.max()) if len(depends) else 0, counted


def _copies(given: Any) -> Any:
    if isinstance(given, Tensor):
        return given.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(given, (list, tuple)):
        return type(given)(map(_copies, given))
    return given


def _numbers(result: Any) -> Tensor:
    """All numbers of a result, in a row."""
    parts = [t.detach().to_dense().reshape(-1) for t in operations.tensors_in(result)]
    parts = [torch.view_as_real(p).reshape(-1) if p.is_complex() else p for p in parts]
    if not parts and isinstance(result, (bool, int, float)):
        parts = [torch.tensor([float(result)])]
    return torch.cat([part.double() for part in parts]) if parts else torch.zeros(0).double()


# --- twins of what is forbidden ------------------------------------------------------------------


def _targets() -> dict[str, tuple[Sequence[Tensor], Sequence[Tensor]]]:
    """By group of forbidden functions: inputs, and results that no single call may give."""
    torch.manual_seed(1)
    x, w, b = torch.randn(3, 4) + 0.2, torch.randn(5, 4), torch.randn(5)
    weights, arrives = x.softmax(-1), torch.randn(3, 4)
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    q, k, v = (torch.randn(1, 1, 3, 4) for _ in range(3))
    attention = (q @ k.mT / 2).softmax(-1) @ v
    through = weights * (arrives - (weights * arrives).sum(-1, keepdim=True))
    return {
        "softmax": ([x], [weights, weights.log(), (-x).softmax(-1)]),
        "logsumexp": ([x], [x.logsumexp(-1), x.logcumsumexp(-1)]),
        "linear": ([x, w, b, w.mT], [x @ w.mT + b]),
        "attention": ([q, k, v], [attention]),
        "norm": (
            [x, torch.ones(4), torch.zeros(4)],
            [(x - mean) / (var + 1e-5).sqrt(), x / (x.square().mean(-1, keepdim=True)).sqrt()],
        ),
        "gelu": (
            [x],
            [torch.nn.functional.gelu(x), torch.nn.functional.gelu(x, approximate="tanh")],
        ),
        "autograd": ([weights, arrives], [through]),
    }


GUESSES: Mapping[str, Sequence[Any]] = {
    "int": (-1, 1, 4, 0), "float": (1.0, 0.0, 1e-5), "number": (1, 0), "bool": (False, True),
    "List[int]": ([-1], [4], [1], [0]), "Optional[int]": (None, -1), "SymInt": (-1, 1, 4),
    "Optional[float]": (None,), "Optional[bool]": (None,), "Optional[List[int]]": (None, [-1]),
    "Optional[number]": (None,), "str": ("none", "mean", "sum"),
}  # fmt: skip
MOST_GUESSES = 400
# A product with a bias added is welcome in an answer that must not call a linear layer.
WELCOME = {"linear": {"addmm", "addbmm", "baddbmm", "sparse_addmm"}}


def twins(
    names: Iterable[str] | None = None, banned: Mapping[str, Collection[str]] | None = None
) -> Iterator[Finding]:
    """Operators that give in one call what an exercise forbids, with guessed arguments.

    Without `banned`, the functions that the course forbids, by group, are no findings.
    """
    every = sorted(names or _operators())
    if banned is None:
        groups = load_course(REAL).file.operations
        banned = {name: {*g.functions, *WELCOME.get(name, ())} for name, g in groups.items()}
    for group, (inputs, results) in _targets().items():
        known = banned.get(group, ())
        left = [name for name in every if operations.plain_name(_overload(name)) not in known]
        for name in _surviving(left, partial(_gives, inputs=inputs, wanted=results)):
            yield Finding("twin", name, f"gives what {group} gives")


def _operators() -> list[str]:
    """The full names of torch's operators, such as ``aten::mm`` or ``aten::sum.dim_IntList``."""
    every = torch._C._dispatch_get_all_op_names()
    return [n for n in every if n.startswith("aten::") and _overload(n) is not None]


def _overload(full: str) -> Any:
    name, _, overload = full.partition("::")[2].partition(".")
    try:
        return getattr(getattr(torch.ops.aten, name), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def _surviving(names: Sequence[str], test: Callable[[str], bool]) -> Iterator[str]:
    """The names for which a test is true; it runs in forks, since operators may end the process."""
    begin = 0
    while begin < len(names):
        reads, writes = os.pipe()
        if (pid := os.fork()) == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some operators print
            with os.fdopen(writes, "w") as out, warnings.catch_warnings(action="ignore"):
                for name in names[begin:]:
                    signal.alarm(TOO_LONG)  # ends the fork, as a crash does
                    out.write("1" if test(name) else "0")
                    out.flush()
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as answers:
            told = answers.read()
        os.waitpid(pid, 0)
        yield from (
            name for name, is_true in zip(names[begin:], told, strict=False) if is_true == "1"
        )
        begin += len(told) + 1  # the next one ended the process


def _gives(full: str, inputs: Sequence[Tensor], wanted: Sequence[Tensor]) -> bool:
    operator = _overload(full)
    if torch.Tag.out in operator.tags:
        return False
    choices: list[list[Any]] = []
    for argument in operator._schema.arguments:
        kind = str(argument.type)
        if kind == "Tensor":
            choices.append([*inputs])
        elif argument.has_default_value():
            break
        elif kind == "Optional[Tensor]":
            choices.append([None, *inputs])
        elif kind == "List[Tensor]":
            choices.append([[*inputs]])
        elif kind in GUESSES:
            choices.append([*GUESSES[kind]])
        else:
            return False
    if not choices or math.prod(map(len, choices)) > MOST_GUESSES**2:
        return False
    for guess in itertools.islice(itertools.product(*choices), MOST_GUESSES):
        with suppress(Exception):
            for result in operations.tensors_in(operator(*_copies(list(guess)))):
                for one in wanted:
                    if result.numel() == one.numel() and torch.allclose(
                        result.reshape(one.shape).to(one.dtype), one, rtol=1e-4, atol=1e-6
                    ):
                        return True
    return False


# --- operators that nobody has looked at ---------------------------------------------------------


def cheap() -> list[str]:
    """The plain names of all operators that cost one number for each number of their result."""
    names = set()
    for full in _operators():
        operator = _overload(full)
        name = operations.plain_name(operator)
        listed = name in operations.MOVING | operations.PUTTING | operations.EMPTY
        if listed or operations._is_view(operator) or operations._is_pointwise(operator):
            names.add(name)
    return sorted(names)


def unseen() -> Iterator[Finding]:
    """Cheap operators that nobody has looked at."""
    for name in sorted({*cheap()} - {*json.loads(SEEN.read_text())}):
        yield Finding("new", name, "is as cheap as a view: is it? then --write")


def main() -> int:
    """Print the findings; return 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.operators", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the list of cheap operators")
    if parser.parse_args().write:
        SEEN.write_text(json.dumps(cheap(), indent=0) + "\n")
    torch.set_num_threads(1)  # threads do not survive a fork
    findings = []
    with warnings.catch_warnings(action="ignore"):
        for finding in itertools.chain(unseen(), too_cheap(), twins()):
            findings.append(finding)
            print(f"{finding.kind:10}  {finding.operator:45}  {finding.what}", flush=True)
    print(f"torch {torch.__version__}: {len(_operators())} operators, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
