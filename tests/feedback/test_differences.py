"""What is said of a wrong tensor: each sentence for its cause, and none for near misses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grader.course.course import load_course
from grader.course.references import load_solutions
from grader.course.tensors import Make
from grader.feedback.differences import MOST_ELEMENTS, in_words
from grader.feedback.differences.pair import differing
from grader.testing import assert_agrees
from tests.support.places import REAL

COURSE = load_course(REAL)
TOKENS, D_K = 5, 8
INF = math.inf
MAKE = Make("public", "differences", "test")


def solution(unit: str, name: str) -> Any:
    return getattr(load_solutions(COURSE)[unit], name)


def normal(*sizes: int, name: str = "x", dtype: torch.dtype = torch.float32) -> Tensor:
    return MAKE.normal(dtype=dtype, name=name, **{f"axis_{i}": n for i, n in enumerate(sizes)})


FUTURE: Tensor = solution("causal_attention", "causal_mask")(TOKENS)
QUERIES, KEYS, VALUES = (normal(2, TOKENS, D_K, name=name) for name in ("q", "k", "v"))
SCORES = solution("self_attention", "scaled_scores")(QUERIES, KEYS)
WEIGHTS = SCORES.softmax(-1)
CAUSAL = solution("causal_attention", "masked_softmax")(SCORES, FUTURE)
CONTEXT = CAUSAL @ VALUES
X = normal(2, TOKENS, 12)  # twelve features: three heads of four
HEADS = solution("multi_head_attention", "split_heads")(X, 3)  # (2, 3, 5, 4)
EXPECTED = {
    "mask": FUTURE, "scores": SCORES, "weights": WEIGHTS, "causal weights": CAUSAL,
    "masked scores": SCORES.masked_fill(FUTURE, -INF), "context": CONTEXT, "heads": HEADS,
}  # fmt: skip


def changed(tensor: Tensor, *at: Any, by: float = 1.0) -> Tensor:
    """A copy that is wrong at one index, in no simple way."""
    copy = tensor.clone()
    noise = normal(*tensor.shape, name="noise", dtype=tensor.dtype)
    copy[at] += by * (noise.abs() + 0.5)[at]
    return copy


# --- places --------------------------------------------------------------------------------------


def test_the_first_row() -> None:
    assert in_words(changed(CONTEXT, ..., 0, slice(None)), CONTEXT) == "only the first row differs"


def test_the_first_token_is_asked_about_where_rows_are_tokens() -> None:
    theirs = changed(CONTEXT, ..., 0, slice(None))
    assert in_words(theirs, CONTEXT, names=("batch", "tokens", "d_out")) == (
        "only the first token differs: what may the first token see?"
    )


def test_the_last_row() -> None:
    assert in_words(changed(CONTEXT, ..., -1, slice(None)), CONTEXT) == "only the last row differs"


def test_a_row_in_the_middle_and_two_of_them() -> None:
    assert in_words(changed(CONTEXT, ..., 2, slice(None)), CONTEXT) == "only row 2 differs"
    theirs = changed(CONTEXT, ..., [1, 3], slice(None))
    assert in_words(theirs, CONTEXT) == "only rows 1 and 3 differ"


def test_a_missing_scale_leaves_the_first_causal_row_right() -> None:
    unscaled = (SCORES * D_K**0.5).masked_fill(FUTURE, -INF).softmax(-1)
    assert in_words(unscaled, CAUSAL) == "every row but the first differs"
    assert in_words(unscaled @ VALUES, CONTEXT) == "every row but the first differs"


def test_a_missing_mask_leaves_the_last_row_right() -> None:
    assert in_words(WEIGHTS @ VALUES, CONTEXT, names=("batch", "tokens", "d")) == (
        "every token but the last differs"
    )


def test_a_column() -> None:
    assert in_words(changed(CONTEXT, ..., 3), CONTEXT) == "only column 3 differs"


def test_the_last_features() -> None:
    said = "only the last 4 of 12 columns differ"
    assert in_words(changed(X, ..., slice(8, 12)), X) == said


def test_every_second_feature() -> None:
    said = "only every second column, from 1 on, differs"
    assert in_words(changed(X, ..., slice(1, None, 2)), X) == said


def test_a_head_if_the_axis_is_called_so() -> None:
    theirs = changed(HEADS, slice(None), 2)
    names = ("batch", "num_heads", "tokens", "head_dim")
    assert in_words(theirs, HEADS, names=names) == "only the last head differs"
    assert in_words(theirs, HEADS) == "only the last index of axis 1 differs"


def test_a_batch_row_and_a_row_in_it() -> None:
    names = ("batch", "tokens", "d_out")
    assert in_words(changed(CONTEXT, 1), CONTEXT, names=names) == "only batch row 1 differs"
    said = "only token 2 of batch row 1 differs"
    assert in_words(changed(CONTEXT, 1, 2), CONTEXT, names=names) == said


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("the part above the diagonal", FUTURE),
        ("the part below the diagonal", FUTURE.T),
        ("the diagonal", ~FUTURE & ~FUTURE.T),
        ("the part on and above the diagonal", ~FUTURE.T),
        ("the part on and below the diagonal", ~FUTURE),
        ("the second diagonal below the main one", torch.eye(7, dtype=torch.bool)[2:, :5].T),
    ],
)
def test_triangles_and_diagonals(place: str, where: Tensor) -> None:
    assert in_words(changed(SCORES, where.expand(2, -1, -1)), SCORES) == f"only {place} differs"


def test_all_but_the_diagonal() -> None:
    off = FUTURE | FUTURE.T
    said = "everything but the diagonal differs"
    assert in_words(changed(SCORES, off.expand(2, -1, -1)), SCORES) == said


def test_tokens_by_tokens_are_rows_and_columns() -> None:
    names = ("batch", "tokens", "tokens")
    assert in_words(changed(SCORES, ..., 1, slice(None)), SCORES, names=names) == (
        "only row 1 differs"
    )


def test_no_place_is_named_for_one_element_or_scattered_ones() -> None:
    assert in_words(changed(CONTEXT, 1, 2, 3), CONTEXT) is None
    scattered = torch.zeros(2, 5, 8, dtype=torch.bool)
    scattered[0, 0, 1] = scattered[0, 0, 5] = scattered[1, 0, 2] = True
    assert in_words(changed(CONTEXT, scattered), CONTEXT) is None


def test_no_place_is_named_where_everything_differs() -> None:
    assert in_words(changed(CONTEXT, ...), CONTEXT) is None


def test_values_that_differ_are_described_with_their_place() -> None:
    masked = SCORES.masked_fill(FUTURE, -INF)
    assert in_words(SCORES.masked_fill(FUTURE, -1e9), masked) == (
        "only the part above the diagonal differs, where every value is -1e+09 and should be -inf"
    )
    assert in_words(SCORES, masked) == (
        "only the part above the diagonal differs, where every value should be -inf"
    )
    zero = CONTEXT.clone()
    zero[:, -1] = 0
    assert in_words(zero, CONTEXT) == "only the last row differs, where every value is 0"
    double = CONTEXT.clone()
    double[1] *= 2
    assert in_words(double, CONTEXT) == (
        "only index 1 of axis 0 differs, where every value is 2 times the expected value"
    )


def test_values_that_differ_are_described_without_a_place() -> None:
    padding = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]], dtype=torch.bool)
    masked = SCORES.masked_fill(padding[:, None, :], -INF)
    assert in_words(SCORES, masked) == "every value that differs should be -inf"


# --- NaN and infinities --------------------------------------------------------------------------


def test_a_mask_that_hides_the_diagonal_gives_nan_in_the_first_row() -> None:
    theirs = SCORES.masked_fill(torch.ones(5, 5).triu().bool(), -INF).softmax(-1)
    assert in_words(theirs, CAUSAL) == "the first row is NaN"
    assert in_words(theirs, CAUSAL, names=("batch", "queries", "keys")) == (
        "the first query is NaN: what may the first token see?"
    )


def test_nan_and_the_rest_right() -> None:
    theirs = CONTEXT.clone()
    theirs[:, 2:] = math.nan
    assert in_words(theirs, CONTEXT) == "the last 3 of 5 rows are NaN and the rest is right"


def test_nan_everywhere() -> None:
    assert in_words(CONTEXT * math.nan, CONTEXT) == "every value is NaN"


def test_nan_in_a_triangle() -> None:
    theirs = SCORES.masked_fill(FUTURE, math.nan)
    said = "the part above the diagonal is NaN and the rest is right"
    assert in_words(theirs, SCORES) == said


def test_infinities() -> None:
    assert in_words(SCORES.masked_fill(FUTURE, -INF), SCORES) == (
        "the part above the diagonal is -inf and the rest is right"
    )
    assert in_words(CONTEXT * INF, CONTEXT) == "every value is infinite"


def test_nothing_is_said_of_scattered_nan_nor_of_expected_nan() -> None:
    theirs = CONTEXT.clone()
    theirs[0, 1, 2] = theirs[1, 3, 4] = math.nan
    assert in_words(theirs, CONTEXT) is None
    assert in_words(CONTEXT, theirs) is None


def test_a_half_empty_row_is_not_said_to_be_nan() -> None:
    theirs = CONTEXT.clone()
    theirs[:, 0, :6] = math.nan
    assert in_words(theirs, CONTEXT) == "the first 6 of 8 columns of the first row are NaN" + (
        " and the rest is right"
    )
    theirs[0, 0, 0] = 0.0
    assert in_words(theirs, CONTEXT) is None


# --- formulas ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (2, "every value is 2 times the expected value"),
        (-3, "every value is -3 times the expected value"),
        (-1, "every value has the wrong sign"),
        (1 / 4, "every value is 1/4 (0.25) of the expected value"),
        (8**0.5, "every value is √8 (2.828) times the expected value"),
        (8**-0.5, "every value is 1/√8 (0.3536) of the expected value"),
        (1 / 0.7, "every value is 1.429 times the expected value"),
        (2.001, "every value is 2.001 times the expected value"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_factor(factor: float, said: str, dtype: torch.dtype) -> None:
    assert in_words(SCORES.to(dtype) * factor, SCORES.to(dtype)) == said


def test_a_factor_of_masked_scores_and_of_weights() -> None:
    masked = SCORES.masked_fill(FUTURE, -INF)
    assert in_words(masked * 2, masked) == "every value is 2 times the expected value"
    assert in_words(CAUSAL / 8**0.5, CAUSAL) == "every value is 1/√8 (0.3536) of the expected value"


def test_a_factor_in_half_precision_is_named_only_where_neighbours_are_apart() -> None:
    half = SCORES.half()
    assert in_words(half * 2, half) == "every value is 2 times the expected value"
    assert in_words(half * 200**0.5, half) == "every value is 14.14 times the expected value"


def test_an_offset() -> None:
    assert in_words(SCORES + 0.5, SCORES) == "every value is 0.5 too large"
    assert in_words(SCORES - 1, SCORES) == "every value is 1 too small"


@pytest.mark.parametrize(
    ("formula", "what"),
    [
        (torch.log, "the logarithm of"),
        (torch.exp, "the exponential of"),
        (torch.square, "the square of"),
        (torch.sqrt, "the square root of"),
        (torch.reciprocal, "1 divided by"),
    ],
)
def test_functions_of_what_was_expected(formula: Any, what: str) -> None:
    assert in_words(formula(WEIGHTS), WEIGHTS) == f"every value is {what} the expected value"


def test_the_logarithm_of_causal_weights_is_infinite_where_they_are_zero() -> None:
    assert in_words(CAUSAL.log(), CAUSAL) == "every value is the logarithm of the expected value"


def test_signs_that_are_lost() -> None:
    assert in_words(SCORES.abs(), SCORES) == "every value has lost its sign"


def test_a_softmax_too_many_or_too_few() -> None:
    assert in_words(WEIGHTS.softmax(-1), WEIGHTS) == (
        "it is the softmax of the expected result: is there one softmax too many?"
    )
    masked = SCORES.masked_fill(FUTURE, -INF)
    for scores, weights in ((SCORES, WEIGHTS), (masked, CAUSAL)):
        said = "its softmax would be right: is the softmax missing?"
        assert in_words(scores, weights) == said


def test_no_formula_is_named_when_one_element_leaves_it() -> None:
    for theirs in (SCORES * 2, SCORES + 0.5, SCORES.exp(), SCORES.softmax(-1)):
        theirs = theirs.clone()
        theirs[1, 2, 3] += 0.01
        assert in_words(theirs, SCORES) is None


def test_no_formula_is_named_for_few_distinct_values() -> None:
    ours = torch.tensor([0.0, 1.0]).repeat(10)
    assert "times" not in str(in_words(ours * 2, ours))
    assert in_words(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 1.5])) is None


def test_nothing_is_said_of_differences_in_the_last_digits() -> None:
    assert in_words(SCORES.double() * (1 + 3e-7), SCORES.double()) is None
    assert in_words(SCORES.double() + 1e-8, SCORES.double(), wrong=torch.ones(2, 5, 5) > 0) is None


def test_a_factor_or_a_constant_per_row() -> None:
    exponentials = SCORES.exp()
    said = in_words(exponentials, WEIGHTS)
    assert said is not None
    assert said.startswith("each row is right but for a factor of its own, and sums to between ")
    assert in_words(SCORES.log_softmax(-1), SCORES) == ("each row is off by a constant of its own")


def test_not_renormalising_is_a_factor_per_row() -> None:
    theirs = WEIGHTS.tril()
    ours = torch.stack(
        [solution("causal_attention", "renormalized_causal_weights")(w) for w in WEIGHTS]
    )
    assert str(in_words(theirs, ours)).startswith("each row is right but for a factor of its own")


def test_a_missing_bias() -> None:
    weight, bias = normal(6, 12, name="W"), normal(6, name="b")
    ours = solution("self_attention", "linear_by_hand")(X, weight, bias)
    said = "every row is off by the same vector: is a bias missing, or added twice?"
    assert in_words(ours - bias, ours) == said
    assert in_words(ours + bias, ours) == said
    assert in_words(changed(ours - bias, 0, 0, 0), ours) is None


def test_constants() -> None:
    assert in_words(torch.zeros(2, 5, 8), CONTEXT) == "every value is 0"
    assert in_words(torch.full((5, 5), 0.2), torch.full((5, 5), 0.25)) == (
        "every value is 0.2 and should be 0.25"
    )


# --- weights -------------------------------------------------------------------------------------


def test_a_softmax_over_the_wrong_axis() -> None:
    assert in_words(SCORES.softmax(-2), WEIGHTS) == (
        "the columns sum to one where the rows should: over which axis does the softmax go?"
    )
    assert in_words(SCORES.softmax(-1), SCORES.softmax(-2)) == (
        "the rows sum to one where the columns should: over which axis does the softmax go?"
    )
    assert in_words(SCORES.softmax(0), WEIGHTS) == (
        "the slices along axis 0 sum to one where the rows should: "
        "over which axis does the softmax go?"
    )


def test_a_softmax_over_everything() -> None:
    ours = solution("softmax", "softmax_rows")(SCORES[0])
    other = normal(TOKENS, TOKENS, name="other").flatten().softmax(0).reshape(TOKENS, TOKENS)
    assert in_words(other, ours) == "the whole matrix sums to one where each of the rows should"


def test_one_exponential_sum_for_the_whole_matrix_is_a_factor_per_row_first() -> None:
    theirs = SCORES[0].exp() / SCORES[0].exp().sum()
    said = in_words(theirs, WEIGHTS[0])
    assert str(said).startswith("each row is right but for a factor of its own")


def test_sums_that_are_not_one() -> None:
    other = normal(2, TOKENS, TOKENS, name="other").softmax(-1) * 0.5
    assert in_words(other, WEIGHTS) == "the rows sum to 0.5, not to one"
    x = torch.tensor([1.0, 2.0, 3.0, 5.0])
    assert in_words(torch.tensor([0.1, 0.3, 0.2, 0.2]), x / x.sum()) == (
        "the values sum to 0.8, not to one"
    )


def test_negative_weights() -> None:
    theirs = SCORES / SCORES.sum(-1, keepdim=True)
    count = int((theirs < 0).sum())
    said = f"weights are never negative, but {count} of 50 are negative here"
    assert in_words(theirs, WEIGHTS) == said


def test_weights_that_leak_say_both() -> None:
    leaking = torch.where(FUTURE, WEIGHTS, CAUSAL)
    said = in_words(leaking, CAUSAL)
    assert said is not None
    assert said.startswith("the rows sum to between ")
    assert said.endswith("only the part above the diagonal differs, where every value should be 0")


def test_a_triangle_that_should_be_zero() -> None:
    names = ("batch", "queries", "keys")
    assert in_words(WEIGHTS, CAUSAL, names=names) == (
        "the part above the diagonal should be 0, and is not; every query but the last differs"
    )
    backwards = SCORES.masked_fill(FUTURE.T, -INF).softmax(-1)
    assert in_words(backwards, CAUSAL) == "the part above the diagonal should be 0, and is not"
    assert in_words(backwards, WEIGHTS) == (
        "the part below the diagonal is 0, and should not be; every row but the first differs"
    )


def test_no_triangle_of_zeros_is_named_if_one_is_right() -> None:
    theirs = WEIGHTS.clone()
    theirs[0, 0, 3] = 0
    assert "above" not in str(in_words(theirs, CAUSAL))
    assert "0" not in str(in_words(normal(2, TOKENS, D_K, name="other"), CONTEXT))


def test_sums_are_not_spoken_of_where_rows_sum_to_one_or_need_not() -> None:
    other = normal(2, TOKENS, TOKENS, name="other").softmax(-1)
    assert in_words(other, WEIGHTS) is None
    assert in_words(other, CONTEXT[..., :5]) is None


# --- order ---------------------------------------------------------------------------------------


def test_transposed() -> None:
    assert in_words(SCORES.mT, SCORES) == "it is transposed: the last two axes are swapped"
    assert in_words(SCORES[0].T, SCORES[0]) == "it is transposed"


def test_axes_that_are_swapped() -> None:
    ours = normal(2, 4, 4, 3)
    assert in_words(ours.transpose(1, 2), ours) == "axes 1 and 2 are swapped"
    cube = normal(4, 4, 4)
    said = "the axes are in another order: this is permute(1, 2, 0) of the result"
    assert in_words(cube.permute(1, 2, 0), cube) == said


def test_a_view_where_a_transpose_was_needed() -> None:
    assert in_words(X.reshape(2, 3, TOKENS, 4), HEADS) == (
        "the same numbers in another order, as from a view or reshape where transpose(1, 2) was "
        "needed"
    )


def test_heads_split_from_the_wrong_end() -> None:
    theirs = X.reshape(2, TOKENS, 4, 3).permute(0, 3, 1, 2)
    assert in_words(theirs, HEADS) == (
        "the same numbers in another order, as from a view that ends in (4, 3) where (3, 4) was "
        "needed"
    )


def test_heads_merged_without_a_transpose() -> None:
    ours = solution("multi_head_attention", "merge_heads")(HEADS)
    assert in_words(HEADS.reshape(2, TOKENS, 12), ours) == (
        "the same numbers in another order, as from merging 3 heads by a view or reshape, "
        "without a transpose before it"
    )


def test_features_interleaved() -> None:
    theirs = X.reshape(2, TOKENS, 3, 4).mT.reshape(2, TOKENS, 12)
    assert in_words(theirs, X) == (
        "the same numbers in another order, as from a last axis laid out as (4, 3) where (3, 4) "
        "was needed"
    )


def test_slices_in_another_order() -> None:
    assert in_words(CONTEXT.flip(1), CONTEXT) == "the rows are in reverse order"
    assert in_words(CONTEXT[:, [0, 3, 2, 1, 4]], CONTEXT) == "rows 1 and 3 are swapped"
    assert in_words(CONTEXT[:, [0, 3, 1, 2, 4]], CONTEXT) == (
        "the rows are in another order: row 1 holds the values of row 3"
    )
    assert in_words(CONTEXT.roll(1, dims=1), CONTEXT) == (
        "the rows are rolled: each holds the values of the row before it"
    )
    names = ("batch", "tokens", "d_out")
    assert in_words(CONTEXT.flip(0), CONTEXT, names=names) == "batch rows 0 and 1 are swapped"


def test_off_by_one() -> None:
    later = torch.cat((CONTEXT[:, 1:], normal(2, 1, D_K, name="fresh")), dim=1)
    names = ("batch", "tokens", "d_out")
    assert in_words(later, CONTEXT, names=names) == (
        "off by one: each token holds the values of the token after it"
    )
    earlier = torch.cat((torch.zeros(2, 1, D_K), CONTEXT[:, :-1]), dim=1)
    assert (
        in_words(earlier, CONTEXT) == "off by one: each row holds the values of the row before it"
    )


def test_the_mean_of_everything_is_the_mean_of_the_past_for_the_last_token_only() -> None:
    ours = solution("averaging", "running_mean_matmul")(X)
    theirs = X.mean(dim=1, keepdim=True).expand_as(X)
    assert in_words(theirs, ours) == "every row holds the expected values of the last row"


def test_the_same_numbers_in_no_simple_order() -> None:
    order = torch.arange(40) * 7 % 40
    ours = normal(5, 8)
    theirs = ours.flatten()[order].reshape(5, 8)
    assert in_words(theirs, ours) == "the same numbers in another order"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(SCORES.mT, SCORES), (CONTEXT.flip(1), CONTEXT), (X.reshape(2, 3, TOKENS, 4), HEADS)],
)
def test_no_order_is_named_when_one_number_is_another(theirs: Tensor, ours: Tensor) -> None:
    near = theirs.clone()
    near[0, 1, 0] += 0.01
    # The middle of what is reversed is right, and that may be said.
    assert in_words(near, ours) in (
        None,
        "everything but the diagonal differs",
        "every row but row 2 differs",
    )


def test_two_samples_of_one_distribution_are_not_the_same_numbers() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        one, two = (MAKE.uniform(name=n, n=20_000).to(dtype) for n in ("one", "two"))
        assert in_words(one.reshape(100, 200), two.reshape(100, 200)) is None


# --- masks and integers --------------------------------------------------------------------------


def test_a_mask_that_hides_the_diagonal_too() -> None:
    theirs = torch.ones(TOKENS, TOKENS).triu().bool()
    said = "only the diagonal differs, where every value is True and should be False"
    assert in_words(theirs, FUTURE) == said


def test_masks_transposed_inverted_and_empty() -> None:
    assert in_words(FUTURE.T, FUTURE) == "it is transposed"
    assert in_words(~FUTURE, FUTURE) == (
        "every value is inverted: True where False is expected, and the reverse"
    )
    assert in_words(FUTURE & False, FUTURE) == "every value is False"


def test_a_window_one_too_wide() -> None:
    band = torch.ones(7, 7).tril().triu(-2).bool()
    wider = torch.ones(7, 7).tril().triu(-3).bool()
    assert in_words(wider, band) == (
        "only the third diagonal below the main one differs, "
        "where every value is True and should be False"
    )


def test_a_triangle_whose_edge_is_elsewhere() -> None:
    ones = torch.ones(6, 6)
    assert in_words(ones.triu(-1).bool(), ones.triu(1).bool()) == (
        "the same triangle, with its edge 2 diagonals too far to the left"
    )
    assert in_words(ones.tril(3).bool(), ones.tril(0).bool()) == (
        "the same triangle, with its edge 3 diagonals too far to the right"
    )


def test_masks_that_differ_in_one_direction() -> None:
    keep = MAKE.booleans(name="keep", rows=6, columns=7)
    more = keep | MAKE.booleans(0.4, name="more", rows=6, columns=7)
    said = "every value that differs is True and should be False"
    assert in_words(more, keep) == said


def test_nothing_is_said_of_unrelated_masks() -> None:
    one, two = (MAKE.booleans(name=name, rows=6, columns=7) for name in ("one", "two"))
    assert in_words(one, two) is None


def test_a_few_truth_values_are_no_evidence() -> None:
    two = torch.tensor([[True, False], [False, False]])
    for theirs in (two.flip(0), two.flip(1), ~two, two.roll(1, 0)):
        assert in_words(theirs, two) is None
    few = torch.tensor([3, 4])
    assert in_words(few + 1, few) is None


def test_integers_off_by_one() -> None:
    ours = MAKE.integers(0, 50, name="ids", batch=2, tokens=5)
    assert in_words(ours + 1, ours) == "every value is 1 too large"
    assert in_words(ours - 1, ours) == "every value is 1 too small"
    near = ours + 1
    near[0, 0] += 1
    assert in_words(near, ours) is None


# --- whatever comes ------------------------------------------------------------------------------


def test_nothing_is_said_of_equal_tensors() -> None:
    for ours in EXPECTED.values():
        assert in_words(ours.clone(), ours) is None


def test_nothing_is_said_of_large_tensors_and_other_kinds() -> None:
    large = torch.arange(MOST_ELEMENTS + 1.0)
    assert in_words(large * 2, large) is None
    assert in_words(torch.zeros(3), torch.ones(4)) is None
    assert in_words(torch.zeros(3), torch.ones(3).double()) is None
    assert in_words(torch.zeros(3) + 1j, torch.ones(3) + 0j) is None


def test_the_caller_may_say_what_differs() -> None:
    theirs = CONTEXT.clone()
    theirs[:, 0] += 1 + normal(2, 8)
    theirs[1, 3, 3] += 1e-3
    wrong = (theirs - CONTEXT).abs() > 1e-2
    assert in_words(theirs, CONTEXT, wrong=wrong) == "only the first row differs"
    assert int((wrong != differing(theirs, CONTEXT)).sum()) == 1


@pytest.mark.parametrize("ours", EXPECTED.values(), ids=EXPECTED.keys())
@pytest.mark.parametrize("number", range(20))
def test_nothing_is_said_of_unrelated_values(ours: Tensor, number: int) -> None:
    other = normal(*ours.shape, name=f"unrelated {number}")
    if ours.dtype == torch.bool:
        assert in_words(other > 0, ours) is None
    elif float(ours.min()) >= 0:
        weights = other.softmax(-1)
        if bool((ours == 0).any()):
            weights = other.masked_fill(FUTURE, -INF).softmax(-1)
            assert in_words(weights, ours) == "every row but the first differs"
        else:
            assert in_words(weights, ours) is None
    else:
        said = in_words(other, ours)
        assert said == (
            "only the part above the diagonal differs, where every value should be -inf"
            if said and bool(ours.isinf().any())
            else None
        )


DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64,
)  # fmt: skip
VALUES_OF_ALL_KINDS = st.sampled_from(
    [0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 1e-40, 1e30, -1e30, 1e300, INF, -INF, math.nan, 7.25, 3e4]
)
SHAPES = st.lists(st.integers(0, 4), max_size=5)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Two tensors of one shape and dtype, from few values, so that they are often related."""
    shape, dtype = draw(SHAPES), draw(st.sampled_from(DTYPES))
    count = math.prod(shape)
    some = st.lists(VALUES_OF_ALL_KINDS, min_size=count, max_size=count)
    whole = not dtype.is_floating_point and not dtype.is_complex
    both = [torch.tensor(draw(some), dtype=torch.float64).reshape(shape) for _ in range(2)]
    if whole:
        both = [tensor.nan_to_num(0.0, 5.0, 0.0).clamp(-3, 100).abs() for tensor in both]
    theirs, ours = (tensor.to(dtype) for tensor in both)
    return theirs, ours


@settings(max_examples=250, deadline=None, derandomize=True)
@given(pairs())
def test_it_never_raises(pair: tuple[Tensor, Tensor]) -> None:
    theirs, ours = pair
    said = in_words(theirs, ours)
    assert said is None or said
    names = [f"axis {axis}" for axis in range(ours.dim())]
    in_words(theirs, ours, names=names)
    in_words(theirs, ours, wrong=torch.ones_like(ours, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float64, torch.float16])
def test_it_never_raises_at_the_edges_of_a_dtype(dtype: torch.dtype) -> None:
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    ends = torch.tensor([info.min, info.max, 0, 1], dtype=dtype).reshape(2, 2)
    for other in (ends.T, ends.flip(0), torch.zeros_like(ends)):
        in_words(ends, other)
        in_words(other, ends)


def test_gradients_and_views_do_not_matter() -> None:
    ours = CONTEXT.clone().requires_grad_()
    theirs = (ours * 2).mT.contiguous().mT
    assert in_words(theirs, ours) == "every value is 2 times the expected value"


# --- a single number -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "told"),
    [(2.5, "expected 2.465, got 2.5"), (2.4651, "got 2.4651"), (math.nan, "got nan")],
)
def test_of_a_number_that_stands_alone_only_both_values_are_told(got: float, told: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_agrees(torch.tensor(got), torch.tensor(2.465), what="the loss")
    assert str(caught.value).startswith("the loss: ")
    assert told in str(caught.value)
    assert "elements" not in str(caught.value)
