"""Public checks of unit 1, averaging."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    assert_agrees,
    assert_causal,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_that,
)

THREE_TOKENS = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
THEIR_MEANS = torch.tensor([[[2.0, 7.0], [4.0, 5.5], [14 / 3, 16 / 3]]])


def assert_means_of_the_example(means):
    """Compare with the statement, and name the slips that are easy to make."""
    sums = THREE_TOKENS.cumsum(dim=1)
    assert_that(
        not torch.allclose(means, sums),
        "these are the sums of the past, not its means: divide by how many tokens took part",
    )
    assert_that(
        not torch.allclose(means, sums / 3),
        "the sums are right, but the divisor is not: at time t only t + 1 tokens took part",
    )
    assert_that(
        not means.isnan().any(),
        "there is a NaN: was a mean taken over no tokens at all, or is everything hidden from the "
        "first token? It may look at itself",
    )
    assert_that(
        torch.allclose(means[:, 0], THREE_TOKENS[:, 0]),
        f"the first token has no past but itself, so its mean is [2, 7]; yours is "
        f"{[round(number, 4) for number in means[0, 0].tolist()]}",
    )
    assert_agrees(means, THEIR_MEANS, what="the means of the example")


# --- running_mean_loop ---------------------------------------------------------------------------


@rung.shape("running_mean_loop")
def test_running_mean_loop_gives_a_mean_per_token(student, make):
    """A mean comes back for each token and channel."""
    student.running_mean_loop(make.normal(batch=2, time=4, channels=3))


@rung.value("running_mean_loop")
def test_running_mean_loop_averages_the_example(student):
    """The three tokens of the statement get their means."""
    assert_means_of_the_example(student.running_mean_loop(THREE_TOKENS))


@rung.value("running_mean_loop")
@pytest.mark.parametrize("time", [4, 6], ids="time {}".format)
def test_running_mean_loop_fits_any_sequence(student, reference, make, time):
    """Two other sequences at once agree with the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_loop(x), reference.running_mean_loop(x))


@rung.property("running_mean_loop")
def test_running_mean_loop_builds_a_new_tensor(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_loop, make.normal(batch=2, time=4, channels=3))


# --- prefix_sum_matrix ---------------------------------------------------------------------------


@rung.shape("prefix_sum_matrix")
def test_prefix_sum_matrix_has_a_row_per_token(student):
    """The matrix is square and floating point."""
    student.prefix_sum_matrix(4)


@rung.value("prefix_sum_matrix")
def test_prefix_sum_matrix_for_three_tokens(student):
    """For three tokens it is the triangle of the statement."""
    matrix = student.prefix_sum_matrix(3)
    triangle = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert_that(
        not torch.equal(matrix, triangle.T),
        "your triangle lies above the diagonal: row 0 is the first token's, and the first token "
        "only sees itself",
    )
    assert_that(
        bool((matrix.diagonal() == 1).all()),
        "the diagonal should hold ones: each token takes part in its own sum",
    )
    assert_agrees(matrix, triangle, what="the matrix for 3 tokens")


@rung.value("prefix_sum_matrix")
@pytest.mark.parametrize("time", [1, 4, 7], ids="time {}".format)
def test_prefix_sum_matrix_fits_any_length(student, reference, time):
    """It is right for other numbers of tokens, one included."""
    assert_agrees(student.prefix_sum_matrix(time), reference.prefix_sum_matrix(time))


@rung.property("prefix_sum_matrix")
def test_prefix_sum_matrix_sums_up_the_example(student):
    """Its product with the sequence of the statement is the sums of the past."""
    sums = student.prefix_sum_matrix(3) @ THREE_TOKENS[0]
    expected = torch.tensor([[2.0, 7.0], [8.0, 11.0], [14.0, 16.0]])
    assert_agrees(sums, expected, what="the product with the example")


# --- running_mean_matrix -------------------------------------------------------------------------


@rung.shape("running_mean_matrix")
def test_running_mean_matrix_has_a_row_per_token(student):
    """The matrix is square and floating point."""
    student.running_mean_matrix(4)


@rung.value("running_mean_matrix")
def test_running_mean_matrix_for_three_tokens(student):
    """For three tokens each row shares out a total of one, as in the statement."""
    weights = student.running_mean_matrix(3)
    sums = weights.sum(dim=1)
    assert_that(
        torch.allclose(sums, torch.ones(3)),
        f"your rows sum to {', '.join(f'{total:.4g}' for total in sums.tolist())}, and each should "
        "sum to one: did every row get a divisor of its own, its own count of ones?",
    )
    expected = torch.tensor([[1.0, 0.0, 0.0], [1 / 2, 1 / 2, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert_agrees(weights, expected, what="the matrix for 3 tokens")


@rung.value("running_mean_matrix")
@pytest.mark.parametrize("time", [1, 4, 7], ids="time {}".format)
def test_running_mean_matrix_fits_any_length(student, reference, time):
    """It is right for other numbers of tokens, one included."""
    assert_agrees(student.running_mean_matrix(time), reference.running_mean_matrix(time))


# --- running_mean_matmul -------------------------------------------------------------------------


@rung.shape("running_mean_matmul")
def test_running_mean_matmul_gives_a_mean_per_token(student, make):
    """A mean comes back for each token and channel."""
    student.running_mean_matmul(make.normal(batch=2, time=4, channels=3))


@rung.value("running_mean_matmul")
def test_running_mean_matmul_averages_the_example(student):
    """The three tokens of the statement get their means."""
    assert_means_of_the_example(student.running_mean_matmul(THREE_TOKENS))


@rung.value("running_mean_matmul")
@pytest.mark.parametrize("time", [4, 6], ids="time {}".format)
def test_running_mean_matmul_fits_any_sequence(student, reference, make, time):
    """Two other sequences at once agree with the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_matmul(x), reference.running_mean_matmul(x))


@rung.property("running_mean_matmul")
def test_running_mean_matmul_keeps_float64(student, make):
    """Sequences in float64 give means in float64."""
    student.running_mean_matmul(make.normal(batch=2, time=4, channels=3, dtype=torch.float64))


@rung.efficiency("running_mean_matmul")
def test_running_mean_matmul_has_no_loop_over_time(student, make):
    """A longer sequence takes no more operations than a shorter one."""
    short, long = (make.normal(batch=2, time=time, channels=3) for time in (4, 9))
    assert_operations_do_not_grow(student.running_mean_matmul, [short], [long])


# --- running_mean_softmax ------------------------------------------------------------------------


@rung.shape("running_mean_softmax")
def test_running_mean_softmax_gives_a_mean_per_token(student, make):
    """A mean comes back for each token and channel."""
    student.running_mean_softmax(make.normal(batch=2, time=4, channels=3))


@rung.value("running_mean_softmax")
def test_running_mean_softmax_averages_the_example(student):
    """The four tokens of the statement get their means."""
    means = student.running_mean_softmax(torch.tensor([[[8.0], [0.0], [1.0], [5.0]]]))
    assert_that(
        not means.isnan().any(),
        "there is a NaN: is some row hidden from end to end, or was a zero multiplied by -inf? "
        "Every token may at least look at itself",
    )
    assert_that(
        not torch.allclose(means, torch.full_like(means, 3.5)),
        "every token got the mean of all four, the future too: is the -inf in the matrix that the "
        "softmax sees? A function without a trailing underscore returns a new tensor",
    )
    assert_agrees(
        means, torch.tensor([[[8.0], [4.0], [3.0], [3.5]]]), what="the means of the example"
    )


@rung.value("running_mean_softmax")
@pytest.mark.parametrize("time", [4, 6], ids="time {}".format)
def test_running_mean_softmax_fits_any_sequence(student, reference, make, time):
    """Two other sequences at once agree with the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_softmax(x), reference.running_mean_softmax(x))


@rung.property("running_mean_softmax")
def test_running_mean_softmax_never_sees_the_future(student, make):
    """Changing later tokens leaves the means of earlier ones as they were."""
    assert_causal(student.running_mean_softmax, make.normal(batch=2, time=5, channels=3))
