"""Asserts limits for the cost of a call, and that its result depends on certain functions.

Work is the number of multiply-adds and of written elements; see `grader.guest.trace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.course.tolerances import UNMOVED
from grader.feedback import margins
from grader.proxies.calls import Observation
from grader.proxies.remote import RemoteFunction, RemoteModule
from grader.testing.values import agree, assert_that
from grader.wire import Operations, payload

# The numbers that a call may give to Python and NumPy, where a test says nothing else: a length, a
# scale, a few maxima.
MAY_LEAVE = 32
BITS = 32  # of a number
MOST_OPERATIONS = 100  # the most operations of a call: more may be a loop of constant length


def assert_operations_do_not_grow(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any]
) -> None:
    """Fail if `large` takes more tensor operations than `small`, or over `MOST_OPERATIONS`.

    A number that leaves torch is an operation too.

    >>> small, large = make.normal(queries=4, keys=3), make.normal(queries=8, keys=6)
    >>> assert_operations_do_not_grow(student.weigh, [small], [large])
    """
    few, many = (seen.count for seen in _counted(call, [small, large], None))
    assert_that(
        _within(call, "operations", many, few) and many <= MOST_OPERATIONS,
        f"{few} tensor operations on a small input and {many} on a larger one: "
        "is there a loop where one product would do?",
    )


def assert_grows_at_most(
    call: RemoteFunction | RemoteModule,
    small: Sequence[Any],
    large: Sequence[Any],
    *,
    memory: float | None = None,
    held: float | None = None,
    work: float | None = None,
    leaving: int = MAY_LEAVE,
) -> None:
    """Fail if `large` takes over `memory` times the memory of `small`, or `work` times its work.

    Memory is the number of elements in the largest tensor; `held` limits the number that all
    tensors hold at one time. At most `leaving` numbers may leave torch in a call.

    >>> small, large = make.normal(queries=4, keys=3), make.normal(queries=8, keys=3)
    >>> assert_grows_at_most(student.weigh, [small], [large], memory=2, work=2)
    """
    little, much = _counted(call, [small, large], leaving)
    if memory is not None:
        assert_that(
            _within(call, "memory", much.largest, memory * little.largest),
            f"the largest tensor on the way holds {little.largest:,} numbers for a small input, "
            f"and {much.largest:,} for a larger input, which is more than {memory:g} times as "
            "many: which tensor becomes so large, and do you need all of it at once?",
        )
    if held is not None:
        assert_that(
            _within(call, "memory at one time", much.held, held * little.held),
            f"all tensors together hold up to {little.held:,} numbers at one time for a small "
            f"input, and {much.held:,} for a larger input, which is more than {held:g} times as "
            "many: what do you keep that you could use up at once?",
        )
    if work is not None:
        assert_that(
            _within(call, "work", much.work, work * little.work),
            f"a small input takes {little.work:,} multiply-adds and writes of a number, and a "
            f"larger input {much.work:,}: {much.work / max(little.work, 1):.1f} times as many, "
            f"but {work:g} times are enough",
        )


def assert_work_at_most(call: RemoteFunction | RemoteModule, most: int, *arguments: Any) -> None:
    """Fail if a call takes more work than `most`.

    >>> assert_work_at_most(student.weigh, 10, make.normal(queries=4, keys=3))
    Traceback (most recent call last):
        ...
    AssertionError: this call takes 12 multiply-adds and writes of a number, but 10 are ...
    """
    (seen,) = _counted(call, [arguments], MAY_LEAVE)
    work = seen.work
    assert_that(
        _within(call, "work", work, most),
        f"this call takes {work:,} multiply-adds and writes of a number, but {most:,} are allowed: "
        "do you compute something again and again that is needed only once?",
    )


def assert_reduces_at_most(
    call: RemoteFunction | RemoteModule, width: int, *arguments: Any, leaving: int = MAY_LEAVE
) -> None:
    """Fail if a sum, product, maximum, softmax or the like runs over more than `width` elements.

    At most `leaving` numbers may leave torch.

    >>> assert_reduces_at_most(student.weigh, 3, make.normal(queries=4, keys=3))
    Traceback (most recent call last):
        ...
    AssertionError: a sum, a maximum, a softmax or a product runs over 4 elements at once, ...
    """
    (seen,) = _counted(call, [arguments], leaving)
    widest = seen.widest
    assert_that(
        _within(call, "width", widest, width),
        f"a sum, a maximum, a softmax or a product runs over {widest} elements at once, but at "
        f"most {width} are allowed",
    )


def assert_maxima_do_not_run_ahead(
    call: RemoteFunction | RemoteModule,
    small: Sequence[Any],
    large: Sequence[Any],
    *,
    leaving: int = MAY_LEAVE,
) -> None:
    """Fail if, on the larger input, maxima run over more elements before the first exponential.

    Code that first finds the largest of all scores, and then adds exponentials, reads all scores
    twice. At most `leaving` numbers may leave torch in a call.
    """
    few, many = (seen.compared for seen in _counted(call, [small, large], leaving))
    assert_that(
        _within(call, "compared", many, few),
        f"before the first exponential, maxima run over {few:,} elements of a small input and "
        f"{many:,} of a larger one: do you read all blocks for their maximum first?",
    )


def _counted(
    call: RemoteFunction | RemoteModule, calls: Sequence[Sequence[Any]], leaving: int | None
) -> list[Operations]:
    """Count the operations of each call; fail if more than `leaving` numbers leave torch in one.

    What Python and NumPy compute with them is not counted. None sets no limit. All calls are made
    before anything can fail: then the results are known, whatever the first call cost.
    """
    seen: list[Observation] = [call.observe(*arguments) for arguments in calls]
    for arguments, one in zip(calls, seen, strict=True):
        numbers = -(-one.operations.left // BITS)
        too_many = leaving is not None and numbers > leaving
        # This is recorded for the diagnosis, since the results of such an answer may be right.
        given = sum(tensor.numel() for tensor in payload.tensors_of(list(arguments)))
        call.remember(f"all leave: {numbers >= given > 0}")
        assert_that(
            not too_many,
            f"{numbers:,} numbers leave torch (by item, tolist, numpy, float, an if or the like), "
            f"and {leaving} may: what Python or NumPy compute with them is not counted, so use "
            "tensor operations here",
        )
    return [one.operations for one in seen]


def _within(
    call: RemoteFunction | RemoteModule, kind: str, measured: float, allowed: float
) -> bool:
    """Whether a count is allowed; also records it for the diagnosis and for margins."""
    call.remember(f"too much {kind}: {measured > allowed}")
    margins.note_count(measured, allowed)
    return measured <= allowed


def assert_uses(
    call: RemoteFunction | RemoteModule, functions: Sequence[str], *arguments: Any
) -> None:
    """Fail unless the result depends on one of these torch functions.

    The student's code runs twice. In the second run, these functions return changed results. Then
    the code's result must change too: otherwise the code calls the functions only for show.

    >>> assert_uses(student.weigh, ("softmax",), make.normal(queries=4, keys=3))
    >>> assert_uses(student.weigh, ("matmul",), make.normal(queries=4, keys=3))
    Traceback (most recent call last):
        ...
    AssertionError: the exercise is about matmul: none was used
    """
    seen: Observation = call.observe(*arguments)
    wanted = " or ".join(functions[:2])
    assert_that(
        not seen.functions.isdisjoint(functions), f"the exercise is about {wanted}: none was used"
    )
    altered: Observation = call.observe(*arguments, altered=functions)
    depends = not agree(seen.result, altered.result, UNMOVED)
    call.remember(f"depends on {wanted}: {depends}")
    assert_that(
        depends,
        f"the exercise is about {wanted}: you call it, but your result does not depend on it",
    )
