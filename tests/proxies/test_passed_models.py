"""Models and generators that a test passes to a student's function, through a real jail."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

import pytest
import torch
from jaxtyping import Float, Int
from msgspec import structs
from torch import Tensor, nn

from grader import wire
from grader.course.contract import ContractBroken, ContractError, compile_contract
from grader.course.tensors import Make
from grader.guest.server import Guest
from grader.sandbox.session import Loss, StudentLost, Wired
from grader.testing import assert_agrees, assert_input_unchanged, small_model
from grader.wire.models import UnsuitableModel
from tests.support import seats
from tests.support.seats import OpenSeat

MAKE = Make("models", "train", "tests")
X = MAKE.normal(batch=4, d_in=3, name="x")
Y = MAKE.integers(0, 2, batch=4, name="y")


# --- references ----------------------------------------------------------------------------------


def train(
    model: nn.Module, x: Float[Tensor, "batch d_in"], y: Int[Tensor, " batch"], rate: float = 0.1
) -> None:
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        for weight, gradient in zip(model.parameters(), gradients, strict=True):
            weight.sub_(rate * gradient)


def logits(model: nn.Module, x: Tensor) -> Tensor:
    found: Tensor = model(x)
    return found.detach()


def sums(batches: Iterable[tuple[Float[Tensor, "batch d_in"], int]]) -> list[Tensor]:
    return [torch.sum(x) * weight for x, weight in batches]


def twice(batches: Iterable[Tensor]) -> int:
    return len(list(batches)) + 10 * len(list(batches))


# --- models of a test's --------------------------------------------------------------------------

BY_TORCH = """
import torch
from torch import nn

def train(model, x, y, rate=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    model.train()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    return model
"""


def model() -> nn.Sequential:
    return small_model(MAKE, nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


MODELS: dict[str, Sequence[nn.Module]] = {
    "a stack": (nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2, bias=False)),
    "nested": (nn.Sequential(nn.Linear(3, 6), nn.GELU("tanh")), nn.Linear(6, 2)),
    "with buffers": (nn.Linear(3, 5), nn.BatchNorm1d(5), nn.SiLU(), nn.Linear(5, 2)),
    "a norm": (nn.LayerNorm(3), nn.Sigmoid(), nn.Linear(3, 2), nn.LogSoftmax(-1)),
    "an activation twice": (nn.Linear(3, 3), *2 * [nn.LeakyReLU(0.2)], nn.Linear(3, 2)),
}


@pytest.mark.parametrize("layers", MODELS.values(), ids=MODELS)
def test_a_tests_model_gets_what_the_student_trained(
    open_seat: OpenSeat, layers: Sequence[nn.Module]
) -> None:
    theirs = small_model(MAKE, *layers).eval()
    before, ours = copy.deepcopy(theirs), copy.deepcopy(theirs)
    assert open_seat(BY_TORCH, train).student().train(theirs, X, Y, 0.5) is None
    train(ours, X, Y, 0.5)
    assert_agrees(theirs, ours)
    assert theirs.training
    with pytest.raises(AssertionError, match=r"the model's 0.*weight"):
        assert_agrees(before, ours)


LAYERS = {
    "words": (
        (nn.Embedding(7, 4, padding_idx=0), nn.Conv1d(6, 2, 3, padding=1), nn.Softmax(dim=-1)),
        MAKE.integers(0, 7, batch=3, tokens=6, name="ids"),
    ),
    "images": (
        (nn.Conv2d(1, 2, (2, 3), stride=2, bias=False), nn.MaxPool2d(2), nn.Flatten()),
        MAKE.normal(batch=2, channels=1, height=9, width=9, name="image"),
    ),
    "float64, in evaluation": (
        (nn.Linear(3, 2).double(), nn.Dropout(0.5).eval()),
        X.double(),
    ),
}


@pytest.mark.parametrize(("layers", "x"), LAYERS.values(), ids=LAYERS)
def test_layers_arrive_with_their_arguments_weights_and_modes(
    open_seat: OpenSeat, layers: Sequence[nn.Module], x: Tensor
) -> None:
    student = open_seat("def logits(model, x):\n    return model(x)\n", logits).student()
    given = small_model(MAKE, *layers)
    assert_agrees(student.logits(given, x), logits(given, x))


def test_a_frozen_weight_needs_no_gradient_there_either(open_seat: OpenSeat) -> None:
    source = """
import torch
def logits(model, x):
    return torch.tensor([weight.requires_grad for weight in model.parameters()])
"""
    given = model()
    given[0].weight.requires_grad_(False)
    found = open_seat(source, logits).student().logits(given, X)
    assert found.tolist() == [False, True, True, True]


# --- what students do to a model -----------------------------------------------------------------

HEADER = "import torch\nfrom torch import nn\ndef train(model, x, y, rate=0.1):\n"
CHANGED_LAYERS = {
    "a layer of another size": ("model[0] = nn.Linear(3, 7)", "0.weight of `model` has shape"),
    "a layer less": ("del model[2]", "2.weight of `model` is gone"),
    "a layer more": ("model.append(nn.ReLU())", "`model` has more or fewer layers"),
    "another dtype": ("model.double()", "0.weight of `model` has shape .* and dtype float64"),
    "no values": ("model.to('meta')", "without values"),
    "no weight": ("model[0].weight = None", "0.weight of `model` is gone"),
    "a sparse weight": (
        "model[0].weight = nn.Parameter(torch.eye(5, 3).to_sparse())",
        "0.weight of `model` is gone",
    ),
    "a huge weight": (
        "model[0].weight = nn.Parameter(torch.ones(1).expand(2**40))",
        "0.weight of `model` is gone",
    ),
    "a layer inside itself": ("model.append(model)", "maximum recursion depth"),
}


@pytest.mark.parametrize(("change", "told"), CHANGED_LAYERS.values(), ids=CHANGED_LAYERS)
def test_other_layers_are_refused_in_words(open_seat: OpenSeat, change: str, told: str) -> None:
    source = (
        f"import torch\nfrom torch import nn\ndef train(model, x, y, rate=0.1):\n    {change}\n"
    )
    given = model()
    before = copy.deepcopy(given)
    with pytest.raises(Exception, match=told):
        open_seat(source, train).student().train(given, X, Y)
    assert_agrees(given, before)


HARMLESS = {
    "a hook": "model.register_forward_hook(lambda *_: 1 / 0)",
    "no gradient": "model.requires_grad_(False)",
    "another class": "model[1].__class__ = type('Mine', (nn.Tanh,), {'training': 1 / 1})",
    "a weight shared": "model.again = model[2].weight",
    "a layer of the same form": "old, model[0] = model[0], nn.Linear(3, 5)\n"
    "    model[0].load_state_dict(old.state_dict())",
    "a method replaced": "nn.Module.state_dict = lambda *_: 1 / 0",
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_only_the_weights_by_path_count(open_seat: OpenSeat, change: str) -> None:
    source = (
        f"import torch\nfrom torch import nn\ndef train(model, x, y, rate=0.1):\n    {change}\n"
    )
    source += "    with torch.no_grad():\n        model[2].bias += 1\n"
    given = model()
    before = given.state_dict()["2.bias"].clone()
    open_seat(source, train).student().train(given, X, Y)
    assert torch.equal(given.state_dict()["2.bias"], before + 1)
    assert type(given[1]) is nn.Tanh


State, Data = wire.ModelState, wire.TensorData
FORGED: dict[str, tuple[Callable[[wire.ModelState], list[wire.ModelState]], type[Exception]]] = {
    "no model": (lambda _: [], StudentLost),
    "two models": (lambda m: [m, m], StudentLost),
    "a hundred models": (lambda m: 100 * [m], StudentLost),
    "a weight more": (lambda m: changed(m, m.state["0.bias"], path="3.weight"), StudentLost),
    "an array": (lambda m: changed(m, structs.replace(m.state["0.bias"], array=True)), StudentLost),
    "too few bytes": (lambda m: changed(m, Data("float32", (5,), b"..")), StudentLost),
    "a shape of 2**62": (lambda m: changed(m, Data("float32", (2**62,), b"")), ContractBroken),
    "a name for a dtype": (lambda m: changed(m, Data("object", (5,), b"")), ContractBroken),
    "no values": (lambda m: changed(m, Data("float32", (5,), b"", "meta")), ContractBroken),
    "10,000 modes": (lambda m: [State(m.state, 2500 * m.training)], ContractBroken),
    "a million modes": (lambda m: [State(m.state, 250_000 * m.training)], StudentLost),
    "a million paths": (
        lambda m: [State({str(n): m.state["0.bias"] for n in range(10_001)}, m.training)],
        StudentLost,
    ),
}


def changed(
    model: wire.ModelState, data: wire.TensorData, path: str = "0.bias"
) -> list[wire.ModelState]:
    return [State({**model.state, path: data}, model.training)]


class Forging(Wired):
    """A process that runs the reference, and forges what it says of the model."""

    def __init__(self, forge: Callable[[wire.ModelState], list[wire.ModelState]]) -> None:
        self._forge = forge
        self._guest = Guest({"train": train}.__getitem__)

    def ask(self, question: bytes, cpu_seconds: float, idle_seconds: float = 0.0) -> bytes:
        del cpu_seconds, idle_seconds
        request = wire.decode_request(question)
        if isinstance(request, wire.Open):
            return wire.encode(wire.Listing([wire.Found("train", "found", "function")]))
        reply = self._guest.answer(request)
        assert isinstance(reply, wire.Outcomes)
        *before, last = reply.outcomes
        assert isinstance(last, wire.Returned)
        models = self._forge(last.models[0])
        return wire.encode(wire.Outcomes([*before, structs.replace(last, models=models)]))

    def give_up(self, status: Loss, text: str) -> StudentLost:
        return StudentLost(status, text)

    def cpu_seconds(self) -> float:
        return 0.0

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("forge", "raised"), FORGED.values(), ids=FORGED)
def test_a_forged_reply_costs_the_test_and_changes_no_model(
    forge: Callable[[wire.ModelState], list[wire.ModelState]], raised: type[Exception]
) -> None:
    given = model()
    before = copy.deepcopy(given)
    student = seats.open_seat(lambda _: Forging(forge), "", train).student()
    with pytest.raises(raised):
        student.train(given, X, Y)
    assert_agrees(given, before)


# --- an evaluation -------------------------------------------------------------------------------

EVALUATIONS = {
    "a mode": ("model.eval()", "`model` was left in another mode"),
    "a mode of one layer": ("model[1].eval()", "`model` was left in another mode"),
    "a weight": ("model[0].bias.data.add_(1)", r"`model` was changed, in 0.bias"),
    "a buffer": ("model[3].running_mean[0] = 9", r"`model` was changed, in 3.running_mean"),
}


def evaluated(open_seat: OpenSeat, line: str) -> None:
    source = f"def logits(model, x):\n    {line}\n    return model(x)\n"
    given = small_model(MAKE, nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2), nn.BatchNorm1d(2))
    given[3].eval()
    assert_input_unchanged(open_seat(source, logits).student().logits, given, X)


def test_an_evaluation_may_leave_a_model_as_it_was(open_seat: OpenSeat) -> None:
    evaluated(open_seat, "model.eval().train()[3].eval()")


@pytest.mark.parametrize(("line", "told"), EVALUATIONS.values(), ids=EVALUATIONS)
def test_an_evaluation_that_changes_a_model_is_told(
    open_seat: OpenSeat, line: str, told: str
) -> None:
    with pytest.raises(AssertionError, match=told):
        evaluated(open_seat, line)


# --- models and signatures that an author may not use --------------------------------------------


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 2)


def tied() -> list[nn.Module]:
    layer = nn.Linear(3, 3)
    return [layer, layer]


def with_gradients() -> list[nn.Module]:
    layer = nn.Linear(3, 2)
    layer(torch.ones(3)).sum().backward()
    return [layer]


UNSUITABLE = {
    "gradients": (with_gradients(), r"gradients in \.grad are not sent: call model.zero_grad"),
    "an own class": ([Own()], "made of layers of torch.nn: .*Own is not among them"),
    "a layer of torch": ([nn.LSTM(3, 2)], "LSTM is not among them"),
    "a subclass": ([type("Linear", (nn.Linear,), {})(3, 2)], "Linear is not among them"),
    "a shared weight": (tied(), "use two layers"),
    "a large one": ([nn.Linear(600, 600)], "at most 262,144 numbers"),
    "an argument": ([nn.Conv1d(3, 2, 3, padding="same", padding_mode="circular")], "an argument"),
    "a weight that is computed": ([nn.utils.spectral_norm(nn.Linear(3, 2))], "cannot be sent"),
}


@pytest.mark.parametrize(("layers", "why"), UNSUITABLE.values(), ids=UNSUITABLE)
def test_a_model_of_other_layers_is_refused_where_the_author_makes_it(
    open_seat: OpenSeat, layers: list[nn.Module], why: str
) -> None:
    with pytest.raises(UnsuitableModel, match=why):
        small_model(MAKE, *layers)
    student = open_seat(BY_TORCH, train).student()
    with pytest.raises(ContractError, match=f"train: model: .*{why}"):
        student.train(nn.Sequential(*layers), X, Y)


def test_signatures_that_could_not_be_kept_are_refused() -> None:
    def trained(model: nn.Module) -> nn.Module:
        return model

    class Trainer(nn.Module):
        def forward(self, model: nn.Module) -> Tensor:
            return torch.zeros(len([*model.children()]))

    with pytest.raises(ContractError, match="annotate None"):
        compile_contract("trained", trained)
    with pytest.raises(ContractError, match="model is for a function"):
        compile_contract("Trainer", Trainer)


# --- generators ----------------------------------------------------------------------------------

BATCHES = [(X, 1), (X + 1, 2), (X * 2, 3)]


def test_batches_arrive_as_a_generator_on_both_sides(open_seat: OpenSeat) -> None:
    source = "def sums(batches):\n    return [x.sum() * weight for x, weight in iter(batches)]\n"
    seat = open_seat(source, sums)
    assert_agrees(seat.student().sums(BATCHES), seat.reference(MAKE).sums(BATCHES))


def test_a_generator_is_empty_the_second_time(open_seat: OpenSeat) -> None:
    source = "def twice(batches):\n    assert not hasattr(batches, '__len__')\n"
    source += "    return len([*batches]) + 10 * len([*batches])\n"
    seat = open_seat(source, twice)
    assert seat.student().twice([X, X, X]) == seat.reference(MAKE).twice([X, X, X]) == 3


def test_a_batch_that_was_changed_is_told(open_seat: OpenSeat) -> None:
    source = "def sums(batches):\n    return [x.add_(1).sum() for x, _ in batches]\n"
    with pytest.raises(AssertionError, match="`batches` was changed in place"):
        assert_input_unchanged(open_seat(source, sums).student().sums, BATCHES)


def test_a_test_passes_a_list_and_no_generator(open_seat: OpenSeat) -> None:
    seat = open_seat("def sums(batches): ...", sums)
    for definition in (seat.student().sums, seat.reference(MAKE).sums):
        with pytest.raises(ContractError, match="batches is a list or a tuple here"):
            definition(pair for pair in BATCHES)
