"""A model of the kit's, handed to a student's function: in a jail, and in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from grader import wire
from grader.course.contract import ContractBroken, ContractError
from grader.course.tensors import Make
from grader.guest.server import Guest
from grader.inspection.cases import named
from grader.proxies.calls import StudentRaised
from grader.testing import assert_input_unchanged, table_model
from grader.unsandboxed.in_process import InProcess
from grader.wire import payload
from tests.support import seats

VOCAB, CONTEXT = 7, 4


def next_ids(model: nn.Module, ids: Int[Tensor, "batch tokens"]) -> Int[Tensor, "batch tokens"]:
    found: Tensor = model(ids).argmax(dim=-1)
    return found


def scaled(
    model: nn.Module, ids: Int[Tensor, "batch tokens"], scale: Float[Tensor, " vocab"]
) -> Float[Tensor, "batch tokens vocab"]:
    found: Tensor = model(ids) * scale
    return found


RIGHT = """
import torch

def next_ids(model, ids):
    model.eval()
    with torch.no_grad():
        return model(ids.to(next(model.parameters()).device)).argmax(dim=-1)
"""
MAKE = Make("models", "engine", "tests")
IDS = MAKE.integers(0, VOCAB, batch=3, tokens=CONTEXT, name="ids")
OpenSeat = Callable[[str], Any]


def a_model() -> Any:
    return table_model(Make("models", "engine", "a model"), vocab=VOCAB, context_length=CONTEXT)


@pytest.fixture(params=["a jail", "this process"])
def student_of(request: pytest.FixtureRequest, open_seat: Any) -> OpenSeat:
    """Open one file of text in each back end, and begin a test."""

    def opened(text: str) -> Any:
        if request.param == "a jail":
            return open_seat(text, next_ids, scaled).student()
        seat = seats.open_seat(lambda _: InProcess(Guest()), text, next_ids, scaled)
        request.addfinalizer(seat.session.close)
        return seat.student()

    return opened


# --- a call --------------------------------------------------------------------------------------


def test_a_students_function_can_use_it_as_a_module(student_of: OpenSeat) -> None:
    model = a_model()
    assert torch.equal(student_of(RIGHT).next_ids(model, IDS), next_ids(model, IDS))


def test_several_calls_travel_together_each_with_its_model(student_of: OpenSeat) -> None:
    other = table_model(MAKE, vocab=VOCAB, context_length=CONTEXT)
    first, second = student_of(RIGHT).next_ids.each([(a_model(), IDS), (other, IDS)])
    assert torch.equal(first, next_ids(a_model(), IDS))
    assert torch.equal(second, next_ids(other, IDS))
    assert not torch.equal(first, second)


def test_a_call_with_a_model_can_be_observed(student_of: OpenSeat) -> None:
    seen = student_of(RIGHT).next_ids.observe(a_model(), IDS)
    assert torch.equal(seen.result, next_ids(a_model(), IDS))
    assert "argmax" in seen.functions
    assert seen.operations.count > 0


def test_gradients_pass_beside_a_model(student_of: OpenSeat) -> None:
    student = student_of("def scaled(model, ids, scale):\n    return model(ids) * scale\n")
    theirs, ours = (torch.ones(VOCAB, requires_grad=True) for _ in range(2))
    for leaf, result in (
        (theirs, student.scaled(a_model(), IDS, theirs)),
        (ours, scaled(a_model(), IDS, ours)),
    ):
        (leaf.grad,) = torch.autograd.grad(result.sum(), leaf)
    torch.testing.assert_close(theirs.grad, ours.grad)


def test_it_comes_in_eval_mode_and_its_weights_ask_for_no_gradient(student_of: OpenSeat) -> None:
    says = """
import torch

def next_ids(model, ids):
    assert isinstance(model, torch.nn.Module)
    asks = any(p.requires_grad for p in model.parameters())
    return ids * (not model.training and not asks)
"""
    assert torch.equal(student_of(says).next_ids(a_model(), IDS), IDS)


def test_arguments_in_another_order_are_understood(student_of: OpenSeat) -> None:
    swapped = RIGHT.replace("(model, ids):", "(ids, model):")
    assert torch.equal(student_of(swapped).next_ids(a_model(), IDS), next_ids(a_model(), IDS))


# --- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "why"),
    [
        ("torch.cat([ids, ids[:, :1]], dim=1)", "takes 1 to 4 ids a row .*, got 5"),
        ("ids[:, :0]", "takes 1 to 4 ids a row .*, got 0"),
        ("ids + 4", "knows the ids 0 to 6, got ids from"),
        ("ids - 1", "knows the ids 0 to 6, got ids from -1"),
        ("ids[0]", "int64 tensor of shape"),
        ("ids.float()", "int64 tensor of shape"),
        ("ids.tolist()", "int64 tensor of shape"),
    ],
)
def test_it_raises_for_other_ids_at_the_line_of_the_student(
    student_of: OpenSeat, ids: str, why: str
) -> None:
    student = student_of(f"import torch\ndef next_ids(model, ids):\n    return model({ids})\n")
    with pytest.raises(StudentRaised, match=why) as raised:
        student.next_ids(a_model(), torch.tensor([[0, 1, 2, 6]]))
    assert raised.value.kind == "ValueError"
    assert raised.value.place is not None
    assert raised.value.place.line == 3


def test_a_function_that_returns_the_model_breaks_its_contract(student_of: OpenSeat) -> None:
    student = student_of("def next_ids(model, ids):\n    return model\n")
    with pytest.raises(ContractBroken, match="got an object of type TableModel"):
        student.next_ids(a_model(), IDS)


def test_no_reply_may_hold_a_model() -> None:
    forged = payload.pack_input(a_model())
    reply = wire.Outcomes([wire.Returned(forged)])  # type: ignore[arg-type]
    with pytest.raises(wire.WireError):
        wire.decode_reply(wire.encode(reply))


@pytest.mark.parametrize("passed", [IDS, nn.Linear, None], ids=["ids", "a class", "None"])
def test_a_test_passes_nothing_else_for_it(student_of: OpenSeat, passed: Any) -> None:
    with pytest.raises(ContractError, match="model is a small_model or a table_model"):
        student_of(RIGHT).next_ids(passed, IDS)


# --- its weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "model.table.zero_()",
        "next(model.parameters()).data.mul_(2)",
        "model.table = torch.nn.Parameter(model.table + 1)",
        "model.double()",
        "del model.steps",
    ],
)
def test_a_change_of_its_weights_is_seen(student_of: OpenSeat, change: str) -> None:
    student = student_of(f"import torch\ndef next_ids(model, ids):\n    {change}\n    return ids\n")
    with pytest.raises(AssertionError, match="the weights of `model` were changed"):
        assert_input_unchanged(student.next_ids, a_model(), IDS)


@pytest.mark.parametrize("use", ["model.train()", "model.to(ids.device).float()", "model(ids)"])
def test_its_mode_and_moves_to_where_it_is_change_nothing(student_of: OpenSeat, use: str) -> None:
    student = student_of(f"def next_ids(model, ids):\n    {use}\n    return ids\n")
    assert_input_unchanged(student.next_ids, a_model(), IDS)


def test_a_changed_input_beside_it_is_still_that_argument(student_of: OpenSeat) -> None:
    student = student_of("def next_ids(model, ids):\n    return ids.zero_()\n")
    with pytest.raises(AssertionError, match="`ids` was changed in place"):
        assert_input_unchanged(student.next_ids, a_model(), IDS)


def test_each_call_and_the_test_have_weights_of_their_own(student_of: OpenSeat) -> None:
    spoils = """
import torch

def next_ids(model, ids):
    found = model(ids).argmax(dim=-1)
    model.table.zero_()
    return found
"""
    student, model = student_of(spoils), a_model()
    for _ in range(2):
        assert torch.equal(student.next_ids(model, IDS), next_ids(model, IDS))


# --- what it answers -----------------------------------------------------------------------------


def test_the_same_draws_make_the_same_model() -> None:
    one, other = payload.pack_input(a_model()), payload.pack_input(a_model())
    assert one == other


def test_every_visible_id_decides_the_next_one() -> None:
    model = a_model()
    last = next_ids(model, IDS)[:, -1]
    for position in range(CONTEXT):
        for step in range(1, VOCAB):
            changed = IDS.clone()
            changed[:, position] = (changed[:, position] + step) % VOCAB
            assert not (next_ids(model, changed)[:, -1] == last).any()


def test_later_ids_and_other_rows_decide_nothing() -> None:
    model, changed = a_model(), IDS.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCAB
    changed[0] = (changed[0] + 1) % VOCAB
    assert torch.equal(model(changed)[1:, :-1], model(IDS)[1:, :-1])


def test_the_largest_logit_is_clearly_the_largest() -> None:
    first, second = a_model()(IDS).topk(2).values.unbind(dim=-1)
    assert bool((first - second > 0.9).all())


def test_on_a_device_without_values_it_gives_shapes() -> None:
    assert a_model().to("meta")(IDS.to("meta")).shape == (3, CONTEXT, VOCAB)


def test_an_explanation_says_what_was_passed() -> None:
    shown = named("model", payload.pack_input(a_model()))
    assert shown.what == "TableModel table (7, 7), steps (4, 7)"
