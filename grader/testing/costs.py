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
from grader.wire import Operations

# Tensor methods that take data out of torch. Operations outside of torch are not counted.
LEAVING = frozenset(
    {"numpy", "array", "dlpack", "storage", "untyped_storage", "data_ptr", "reduce_ex", "apply",
     "map", "map2"}
)  # fmt: skip
MOST_OPERATIONS = 100  # the most operations of a call: more may be a loop of constant length


def assert_operations_do_not_grow(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any]
) -> None:
    """Fail if `large` takes more tensor operations than `small`, or over `MOST_OPERATIONS`."""
    few, many = (_counted(call, arguments).count for arguments in (small, large))
    assert_that(
        _within(call, "operations", many, few) and many <= MOST_OPERATIONS,
        f"{few} tensor operations on a small input and {many} on a larger one: "
        "is there a loop where one product would do?",
    )


def assert_memory_grows_at_most(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any], times: float
) -> None:
    """Fail if the largest tensor for `large` has over `times` as many elements as for `small`."""
    little, much = (_counted(call, arguments).largest for arguments in (small, large))
    assert_that(
        _within(call, "memory", much, times * little),
        f"the largest tensor on the way holds {little:,} numbers for a small input, and {much:,} "
        f"for a larger input, which is more than {times:g} times as many: which tensor becomes so "
        "large, and do you need all of it at once?",
    )


def assert_work_grows_at_most(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any], times: float
) -> None:
    """Fail if the work for `large` is more than `times` the work for `small`."""
    little, much = (_counted(call, arguments).work for arguments in (small, large))
    assert_that(
        _within(call, "work", much, times * little),
        f"a small input takes {little:,} multiply-adds and writes of a number, and a larger input "
        f"{much:,}: {much / max(little, 1):.1f} times as many, but {times:g} times are enough",
    )


def assert_work_at_most(call: RemoteFunction | RemoteModule, most: int, *arguments: Any) -> None:
    """Fail if a call takes more work than `most`."""
    work = _counted(call, arguments).work
    assert_that(
        _within(call, "work", work, most),
        f"this call takes {work:,} multiply-adds and writes of a number, but {most:,} are allowed: "
        "do you compute something again and again that is needed only once?",
    )


def assert_reduces_at_most(
    call: RemoteFunction | RemoteModule, width: int, *arguments: Any
) -> None:
    """Fail if a sum, product, maximum, softmax or the like runs over more than `width` elements."""
    widest = _counted(call, arguments).widest
    assert_that(
        _within(call, "width", widest, width),
        f"a sum, a maximum, a softmax or a product runs over {widest} elements at once, but at "
        f"most {width} are allowed",
    )


def assert_maxima_do_not_run_ahead(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any]
) -> None:
    """Fail if, on the larger input, maxima run over more elements before the first exponential.

    Code that first finds the largest of all scores, and then adds exponentials, reads all scores
    twice.
    """
    few, many = (_counted(call, arguments).compared for arguments in (small, large))
    assert_that(
        _within(call, "compared", many, few),
        f"before the first exponential, maxima run over {few:,} elements of a small input and "
        f"{many:,} of a larger one: do you read all blocks for their maximum first?",
    )


def _counted(call: RemoteFunction | RemoteModule, arguments: Sequence[Any]) -> Operations:
    """Count a call's operations; fail if data leaves torch by a function of `LEAVING`.

    Converting an element to a Python number (``item``, ``float``, ``tolist``, iteration) counts as
    an operation.
    """
    seen: Observation = call.observe(*arguments)
    left = sorted(seen.functions & LEAVING)
    # This is recorded for the diagnosis, since the results of such an answer may be right.
    call.remember(f"leaves: {bool(left) or 'tolist' in seen.functions}")
    assert_that(
        not left,
        f"{', '.join(left)} hides the work from the counter: use tensor operations here",
    )
    return seen.operations


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
