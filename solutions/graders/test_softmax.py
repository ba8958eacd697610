"""Hidden graders of unit 2, softmax."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_rows_sum_to_one,
    assert_that,
)

INFINITY = float("inf")


def spread_out(weights):
    """Magnify differences of weights from their mean, of which float32 has few digits."""
    return (weights - weights.mean()) * 50.0


# --- normalize_by_sum ----------------------------------------------------------------------------


@rung.shape("normalize_by_sum")
def test_normalize_by_sum_keeps_the_shape(student, make):
    """One weight comes back for each score."""
    student.normalize_by_sum(make.uniform(0.5, 4.0, tokens=5))


@rung.value("normalize_by_sum", points=4)
@pytest.mark.parametrize(
    ("tokens", "low", "high"),
    [(2, 0.5, 4.0), (7, 0.001, 0.003), (11, 1.0, 1000.0)],
    ids=["two scores", "small scores", "large scores"],
)
def test_normalize_by_sum_agrees_with_the_reference(student, reference, make, tokens, low, high):
    """Each weight is its score's share of the total."""
    scores = make.uniform(low, high, tokens=tokens)
    weights = student.normalize_by_sum(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.normalize_by_sum(scores))


@rung.property("normalize_by_sum", rules=("returns",))
@pytest.mark.parametrize("score", [3.0, 0.001, 1000.0])
def test_normalize_by_sum_gives_all_to_a_single_score(student, score):
    """A single score gets the whole weight, the smallest and the largest too."""
    assert_agrees(student.normalize_by_sum(torch.tensor([score])), torch.ones(1))


@rung.property("normalize_by_sum", rules=("dtype",))
def test_normalize_by_sum_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(3.0, 3.05, tokens=6, dtype=torch.float64)
    weights, expected = student.normalize_by_sum(scores), reference.normalize_by_sum(scores)
    assert_agrees_to_float64(spread_out(weights), spread_out(expected), within=DIGITS)


@rung.property("normalize_by_sum", rules=("unchanged",))
def test_normalize_by_sum_leaves_the_scores_alone(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.normalize_by_sum, make.uniform(0.5, 4.0, tokens=5))


@rung.gradient("normalize_by_sum", rules=("gradients",))
def test_normalize_by_sum_has_the_right_gradient(student, reference, make):
    """Gradients flow to each score, through the sum too."""
    scores = make.uniform(0.5, 2.0, tokens=6)
    assert_gradients_agree(student.normalize_by_sum, reference.normalize_by_sum, scores, make=make)


# --- softmax_naive -------------------------------------------------------------------------------


@rung.shape("softmax_naive")
def test_softmax_naive_keeps_the_shape(student, make):
    """One weight comes back for each score."""
    student.softmax_naive(make.normal(tokens=5))


@rung.value("softmax_naive", points=5)
@pytest.mark.parametrize(
    ("tokens", "scale"), [(2, 1.0), (6, 3.0), (13, 2.0)], ids=["2 scores", "6 scores", "13 scores"]
)
def test_softmax_naive_agrees_with_the_reference(student, reference, make, tokens, scale):
    """Positive and negative scores become weights that sum to one, as in the reference."""
    scores = make.normal(scale, tokens=tokens)
    weights = student.softmax_naive(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.softmax_naive(scores))


@rung.property("softmax_naive", rules=("returns",))
def test_softmax_naive_gives_all_to_a_single_score(student, make):
    """A single score gets the whole weight, whatever its value."""
    assert_agrees(student.softmax_naive(make.normal(3.0, tokens=1)), torch.ones(1))


@rung.property("softmax_naive")
@pytest.mark.parametrize("centre", [-78.0, 78.0], ids="scores around {:g}".format)
def test_softmax_naive_works_far_from_zero(student, reference, make, centre):
    """Scores that are all near -80, or all near 80, make a distribution too."""
    scores = make.uniform(-2.0, 2.0, tokens=6) + centre
    weights = student.softmax_naive(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.softmax_naive(scores))


@rung.property("softmax_naive", rules=("dtype",))
def test_softmax_naive_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(1.0, 1.02, tokens=6, dtype=torch.float64)
    weights, expected = student.softmax_naive(scores), reference.softmax_naive(scores)
    assert_agrees_to_float64(spread_out(weights), spread_out(expected), within=DIGITS)


@rung.property("softmax_naive", rules=("unchanged",))
def test_softmax_naive_leaves_the_scores_alone(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_naive, make.normal(2.0, tokens=5))


@rung.gradient("softmax_naive", rules=("gradients",))
def test_softmax_naive_has_the_right_gradient(student, reference, make):
    """Gradients flow to each score, through the sum too."""
    scores = make.normal(tokens=6)
    assert_gradients_agree(student.softmax_naive, reference.softmax_naive, scores, make=make)


# --- softmax_rows --------------------------------------------------------------------------------


@rung.shape("softmax_rows")
@pytest.mark.parametrize("shape", [(2, 5), (6, 3)], ids=str)
def test_softmax_rows_keeps_the_shape(student, make, shape):
    """The weights have the shape of the scores, more keys than queries or fewer."""
    student.softmax_rows(make.normal(queries=shape[0], keys=shape[1]))


@rung.value("softmax_rows", points=5)
@pytest.mark.parametrize("shape", [(2, 3), (4, 7), (6, 5), (4, 4)], ids=str)
def test_softmax_rows_agrees_with_the_reference(student, reference, make, shape):
    """Each row becomes a distribution by itself, as in the reference."""
    scores = make.normal(2.0, queries=shape[0], keys=shape[1])
    weights = student.softmax_rows(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.softmax_rows(scores))


@rung.property("softmax_rows", rules=("returns",))
@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (1, 1)], ids=str)
def test_softmax_rows_works_with_one_query_or_one_key(student, reference, make, shape):
    """A matrix of a single query, or of a single key, gets the right weights."""
    scores = make.normal(2.0, queries=shape[0], keys=shape[1])
    assert_agrees(student.softmax_rows(scores), reference.softmax_rows(scores))


@rung.property("softmax_rows")
def test_softmax_rows_takes_rows_that_lie_apart(student, reference, make):
    """A row of low scores and a row of high scores both become distributions."""
    scores = make.uniform(-2.0, 2.0, queries=3, keys=5) + torch.tensor([[78.0], [0.0], [-78.0]])
    weights = student.softmax_rows(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.softmax_rows(scores))


@rung.property("softmax_rows", rules=("dtype",))
def test_softmax_rows_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(1.0, 1.02, queries=4, keys=6, dtype=torch.float64)
    weights, expected = student.softmax_rows(scores), reference.softmax_rows(scores)
    assert_agrees_to_float64(spread_out(weights), spread_out(expected), within=DIGITS)


@rung.property("softmax_rows", rules=("unchanged",))
def test_softmax_rows_leaves_the_scores_alone(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_rows, make.normal(2.0, queries=3, keys=5))


@rung.gradient("softmax_rows", rules=("gradients",))
def test_softmax_rows_has_the_right_gradient(student, reference, make):
    """Gradients flow to each score, and stay within its row."""
    scores = make.normal(queries=3, keys=5)
    assert_gradients_agree(student.softmax_rows, reference.softmax_rows, scores, make=make)


# --- softmax_stable ------------------------------------------------------------------------------

# Shape and dim; no two sizes of a shape are equal, so that a wrong dim has nowhere to hide.
SLICES = {
    "a vector": ((6,), 0),
    "the columns of a matrix": ((4, 3), 0),
    "the rows of a matrix": ((2, 5), 1),
    "dim 0 of three": ((2, 3, 4), 0),
    "dim 1 of three": ((2, 5, 3), 1),
    "dim 2 of three": ((3, 2, 4), 2),
    "dim -2 of three": ((3, 4, 2), -2),
    "dim -3 of three": ((4, 2, 3), -3),
    "dim 1 of four": ((2, 3, 4, 5), 1),
    "dim -2 of four": ((3, 2, 5, 4), -2),
}


def some_scores(make, shape, scale=2.0, dtype=torch.float32):
    """Normal scores of a shape given by numbers alone."""
    return make.normal(scale, dtype=dtype, **{f"axis{i}": size for i, size in enumerate(shape)})


@rung.shape("softmax_stable")
@pytest.mark.parametrize(("shape", "dim"), SLICES.values(), ids=SLICES.keys())
def test_softmax_stable_keeps_the_shape(student, make, shape, dim):
    """The weights have the shape of the scores, whatever the dimension."""
    student.softmax_stable(some_scores(make, shape), dim)


@rung.value("softmax_stable", points=2)
@pytest.mark.parametrize("shape", [(5,), (4, 3), (3, 2, 5)], ids=str)
def test_softmax_stable_works_along_the_last_dimension(student, reference, make, shape):
    """Without a dim, slices lie along the last dimension."""
    scores = some_scores(make, shape)
    weights = student.softmax_stable(scores)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.softmax_stable(scores))


@rung.value("softmax_stable", points=3)
@pytest.mark.parametrize(("shape", "dim"), SLICES.values(), ids=SLICES.keys())
def test_softmax_stable_works_along_any_dimension(student, reference, make, shape, dim):
    """Every slice along dim becomes a distribution, as in the reference."""
    scores = some_scores(make, shape)
    weights = student.softmax_stable(scores, dim)
    assert_rows_sum_to_one(weights, dim)
    assert_agrees(weights, reference.softmax_stable(scores, dim))


NEAR = torch.zeros(5, 1)
FAR = torch.tensor([[0.0], [300.0], [998.0], [-998.0], [-300.0]])


def scores_with_holes(make, dim, centres=NEAR):
    """A matrix whose slices along `dim` all have scores of -inf, and at least one finite score."""
    scores = make.uniform(-2.0, 2.0, slices=5, entries=4) + centres
    scores[0, 0] = scores[1, 3] = scores[2, 1] = scores[3, 2] = -INFINITY
    scores[0, 1] = scores[1, 1] = scores[3, 0] = -INFINITY  # two in a row, first of all
    scores[4, 1:] = -INFINITY  # a single finite score is left
    return scores if dim == 1 else scores.T.contiguous()


@rung.property("softmax_stable", rules=("dtype",))
@pytest.mark.parametrize("low", [0, 999], ids="scores from {}".format)
def test_softmax_stable_keeps_float64(student, reference, make, low):
    """Scores in float64 give weights in float64, to full precision, large ones too."""
    scores = make.uniform(low, low + 0.02, queries=5, keys=6, dtype=torch.float64)
    weights, expected = student.softmax_stable(scores, 0), reference.softmax_stable(scores, 0)
    assert_agrees_to_float64(spread_out(weights), spread_out(expected), within=DIGITS)


@rung.property("softmax_stable", rules=("unchanged",))
@pytest.mark.parametrize("dim", [0, 1], ids="dim {}".format)
def test_softmax_stable_leaves_the_scores_alone(student, make, dim):
    """The scores passed in stay as they were, those of -inf too."""
    assert_input_unchanged(student.softmax_stable, some_scores(make, (3, 4)), dim)
    assert_input_unchanged(student.softmax_stable, scores_with_holes(make, dim), dim)


@rung.gradient("softmax_stable", rules=("gradients",))
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((3, 5), -1), ((4, 3), 0), ((2, 4, 3), 1)],
    ids=["the last dimension", "dim 0 of two", "dim 1 of three"],
)
def test_softmax_stable_has_the_right_gradient(student, reference, make, shape, dim):
    """Gradients flow to each score, and stay within its slice."""
    assert_gradients_agree(
        lambda scores: student.softmax_stable(scores, dim),
        lambda scores: reference.softmax_stable(scores, dim),
        some_scores(make, shape, 1.0),
        make=make,
    )


@rung.value("softmax_stable", points=6, rules=("large", "computes"))
@pytest.mark.parametrize("centre", [990.0, -990.0], ids="scores around {:g}".format)
def test_softmax_stable_takes_scores_of_a_thousand(student, reference, make, centre):
    """Scores close to 1000, or to -1000, give finite and right weights."""
    scores = some_scores(make, (2, 3, 5)) + centre
    for dim in (0, 1, 2):
        weights, expected = (
            student.softmax_stable(scores, dim),
            reference.softmax_stable(scores, dim),
        )
        assert_agrees(weights, expected, what=f"the weights along dim {dim}", within=LARGE_SCORES)


@rung.value("softmax_stable", points=3, rules=("large", "computes"))
@pytest.mark.parametrize("dim", [0, 1], ids="dim {}".format)
def test_softmax_stable_takes_slices_that_lie_far_apart(student, reference, make, dim):
    """Slices hundreds apart keep right weights, and so do scores hundreds apart in one slice."""
    centres = torch.tensor([[990.0], [300.0], [0.0], [-300.0], [-990.0]])
    scores = centres + torch.tensor([[0.0, 1.5, 0.5, -1.5, 1.0, -1.0]])
    scores[2] = torch.tensor([-990.0, 989.0, 0.0, 990.0, -988.0, -500.0])
    scores = scores + make.normal(slices=5, entries=6)
    scores = scores if dim == 1 else scores.T.contiguous()
    weights, expected = student.softmax_stable(scores, dim), reference.softmax_stable(scores, dim)
    assert_agrees(weights, expected, what=f"the weights along dim {dim}", within=LARGE_SCORES)


@rung.stability("softmax_stable", rules=("infinite",))
@pytest.mark.parametrize("dim", [0, 1], ids="dim {}".format)
@pytest.mark.parametrize(
    "centres",
    [
        pytest.param(NEAR, id="small scores"),
        # A number put for -inf would get the whole weight of the slice at -1000.
        pytest.param(FAR, id="scores to a thousand"),
    ],
)
def test_softmax_stable_gives_nothing_to_minus_infinity(student, reference, make, centres, dim):
    """A score of -inf gets a weight of exactly 0, and the others share the total."""
    scores = scores_with_holes(make, dim, centres)
    weights, expected = student.softmax_stable(scores, dim), reference.softmax_stable(scores, dim)
    assert_agrees(weights, expected, what=f"the weights along dim {dim}", within=LARGE_SCORES)
    assert_that(
        bool((weights[scores == -INFINITY] == 0).all()), "a score of -inf should weigh exactly 0"
    )


@rung.stability("softmax_stable", rules=("gradients",))
@pytest.mark.parametrize("dim", [0, 1], ids="dim {}".format)
def test_softmax_stable_has_finite_gradients_beside_infinities(student, make, dim):
    """Finite scores get a finite gradient, even if their slice has a score of -inf."""
    scores = scores_with_holes(make, dim).requires_grad_()
    weights = student.softmax_stable(scores, dim)
    (weights * some_scores(make, scores.shape)).sum().backward()
    if scores.grad is None:
        return  # the gradient test reports that no gradient arrives at all
    assert_that(
        bool(scores.grad[scores.isfinite()].isfinite().all()),
        "a finite score gets a gradient that is not finite when -inf stands in its slice: which "
        "step has an infinite slope there, like the log of 0, or takes one infinity from another?",
    )
