"""A test's model as a message: which layers are built from it, and which are not."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from grader import wire
from grader.wire import LayerData, payload
from grader.wire.models import LAYERS, training_of

EVERY_LAYER = nn.Sequential(
    nn.Embedding(7, 4, padding_idx=0),
    nn.Conv1d(6, 2, 3, padding=1),
    nn.Conv2d(1, 2, (2, 3), stride=2, bias=False),
    nn.MaxPool2d(2),
    nn.Sequential(nn.Linear(3, 5, bias=False), nn.LayerNorm((5, 2), eps=1e-3), nn.BatchNorm1d(2)),
    nn.Sequential(nn.Dropout(0.3), nn.Flatten(0, 1), nn.ReLU(), nn.LeakyReLU(0.2), nn.Tanh()),
    nn.Sequential(nn.Sigmoid(), nn.GELU("tanh"), nn.SiLU(), nn.Softmax(-1), nn.LogSoftmax(0)),
)


def sent(value: wire.Input) -> wire.Input:
    """The value after its way through a message."""
    request = wire.Run([wire.Invoke("f", [value], [], 1)])
    received = wire.decode_request(wire.encode(request))
    assert isinstance(received, wire.Run)
    assert isinstance(received.calls[0], wire.Invoke)
    return received.calls[0].arguments[0]


def test_every_layer_of_the_list_is_built_from_a_message() -> None:
    assert {type(part) for part in EVERY_LAYER.modules()} == {*LAYERS}
    EVERY_LAYER[4].eval()
    built = payload.unpack(sent(payload.pack_input(EVERY_LAYER)))
    assert repr(built) == repr(EVERY_LAYER)
    assert training_of(built) == training_of(EVERY_LAYER)
    torch.testing.assert_close(built.state_dict(), EVERY_LAYER.state_dict(), rtol=0, atol=0)


LINEAR: dict[str, wire.Plain] = {"in_features": 3, "out_features": 2, "bias": False}
WIDER = {**LINEAR, "in_features": 4}
WEIGHT = payload.pack_tensor(torch.ones(2, 3))
UNBUILDABLE: dict[str, tuple[LayerData, dict[str, wire.TensorData]]] = {
    "a class of torch": (LayerData("LSTM", {}), {}),
    "a name with a dot": (LayerData("os.system", {}), {}),
    "no class": (LayerData("", {}), {}),
    "an argument more": (LayerData("Linear", {**LINEAR, "device": "meta"}), {"weight": WEIGHT}),
    "an argument less": (LayerData("Linear", {"in_features": 3}), {"weight": WEIGHT}),
    "a weight more": (LayerData("Linear", LINEAR), {"weight": WEIGHT, "bias": WEIGHT}),
    "no weight": (LayerData("Linear", LINEAR), {}),
    "a weight of another size": (LayerData("Linear", WIDER), {"weight": WEIGHT}),
    "inside": (LayerData("Sequential", {}, {"0": LayerData("Module", {})}), {}),
}  # fmt: skip


@pytest.mark.parametrize(("layers", "state"), UNBUILDABLE.values(), ids=UNBUILDABLE)
def test_nothing_else_is_built(layers: LayerData, state: dict[str, wire.TensorData]) -> None:
    with pytest.raises(ValueError, match=r"is no layer of a model|do not fit the model's layers"):
        payload.unpack(sent(wire.ModelData(layers, state, [True])))


def test_no_reply_holds_a_model() -> None:
    model = payload.pack_input(nn.Sequential(nn.ReLU()))
    forged = wire.encode(wire.Outcomes([wire.Returned(model)]))  # type: ignore[arg-type]
    with pytest.raises(wire.WireError, match="declared form"):
        wire.decode_reply(forged)
