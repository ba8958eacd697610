"""Asks other judges about adapted answers; runs in the judges' own environment.

It reads one job as JSON, and prints a line of JSON for each answer. Each answer runs in a process
of its own, because it may change torch, print, or never end. `judges` has the rules.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tests.benchmarks.adapters import JUDGE, TASKS, Task
from tests.benchmarks.adapters.weights import MADE, PROJECTIONS, Entries, OtherWeights

INPUTS = 50  # seeded, of a judge's own domain
TOLERANCE = 1e-4
REPEATS, REPEATS_OF_REFERENCE = 5, 20
SECONDS = 120  # for one answer
REFERENCE = "reference"


@dataclass(frozen=True)
class Expected:
    """The adapted reference's result on one input, and the names of its weights."""

    values: list[Tensor]
    names: frozenset[str] | None  # none where no module was made


def main() -> None:
    """All tasks of the job on standard input."""
    job = json.load(sys.stdin)
    torch.set_num_threads(1)
    for number, answers in job["tasks"]:
        task = TASKS[number]
        try:
            entries = task.adapt(defined(job["references"])[task.exercise])
            expected = [on_input(task.probe, entries, n) for n in range(INPUTS)]
        except Exception as error:  # then the exercise is left out
            print(json.dumps([number, REFERENCE, "refused", repr(error)]), flush=True)
            continue
        for answer in answers:
            fate, why = apart(task, expected, job["references"], answer)
            print(json.dumps([number, answer["id"], fate, why]), flush=True)


def defined(texts: Sequence[str]) -> dict[str, Any]:
    """What these texts define, run one after another."""
    names: dict[str, Any] = {"__name__": "submission"}
    for text in texts:
        exec(compile(text, "submission", "exec", dont_inherit=True), names)
    return names


def apart(
    task: Task, expected: Sequence[Expected], references: Sequence[str], answer: Mapping[str, str]
) -> tuple[str, str]:
    """How an answer fares, found out in a process of its own."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            signal.alarm(SECONDS)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            with os.fdopen(writer, "w") as back:
                json.dump(fate(task, expected, references, answer), back)
        finally:
            os._exit(0)  # whatever the answer raised: it must not go on as the parent
    os.close(writer)
    with os.fdopen(reader) as heard:
        told = heard.read()
    os.waitpid(child, 0)
    found, why = json.loads(told) if told else ("refused", f"no end within {SECONDS} s, or killed")
    return found, why


def fate(
    task: Task, expected: Sequence[Expected], references: Sequence[str], answer: Mapping[str, str]
) -> tuple[str, str]:
    """Accepted, refused, or why it is not measured, each with a reason.

    A mistake is `same` where it gives what the reference gives; a right answer is `unfit` where it
    raises in the adapter, or gives another shape. `unnamed` has weights that it cannot set.
    """
    wrong = answer["kind"] == "mistake"
    try:
        names = defined([*references, answer["definition"]])
        entries = task.adapt(names[task.exercise])
        different = difference(task, entries, expected, wrong)
    except OtherWeights as error:
        return "unnamed", str(error)
    except Exception as error:
        return "refused", f"cannot be defined: {error!r}"
    if wrong and not different:
        return "same", ""
    if not wrong and different:
        return "unfit", different
    repeats = REPEATS_OF_REFERENCE if answer["kind"] == REFERENCE else REPEATS
    for seed in range(repeats):
        torch.manual_seed(seed)
        fault = next(faults(task, entries), "")
        if fault:
            return "refused", f"seed {seed}: {fault}"
    return "accepted", different


def on_input(probe: Any, entries: Entries, number: int) -> Expected:
    """An adapted answer's result on one of the inputs."""
    torch.manual_seed(number)
    MADE.clear()
    result = probe(entries, number)
    values = list(result) if isinstance(result, tuple | list) else [result]
    if not all(isinstance(value, Tensor) for value in values):
        raise TypeError(f"gives {[type(value).__name__ for value in values]}")
    return Expected([value.detach().double() for value in values], _names())


def difference(task: Task, entries: Entries, expected: Sequence[Expected], wrong: bool) -> str:
    """How an answer differs from the reference on one of the inputs, or nothing."""
    for number, reference in enumerate(expected):
        try:
            found = on_input(task.probe, entries, number)
        except OtherWeights:
            raise
        except Exception as error:
            _weights_are_set(_names(), reference, wrong)
            return f"raises {error!r}"
        _weights_are_set(found.names, reference, wrong)
        if [v.shape for v in found.values] != [v.shape for v in reference.values]:
            return f"another shape on input {number}"
        if not wrong:
            continue  # it may have weights of its own, and has margins of its own
        for theirs, ours in zip(found.values, reference.values, strict=True):
            gap = (theirs - ours).abs().max().item()
            if not gap <= TOLERANCE:
                return f"differs by {gap:.2g} on input {number}"
    return ""


def _names() -> frozenset[str] | None:
    """The names of the weights of the modules that were made for an input."""
    return frozenset().union(*MADE) if MADE else None


def _weights_are_set(names: frozenset[str] | None, reference: Expected, wrong: bool) -> None:
    """Whether a wrong answer was given all of its projections, so that it may be compared."""
    if not wrong or names is None or reference.names is None:
        return
    if not reference.names & frozenset(PROJECTIONS) <= names <= reference.names:
        raise OtherWeights(", ".join(sorted(names)))


def faults(task: Task, entries: Entries) -> Iterator[str]:
    """The faults that a judge finds."""
    found = _of_torch_judge if task.judge == JUDGE else _of_torchleet
    return found(task.task, entries)


def _of_torch_judge(name: str, entries: Entries) -> Iterator[str]:
    """Its tests, run as its engine runs them: each as text, with the answer's name and no other."""
    spec = importlib.import_module("torch_judge.tasks").get_task(name)
    (answer,) = entries
    if spec["function_name"] != answer:
        raise LookupError(f"{name} asks for {spec['function_name']}, not {answer}")
    for test in spec["tests"]:
        code = test["code"].replace("{fn}", answer)
        try:
            exec(compile(code, test["name"], "exec", dont_inherit=True), dict(entries))
        except Exception as error:
            yield f"{test['name']}: {error!r}"


def _of_torchleet(name: str, entries: Entries) -> Iterator[str]:
    """The judge's own run. Accepted, as in its report: no test fails, and at least one passes."""
    results = importlib.import_module("torchleet.runner").run(name, dict(entries))
    for check, status, detail in results:
        if status == "fail":
            yield f"{check}: {detail}"
    if not any(status == "pass" for _, status, _ in results):
        yield "nothing could be checked"


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main()
