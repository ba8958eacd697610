"""A student's own answers for notebooks and scripts: ``from grader.mine import apply_rope``.

Each import reads the saved files and picks the definition that a check would pick. The definition,
and all code that it uses, run in this process. The import prints the definition's file and line.

`yours` and `figures` are for experiments. An experiment uses a stand-in, such as a function of
torch, until the student has solved the exercise. A course's scripts pass arguments by position, in
the order of the exercise's signature. If a student's parameters have another order, the arguments
are matched to the parameters by name.
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
from grader.student.answers import digests_of, stub_skeletons
from grader.student.cells import cells_of, running_shell
from grader.student.notebook import found_course
from grader.student.notebook_display import NotChecked
from grader.student.progress import read_progress
from grader.student.scripts import SCRIPT, unwritten
from grader.student.standing import Standing
from grader.unsandboxed.in_process import InProcess, Loaded

STAND_IN = "{}: {} ({})"
UNSOLVED = "until you have solved it"
CHANGED = "until you check your answer again: it has changed"

HALF_A_DIGIT = 5e-5 + 2e-6  # half of the fourth decimal, plus a rounding error of float32
OTHER_FIGURES = "other figures (right answers may draw random numbers differently)"

Answer = TypeVar("Answer")


def yours(name: str, instead: Answer, whose: str = "torch's") -> Answer:
    """The student's answer to an exercise once it is solved; until then, the stand-in `instead`.

    Prints whether the student's answer or the stand-in is used; `whose` names the stand-in's
    author. An answer in the notebook's cells takes precedence over a saved one; a stub does not.
    If the saved answer no longer runs, the stand-in is used and the reason is printed.
    """
    course = load_course(found_course(None))
    shell = running_shell()
    cells = cells_of(shell)
    digests = digests_of(course, cells.ran)
    state = Standing(course, read_progress(course.folder), digests).state(name)
    if state != "solved":
        print(STAND_IN.format(name, whose, CHANGED if state == "changed" else UNSOLVED))
        return instead
    here = cells.found(course, name)
    if here.status == "found" and name in cells.names:
        print(f"{name}: yours, from this notebook")
        own: Answer = _as_graded(course, here, shell.user_ns[name])
        return own
    try:
        found: Answer = _as_graded(course, *_definition(course, name))
    except CallError as error:
        print(STAND_IN.format(name, whose, str(error).splitlines()[0]))
        return instead
    return found


def figures(what: str, published: Sequence[Any], made: Tensor | None, whose: str = "yours") -> None:
    """Print published numbers, and whether the tensor `made` agrees with them to four decimals.

    `what` is the heading. `made` is None if there is no answer to compare yet.
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
    """The student's answer to the exercise of this name; raises `NotChecked` if there is none."""
    if name.startswith("_"):
        raise AttributeError(name)
    # Sort arguments only for the course's scripts: a student's own code passes arguments in the
    # student's own order.
    by_script = sys._getframe(1).f_globals.get("__name__") == SCRIPT
    try:
        course = load_course(found_course(None))
        found, made = _definition(course, name)
    except CallError as error:
        raise NotChecked(str(error)) from None
    return _as_graded(course, found, made) if by_script else made


def _definition(course: Course, name: str) -> tuple[wire.Found, Any]:
    """The answer to an exercise: its definition as found in a file, and the function or class."""
    course.one(name, "import its exercises by name")
    answers = _answers(course, read_answers(course.folder, course))
    found = next(one for one in answers.listing.found if one.name == name)
    if found.status in ("stub", "missing"):
        raise unwritten([name])
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
    """The file and line of each of these answers, then of the other answers that they use.

    If some answers are unwritten, raises a `CallError` that names all of them.
    """
    for name in names:
        course.one(name, "name its exercises")
    listing = _answers(course, read_answers(course.folder, course)).listing
    found = {one.name: one for one in listing.found}
    if missing := [name for name in names if found[name].status in ("stub", "missing")]:
        raise unwritten(missing)
    below = {base for name in names for base in found[name].bases}
    in_order = [*names, *(name for name in course.exercises if name in below.difference(names))]
    return {name: at(found[name].place) for name in in_order}


@dataclass(frozen=True)
class _Answers:
    """A student's saved answers, loaded in this process."""

    submission: Submission
    guest: Loaded
    listing: wire.Listing


_last: _Answers | None = None


def _answers(course: Course, submission: Submission) -> _Answers:
    """Load the answers once, until a file changes, so that all imports use the same classes."""
    global _last
    if _last is not None and _last.submission == submission:
        return _last
    forget()
    stubs = stub_skeletons(course)
    wanted = tuple(
        wire.Wanted(name, unit, stubs.get(name, "")) for name, unit in course.unit_of.items()
    )
    guest = Loaded()
    listing = guest.answer(wire.Open(submission.sources, wanted))
    assert isinstance(listing, wire.Listing)
    _last = _Answers(submission, guest, listing)
    return _last


def forget() -> None:
    """Drop the loaded answers."""
    global _last
    if _last is not None:
        InProcess(_last.guest).close()
        _last = None


# --- the order of arguments ----------------------------------------------------------------------

Sort = Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any]]]


def _as_graded(course: Course, found: wire.Found, made: Any) -> Any:
    """Wrap an answer, so that it takes its arguments in the order of the exercise's signature."""
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
    """Each exercise's contract (signature and shapes); empty if they cannot be loaded."""
    with suppress(CallError):
        return (open_oracle(course) if course.has_solutions else Recorded(course)).contracts
    return {}


def _sort(
    signature: Signature,
    listed: Sequence[wire.Argument] | None,
    aliases: Mapping[str, Sequence[str]],
) -> Sort | None:
    """A function that takes arguments in the contract's order, and sorts them for a student's code.

    None if both orders are the same.
    """
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
    """Wrap a callable so that it sorts all arguments after the first `own` ones (such as self)."""

    @wraps(called)
    def call(*given: Any, **named: Any) -> Any:
        positional, by_name = (given[own:], {}) if named else sort(given[own:])
        return called(*given[:own], *positional, **by_name, **named)

    return call


def _sorted_class(made: type[nn.Module], init: Sort | None, forward: Sort | None) -> type:
    """A subclass whose constructor and calls sort arguments.

    `forward` itself is unchanged, because the student's own methods may call it.
    """
    changed: dict[str, Any] = {"__module__": made.__module__, "__qualname__": made.__qualname__}
    if init is not None:
        changed["__init__"] = _sorted(made.__init__, init, own=1)
    if forward is not None:
        changed["__call__"] = _sorted(made.__call__, forward, own=1)
    return type(made.__name__, (made,), changed)
