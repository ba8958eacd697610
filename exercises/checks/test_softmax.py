"""Public checks of unit 2, softmax."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    REORDERED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_that,
)


def magnified(weights):
    """Subtract the mean and multiply, to magnify differences between nearly equal weights."""
    return 50 * (weights - weights.mean())


# --- normalize_by_sum ----------------------------------------------------------------------------


@rung.shape("normalize_by_sum")
def test_normalize_by_sum_gives_a_weight_per_score(student, make):
    """One weight comes back for each score."""
    student.normalize_by_sum(make.uniform(0.5, 3.0, tokens=4))


@rung.value("normalize_by_sum")
def test_normalize_by_sum_shares_out_the_example(student):
    """Scores of 1, 3 and 4 get weights of 1/8, 3/8 and 4/8."""
    weights = student.normalize_by_sum(torch.tensor([1.0, 3.0, 4.0]))
    assert_that(
        abs(weights.sum().item() - 1) < 1e-5,
        f"the weights of 1, 3 and 4 sum to {weights.sum().item():.4g} and should sum to 1: what "
        "must every score be divided by?",
    )
    assert_agrees(weights, torch.tensor([0.125, 0.375, 0.5]), what="the weights of 1, 3 and 4")


@rung.value("normalize_by_sum")
@pytest.mark.parametrize(
    ("tokens", "low", "high"), [(6, 0.2, 3.0), (3, 0.001, 0.002)], ids=["six", "three small ones"]
)
def test_normalize_by_sum_fits_any_positive_scores(student, reference, make, tokens, low, high):
    """Other positive scores get the weights of the reference."""
    scores = make.uniform(low, high, tokens=tokens)
    assert_agrees(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))


@rung.property("normalize_by_sum", rules=("dtype",))
def test_normalize_by_sum_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(3.0, 3.05, tokens=4, dtype=torch.float64)
    weights, expected = student.normalize_by_sum(scores), reference.normalize_by_sum(scores)
    assert_agrees_to_float64(magnified(weights), magnified(expected), within=DIGITS)


@rung.property("normalize_by_sum", rules=("unchanged",))
def test_normalize_by_sum_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.normalize_by_sum, make.uniform(0.5, 3.0, tokens=4))


@rung.gradient("normalize_by_sum", rules=("gradients",))
def test_normalize_by_sum_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the scores."""
    scores = make.uniform(0.5, 3.0, tokens=4)
    assert_gradients_agree(student.normalize_by_sum, reference.normalize_by_sum, scores, make=make)


# --- softmax_naive -------------------------------------------------------------------------------


@rung.shape("softmax_naive")
def test_softmax_naive_gives_a_weight_per_score(student, make):
    """One weight comes back for each score."""
    student.softmax_naive(make.normal(tokens=4))


@rung.value("softmax_naive")
def test_softmax_naive_gives_the_weights_of_the_example(student, reference):
    """Five scores, two of them negative, get the weights of the statement."""
    scores = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
    weights = student.softmax_naive(scores)
    assert_that(
        bool((weights > 0).all()),
        "a negative score should still get a positive weight: which function is positive for "
        "every number, and keeps the order?",
    )
    assert_that(
        abs(weights.sum().item() - 1) < 1e-5,
        f"the weights of the example sum to {weights.sum().item():.4g} and should sum to 1: is "
        "each exponential divided by the sum of the exponentials?",
    )
    assert_agrees(weights, reference.softmax_naive(scores), what="the weights of the example")


@rung.value("softmax_naive")
@pytest.mark.parametrize("tokens", [3, 7], ids="{} scores".format)
def test_softmax_naive_fits_any_scores(student, reference, make, tokens):
    """Other scores get the weights of the reference."""
    scores = make.normal(2.0, tokens=tokens)
    assert_agrees(student.softmax_naive(scores), reference.softmax_naive(scores))


@rung.property("softmax_naive")
def test_softmax_naive_does_not_notice_a_shift(student):
    """Adding 77 to every score changes no weight."""
    scores = torch.tensor([0.5, -1.0, 2.0])
    assert_agrees(
        student.softmax_naive(scores + 77.0),
        student.softmax_naive(scores),
        what="the weights after 77 was added to every score",
    )


@rung.property("softmax_naive", rules=("dtype",))
def test_softmax_naive_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(1.0, 1.02, tokens=4, dtype=torch.float64)
    weights, expected = student.softmax_naive(scores), reference.softmax_naive(scores)
    assert_agrees_to_float64(magnified(weights), magnified(expected), within=DIGITS)


@rung.property("softmax_naive", rules=("unchanged",))
def test_softmax_naive_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_naive, make.normal(tokens=4))


@rung.gradient("softmax_naive", rules=("gradients",))
def test_softmax_naive_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the scores."""
    scores = make.normal(tokens=4)
    assert_gradients_agree(student.softmax_naive, reference.softmax_naive, scores, make=make)


# --- softmax_rows --------------------------------------------------------------------------------


@rung.shape("softmax_rows")
def test_softmax_rows_gives_a_weight_per_score(student, make):
    """The weights have the shape of the scores, which need not be square."""
    student.softmax_rows(make.normal(queries=3, keys=4))


@rung.value("softmax_rows")
def test_softmax_rows_gives_the_weights_of_the_example(student, reference):
    """Both rows of the example sum to one, with the weights of the statement."""
    scores = torch.tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    weights = student.softmax_rows(scores)
    rows, columns = weights.sum(dim=1), weights.sum(dim=0)
    assert_that(
        not agree(columns, torch.ones(3)),
        "your columns sum to one, but each row should sum to one: along which axis does one query "
        "share out its attention?",
    )
    assert_that(
        agree(rows, torch.ones(2)),
        f"your rows sum to {rows[0].item():.4g} and {rows[1].item():.4g}; each should sum to 1: "
        "is there a total of its own for every row?",
    )
    assert_agrees(weights, reference.softmax_rows(scores), what="the weights of the example")


@rung.value("softmax_rows")
@pytest.mark.parametrize("shape", [(3, 5), (5, 2)], ids=str)
def test_softmax_rows_fits_any_matrix(student, reference, make, shape):
    """Other matrices, wide and tall, get the weights of the reference."""
    scores = make.normal(1.5, queries=shape[0], keys=shape[1])
    assert_agrees(student.softmax_rows(scores), reference.softmax_rows(scores))


@rung.property("softmax_rows", rules=("dtype",))
def test_softmax_rows_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(1.0, 1.02, queries=3, keys=4, dtype=torch.float64)
    weights, expected = student.softmax_rows(scores), reference.softmax_rows(scores)
    assert_agrees_to_float64(magnified(weights), magnified(expected), within=DIGITS)


@rung.property("softmax_rows", rules=("unchanged",))
def test_softmax_rows_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_rows, make.normal(queries=3, keys=4))


@rung.gradient("softmax_rows", rules=("gradients",))
def test_softmax_rows_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the scores."""
    scores = make.normal(queries=3, keys=4)
    assert_gradients_agree(student.softmax_rows, reference.softmax_rows, scores, make=make)


# --- softmax_stable ------------------------------------------------------------------------------


@rung.shape("softmax_stable")
@pytest.mark.parametrize("dim", [0, 1, 2], ids="dim {}".format)
def test_softmax_stable_gives_a_weight_per_score(student, make, dim):
    """The weights have the shape of the scores, along every dimension."""
    student.softmax_stable(make.normal(batch=2, queries=3, keys=4), dim)


@rung.value("softmax_stable")
def test_softmax_stable_works_along_the_last_dimension(student, reference, make):
    """Without a dim, each row of a matrix becomes a distribution."""
    scores = make.normal(1.5, queries=3, keys=5)
    assert_agrees(student.softmax_stable(scores), reference.softmax_stable(scores))


@rung.value("softmax_stable")
@pytest.mark.parametrize("dim", [0, 1, -1], ids="dim {}".format)
def test_softmax_stable_works_along_the_dimension_asked_for(student, reference, make, dim):
    """The weights sum to one along dim, and agree with the reference."""
    scores = make.normal(1.5, queries=3, keys=4)
    weights = student.softmax_stable(scores, dim)
    assert_that(
        agree(weights.sum(dim=dim), torch.ones(weights.sum(dim=dim).shape), REORDERED),
        f"with dim={dim} the weights should sum to one along dimension {dim}: do both the "
        "maximum and the sum use dim?",
    )
    assert_agrees(weights, reference.softmax_stable(scores, dim))


@rung.property("softmax_stable", rules=("dtype",))
def test_softmax_stable_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.uniform(0.0, 0.02, queries=3, keys=4, dtype=torch.float64)
    weights, expected = student.softmax_stable(scores), reference.softmax_stable(scores)
    assert_agrees_to_float64(magnified(weights), magnified(expected), within=DIGITS)


@rung.property("softmax_stable", rules=("unchanged",))
def test_softmax_stable_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    scores = make.normal(queries=3, keys=4)
    scores[0, 1] = scores[2, 3] = float("-inf")
    assert_input_unchanged(student.softmax_stable, scores)


@rung.gradient("softmax_stable", rules=("gradients",))
def test_softmax_stable_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the scores."""
    scores = make.normal(queries=3, keys=4)
    assert_gradients_agree(student.softmax_stable, reference.softmax_stable, scores, make=make)


@rung.gradient("softmax_stable", rules=("gradients",))
def test_softmax_stable_has_finite_gradients_beside_infinities(student, make):
    """Finite scores get a finite gradient, even if their slice has a score of -inf."""
    scores = make.normal(queries=3, keys=4)
    scores[0, 1] = scores[2, 3] = float("-inf")
    scores.requires_grad_()
    weights = student.softmax_stable(scores)
    (weights * make.normal_like(weights, name="upstream")).sum().backward()
    if scores.grad is None:
        return  # the test above reports a missing gradient
    assert_that(
        bool(scores.grad[scores.isfinite()].isfinite().all()),
        "a finite score gets a gradient that is not finite when its slice contains -inf: which "
        "step has an infinite slope there, like the log of 0, or subtracts one infinity from "
        "another?",
    )


# Scores smaller than in the example. Each way to choose a wrong shift fails on some of these rows.
SLICES_APART = torch.tensor(
    [
        [90.0, 89.0], [50.0, 49.0], [-60.0, -61.0], [-40.0, -41.0], [60.0, -60.0], [100.0, -80.0],
    ]
)  # fmt: skip


@rung.stability("softmax_stable", rules=("large", "infinite"))
@pytest.mark.parametrize("dim", [-1, 0], ids=["its rows", "its columns"])
def test_softmax_stable_survives_the_example(student, reference, dim):
    """The example, with 1001, -1000 and -inf in it, gets the weights of the statement."""
    scores = torch.tensor([[1000.0, 1001.0], [-1000.0, float("-inf")]])
    others = SLICES_APART if dim else SLICES_APART.T
    weights, of_others = student.softmax_stable.each([(scores, dim), (others, dim)])
    assert_that(
        not weights.isnan().any(),
        "there is a NaN: either exp overflowed, or a slice lies so far below another that all its "
        "exponentials vanished. Which shift, one for each slice along dim, makes the largest "
        "exponential 1?",
    )
    of_ours, expected = reference.softmax_stable(scores, dim), reference.softmax_stable(others, dim)
    assert_agrees(weights, of_ours, within=LARGE_SCORES, what="the example's weights")
    assert_agrees(of_others, expected, within=LARGE_SCORES, what="the weights of slices far apart")
