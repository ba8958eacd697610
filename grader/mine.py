"""A student's own answers, in a notebook or a script: ``from grader.mine import apply_rope``.

Each import reads what is saved at that moment, picks the definition that a check would pick, runs
what it needs in this process, and prints where it comes from.

`yours` and `figures` are for experiments, which need nothing solved: they do with something else
until an answer is. A course's scripts call answers as grades do: by position, whatever the order of
a student's own arguments is, as long as their names tell which is which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from grader import wire
from grader.course.contract import Contract, Signature
from grader.course.course import Course, load_course
from grader.course.references import open_oracle
from grader.feedback.sentences import at, broken
from grader.grading.recorded import Recorded
from grader.intake import Submission
from grader.intake.own import read_answers
from grader.proxies.calls import argument_order
from grader.records.faults import CallError
from grader.student.cells import cells_of, running_shell
from grader.student.notebook import found_course
from grader.student.notebook_display import NotChecked
from grader.student.progress import read_progress
from grader.student.scripts import SCRIPT
from grader.unsandboxed.in_process import InProcess, Loaded
from grader.wire.definitions import find_definitions, skeletons
from grader.wire.source import read_file

UNWRITTEN = "{} is not written yet, in no file and no notebook that is saved: write it first"
ALL_UNWRITTEN = "not written yet, in no file and no notebook that is saved: {}; write these first"
STAND_IN = "{}: {} ({})"
UNSOLVED = "yours comes here once it is solved"

HALF_A_DIGIT = 5e-5 + 2e-6  # of four decimals, and a hair for float32
OTHER_FIGURES = "other figures (who draws in another order, or on another machine, may be right)"

Answer = TypeVar("Answer")


def yours(name: str, instead: Answer, whose: str = "torch's") -> Answer:
    """The student's answer to an exercise once it is solved, and `instead` until then.

    A line is printed that says which of them it is, or whose the other one is. In a notebook, what
    its cells have defined comes first, as in a check. Where what is saved cannot be run any more,
    that is said, and `instead` is used.
    """
    course = load_course(found_course(None))
    progress = read_progress(course.folder)
    if name not in progress.solved - progress.failing:
        print(STAND_IN.format(name, whose, UNSOLVED))
        return instead
    shell = running_shell()
    if shell is not None and name in shell.user_ns:
        print(f"{name}: yours, from this notebook")
        wanted = wire.Wanted(name, course.unit_of[name], "")
        here, _ = find_definitions(wanted, [*map(read_file, cells_of(shell).sources(course))])
        own: Answer = _as_graded(course, here, shell.user_ns[name])
        return own
    try:
        found: Answer = _as_graded(course, *_definition(course, name))
    except CallError as error:
        print(STAND_IN.format(name, whose, str(error).splitlines()[0]))
        return instead
    return found


def figures(what: str, published: Sequence[Any], made: Tensor | None, whose: str = "yours") -> None:
    """Print figures as they were published, and whether `made` has them, to the last decimal.

    `made` is None where there is nothing yet to compare. Figures have four decimals.
    """
    printed = torch.tensor(published, dtype=torch.float64)
    print(f"\n{what}")
    for row in printed.reshape(-1, printed.shape[-1]).tolist():
        print("  " + " ".join(f"{figure:8.4f}" for figure in row))
    if made is None:
        print("  (yours is not solved yet)")
    elif made.shape != printed.shape:
        print(f"  {whose}: another shape, {tuple(made.shape)}")
    else:
        same = torch.allclose(made.detach().double(), printed, rtol=0, atol=HALF_A_DIGIT)
        print(f"  {whose}: {'the same figures' if same else OTHER_FIGURES}")


def __getattr__(name: str) -> Any:
    """The answer to the exercise of this name; raises `CallError` where there is none."""
    if name.startswith("_"):
        raise AttributeError(name)
    # A student's own code calls an answer in the order in which they wrote its arguments.
    by_script = sys._getframe(1).f_globals.get("__name__") == SCRIPT
    try:
        course = load_course(found_course(None))
        found, made = _definition(course, name)
    except CallError as error:
        raise NotChecked(str(error)) from None
    return _as_graded(course, found, made) if by_script else made


def _definition(course: Course, name: str) -> tuple[wire.Found, Any]:
    """What stands under an exercise's name, and the object itself."""
    course.one(name, "import its exercises by name")
    answers = _answers(course, read_answers(course.folder, course))
    found = next(one for one in answers.listing.found if one.name == name)
    if found.status in ("stub", "missing"):
        raise CallError(UNWRITTEN.format(name))
    if found.status == "broken":
        raise CallError(f"{name}: {broken(found)}")
    assert answers.guest.submission is not None
    try:
        made = answers.guest.submission.definition(name)
    except NameError as error:
        why = answers.guest.submission.why_missing(error.name or name)
        raise CallError(f"{name}, {at(found.place)}: {why}") from None
    except Exception as error:
        raise CallError(f"{name}, {at(found.place)}: {type(error).__name__}: {error}") from None
    print(f"{name}: yours, from {at(found.place)}")
    return found, made


def places_of(course: Course, names: Sequence[str]) -> dict[str, str]:
    """Where each of these answers is, and after them each other answer that they are built on.

    Raises `CallError` that names all that are not written.
    """
    for name in names:
        course.one(name, "name its exercises")
    listing = _answers(course, read_answers(course.folder, course)).listing
    found = {one.name: one for one in listing.found}
    unwritten = [name for name in names if found[name].status in ("stub", "missing")]
    if unwritten:
        one = UNWRITTEN if len(unwritten) == 1 else ALL_UNWRITTEN
        raise CallError(one.format(", ".join(unwritten)))
    below = {base for name in names for base in found[name].bases}
    in_order = [*names, *(name for name in course.exercises if name in below.difference(names))]
    return {name: at(found[name].place) for name in in_order}


@dataclass(frozen=True)
class _Answers:
    """What is saved, loaded in this process."""

    submission: Submission
    guest: Loaded
    listing: wire.Listing


_last: _Answers | None = None


def _answers(course: Course, submission: Submission) -> _Answers:
    """The same as before until a file changes, so that answers share the classes they use."""
    global _last
    if _last is not None and _last.submission == submission:
        return _last
    forget()
    stubs = skeletons("\n".join(course.stubs().values())) if course.recorded.is_dir() else {}
    wanted = tuple(
        wire.Wanted(name, unit, stubs.get(name, "")) for name, unit in course.unit_of.items()
    )
    guest = Loaded()
    listing = guest.answer(wire.Open(submission.sources, wanted))
    assert isinstance(listing, wire.Listing)
    _last = _Answers(submission, guest, listing)
    return _last


def forget() -> None:
    """Let go of what was loaded last."""
    global _last
    if _last is not None:
        InProcess(_last.guest).close()
        _last = None


# --- called as grades call it --------------------------------------------------------------------

Sort = Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def _as_graded(course: Course, found: wire.Found, made: Any) -> Any:
    """An answer that takes its arguments in the contract's order; itself, if that is its own."""
    contract = _contracts(course).get(found.name)
    if contract is None:
        return made
    aliases = course.file.aliases.arguments
    call = _sort(contract.call, found.arguments, aliases)
    forward = _sort(contract.forward, found.forward, aliases) if contract.forward else None
    if isinstance(made, type) and issubclass(made, nn.Module):
        return _sorted_class(made, call, forward) if call or forward else made
    return _sorted(made, call) if call else made


def _contracts(course: Course) -> Mapping[str, Contract]:
    """The contracts that checks know; none of a course that cannot be checked."""
    with suppress(CallError):
        return (open_oracle(course) if course.has_solutions else Recorded(course)).contracts
    return {}


def _sort(
    signature: Signature,
    listed: Sequence[wire.Argument] | None,
    aliases: Mapping[str, Sequence[str]],
) -> Sort | None:
    """From arguments in the contract's order to those of a call; None where both are the same."""
    counts = range(len(signature.parameters) + 1)
    orders = [argument_order(signature, listed, count, aliases) for count in counts]
    if not any(names for _, names in orders):
        return None

    def sort(given: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        order, names = orders[len(given)] if len(given) < len(orders) else ([], [])
        if not names:
            return given, {}
        return (), {name: given[index] for name, index in zip(names, order, strict=True)}

    return sort


def _sorted(called: Callable[..., Any], sort: Sort, own: int = 0) -> Callable[..., Any]:
    """The same to call, but for the order; of a method, one argument is its `own`: self."""

    @wraps(called)
    def call(*given: Any, **named: Any) -> Any:
        positional, by_name = (given[own:], {}) if named else sort(given[own:])
        return called(*given[:own], *positional, **by_name, **named)

    return call


def _sorted_class(made: type[nn.Module], init: Sort | None, forward: Sort | None) -> type:
    """A class of the same name. Its own methods call `forward` as the student wrote it."""
    changed: dict[str, Any] = {"__module__": made.__module__, "__qualname__": made.__qualname__}
    if init is not None:
        changed["__init__"] = _sorted(made.__init__, init, own=1)
    if forward is not None:
        changed["__call__"] = _sorted(made.__call__, forward, own=1)
    return type(made.__name__, (made,), changed)
