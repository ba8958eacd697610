"""Public checks of unit 8, positions."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    PRINTED,
    REORDERED,
    UNMOVED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_that,
)

INF = torch.inf

# --- sinusoidal_positions ------------------------------------------------------------------------


@rung.shape("sinusoidal_positions")
def test_sinusoidal_positions_has_a_row_for_each_position(student):
    """There is a row for each position, d_model wide, in the default dtype."""
    student.sinusoidal_positions(5, 8)


@rung.value("sinusoidal_positions")
def test_sinusoidal_positions_of_three_tokens(student):
    """Three tokens of four features have the table of the example."""
    expected = torch.tensor(
        [
            [0.0, 1.0, 0.0, 1.0],
            [0.84147, 0.54030, 0.0099998, 0.99995],
            [0.90930, -0.41615, 0.0199987, 0.99980],
        ]
    )
    result = student.sinusoidal_positions(3, 4)
    assert_agrees(result, expected, within=PRINTED, what="the table of three tokens")


@rung.value("sinusoidal_positions")
@pytest.mark.parametrize(("num_tokens", "d_model"), [(5, 6), (10, 8)])
def test_sinusoidal_positions_fits_any_size(student, reference, num_tokens, d_model):
    """The table is right for other numbers of tokens and features."""
    theirs = student.sinusoidal_positions(num_tokens, d_model)
    assert_agrees(theirs, reference.sinusoidal_positions(num_tokens, d_model))


@rung.property("sinusoidal_positions", rules=("sizes",))
def test_sinusoidal_positions_of_a_single_pair(student, reference):
    """The table is right for one pair of features, for one token and for 80 tokens."""
    for num_tokens, d_model in ((4, 2), (1, 10), (80, 4)):
        theirs = student.sinusoidal_positions(num_tokens, d_model)
        ours = reference.sinusoidal_positions(num_tokens, d_model)
        assert_agrees(theirs, ours, what=f"the table ({num_tokens}, {d_model})")


# --- apply_rope ----------------------------------------------------------------------------------


@rung.shape("apply_rope")
def test_apply_rope_keeps_the_shape(student, make):
    """The result has the shape and dtype of x, with and without heads."""
    student.apply_rope(make.normal(batch=2, heads=3, tokens=5, d=8), torch.arange(5))
    student.apply_rope(make.normal(tokens=5, d=6), torch.arange(5))


@rung.value("apply_rope", rules=("computes", "positions"))
def test_apply_rope_turns_the_token_of_the_example(student):
    """At position 0 no pair turns; at position 2 the pairs turn by 2 and by 0.02."""
    x = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
    expected = torch.tensor([[1.0, 0.0, 0.0, 1.0], [-0.41615, 0.90930, -0.0199987, 0.99980]])
    result = student.apply_rope(x, torch.tensor([0, 2]))
    assert_agrees(result, expected, within=PRINTED, what="the token of the example")


@rung.value("apply_rope")
@pytest.mark.parametrize(
    "leading",
    [
        pytest.param({}, id="tokens alone"),
        pytest.param({"batch": 2, "heads": 3}, id="heads", marks=rung.quotes("leading")),
    ],
)
def test_apply_rope_works_for_other_sizes(student, reference, make, leading):
    """At positions from 0 on, other sizes are right, with and without a batch and heads."""
    x = make.normal(**leading, tokens=5, d=8)
    assert_agrees(student.apply_rope(x, torch.arange(5)), reference.apply_rope(x, torch.arange(5)))


@rung.value("apply_rope", rules=("positions", "computes"))
def test_apply_rope_uses_the_positions_it_is_given(student, reference, make):
    """Positions need not start at 0, be in order, or be consecutive."""
    x = make.normal(tokens=4, d=6)
    for numbers in ([10, 11, 12, 13], [9, 0, 4, 30]):
        positions = torch.tensor(numbers)
        theirs, ours = student.apply_rope(x, positions), reference.apply_rope(x, positions)
        assert_agrees(theirs, ours, within=REORDERED, what=f"the result at positions {numbers}")


@rung.value("apply_rope")
def test_apply_rope_uses_the_theta_it_is_given(student, reference, make):
    """Another theta gives other angles."""
    x, positions = make.normal(tokens=6, d=4), torch.arange(6)
    theirs, ours = (
        student.apply_rope(x, positions, 100.0),
        reference.apply_rope(x, positions, 100.0),
    )
    assert_agrees(theirs, ours, within=REORDERED, what="the result for theta = 100")


@rung.property("apply_rope", rules=("positions",))
def test_apply_rope_changes_no_length(student, make):
    """A rotation keeps the length of each pair, at any position."""
    x = make.normal(tokens=5, d=8)
    turned = student.apply_rope(x, torch.tensor([7, 63, 64, 11, 120]))
    before, after = (pairs.unflatten(-1, (-1, 2)).norm(dim=-1) for pairs in (x, turned))
    assert_that(
        agree(before, after, within=UNMOVED),
        "the length of some pair of features, (0, 1) or (2, 3) and so on, has changed: a rotation "
        "keeps the length of a pair",
    )


@rung.property("apply_rope", rules=("positions",))
def test_apply_rope_makes_scores_see_distances_only(student, make):
    """The dot product of a turned query and a turned key depends on their distance only."""
    query, key = make.normal(tokens=1, d=8), make.normal(tokens=1, d=8)

    def score(at_query, at_key):
        turned_query = student.apply_rope(query, torch.tensor([at_query]))
        turned_key = student.apply_rope(key, torch.tensor([at_key]))
        return (turned_query * turned_key).sum()

    near, far = score(5, 2), score(105, 102)
    assert_that(
        agree(near, far, within=UNMOVED),
        f"a query 3 tokens behind its key scores {near:.4f} at position 5, and {far:.4f} at "
        "position 105: the distance is the same, so the score should be the same",
    )
    assert_that(
        not agree(near, score(5, 0), within=UNMOVED),
        "a query gives a key the same score from 3 tokens away and from 5 tokens away",
    )


@rung.property("apply_rope", rules=("sizes",))
def test_apply_rope_turns_a_single_pair_of_a_single_token(student, reference, make):
    """The result is right for a single pair of features and for a single token."""
    for tokens, d in ((4, 2), (1, 6)):
        x, positions = make.normal(tokens=tokens, d=d), torch.arange(tokens)
        theirs, ours = student.apply_rope(x, positions), reference.apply_rope(x, positions)
        assert_agrees(theirs, ours, what=f"the result for tokens={tokens}, d={d}")


@rung.property("apply_rope", rules=("dtype",))
def test_apply_rope_keeps_float64(student, reference, make):
    """In float64, the result is float64, to full precision."""
    # With d = 4, speeds are 1 and 1/100, whose inverses are exact in float32.
    x = make.normal(2.0, tokens=5, d=14, dtype=torch.float64, name="digits")
    positions = torch.tensor([11, 3, 40, 8, 25])
    theirs, ours = student.apply_rope(x, positions), reference.apply_rope(x, positions)
    assert_agrees_to_float64(theirs, ours, within=ALL_DIGITS)


@rung.property("apply_rope", rules=("unchanged",))
def test_apply_rope_leaves_its_arguments_alone(student, make):
    """Neither x nor the positions are changed in place."""
    assert_input_unchanged(student.apply_rope, make.normal(tokens=3, d=4), torch.tensor([2, 0, 5]))


@rung.gradient("apply_rope", rules=("gradients",))
def test_apply_rope_has_a_gradient(student, reference, make):
    """Gradients flow back to x."""
    assert_gradients_agree(
        lambda x: student.apply_rope(x, torch.arange(4)),
        lambda x: reference.apply_rope(x, torch.arange(4)),
        make.normal(tokens=4, d=6),
        make=make,
    )


# --- alibi_bias ----------------------------------------------------------------------------------


@rung.shape("alibi_bias")
def test_alibi_bias_has_a_square_for_each_head(student):
    """There is a square of queries and keys for each head, in the default dtype."""
    student.alibi_bias(4, 5)


@rung.value("alibi_bias")
def test_alibi_bias_of_two_heads(student):
    """Two heads and three tokens have the bias of the example."""
    steps = torch.tensor([[0.0, -INF, -INF], [-1.0, 0.0, -INF], [-2.0, -1.0, 0.0]])
    expected = torch.stack([steps / 16, steps / 256])
    assert_agrees(student.alibi_bias(2, 3), expected, what="the bias of two heads")


@rung.value("alibi_bias")
@pytest.mark.parametrize(("num_heads", "num_tokens"), [(8, 5), (4, 6)])
def test_alibi_bias_fits_any_size(student, reference, num_heads, num_tokens):
    """The bias is right for other numbers of heads and tokens."""
    theirs = student.alibi_bias(num_heads, num_tokens)
    assert_agrees(theirs, reference.alibi_bias(num_heads, num_tokens))


@rung.property("alibi_bias", rules=("sizes",))
def test_alibi_bias_of_a_single_head(student, reference):
    """The bias is right for one head, for one token and for 80 tokens."""
    for num_heads, num_tokens in ((1, 4), (2, 1), (2, 80)):
        theirs = student.alibi_bias(num_heads, num_tokens)
        ours = reference.alibi_bias(num_heads, num_tokens)
        assert_agrees(theirs, ours, what=f"the bias of {num_heads} heads, {num_tokens} tokens")


@rung.property("alibi_bias", rules=("sizes",))
def test_alibi_bias_leaves_a_softmax_to_every_query(student, make):
    """With the bias, a softmax gives no weight to the future, and some weight to other tokens."""
    for heads, tokens in ((4, 6), (1, 5), (2, 1)):
        scores = make.normal(heads=heads, queries=tokens, keys=tokens)
        weights = torch.softmax(scores + student.alibi_bias(heads, tokens), -1)
        assert_that(not weights.isnan().any(), "some query sees no key at all, or meets a NaN")
        future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
        assert_that(
            bool((weights[:, future] == 0).all()),
            "after the softmax, keys of the future still have some weight: which score gets a "
            "weight of exactly 0?",
        )


# --- sliding_window_mask -------------------------------------------------------------------------


@rung.shape("sliding_window_mask")
def test_sliding_window_mask_is_a_square_of_booleans(student):
    """The mask is boolean and square."""
    student.sliding_window_mask(6, 4)


@rung.value("sliding_window_mask")
def test_sliding_window_mask_of_four_tokens(student):
    """Four tokens and a window of two have the mask of the example."""
    expected = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 0, 0]]).bool()
    assert_agrees(student.sliding_window_mask(4, 2), expected, what="the mask of four tokens")


@rung.value("sliding_window_mask")
@pytest.mark.parametrize(("num_tokens", "window"), [(6, 4), (8, 3)])
def test_sliding_window_mask_fits_any_size(student, reference, num_tokens, window):
    """The mask is right for other numbers of tokens and other windows."""
    theirs = student.sliding_window_mask(num_tokens, window)
    assert_agrees(theirs, reference.sliding_window_mask(num_tokens, window))


@rung.property("sliding_window_mask", rules=("sizes",))
def test_sliding_window_mask_at_its_extremes(student, reference):
    """A window of one shows only the token itself; a very long window hides only the future."""
    for num_tokens, window in ((5, 1), (5, 5), (5, 8), (1, 2)):
        theirs = student.sliding_window_mask(num_tokens, window)
        ours = reference.sliding_window_mask(num_tokens, window)
        assert_agrees(theirs, ours, what=f"the mask of {num_tokens} tokens, window {window}")
