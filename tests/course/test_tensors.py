"""Seeded inputs: the same bits on every platform, and no draw depends on another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from grader.course.tensors import Make

MANY = 40_000


@pytest.fixture(name="draw")
def _draw() -> Make:
    return Make("public-2026", "softmax_rows", "test_rows[]")


def assert_bits(tensor: Tensor, hexadecimal: Sequence[str]) -> None:
    assert [value.hex() for value in tensor.flatten().tolist()] == list(hexadecimal)


# --- the table: also computed once with a Philox of our own, in integers -------------------------


def test_uniforms_have_the_bits_of_the_table(draw: Make) -> None:
    assert_bits(
        draw.uniform(name="weights", queries=2, keys=3, dtype=torch.float64),
        [
            "0x1.71e7d31e64562p-1",
            "0x1.f3a9cd15fb5c4p-1",
            "0x1.1954f5cd990eep-2",
            "0x1.99f8c762450f9p-1",
            "0x1.79f9f4712e24ep-1",
            "0x1.1bc1be01cbd32p-2",
        ],
    )


def test_uniforms_between_two_bounds_have_the_bits_of_the_table(draw: Make) -> None:
    assert_bits(
        draw.uniform(-1.5, 2.5, name="weights", queries=2, keys=3),
        [
            "0x1.63cfa60000000p+0",
            "0x1.33a9ce0000000p+1",
            "-0x1.9aac280000000p-2",
            "0x1.b3f18e0000000p+0",
            "0x1.73f3e80000000p+0",
            "-0x1.90f9080000000p-2",
        ],
    )


def test_normals_have_the_bits_of_the_table(draw: Make) -> None:
    assert_bits(
        draw.normal(name="scores", queries=2, keys=3, dtype=torch.float64),
        [
            "0x1.519b18840fad8p+0",
            "-0x1.1a1886aeb113ap+1",
            "-0x1.251ba962b8bc0p-3",
            "0x1.86b0c9c323628p+0",
            "-0x1.38ad37c757ee0p-2",
            "-0x1.c01eef71bb620p-2",
        ],
    )


def test_scaled_float32_normals_have_the_bits_of_the_table(draw: Make) -> None:
    assert_bits(
        draw.normal(0.7, name="scores", queries=2, keys=3),
        [
            "0x1.d8a5f00000000p-1",
            "-0x1.8aef220000000p+0",
            "-0x1.9a59ee0000000p-4",
            "0x1.117bc00000000p+0",
            "-0x1.b5bf4e0000000p-3",
            "-0x1.39af420000000p-2",
        ],
    )


def test_integers_are_those_of_the_table(draw: Make) -> None:
    tokens = draw.integers(-3, 50, name="tokens", batch=2, time=5)
    assert tokens.tolist() == [[24, 47, 22, 21, 47], [23, 40, 27, 17, 9]]


def test_booleans_are_those_of_the_table(draw: Make) -> None:
    keep = draw.booleans(0.3, name="keep", batch=2, time=5)
    assert keep.tolist() == [[False, False, True, False, False]] * 2


def test_unnamed_draws_have_the_bits_of_the_table(draw: Make) -> None:
    assert_bits(draw.uniform(tokens=2), ["0x1.097e740000000p-2", "0x1.4207d80000000p-1"])
    assert_bits(draw.uniform(tokens=2), ["0x1.8e21280000000p-3", "0x1.7d7f480000000p-2"])


def test_keys_beyond_ascii_have_the_bits_of_the_table() -> None:
    draw = Make("ключ", "übung", "test[é-1]")
    assert_bits(
        draw.normal(name="первый", tokens=3),
        ["-0x1.4d91ca0000000p+0", "-0x1.268c6a0000000p+0", "-0x1.2559500000000p-4"],
    )


def test_seeds_for_a_students_process_are_those_of_the_table(draw: Make) -> None:
    assert draw.seed("guest") == 47138952386717288
    assert Make("ключ", "übung", "test[é-1]").seed("x") == 1377802747433321393


# --- what a draw depends on ----------------------------------------------------------------------


def test_a_named_draw_does_not_depend_on_draws_before_it(draw: Make) -> None:
    alone = draw.normal(name="x", tokens=4)
    draw.normal(tokens=100)
    draw.uniform(name="y", tokens=17)
    assert torch.equal(draw.normal(name="x", tokens=4), alone)


def test_an_unnamed_draw_does_not_depend_on_the_sizes_of_draws_before_it() -> None:
    first, second = Make("s", "e", "t"), Make("s", "e", "t")
    first.normal(tokens=3)
    second.normal(tokens=400, d_in=5)
    assert torch.equal(first.normal(tokens=6), second.normal(tokens=6))


def test_a_named_draw_does_not_shift_the_unnamed_ones() -> None:
    first, second = Make("s", "e", "t"), Make("s", "e", "t")
    second.normal(name="bias", tokens=3)
    assert torch.equal(first.normal(tokens=6), second.normal(tokens=6))


def test_a_longer_uniform_draw_begins_like_a_shorter_one(draw: Make) -> None:
    longer = draw.uniform(name="x", tokens=40)
    assert torch.equal(longer[:15], draw.uniform(name="x", tokens=15))


@pytest.mark.parametrize(
    "other",
    [
        Make("t", "softmax", "test_rows"),
        Make("s", "causal_mask", "test_rows"),
        Make("s", "softmax", "test_columns"),
        Make("s", "softmaxtest", "_rows"),
        Make("ssoftmax", "", "test_rows"),
    ],
    ids=["seed", "exercise", "test", "where the names meet", "where the seed ends"],
)
def test_another_key_draws_other_numbers(other: Make) -> None:
    draw = Make("s", "softmax", "test_rows")
    assert not (draw.uniform(name="x", tokens=20) == other.uniform(name="x", tokens=20)).any()
    assert draw.seed("guest") != other.seed("guest")


def test_two_names_and_two_unnamed_draws_draw_other_numbers(draw: Make) -> None:
    draws = [draw.uniform(name="x", n=20), draw.uniform(name="y", n=20), draw.uniform(n=20)]
    draws.append(draw.uniform(n=20))
    assert len(set(torch.cat(draws).tolist())) == 80


def test_torchs_own_generator_is_neither_asked_nor_moved() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = Make("s", "e", "t").normal(tokens=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(Make("s", "e", "t").normal(tokens=5), first)


# --- what a draw looks like ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["uniform", "normal", "booleans"])
def test_a_shape_is_given_by_names_in_their_order(draw: Make, kind: str) -> None:
    drawn: Callable[..., Tensor] = getattr(draw, kind)
    assert drawn(batch=2, tokens=5, d_in=3).shape == (2, 5, 3)
    assert drawn(d_in=3, batch=2).shape == (3, 2)
    assert drawn().shape == ()
    assert drawn(batch=2, tokens=0).shape == (2, 0)


def test_integers_take_their_shape_from_names_too(draw: Make) -> None:
    assert draw.integers(0, 9, batch=2, tokens=5).shape == (2, 5)


def test_dtypes_are_those_of_the_contract(draw: Make) -> None:
    assert draw.uniform(n=2).dtype == draw.normal(n=2).dtype == torch.float32
    assert draw.normal(n=2, dtype=torch.float64).dtype == torch.float64
    assert draw.integers(0, 9, n=2).dtype == torch.int64
    assert draw.booleans(n=2).dtype == torch.bool


def test_a_normal_draw_like_a_tensor_has_its_shape_and_dtype(draw: Make) -> None:
    like = torch.empty(2, 3, dtype=torch.float64)
    drawn = draw.normal_like(like, 0.5, name="x")
    assert drawn.dtype == torch.float64
    assert torch.equal(drawn, draw.normal(0.5, name="x", a=2, b=3, dtype=torch.float64))


def test_float32_is_float64_rounded(draw: Make) -> None:
    for kind in (draw.uniform, draw.normal):
        wide = kind(name="x", n=200, dtype=torch.float64)
        assert torch.equal(kind(name="x", n=200), wide.to(torch.float32))


def test_a_draw_owns_its_memory(draw: Make) -> None:
    first = draw.uniform(name="x", tokens=3)
    first.zero_()
    assert draw.uniform(name="x", tokens=3).all()


# --- moments: bounds of six standard errors ------------------------------------------------------


def test_normals_have_mean_zero_and_the_variance_of_their_scale(draw: Make) -> None:
    drawn = draw.normal(1.5, n=MANY, dtype=torch.float64)
    assert abs(drawn.mean().item()) < 6 * 1.5 / math.sqrt(MANY)
    assert abs(drawn.var().item() / 1.5**2 - 1) < 6 * math.sqrt(2 / MANY)
    assert drawn.abs().max() < 6 * 1.5


def test_two_normals_in_three_lie_within_one_standard_deviation(draw: Make) -> None:
    inside = (draw.normal(n=MANY).abs() < 1).double().mean().item()
    assert abs(inside - 0.6785) < 6 * math.sqrt(0.22 / MANY)  # the share of Irwin and Hall


def test_uniforms_fill_their_interval(draw: Make) -> None:
    drawn = draw.uniform(-1, 3, n=MANY, dtype=torch.float64)
    assert -1 <= drawn.min() < -0.99
    assert 2.99 < drawn.max() < 3
    assert abs(drawn.mean().item() - 1) < 6 * 4 / math.sqrt(12 * MANY)
    assert abs(drawn.var().item() - 16 / 12) < 0.05


def test_integers_reach_the_lower_bound_and_stop_before_the_upper(draw: Make) -> None:
    counts = torch.bincount(draw.integers(2, 7, n=MANY), minlength=9)
    assert counts[:2].sum() == counts[7:].sum() == 0
    assert ((counts[2:7] - MANY / 5).abs() < 6 * math.sqrt(MANY * 0.2 * 0.8)).all()


def test_booleans_are_true_in_the_share_that_was_asked_for(draw: Make) -> None:
    share = draw.booleans(0.2, n=MANY).double().mean().item()
    assert abs(share - 0.2) < 6 * math.sqrt(0.2 * 0.8 / MANY)


def test_neighbours_do_not_depend_on_each_other(draw: Make) -> None:
    drawn = draw.normal(n=MANY, dtype=torch.float64)
    assert abs((drawn[1:] * drawn[:-1]).mean().item()) < 6 / math.sqrt(MANY)
