"""Public checks of unit 1, averaging."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    REORDERED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_causal,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_that,
    assert_uses,
)

THREE_TOKENS = torch.tensor([[[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]]])
THEIR_MEANS = torch.tensor([[[2.0, 7.0], [4.0, 5.5], [14 / 3, 16 / 3]]])


def assert_means_of_the_example(means):
    """Compare the means with those of the statement, and explain common mistakes."""
    sums = THREE_TOKENS.cumsum(dim=1)
    assert_that(
        not agree(means, sums),
        "these are sums of the past, not means: divide by the number of tokens that were added up",
    )
    assert_that(
        not agree(means, sums / 3),
        "the sums are right, but the divisor is wrong: at time t, it is the number of tokens that "
        "were added up, t + 1",
    )
    assert_that(
        not means.isnan().any(),
        "there is a NaN: was a mean taken over no tokens at all, or is everything hidden from the "
        "first token? It may look at itself",
    )
    assert_that(
        agree(means[:, 0], THREE_TOKENS[:, 0]),
        f"no token comes before the first token, so its mean is the token itself, [2, 7]; yours is "
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
    """For a batch of two other sequences, the means are those of the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_loop(x), reference.running_mean_loop(x))


@rung.property("running_mean_loop", rules=("dtype",))
def test_running_mean_loop_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, to full precision."""
    x = make.normal(batch=2, time=5, channels=3, dtype=torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**5
    x[:, 1::2] -= 2.0**5
    assert_agrees_to_float64(
        student.running_mean_loop(x), reference.running_mean_loop(x), within=DIGITS
    )


@rung.property("running_mean_loop", rules=("unchanged",))
def test_running_mean_loop_builds_a_new_tensor(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_loop, make.normal(batch=2, time=4, channels=3))


@rung.gradient("running_mean_loop", rules=("gradients",))
def test_running_mean_loop_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the sequences."""
    x = make.normal(batch=2, time=4, channels=3)
    assert_gradients_agree(student.running_mean_loop, reference.running_mean_loop, x, make=make)


# --- prefix_sum_matrix ---------------------------------------------------------------------------


@rung.shape("prefix_sum_matrix")
def test_prefix_sum_matrix_has_a_row_per_token(student):
    """The matrix is square and floating point."""
    student.prefix_sum_matrix(4)


@rung.value("prefix_sum_matrix")
def test_prefix_sum_matrix_for_three_tokens(student):
    """For three tokens, the matrix is the triangle of the statement."""
    matrix = student.prefix_sum_matrix(3)
    triangle = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert_that(
        not torch.equal(matrix, triangle.T),
        "your triangle lies above the diagonal: row 0 belongs to the first token, and that token "
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
    """The matrix is right for other numbers of tokens, and for a single token."""
    assert_agrees(student.prefix_sum_matrix(time), reference.prefix_sum_matrix(time))


@rung.value("prefix_sum_matrix")
def test_prefix_sum_matrix_sums_up_the_example(student):
    """The product with the sequence of the statement gives the sums of the past."""
    sums = student.prefix_sum_matrix(3) @ THREE_TOKENS[0]
    expected = torch.tensor([[2.0, 7.0], [8.0, 11.0], [14.0, 16.0]])
    assert_agrees(sums, expected, what="the product with the example")


@rung.property("prefix_sum_matrix", rules=("sizes",))
def test_prefix_sum_matrix_fits_a_long_sequence(student, reference):
    """The matrix is right for a hundred tokens."""
    assert_agrees(student.prefix_sum_matrix(100), reference.prefix_sum_matrix(100))


# --- running_mean_matrix -------------------------------------------------------------------------


@rung.shape("running_mean_matrix")
def test_running_mean_matrix_has_a_row_per_token(student):
    """The matrix is square and floating point."""
    student.running_mean_matrix(4)


@rung.value("running_mean_matrix")
def test_running_mean_matrix_for_three_tokens(student):
    """For three tokens, each row has equal weights that sum to one, as in the statement."""
    weights = student.running_mean_matrix(3)
    sums = weights.sum(dim=1)
    assert_that(
        agree(sums, torch.ones(3)),
        f"your rows sum to {', '.join(f'{total:.4g}' for total in sums.tolist())}, and each should "
        "sum to one: did every row get a divisor of its own, its own count of ones?",
    )
    expected = torch.tensor([[1.0, 0.0, 0.0], [1 / 2, 1 / 2, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    assert_agrees(weights, expected, what="the matrix for 3 tokens")


@rung.value("running_mean_matrix")
@pytest.mark.parametrize("time", [1, 4, 7], ids="time {}".format)
def test_running_mean_matrix_fits_any_length(student, reference, time):
    """The matrix is right for other numbers of tokens, and for a single token."""
    assert_agrees(student.running_mean_matrix(time), reference.running_mean_matrix(time))


@rung.property("running_mean_matrix", rules=("sizes",))
def test_running_mean_matrix_fits_a_long_sequence(student, reference):
    """The matrix is right for a hundred tokens."""
    assert_agrees(student.running_mean_matrix(100), reference.running_mean_matrix(100))


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
    """For a batch of two other sequences, the means are those of the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_matmul(x), reference.running_mean_matmul(x))


@rung.property("running_mean_matmul", rules=("dtype",))
def test_running_mean_matmul_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, summed in float64."""
    x = make.normal(batch=2, time=5, channels=3, dtype=torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**24
    x[:, 1::2] -= 2.0**24
    theirs, ours = student.running_mean_matmul(x), reference.running_mean_matmul(x)
    # Weights may come from `running_mean_matrix`, where 1/3 is rounded to float32.
    assert_agrees_to_float64(theirs, ours, within=REORDERED)


@rung.property("running_mean_matmul", rules=("unchanged",))
def test_running_mean_matmul_builds_a_new_tensor(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_matmul, make.normal(batch=2, time=4, channels=3))


@rung.gradient("running_mean_matmul", rules=("gradients",))
def test_running_mean_matmul_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the sequences."""
    x = make.normal(batch=2, time=4, channels=3)
    assert_gradients_agree(student.running_mean_matmul, reference.running_mean_matmul, x, make=make)


@rung.efficiency("running_mean_matmul", rules=("loops",))
def test_running_mean_matmul_has_no_loop_over_time(student, make):
    """A longer sequence takes no more operations than a short sequence."""
    short, long = (make.normal(batch=2, time=time, channels=3) for time in (4, 9))
    assert_operations_do_not_grow(student.running_mean_matmul, [short], [long])


# --- running_mean_softmax ------------------------------------------------------------------------

ROADS = (
    "softmax", "exp", "scaled_dot_product_attention", "exp2", "log_softmax", "logsumexp", "pow",
    "softmin",
)  # fmt: skip


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
        not agree(means, torch.full_like(means, 3.5)),
        "every token got the mean of all four, the future too: is the -inf in the matrix that the "
        "softmax sees? A function without a trailing underscore returns a new tensor",
    )
    assert_agrees(
        means, torch.tensor([[[8.0], [4.0], [3.0], [3.5]]]), what="the means of the example"
    )


@rung.value("running_mean_softmax")
@pytest.mark.parametrize("time", [4, 6], ids="time {}".format)
def test_running_mean_softmax_fits_any_sequence(student, reference, make, time):
    """For a batch of two other sequences, the means are those of the reference."""
    x = make.normal(2.0, batch=2, time=time, channels=3)
    assert_agrees(student.running_mean_softmax(x), reference.running_mean_softmax(x))


@rung.property("running_mean_softmax")
def test_running_mean_softmax_never_sees_the_future(student, make):
    """Later tokens, even very large ones, do not change the means of earlier tokens."""
    x = make.normal(batch=2, time=5, channels=3)
    assert_causal(student.running_mean_softmax, x)
    before, large = student.running_mean_softmax(x), x.clone()
    large[:, 3:] = 1e15
    assert_that(
        agree(before[:, :3], student.running_mean_softmax(large)[:, :3]),
        "the means of the first three tokens changed when later tokens became very large: is the "
        "weight of later tokens exactly zero? exp(-inf) is 0, but exp(-30) is not",
    )


@rung.property("running_mean_softmax", rules=("softmax",))
def test_running_mean_softmax_has_weights_out_of_a_softmax(student, make):
    """The means are computed with a softmax, or with an exp."""
    x = make.normal(2.0, batch=2, time=5, channels=3)
    assert_uses(student.running_mean_softmax, ROADS, x)


@rung.property("running_mean_softmax", rules=("dtype",))
def test_running_mean_softmax_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, to full precision."""
    x = make.normal(batch=2, time=5, channels=3, dtype=torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**5
    x[:, 1::2] -= 2.0**5
    assert_agrees_to_float64(
        student.running_mean_softmax(x), reference.running_mean_softmax(x), within=DIGITS
    )


@rung.property("running_mean_softmax", rules=("unchanged",))
def test_running_mean_softmax_builds_a_new_tensor(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_softmax, make.normal(batch=2, time=4, channels=3))


@rung.gradient("running_mean_softmax", rules=("gradients",))
def test_running_mean_softmax_can_be_learned_through(student, reference, make):
    """The right gradient comes back to the sequences."""
    x = make.normal(batch=2, time=4, channels=3)
    assert_gradients_agree(
        student.running_mean_softmax, reference.running_mean_softmax, x, make=make
    )
