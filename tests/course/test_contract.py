"""Shape contracts: compiled from annotations, told in named dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from jaxtyping import (
    BFloat16,
    Bool,
    Complex64,
    Float,
    Float32,
    Float64,
    Int,
    Int32,
    Num,
    Shaped,
    UInt8,
)
from torch import Tensor, nn

from grader.course.contract import (
    Contract,
    ContractBroken,
    ContractError,
    Parameter,
    bind,
    call_order,
    check_result,
    compile_contract,
)
from grader.wire import Odd

# --- references: only their annotations are read -------------------------------------------------


def project(
    x: Float[Tensor, "batch tokens d_in"], weight: Float[Tensor, "d_in d_out"]
) -> Float[Tensor, "batch tokens d_out"]:
    raise NotImplementedError


def linear(
    x: Float[Tensor, "... d_in"],
    weight: Float[Tensor, "d_out d_in"],
    bias: Float[Tensor, " d_out"] | None = None,
) -> Float[Tensor, "... d_out"]:
    raise NotImplementedError


def split(
    x: Float[Tensor, "batch tokens d_out"], num_heads: int
) -> Float[Tensor, "batch num_heads tokens head_dim=d_out//num_heads"]:
    raise NotImplementedError


def step(x: Float[Tensor, "tokens d_in"], memory: object) -> tuple[Float[Tensor, " d_in"], Any]:
    raise NotImplementedError


def merge(
    x: Float[Tensor, "batch num_heads tokens head_dim"],
) -> Float[Tensor, "batch tokens num_heads*head_dim"]:
    raise NotImplementedError


def windows(tokens: int, size: int) -> Bool[Tensor, "tokens-size+1 size"]:
    raise NotImplementedError


def three(
    x: Float[Tensor, "... tokens d_in"], weight: Float[Tensor, "d_in d_out"]
) -> tuple[Float[Tensor, "... tokens d_out"], Float[Tensor, "... tokens d_out"]]:
    raise NotImplementedError


def causal(num_tokens: int) -> Bool[Tensor, "num_tokens num_tokens"]:
    raise NotImplementedError


def positions(x: Float[Tensor, "batch tokens d"]) -> Int[Tensor, "batch tokens"]:
    raise NotImplementedError


def masked(
    scores: Float[Tensor, "batch queries keys"],
    mask: Bool[Tensor, "batch queries keys"] | None = None,
) -> Float[Tensor, "batch queries keys"]:
    raise NotImplementedError


def total(x: Float[Tensor, " ..."]) -> Float[Tensor, ""]:
    raise NotImplementedError


def renamed(state: dict[str, Tensor]) -> dict[str, Tensor]:
    raise NotImplementedError


def chosen(logits: Float[Tensor, " vocab"], top_k: int | None = None) -> int:
    raise NotImplementedError


def attend(x: Float[Tensor, "tokens d_in"], scale: float, name: str = "") -> object:
    raise NotImplementedError


class Wrapper(nn.Module):
    def __init__(self, d_in: int, head_dim: int, num_heads: int, bias: bool = False) -> None:
        raise NotImplementedError

    def forward(
        self, x: Float[Tensor, "batch tokens d_in"]
    ) -> Float[Tensor, "batch tokens num_heads*head_dim"]:
        raise NotImplementedError


def judge(
    reference: Any, arguments: Sequence[Any], value: Any, made_with: Sequence[Any] = ()
) -> None:
    contract = compile_contract(reference.__name__, reference)
    binding = bind(contract, arguments, made_with)
    check_result(contract.name, contract.called, binding, value)


def complaint(
    reference: Any, arguments: Sequence[Any], value: Any, made_with: Sequence[Any] = ()
) -> str:
    with pytest.raises(ContractBroken) as caught:
        judge(reference, arguments, value, made_with)
    return str(caught.value)


X = torch.zeros(2, 5, 3)
WEIGHT = torch.zeros(3, 4)

# --- compiling -----------------------------------------------------------------------------------


def kinds(parameters: Sequence[Parameter]) -> list[tuple[str, str, bool]]:
    return [(p.name, p.kind, p.optional) for p in parameters]


def test_a_functions_parameters_are_compiled_in_order_with_their_kinds() -> None:
    contract = compile_contract("linear", linear)
    assert (contract.name, contract.kind, contract.forward) == ("linear", "function", None)
    assert kinds(contract.call.parameters) == [
        ("x", "tensor", False),
        ("weight", "tensor", False),
        ("bias", "tensor", True),
    ]


def test_integers_name_dimensions_and_other_values_do_not() -> None:
    assert kinds(compile_contract("attend", attend).call.parameters) == [
        ("x", "tensor", False),
        ("scale", "float", False),
        ("name", "string", True),
    ]
    assert kinds(compile_contract("split", split).call.parameters)[1] == ("num_heads", "int", False)


def test_a_modules_contract_covers_its_constructor_and_forward_without_self() -> None:
    contract = compile_contract("Wrapper", Wrapper)
    assert contract.kind == "module"
    assert [p.name for p in contract.call.parameters] == ["d_in", "head_dim", "num_heads", "bias"]
    assert contract.forward is not None
    assert [p.name for p in contract.forward.parameters] == ["x"]


def test_a_specification_reads_like_its_annotation() -> None:
    contract = compile_contract("split", split)
    assert str(contract.call.returns) == "(batch, num_heads, tokens, head_dim)"


def test_a_parameter_without_annotation_is_the_authors_error() -> None:
    def bare(x, weight: Float[Tensor, "d_in d_out"]):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    with pytest.raises(ContractError, match=r"bare: parameter 'x' has no annotation"):
        compile_contract("bare", bare)


@pytest.mark.parametrize("reference", [3, "softmax", int, torch.softmax])
def test_a_reference_that_is_no_function_and_no_module_is_the_authors_error(reference: Any) -> None:
    with pytest.raises(ContractError, match=r"softmax: .*function or an nn\.Module"):
        compile_contract("softmax", reference)


# --- results that keep the contract --------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "arguments", "value"),
    [
        (project, [X, WEIGHT], torch.zeros(2, 5, 4)),
        (linear, [X, torch.zeros(7, 3), None], torch.zeros(2, 5, 7)),
        (linear, [torch.zeros(3), torch.zeros(7, 3), torch.zeros(7)], torch.zeros(7)),
        (linear, [torch.zeros(6, 2, 5, 3), torch.zeros(7, 3)], torch.zeros(6, 2, 5, 7)),
        (split, [torch.zeros(2, 5, 12), 3], torch.zeros(2, 3, 5, 4)),
        (merge, [torch.zeros(2, 3, 5, 4)], torch.zeros(2, 5, 12)),
        (windows, [7, 3], torch.zeros(5, 3, dtype=torch.bool)),
        (three, [X, WEIGHT], (torch.zeros(2, 5, 4), torch.zeros(2, 5, 4))),
        (three, [X, WEIGHT], [torch.zeros(2, 5, 4), torch.zeros(2, 5, 4)]),
        (causal, [6], torch.zeros(6, 6, dtype=torch.bool)),
        (positions, [X], torch.zeros(2, 5, dtype=torch.int64)),
        (masked, [X, torch.zeros(1, 5, 3, dtype=torch.bool)], X),
        (renamed, [{"W": WEIGHT}], {"V": WEIGHT}),
        (attend, [X[0], 0.5], "anything at all"),
        (step, [X[0], None], (torch.zeros(3), {"seen": 5})),
        (chosen, [X[0, 0]], 2),
        (chosen, [X[0, 0], 3], torch.tensor(2)),
        (chosen, [X[0, 0], None], torch.tensor(2, dtype=torch.int32)),
        (project, [X.double(), WEIGHT.double()], torch.zeros(2, 5, 4, dtype=torch.float64)),
        (linear, [X.to("meta"), torch.zeros(7, 3)], torch.zeros(2, 5, 7, device="meta")),
    ],
)
def test_what_keeps_the_contract_is_accepted(
    reference: Any, arguments: Sequence[Any], value: Any
) -> None:
    judge(reference, arguments, value)


def test_a_modules_result_is_measured_with_the_constructors_arguments() -> None:
    judge(Wrapper, [X], torch.zeros(2, 5, 28), made_with=[3, 4, 7])
    message = complaint(Wrapper, [X], torch.zeros(2, 5, 4), made_with=[3, 4, 7])
    assert message.endswith("num_heads*head_dim should be 28, not 4")


def test_one_part_of_a_result_may_be_anything_and_the_others_are_checked() -> None:
    message = complaint(step, [X[0], None], (torch.zeros(4), "whatever"))
    assert message.startswith("result 1 of step should be shape (d_in=3), got (4")


def test_what_may_be_anything_must_be_sendable() -> None:
    memory = {"seen": 5, "past": [None, (X, Odd("an object of type Memory"))]}
    message = complaint(step, [X[0], None], (torch.zeros(3), memory))
    assert message.startswith(
        "result 2 of step holds an object of type Memory, which cannot leave your code"
    )


# --- shapes: expected, got, and what to look at --------------------------------------------------


def test_a_message_shows_the_expected_dimensions_by_name_and_the_actual_shape() -> None:
    message = complaint(project, [X, WEIGHT], torch.zeros(2, 5, 7))
    assert message.startswith("project should return shape (batch=2, tokens=5, d_out=4), got (2, 5")


@pytest.mark.parametrize(
    ("reference", "arguments", "shape", "guess"),
    [
        (project, [X, WEIGHT], (2, 4, 5), "tokens and d_out look swapped"),
        (project, [X, WEIGHT], (5, 2, 4), "batch and tokens look swapped"),
        (project, [X, WEIGHT], (4, 2, 5), "the dimensions look like (d_out, batch, tokens)"),
        (project, [X, WEIGHT], (5, 4), "the batch dimension is missing"),
        (project, [X, WEIGHT], (2, 4), "the tokens dimension is missing"),
        (project, [X, WEIGHT], (2, 5), "the d_out dimension is missing"),
        (project, [X, WEIGHT], (2, 5, 7), "d_out should be 4, not 7"),
        (project, [X, WEIGHT], (2, 5, 5), "d_out should be 4, not 5, which is the size of tokens"),
        (project, [X, WEIGHT], (2, 1, 5, 4), "there is an extra dimension of size 1"),
        (project, [X, WEIGHT], (1, 2, 5, 4), "there is an extra dimension of size 1"),
        (project, [X, WEIGHT], (2, 5, 4, 6), "there are more dimensions than the contract names"),
        (
            split,
            [torch.zeros(2, 5, 12), 3],
            (2, 5, 3, 4),
            "num_heads and tokens look swapped",
        ),
        (
            split,
            [torch.zeros(2, 5, 12), 3],
            (2, 3, 5, 12),
            "head_dim should be 4, not 12",
        ),
        (
            merge,
            [torch.zeros(2, 3, 5, 4)],
            (2, 5, 4),
            "num_heads*head_dim should be 12, not 4",
        ),
        (linear, [X, torch.zeros(7, 3)], (2, 5, 3), "d_out should be 7, not 3"),
        (linear, [X, torch.zeros(7, 3)], (5, 2, 7), "leading dimension 1 and leading dimension 2"),
        (linear, [X, torch.zeros(7, 3)], (5, 7), "the leading dimension 1 dimension is missing"),
        (Wrapper, [X], (2, 28, 5), "tokens and num_heads*head_dim look swapped"),
    ],
)
def test_a_message_says_which_dimension_went_wrong(
    reference: Any, arguments: Sequence[Any], shape: tuple[int, ...], guess: str
) -> None:
    made_with = [3, 4, 7] if reference is Wrapper else []
    assert guess in complaint(reference, arguments, torch.zeros(shape), made_with)


@pytest.mark.parametrize("shape", [(7, 7, 7), (7, 5, 7), (4,), (), (2, 5, 1, 9), (0, 5, 9)])
def test_a_shape_that_says_nothing_gets_no_guess(shape: tuple[int, ...]) -> None:
    message = complaint(project, [X, WEIGHT], torch.zeros(shape))
    assert message.endswith(f"got ({', '.join(map(str, shape))})")


def test_sizes_that_occur_twice_are_never_called_swapped() -> None:
    square = torch.zeros(2, 4, 4)
    message = complaint(masked, [square], torch.zeros(4, 2, 4))
    assert "shape (batch=2, queries=4, keys=4), got (4, 2, 4)" in message
    assert "swapped" not in message


def test_leading_dimensions_are_shown_by_their_sizes_alone() -> None:
    message = complaint(linear, [X, torch.zeros(7, 3)], torch.zeros(9, 9, 9, 9))
    assert "shape (2, 5, d_out=7)" in message


def test_a_scalar_is_promised_by_an_empty_specification() -> None:
    judge(total, [X], torch.zeros(()))
    assert "shape (), got (1)" in complaint(total, [X], torch.zeros(1))


# --- types, dtypes, devices ----------------------------------------------------------------------


def test_none_asks_for_the_return() -> None:
    message = complaint(project, [X, WEIGHT], None)
    assert message == "project should return a tensor, got None: is there a `return` at the end?"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", "got str 'text'"),
        (1.5, "got float '1.5'"),
        ((X, X), "got a tuple of 2 items"),
        ([X], "got a list of 1 item"),
    ],
)
def test_what_is_no_tensor_is_named(value: Any, told: str) -> None:
    message = complaint(project, [X, WEIGHT], value)
    assert message.startswith("project should return a tensor, ")
    assert told in message
    assert "`return`" not in message


def test_a_wrong_float_dtype_is_told_with_the_rule() -> None:
    message = complaint(project, [X.double(), WEIGHT.double()], torch.zeros(2, 5, 4))
    assert "float64 values, got float32: the result should have the input's dtype" in message


@pytest.mark.parametrize(
    ("reference", "arguments", "value", "told"),
    [
        (causal, [2], torch.zeros(2, 2), "bool values, got float32"),
        (causal, [2], torch.zeros(2, 2, dtype=torch.int64), "bool values, got int64"),
        (positions, [X], torch.zeros(2, 5), "int64 values, got float32"),
        (positions, [X], torch.zeros(2, 5, dtype=torch.int32), "int64 values, got int32"),
        (masked, [X], X.bool(), "float32 values, got bool"),
        (masked, [X.bfloat16()], X.half(), "bfloat16 values, got float16"),
    ],
)
def test_a_wrong_dtype_is_named(
    reference: Any, arguments: Sequence[Any], value: Tensor, told: str
) -> None:
    assert told in complaint(reference, arguments, value)


def test_a_shape_is_told_before_a_dtype() -> None:
    message = complaint(project, [X, WEIGHT], torch.zeros(2, 5, dtype=torch.float64))
    assert "d_out dimension is missing" in message
    assert "float64" not in message


def test_a_result_made_on_another_device_is_told() -> None:
    weight = torch.zeros(3, 4, device="meta")
    message = complaint(project, [X.to("meta"), weight], torch.zeros(2, 5, 4))
    assert "on device meta, like the input, got cpu" in message


def mark(lengths: Int[Tensor, " batch"], size: int) -> Bool[Tensor, "batch size"]:
    raise NotImplementedError


def test_whole_numbers_tell_the_device_too() -> None:
    lengths = torch.tensor([1, 2]).to("meta")
    here, there = (
        torch.zeros(2, 3, dtype=torch.bool),
        torch.zeros(2, 3, dtype=torch.bool).to("meta"),
    )
    judge(mark, [lengths, 3], there)
    assert "on device meta, like the input, got cpu" in complaint(mark, [lengths, 3], here)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ((X,), "three should return 2 tensors, got a tuple of 1 item"),
        ([X, X, X], "three should return 2 tensors, got a list of 3 items"),
        (X, "three should return 2 tensors, got a tensor of shape (2, 5, 3)"),
        (None, "three should return 2 tensors, got None: is there a `return` at the end?"),
    ],
)
def test_a_tuple_of_another_length_is_told(value: Any, told: str) -> None:
    assert complaint(three, [X, WEIGHT], value) == told


def test_the_part_of_a_tuple_that_is_wrong_is_numbered() -> None:
    right = torch.zeros(2, 5, 4)
    message = complaint(three, [X, WEIGHT], (right, right.transpose(1, 2)))
    assert message.startswith("result 2 of three should be shape (2, tokens=5, d_out=4), got (2, 4")
    assert "result 1 of three should be a tensor, got None" in complaint(
        three, [X, WEIGHT], (None, right)
    )


def test_a_dictionary_is_asked_for_by_name() -> None:
    message = complaint(renamed, [{}], [("W", WEIGHT)])
    assert message == "renamed should return a dictionary, got a list of 1 item"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (2.0, "got float '2.0'"),
        (True, "got bool 'True'"),
        (None, "got None: is there a `return` at the end?"),
        (torch.tensor([2]), "got a tensor of shape (1,) with int64 values"),
        (torch.tensor(2.0), "got a tensor of shape () with float32 values"),
        (torch.tensor(True), "got a tensor of shape () with bool values"),
    ],
)
def test_an_integer_is_asked_for_as_a_number_or_a_tensor_without_dimensions(
    value: Any, told: str
) -> None:
    message = complaint(chosen, [X[0, 0]], value)
    assert message == f"chosen should return an int, {told}"


# --- the author's own mistakes are never the student's -------------------------------------------


@pytest.mark.parametrize(
    ("reference", "arguments"),
    [
        (project, [X, WEIGHT, X]),
        (project, [X, torch.zeros(4, 3)]),
        (project, [torch.zeros(5), WEIGHT]),
        (project, [torch.zeros(9, 2, 5, 3), WEIGHT]),
        (project, [X]),
        (project, [X, [1.0]]),
        (linear, [X, torch.zeros(7, 3), torch.zeros(3)]),
        (causal, ["six"]),
    ],
    ids=[
        "too many",
        "two sizes for d_in",
        "too few dimensions",
        "too many dimensions",
        "too few",
        "no tensor",
        "two sizes for d_out",
        "no integer",
    ],
)
def test_arguments_that_break_the_contract_are_the_authors_error(
    reference: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    with pytest.raises(ContractError):
        bind(compile_contract("exercise", reference), arguments)


def test_an_argument_of_a_call_that_contradicts_the_constructor_is_the_authors_error() -> None:
    contract = compile_contract("Wrapper", Wrapper)
    bind(contract, [X], made_with=[3, 4, 7])
    with pytest.raises(ContractError, match="d_in is 8 and also 3"):
        bind(contract, [X], made_with=[8, 4, 7])


def unknown(x: Float[Tensor, "tokens d"]) -> Float[Tensor, "tokens heads*d"]:
    raise NotImplementedError


def divided(x: Float[Tensor, "tokens d"]) -> Float[Tensor, "tokens d/2"]:
    raise NotImplementedError


def leading(x: Float[Tensor, "tokens d"]) -> Float[Tensor, "... d"]:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (unknown, "no argument has the size 'heads'; if it depends on values, write _heads"),
        (leading, "no argument has the size '...'"),
        (divided, "d/2 is no dimension"),
    ],
)
def test_a_dimension_that_cannot_be_worked_out_is_refused_at_the_reference(
    reference: Any, told: str
) -> None:
    with pytest.raises(ContractError) as refused:
        compile_contract("f", reference)
    assert str(refused.value).startswith(f"{__file__}:{reference.__code__.co_firstlineno}: f: ")
    assert told in str(refused.value)


def runs(x: Float[Tensor, "steps d"]) -> Float[Tensor, "_runs d"]:
    raise NotImplementedError


def test_a_size_that_depends_on_values_is_free_and_the_others_are_not() -> None:
    x = torch.zeros(5, 4)
    for size in (0, 3, 9):
        judge(runs, [x], torch.zeros(size, 4))
    for result, got in ((torch.zeros(3, 5), "(3, 5)"), (torch.zeros(4), "(4)")):
        with pytest.raises(ContractBroken, match=re.escape(f"shape (runs, d=4), got {got}")):
            judge(runs, [x], result)


# --- the order of a student's arguments ----------------------------------------------------------

ALIASES = {"d_in": ("input_dim", "in_features"), "num_heads": ("n_heads", "h"), "bias": ()}


def order(
    names: Sequence[str], aliases: Mapping[str, Sequence[str]] = ALIASES
) -> tuple[int, ...] | None:
    contract: Contract = compile_contract("Wrapper", Wrapper)
    found = call_order(contract.call, dict.fromkeys(names, False), aliases)
    return None if found is None else tuple(found.values())


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["num_heads", "d_in", "head_dim", "bias"], (2, 0, 1, 3)),
        (["head_dim", "d_in", "num_heads"], (1, 0, 2)),
        (["n_heads", "input_dim", "head_dim"], (2, 0, 1)),
        (["NHeads", "InFeatures", "headdim", "bias"], (2, 0, 1, 3)),
        (["h", "_d_in_", "Head_Dim"], (2, 0, 1)),
    ],
)
def test_arguments_in_another_order_are_understood_by_name_or_alias(
    names: Sequence[str], found: tuple[int, ...]
) -> None:
    assert order(names) == found


@pytest.mark.parametrize(
    "names",
    [
        ["d_in", "head_dim", "num_heads", "bias"],
        ["input_dim", "head_dim", "n_heads"],
        ["num_heads", "head_dim", "mystery", "bias"],
        ["a", "b", "c"],
        ["num_heads", "n_heads", "d_in"],
        [],
    ],
    ids=["the contract's", "the contract's by alias", "one unknown", "unknown", "twice", "none"],
)
def test_otherwise_the_order_is_the_contracts(names: Sequence[str]) -> None:
    assert order(names) is None


def test_a_default_of_their_own_before_ours_makes_the_call_go_by_name() -> None:
    contract: Contract = compile_contract("Wrapper", Wrapper)
    names = {"d_in": False, "verbose": True, "head_dim": False, "num_heads": False}
    assert call_order(contract.call, names, ALIASES) == {"d_in": 0, "head_dim": 1, "num_heads": 2}
    last = {"d_in": False, "head_dim": False, "num_heads": False, "verbose": True}
    assert call_order(contract.call, last, ALIASES) is None


@pytest.mark.parametrize(
    ("annotation", "dtype"),
    [
        (Float64, torch.float64), (Float32, torch.float32), (BFloat16, torch.bfloat16),
        (Int32, torch.int32), (UInt8, torch.uint8),
        (Int, torch.int64), (Bool, torch.bool), (Float, torch.float16),
    ],
)  # fmt: skip
def test_a_result_has_the_dtype_that_the_annotation_says(
    annotation: Any, dtype: torch.dtype
) -> None:
    def exact(x: Tensor) -> Tensor:
        raise NotImplementedError

    exact.__annotations__ = {"x": Float[Tensor, " n"], "return": annotation[Tensor, " n"]}
    contract = compile_contract("exact", exact)
    x = torch.ones(2, dtype=torch.float16)
    binding = bind(contract, (x,))
    check_result("exact", contract.call, binding, torch.ones(2, dtype=dtype))
    other = torch.float64 if dtype != torch.float64 else torch.int64
    with pytest.raises(
        ContractBroken, match=f"should return .*{str(dtype).removeprefix('torch.')}"
    ):
        check_result("exact", contract.call, binding, torch.ones(2, dtype=other))


@pytest.mark.parametrize("annotation", [Num, Shaped, Complex64])
def test_an_annotation_that_allows_several_dtypes_is_refused(annotation: Any) -> None:
    def vague(x: Tensor) -> Tensor:
        raise NotImplementedError

    vague.__annotations__ = {"x": annotation[Tensor, " n"], "return": Float[Tensor, " n"]}
    with pytest.raises(ContractError, match="use Float, Int or Bool, or one dtype of torch"):
        compile_contract("vague", vague)
