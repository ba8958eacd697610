"""Hidden graders of unit 8, positions.

Positions stay below 128, and tables narrow: further out, right spellings of an angle in float32
differ by more than the tolerance.
"""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    REORDERED,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
)

# --- sinusoidal_positions ------------------------------------------------------------------------


@rung.shape("sinusoidal_positions")
@pytest.mark.parametrize(("num_tokens", "d_model"), [(5, 6), (3, 8)])
def test_sinusoidal_positions_has_the_shape_of_the_contract(student, num_tokens, d_model):
    """There is a row for each position, d_model wide, in the default dtype."""
    student.sinusoidal_positions(num_tokens, d_model)


@rung.value("sinusoidal_positions", points=6)
@pytest.mark.parametrize(("num_tokens", "d_model"), [(6, 4), (7, 10), (11, 6), (5, 12)])
def test_sinusoidal_positions_agrees_with_the_reference(student, reference, num_tokens, d_model):
    """Each pair of features holds the sine and the cosine of one angle."""
    theirs = student.sinusoidal_positions(num_tokens, d_model)
    assert_agrees(theirs, reference.sinusoidal_positions(num_tokens, d_model))


@rung.property("sinusoidal_positions", rules=("sizes",))
def test_sinusoidal_positions_needs_no_more_than_one_pair(student, reference):
    """A single pair of features turns by one radian a token."""
    assert_agrees(student.sinusoidal_positions(9, 2), reference.sinusoidal_positions(9, 2))


@rung.property("sinusoidal_positions", rules=("sizes",))
def test_sinusoidal_positions_needs_no_more_than_one_token(student, reference):
    """A single token is at position 0."""
    assert_agrees(student.sinusoidal_positions(1, 6), reference.sinusoidal_positions(1, 6))


@rung.property("sinusoidal_positions", points=2, rules=("sizes",))
def test_sinusoidal_positions_fits_a_long_sequence(student, reference):
    """The table of 100 tokens is right to its end."""
    assert_agrees(student.sinusoidal_positions(100, 8), reference.sinusoidal_positions(100, 8))


# --- apply_rope ----------------------------------------------------------------------------------

LAYOUTS = {
    "tokens alone": {"tokens": 7, "d": 6},
    "a batch": {"batch": 2, "tokens": 5, "d": 4},
    "a batch with heads": {"batch": 2, "heads": 3, "tokens": 6, "d": 8},
    "one more dimension": {"groups": 3, "batch": 2, "heads": 4, "tokens": 5, "d": 12},
}

POSITIONS = {
    "unordered": [7, 0, 3, 100, 2],
    "not from 0": [40, 41, 42, 43, 44],
    "far apart": [1, 32, 64, 95, 127],
    "the same twice": [5, 5, 9, 0, 9],
}


@rung.shape("apply_rope")
@pytest.mark.parametrize(("tokens", "d"), [(5, 8), (7, 6)])
def test_apply_rope_has_the_shape_of_the_contract(student, make, tokens, d):
    """The result has the shape and dtype of x."""
    student.apply_rope(make.normal(batch=2, heads=3, tokens=tokens, d=d), torch.arange(tokens))


@rung.value("apply_rope", points=5)
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(sizes, id=name, marks=() if name == "tokens alone" else rung.quotes("leading"))
        for name, sizes in LAYOUTS.items()
    ],
)
def test_apply_rope_agrees_with_the_reference(student, reference, make, sizes):
    """Neighbouring features turn as pairs, for any leading dimensions."""
    x, positions = make.normal(2.0, **sizes), torch.arange(sizes["tokens"])
    assert_agrees(
        student.apply_rope(x, positions), reference.apply_rope(x, positions), within=REORDERED
    )


@rung.value("apply_rope", points=3, rules=("positions", "computes"))
@pytest.mark.parametrize("numbers", POSITIONS.values(), ids=POSITIONS.keys())
def test_apply_rope_takes_positions_as_they_come(student, reference, make, numbers):
    """Positions may start anywhere, in any order, with gaps."""
    x, positions = make.normal(2.0, batch=2, heads=3, tokens=5, d=8), torch.tensor(numbers)
    assert_agrees(
        student.apply_rope(x, positions), reference.apply_rope(x, positions), within=REORDERED
    )


@rung.value("apply_rope", points=2)
@pytest.mark.parametrize("theta", [100.0, 500000.0])
def test_apply_rope_takes_theta_as_it_comes(student, reference, make, theta):
    """Another theta gives other speeds."""
    x, positions = make.normal(2.0, batch=2, heads=3, tokens=7, d=6), torch.arange(7)
    theirs, ours = (
        student.apply_rope(x, positions, theta),
        reference.apply_rope(x, positions, theta),
    )
    assert_agrees(theirs, ours, within=REORDERED)


@rung.property("apply_rope", rules=("sizes",))
def test_apply_rope_needs_no_more_than_one_pair(student, reference, make):
    """With d = 2 a single pair turns by one radian a position."""
    x = make.normal(2.0, batch=2, heads=3, tokens=4, d=2)
    positions = torch.tensor([6, 1, 0, 9])
    assert_agrees(
        student.apply_rope(x, positions), reference.apply_rope(x, positions), within=REORDERED
    )


@rung.property("apply_rope", rules=("sizes",))
def test_apply_rope_turns_one_token_of_one_sentence(student, reference, make):
    """The result is right for one token of one head and sentence, as in step-by-step decoding."""
    for position in (0, 23):
        x, positions = make.normal(2.0, batch=1, heads=1, tokens=1, d=6), torch.tensor([position])
        theirs, ours = student.apply_rope(x, positions), reference.apply_rope(x, positions)
        assert_agrees(theirs, ours, within=REORDERED, what=f"one token at position {position}")


@rung.property("apply_rope", rules=("dtype",))
def test_apply_rope_keeps_float64(student, reference, make):
    """In float64, the result is float64, to full precision."""
    # With d = 4 or 8, speeds are 1/10, 1/100, …, whose inverses are exact in float32.
    x = make.normal(2.0, batch=2, tokens=5, d=14, dtype=torch.float64)
    positions = torch.tensor([7, 0, 3, 100, 2])
    theirs, ours = student.apply_rope(x, positions), reference.apply_rope(x, positions)
    assert_agrees_to_float64(theirs, ours, within=ALL_DIGITS)


@rung.property("apply_rope", rules=("unchanged",))
def test_apply_rope_leaves_both_arguments_alone(student, make):
    """Neither x nor the positions are changed in place."""
    x = make.normal(batch=2, tokens=5, d=6)
    assert_input_unchanged(student.apply_rope, x, torch.tensor([7, 0, 3, 100, 2]))


@rung.gradient("apply_rope", rules=("gradients",))
def test_apply_rope_has_the_right_gradient(student, reference, make):
    """Gradients flow back to x, turned the other way."""
    positions = torch.tensor([7, 0, 3, 100, 2])
    assert_gradients_agree(
        lambda x: student.apply_rope(x, positions),
        lambda x: reference.apply_rope(x, positions),
        make.normal(batch=2, heads=3, tokens=5, d=6),
        make=make,
    )


# --- alibi_bias ----------------------------------------------------------------------------------


@rung.shape("alibi_bias")
@pytest.mark.parametrize(("num_heads", "num_tokens"), [(4, 7), (8, 3)])
def test_alibi_bias_has_the_shape_of_the_contract(student, num_heads, num_tokens):
    """There is a square of queries and keys for each head, in the default dtype."""
    student.alibi_bias(num_heads, num_tokens)


@rung.value("alibi_bias", points=6)
@pytest.mark.parametrize(("num_heads", "num_tokens"), [(2, 5), (4, 7), (8, 6), (16, 9)])
def test_alibi_bias_agrees_with_the_reference(student, reference, num_heads, num_tokens):
    """Each head's bias falls at its own rate, and is minus infinity for the future."""
    theirs = student.alibi_bias(num_heads, num_tokens)
    assert_agrees(theirs, reference.alibi_bias(num_heads, num_tokens))


@rung.property("alibi_bias", rules=("sizes",))
def test_alibi_bias_needs_no_more_than_one_head(student, reference):
    """A single head has a single slope, 1/256."""
    assert_agrees(student.alibi_bias(1, 6), reference.alibi_bias(1, 6))


@rung.property("alibi_bias", rules=("sizes",))
def test_alibi_bias_needs_no_more_than_one_token(student, reference):
    """A single token sees only itself, at distance 0."""
    assert_agrees(student.alibi_bias(4, 1), reference.alibi_bias(4, 1))


@rung.property("alibi_bias", rules=("sizes",))
def test_alibi_bias_fits_a_long_sequence(student, reference):
    """The bias of 100 tokens is right to its last row."""
    assert_agrees(student.alibi_bias(8, 100), reference.alibi_bias(8, 100))


# --- sliding_window_mask -------------------------------------------------------------------------


@rung.shape("sliding_window_mask")
@pytest.mark.parametrize(("num_tokens", "window"), [(7, 3), (4, 2)])
def test_sliding_window_mask_has_the_shape_of_the_contract(student, num_tokens, window):
    """The mask is boolean, num_tokens by num_tokens."""
    student.sliding_window_mask(num_tokens, window)


@rung.value("sliding_window_mask", points=4)
@pytest.mark.parametrize(("num_tokens", "window"), [(7, 2), (7, 3), (7, 6), (10, 4)])
def test_sliding_window_mask_agrees_with_the_reference(student, reference, num_tokens, window):
    """A token sees itself and the window - 1 tokens before it, and nothing else."""
    theirs = student.sliding_window_mask(num_tokens, window)
    assert_agrees(theirs, reference.sliding_window_mask(num_tokens, window))


@rung.property("sliding_window_mask", rules=("sizes",))
@pytest.mark.parametrize("num_tokens", [1, 7])
def test_sliding_window_mask_of_one_shows_a_token_itself(student, reference, num_tokens):
    """With a window of one, a token sees only itself."""
    theirs = student.sliding_window_mask(num_tokens, 1)
    assert_agrees(theirs, reference.sliding_window_mask(num_tokens, 1))


@rung.property("sliding_window_mask", rules=("sizes",))
@pytest.mark.parametrize(("num_tokens", "window"), [(7, 7), (7, 9), (3, 100)])
def test_sliding_window_mask_may_be_wider_than_the_sentence(student, reference, num_tokens, window):
    """A window as long as the sentence, or longer, hides nothing but the future."""
    theirs = student.sliding_window_mask(num_tokens, window)
    assert_agrees(theirs, reference.sliding_window_mask(num_tokens, window))
