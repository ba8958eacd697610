"""What a grader's author imports.

A grader is an ordinary pytest function at module level. Its arguments are the kit's fixtures
(``student``, ``reference``, ``make``) and the names it is parametrised with. One decorator says
which exercise it belongs to, on which rung of the ladder it stands, and what it weighs::

    @rung.value("softmax_rows", points=2)
    def test_softmax_rows_agrees_with_the_reference(student, reference, make):
        '''Every row agrees with the reference.'''
        scores = make.normal(2.0, queries=4, keys=6)
        assert_agrees(student.softmax_rows(scores), reference.softmax_rows(scores))

The docstring's first line is the title that a student sees. Tests under ``solutions/graders``
are hidden, tests under ``exercises/checks`` are public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grader.course.collection import rung
from grader.course.contract import ContractBroken, describe
from grader.course.references import Reference
from grader.course.tensors import Make
from grader.course.tolerances import (
    ALL_DIGITS,
    DIGITS,
    GRADIENTS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    UNMOVED,
    Tolerance,
    furthest_share,
)
from grader.feedback import margins
from grader.feedback.differences.pair import differing
from grader.feedback.disagreement import Disagreement
from grader.proxies import adoption as _adoption
from grader.proxies.calls import Observation, StudentRaised
from grader.proxies.matching import Adoption
from grader.proxies.remote import RemoteFunction, RemoteModule, Student
from grader.wire import Operations
from grader.wire.payload import tensors_of

__all__ = [
    "ALL_DIGITS", "DIGITS", "GRADIENTS", "LARGE_SCORES", "PRINTED", "REORDERED", "UNMOVED",
    "Make", "Reference", "Student", "StudentRaised", "adopt", "adopt_identity_weights", "agree",
    "assert_agrees", "assert_agrees_to_float64", "assert_batch_rows_do_not_mix",
    "assert_causal", "assert_drops_weights", "assert_gradients_agree", "assert_input_unchanged",
    "assert_memory_grows_at_most", "assert_moves", "assert_one_bias",
    "assert_operations_do_not_grow", "assert_reduces_at_most", "assert_refuses",
    "assert_rows_sum_to_one", "assert_that", "assert_uses", "assert_work_at_most",
    "assert_work_grows_at_most", "rung",
]  # fmt: skip


# --- weights -------------------------------------------------------------------------------------


def adopt(theirs: RemoteModule, ours: nn.Module) -> Adoption:
    """Give the student's module the reference's weights, by role; see `grader.proxies.adoption`.

    Returns how they were matched: ``.missing`` are roles that the student has no parameter for
    (zero in `ours` from now on), ``.extra`` the student's parameters that have no role.
    Raises an AssertionError for the student where there is nothing to adopt.
    """
    adoption = _adoption.give_weights(theirs, ours, theirs.aliases)
    theirs.remember_make(adoption.in_roles())
    return adoption


def adopt_identity_weights(theirs: RemoteModule, ours: nn.Module) -> None:
    """Make every weight matrix of `ours` an identity and every bias zero, and adopt them.

    A matrix that is not square has ones on its diagonal.
    """
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    adopt(theirs, ours)


def extra_biases(theirs: RemoteModule) -> list[str]:
    """Vectors beside the weights that were adopted, and without a role: by path.

    Layers that take no part may have what biases they like.
    """
    adoption, sizes = theirs.adoption, theirs.parameters()
    beside = adoption.homes()
    return [p for p in adoption.extra if sizes[p].dim() == 1 and p.rpartition(".")[0] in beside]


def assert_one_bias(
    theirs: RemoteModule, ours: nn.Module, layers: str, of: str = "out_proj"
) -> None:
    """Adopt the weights of `ours`; fail unless the layer `of` has a bias, and none beside it.

    `layers` names those that have none, for the message: ``"queries, keys and values"``.
    """
    adoption = adopt(theirs, ours)
    biases = extra_biases(theirs)
    assert_that(
        not biases,
        f"{layers} have no bias here, and there is {', '.join(biases[:3])}: what does nn.Linear "
        "do when you say nothing about the bias?",
    )
    assert_that(
        f"{of}.bias" not in adoption.missing,
        "the last layer has a bias, and none could be found that belongs to it",
    )


# --- values --------------------------------------------------------------------------------------


def assert_that(condition: bool, message: str) -> None:
    """Fail with a message for the student unless `condition` holds."""
    if not condition:
        raise AssertionError(message)


def assert_agrees(
    theirs: Any, ours: Any, *, within: Tolerance | None = None, what: str = ""
) -> None:
    """Fail unless two tensors, or nests of them, agree in shape, dtype and value.

    Without `within`, the tolerance is that of `torch.testing.assert_close` for the dtype; the
    others are those of `grader.course.tolerances`. Nothing is broadcast, and NaN agrees with
    nothing, itself included.
    """
    what = what or "the result"
    if isinstance(ours, (tuple, list)):
        if not isinstance(theirs, (tuple, list)) or len(theirs) != len(ours):
            raise AssertionError(f"{what}: expected {len(ours)} tensors, got {describe(theirs)}")
        for number, (their_part, our_part) in enumerate(zip(theirs, ours, strict=True), start=1):
            assert_agrees(their_part, our_part, within=within, what=f"{what} {number}")
        return
    if isinstance(ours, dict):
        names = sorted(theirs) if isinstance(theirs, dict) else None
        assert_that(names == sorted(ours), f"{what}: expected the keys {sorted(ours)}, got {names}")
        for name, our_part in ours.items():
            assert_agrees(theirs[name], our_part, within=within, what=f"{what} {name!r}")
        return
    if not isinstance(theirs, Tensor):
        raise AssertionError(f"{what}: expected a tensor, got {describe(theirs)}")
    assert_that(
        theirs.shape == ours.shape,
        f"{what}: expected shape {tuple(ours.shape)}, got {tuple(theirs.shape)}",
    )
    assert_that(theirs.dtype == ours.dtype, f"{what}: expected {ours.dtype}, got {theirs.dtype}")
    assert_that(
        theirs.device == ours.device,
        f"{what}: expected values, got a tensor on device {theirs.device}, which has none",
    )
    theirs, ours = theirs.detach(), ours.detach()
    wrong = differing(theirs, ours, within)
    if wrong.any():
        raise Disagreement(what, ours, theirs, wrong)


def agree(theirs: Tensor, ours: Tensor, within: Tolerance | None = None) -> bool:
    """Whether two tensors agree, as `assert_agrees` would have them, for a test of its own words.

    Both may be the student's: what came out before and after something changed.
    """
    theirs, ours = theirs.detach(), ours.detach()
    alike = theirs.shape == ours.shape and theirs.dtype == ours.dtype
    return alike and not bool(differing(theirs, ours, within).any())


def assert_agrees_to_float64(theirs: Any, ours: Any, *, within: Tolerance = DIGITS) -> None:
    """Fail unless digits agree that float64 has and float32 has not."""
    assert_agrees(theirs, ours, within=GRADIENTS)  # another mistake speaks for itself
    try:
        assert_agrees(theirs, ours, within=within)
    except AssertionError:
        raise AssertionError(
            "float64 carries 16 digits, and yours are right for fewer: does something make a "
            "detour over float32, like .float() or a new tensor without a dtype?"
        ) from None


# --- properties ----------------------------------------------------------------------------------


def assert_rows_sum_to_one(weights: Tensor, dim: int = -1) -> None:
    """Fail unless the weights along `dim` are a distribution: none negative, sum one."""
    assert_that(bool((weights >= 0).all()), "a weight is negative, or NaN")
    sums = weights.sum(dim=dim)
    off = (sums - 1).abs().max().item()
    assert_that(
        agree(sums, torch.ones_like(sums)),
        f"weights along dim {dim} should sum to one; a sum is off by {off:.3g}",
    )


def assert_input_unchanged(call: RemoteFunction | RemoteModule, *arguments: Any) -> None:
    """Fail if the student's code changed a tensor that it was given. `call` is a proxy."""
    owners = [n for n, argument in enumerate(arguments, 1) for _ in tensors_of(argument)]
    seen: Observation = call.observe(*arguments)
    changed = sorted(seen.changed)
    # The results may be right: which argument it was tells one mistake from another.
    call.remember(f"changed: {changed}")
    for number in changed:
        # An earlier call of the exercise may have been given more tensors than this one.
        which = f"argument {owners[number]}" if number < len(owners) else "a tensor passed earlier"
        raise AssertionError(f"{which} was changed in place: build a new tensor instead")


def assert_causal(call: Callable[[Tensor], Tensor], x: Tensor, dim: int = -2) -> None:
    """Fail if an output depends on a later token. `dim` is the tokens' axis of input and output."""
    tokens = x.shape[dim]
    before = call(x)
    for cut in range(1, tokens):
        changed = x.clone()
        # Far from what was there, and not a multiple of it.
        changed.narrow(dim, cut, tokens - cut).mul_(-2.0).add_(1.0)
        after = call(changed)
        assert_that(
            agree(before.narrow(dim, 0, cut), after.narrow(dim, 0, cut), UNMOVED),
            f"outputs of the first {cut} tokens changed when only later tokens did: "
            "they see the future",
        )
        if not torch.equal(before.narrow(dim, cut, 1), after.narrow(dim, cut, 1)):
            continue
        raise AssertionError(f"the output of token {cut} does not depend on the token itself")


def assert_batch_rows_do_not_mix(call: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """Fail if one batch row's output depends on another row. The first axis is the batch."""
    before = call(x)
    changed = x.clone()
    # So large that one maximum for the whole batch would bury every other row.
    changed[0] = changed[0] * -2000.0 + 1.0
    after = call(changed)
    assert_that(
        agree(before[1:], after[1:], UNMOVED),
        "the output of one batch row changed when only another row's input did",
    )
    assert_that(not agree(before[0], after[0]), "the output does not depend on the input")


def assert_moves(call: RemoteFunction | RemoteModule, *inputs: Any) -> None:
    """Fail unless the student's code takes inputs from another device, and answers there.

    A module is moved to that device first.
    """
    moved = [value.to("meta") if isinstance(value, Tensor) else value for value in inputs]
    if isinstance(call, RemoteModule):
        call.to("meta")
    try:
        call(*moved)
    except StudentRaised as raised:
        # The device has no values: who looks at some, to be safe, is right all the same. Then an
        # operation of torch's says so. A student's own words do not count.
        no_values = ("meta tensor", "data-independent")
        if not (raised.by_torch and any(told in raised.text.lower() for told in no_values)):
            raise


def assert_refuses(
    call: Callable[..., Any],
    *arguments: Any,
    why: str = "this should raise an exception, and came back with a result",
) -> None:
    """Fail unless the student's code raises an ordinary exception for these arguments."""
    try:
        call(*arguments)
    except StudentRaised as raised:
        # Not finished, or gone: that is no answer to a wrong argument.
        if not raised.ordinary:
            raise
        return
    except ContractBroken:
        pass  # a result of any shape is wrong here
    raise AssertionError(why)


# --- what a call costs ---------------------------------------------------------------------------
# Work is counted in multiply-adds and elements written, see `grader.guest.trace`.


# Tensor methods, by plain name, behind which nobody counts.
LEAVING = frozenset(
    {"numpy", "array", "dlpack", "storage", "untyped_storage", "data_ptr", "reduce_ex", "apply",
     "map", "map2"}
)  # fmt: skip
MOST_OPERATIONS = 100  # for what one product does: more were made to hide a loop behind them


def assert_operations_do_not_grow(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any]
) -> None:
    """Fail if the larger input takes more tensor operations. `call` is a proxy."""
    few, many = (_counted(call, arguments).count for arguments in (small, large))
    assert_that(
        _within(call, "operations", many, few) and many <= MOST_OPERATIONS,
        f"{few} tensor operations on a small input and {many} on a larger one: "
        "is there a loop where one product would do?",
    )


def assert_memory_grows_at_most(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any], times: float
) -> None:
    """Fail if the largest tensor on `large` is more than `times` that on `small`, in elements."""
    little, much = (_counted(call, arguments).largest for arguments in (small, large))
    assert_that(
        _within(call, "memory", much, times * little),
        f"the largest tensor on the way holds {little:,} numbers for a small input and {much:,} "
        f"for one {times:g} times as long: what becomes so large, and must it ever be whole?",
    )


def assert_work_grows_at_most(
    call: RemoteFunction | RemoteModule, small: Sequence[Any], large: Sequence[Any], times: float
) -> None:
    """Fail if the work on `large` is more than `times` that on `small`."""
    little, much = (_counted(call, arguments).work for arguments in (small, large))
    assert_that(
        _within(call, "work", much, times * little),
        f"a small input takes {little:,} multiply-adds and the like, and a larger one {much:,}: "
        f"{much / max(little, 1):.1f} times as much, and {times:g} times would do",
    )


def assert_work_at_most(call: RemoteFunction | RemoteModule, most: int, *arguments: Any) -> None:
    """Fail if a call takes more work than `most`."""
    work = _counted(call, arguments).work
    assert_that(
        _within(call, "work", work, most),
        f"this takes {work:,} multiply-adds and the like, and {most:,} are allowed: is something "
        "worked out again and again that is needed once?",
    )


def assert_reduces_at_most(
    call: RemoteFunction | RemoteModule, width: int, *arguments: Any
) -> None:
    """Fail if a sum, product, maximum, softmax or the like runs over more than `width` elements."""
    widest = _counted(call, arguments).widest
    assert_that(
        _within(call, "width", widest, width),
        f"something runs over {widest} elements at once (a sum, a maximum, a softmax, a product?), "
        f"and no more than {width} may be looked at together",
    )


def _counted(call: RemoteFunction | RemoteModule, arguments: Sequence[Any]) -> Operations:
    """What one call costs; fails if numbers leave torch by a door where nobody counts them.

    A number that becomes one of Python's (``item``, ``float``, ``tolist``, iteration) is counted as
    an operation.
    """
    seen: Observation = call.observe(*arguments)
    left = sorted(seen.functions & LEAVING)
    # A right answer's results do not tell how it came by them.
    call.remember(f"leaves: {bool(left) or 'tolist' in seen.functions}")
    assert_that(
        not left,
        f"{', '.join(left)} hides the work from the counter: use tensor operations here",
    )
    return seen.operations


def _within(
    call: RemoteFunction | RemoteModule, what: str, measured: float, allowed: float
) -> bool:
    """Whether a count is no more than it may be; a diagnosis hears of it too."""
    call.remember(f"too much {what}: {measured > allowed}")
    margins.note_count(measured, allowed)
    return measured <= allowed


def assert_uses(
    call: RemoteFunction | RemoteModule, functions: Sequence[str], *arguments: Any
) -> None:
    """Fail unless the result depends on one of these torch functions. `call` is a proxy.

    The functions are called once as they are, and once more so that they give something else: then
    the result must change. Who only calls one for show has a result that does not.
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
        f"the exercise is about {wanted}: one was called, and your result does not depend on it",
    )


# --- gradients -----------------------------------------------------------------------------------


def assert_gradients_agree(
    theirs: Callable[..., Any],
    ours: Callable[..., Any],
    *arguments: Any,
    make: Make,
    of: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Fail unless the gradients of a random projection of the result agree.

    For floating-point inputs, and for the parameters too if `theirs` is a module that has adopted
    the weights of `ours`. `of` picks the part of a result that they are gradients of.
    """
    their_arguments, our_arguments = _leaves(arguments), _leaves(arguments)
    _push_back(of(theirs(*their_arguments)), make)
    _push_back(of(ours(*our_arguments)), make)
    pairs = zip(their_arguments, our_arguments, strict=True)
    for number, (their_leaf, our_leaf) in enumerate(pairs, start=1):
        if isinstance(our_leaf, Tensor) and our_leaf.grad is not None:
            _compare_gradient(their_leaf.grad, our_leaf.grad, f"argument {number}")
    if isinstance(theirs, RemoteModule) and theirs.adoption is not None:
        assert isinstance(ours, nn.Module)
        for role, actual, expected in _adoption.joined_gradients(theirs, ours):
            _compare_gradient(actual, expected, role)


def _leaves(arguments: Sequence[Any]) -> list[Any]:
    return [
        argument.detach().clone().requires_grad_()
        if isinstance(argument, Tensor) and argument.is_floating_point()
        else argument
        for argument in arguments
    ]


def _push_back(result: Any, make: Make) -> None:
    results = result if isinstance(result, (tuple, list)) else [result]
    total = torch.zeros((), dtype=torch.float64)
    for number, part in enumerate(results):
        upstream = make.normal_like(part, name=f"upstream {number}")
        total = total + (part * upstream).sum()
    if total.requires_grad:
        torch.autograd.backward(total)


def _compare_gradient(actual: Tensor | None, expected: Tensor, what: str) -> None:
    if actual is None:
        raise AssertionError(
            f"no gradient reaches {what}: is there a .detach(), .data, .item(), .numpy() or "
            "torch.no_grad() on the way, or a new tensor built from numbers?"
        )
    assert_agrees(actual, expected, within=GRADIENTS, what=f"the gradient of {what}")


# --- dropout -------------------------------------------------------------------------------------


def assert_drops_weights(dropped: Tensor, twins: Tensor, weights: Tensor, p: float) -> None:
    """Fail unless `dropped` is what inverted dropout with probability `p` makes of `weights`.

    All three are (batch, queries, keys), with at least 16 batch rows and 9 tokens; every query
    sees the first key, and the last query all keys. Judged by statistics, never by a generator's
    stream: entries are 0 or ``weights / (1 - p)``, and about p of them are 0, within
    `furthest_share`. `twins` holds the same attention weights, seen through a second set
    of value columns: they fall together only if weights were dropped and not the context.
    """
    visible = weights > 0
    scaled = (dropped[visible] * (1 - p) / weights[visible]).double()
    is_zero, is_one = scaled.abs() < 1e-4, (scaled - 1).abs() < 1e-4
    assert_that(
        bool((is_zero | is_one).all()),
        f"with dropout {p} a weight w should become 0 or w / {1 - p:g} in training",
    )
    assert_that(
        agree(dropped, twins),
        "values that share a weight were dropped apart: drop the weights, not the context",
    )
    share = is_zero.double().mean().item()
    assert_that(
        abs(share - p) < furthest_share(p, is_zero.numel()),
        f"dropout {p} should drop about {p:.0%} of the weights, not {share:.0%}; chance alone "
        "strays so far once in a billion times",
    )
    assert_that(bool((dropped[~visible] == 0).all()), "a hidden key got some weight")
    # With 16 sentences and more than 8 tokens, chance alone does none of these.
    gone = is_zero.new_zeros(weights.shape).masked_scatter(visible, is_zero)
    assert_that(
        not torch.equal(gone[0], gone[1]),
        "two sentences of a batch lost exactly the same weights: each weight is dropped by itself",
    )
    last_query, first_key = gone[:, -1], gone[:, :, 0]
    assert_that(
        bool((last_query.any(dim=-1) & ~last_query.all(dim=-1)).any()),
        "a query loses all of its weights or none: each weight is dropped by itself",
    )
    assert_that(
        bool((first_key.any(dim=-1) & ~first_key.all(dim=-1)).any()),
        "a key is lost to all queries or to none: drop the weights, not the tokens",
    )
