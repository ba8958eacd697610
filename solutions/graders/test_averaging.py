"""Hidden graders of unit 1, averaging."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    REORDERED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_rows_sum_to_one,
    assert_that,
    assert_uses,
    first_tokens,
)

SIZES = [(2, 5, 3), (3, 4, 7), (5, 11, 2)]  # batch, time, channels, all different


def sequences(make, batch, time, channels, dtype=torch.float32):
    """Sequences whose means stay far from zero, so that a wrong divisor shows."""
    noise = make.normal(2.0, batch=batch, time=time, channels=channels, dtype=dtype)
    return noise + make.uniform(1.0, 5.0, batch=batch, one=1, channels=channels, dtype=dtype)


# --- running_mean_loop ---------------------------------------------------------------------------


@rung.shape("running_mean_loop")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_running_mean_loop_keeps_the_shape(student, make, sizes):
    """A mean comes back for each token and channel."""
    student.running_mean_loop(sequences(make, *sizes))


@rung.value("running_mean_loop", points=6)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_running_mean_loop_agrees_with_the_reference(student, reference, make, sizes):
    """Each token becomes the mean of itself and all tokens before it."""
    x = sequences(make, *sizes)
    assert_agrees(student.running_mean_loop(x), reference.running_mean_loop(x))


@rung.property("running_mean_loop", rules=("returns",))
def test_running_mean_loop_works_for_a_single_token(student, make):
    """The mean of a single token is the token itself, also in a batch of one sequence."""
    for batch in (1, 3):
        x = sequences(make, batch, 1, 4)
        assert_agrees(student.running_mean_loop(x), x)


@rung.property("running_mean_loop")
def test_running_mean_loop_sees_its_own_past_only(student, make):
    """Neither later tokens nor other sequences change a mean, however large they are."""
    # A sum that includes a large later number and subtracts it again loses digits.
    growing = sequences(make, 2, 6, 3) * 1000.0 ** torch.arange(6.0)[:, None]
    assert_causal(student.running_mean_loop, growing)
    assert_batch_rows_do_not_mix(student.running_mean_loop, sequences(make, 3, 4, 2))


@rung.property("running_mean_loop", rules=("dtype",))
def test_running_mean_loop_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, to full precision."""
    x = sequences(make, 2, 7, 3, torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**5
    x[:, 1::2] -= 2.0**5
    assert_agrees_to_float64(
        student.running_mean_loop(x), reference.running_mean_loop(x), within=DIGITS
    )


@rung.property("running_mean_loop", rules=("unchanged",))
def test_running_mean_loop_leaves_its_input_alone(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_loop, sequences(make, 2, 5, 3))


@rung.gradient("running_mean_loop", rules=("gradients",))
def test_running_mean_loop_has_the_right_gradient(student, reference, make):
    """Gradients flow back to every token that a mean was made of."""
    x = sequences(make, 2, 5, 3)
    assert_gradients_agree(student.running_mean_loop, reference.running_mean_loop, x, make=make)


# --- prefix_sum_matrix ---------------------------------------------------------------------------


@rung.shape("prefix_sum_matrix")
@pytest.mark.parametrize("time", [2, 5], ids="time {}".format)
def test_prefix_sum_matrix_is_square(student, time):
    """The matrix is square and floating point."""
    student.prefix_sum_matrix(time)


@rung.value("prefix_sum_matrix", points=3)
@pytest.mark.parametrize("time", [2, 5, 12], ids="time {}".format)
def test_prefix_sum_matrix_agrees_with_the_reference(student, reference, time):
    """Row t has ones for the tokens up to t, and zeros for the others."""
    assert_agrees(student.prefix_sum_matrix(time), reference.prefix_sum_matrix(time))


@rung.property("prefix_sum_matrix", rules=("sizes", "returns"))
def test_prefix_sum_matrix_of_a_single_token(student):
    """For a single token, the matrix is a single 1."""
    assert_agrees(student.prefix_sum_matrix(1), torch.ones(1, 1))


@rung.property("prefix_sum_matrix", rules=("sizes",))
def test_prefix_sum_matrix_sums_up_the_past(student, make):
    """The product with a long sequence gives the cumulative sums."""
    x = make.integers(-9, 10, batch=2, time=600, channels=3).float()
    assert_agrees(student.prefix_sum_matrix(600) @ x, x.cumsum(dim=1))


# --- running_mean_matrix -------------------------------------------------------------------------


@rung.shape("running_mean_matrix")
@pytest.mark.parametrize("time", [2, 5], ids="time {}".format)
def test_running_mean_matrix_is_square(student, time):
    """The matrix is square and floating point."""
    student.running_mean_matrix(time)


@rung.value("running_mean_matrix", points=3)
@pytest.mark.parametrize("time", [2, 5, 12], ids="time {}".format)
def test_running_mean_matrix_agrees_with_the_reference(student, reference, time):
    """Row t gives the same weight to the tokens up to t, and none to the others."""
    weights = student.running_mean_matrix(time)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights, reference.running_mean_matrix(time))


@rung.property("running_mean_matrix", rules=("sizes", "returns"))
def test_running_mean_matrix_of_a_single_token(student):
    """A single token gets the whole weight."""
    assert_agrees(student.running_mean_matrix(1), torch.ones(1, 1))


@rung.property("running_mean_matrix", rules=("sizes",))
def test_running_mean_matrix_fits_a_long_sequence(student):
    """For 500 tokens, the last row still has equal weights that sum to one."""
    weights = student.running_mean_matrix(500)
    assert_rows_sum_to_one(weights)
    assert_agrees(weights[-1], torch.full((500,), 0.002), what="the last row")


# --- running_mean_matmul -------------------------------------------------------------------------


@rung.shape("running_mean_matmul")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_running_mean_matmul_keeps_the_shape(student, make, sizes):
    """A mean comes back for each token and channel."""
    student.running_mean_matmul(sequences(make, *sizes))


@rung.value("running_mean_matmul", points=7)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_running_mean_matmul_agrees_with_the_reference(student, reference, make, sizes):
    """Each token becomes the mean of itself and all tokens before it."""
    x = sequences(make, *sizes)
    assert_agrees(student.running_mean_matmul(x), reference.running_mean_matmul(x))


@rung.property("running_mean_matmul", rules=("returns",))
def test_running_mean_matmul_works_for_a_single_token(student, make):
    """The mean of a single token is the token itself, also in a batch of one sequence."""
    for batch in (1, 3):
        x = sequences(make, batch, 1, 4)
        assert_agrees(student.running_mean_matmul(x), x)


@rung.property("running_mean_matmul", rules=("dtype",))
def test_running_mean_matmul_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, to full precision."""
    x = sequences(make, 2, 7, 3, torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**24
    x[:, 1::2] -= 2.0**24
    theirs, ours = student.running_mean_matmul(x), reference.running_mean_matmul(x)
    # Weights may come from `running_mean_matrix`, where 1/3 is rounded to float32.
    assert_agrees_to_float64(theirs, ours, within=REORDERED)


@rung.property("running_mean_matmul", rules=("unchanged",))
def test_running_mean_matmul_leaves_its_input_alone(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_matmul, sequences(make, 2, 5, 3))


@rung.gradient("running_mean_matmul", rules=("gradients",))
def test_running_mean_matmul_has_the_right_gradient(student, reference, make):
    """Gradients flow back to every token that a mean was made of."""
    x = sequences(make, 2, 5, 3)
    assert_gradients_agree(student.running_mean_matmul, reference.running_mean_matmul, x, make=make)


@rung.efficiency("running_mean_matmul", points=3, rules=("loops",))
def test_running_mean_matmul_has_no_loop_over_time(student, make):
    """A sequence five times as long takes no more operations."""
    short, long = sequences(make, 2, 5, 3), sequences(make, 2, 25, 3)
    assert_operations_do_not_grow(student.running_mean_matmul, [short], [long])


# --- running_mean_softmax ------------------------------------------------------------------------

ROADS = (
    "softmax",
    "exp",
    "scaled_dot_product_attention",
    "exp2",
    "log_softmax",
    "logsumexp",
    "pow",
    "softmin",
)


@rung.shape("running_mean_softmax")
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_running_mean_softmax_keeps_the_shape(student, make, sizes):
    """A mean comes back for each token and channel."""
    student.running_mean_softmax(sequences(make, *sizes))


@rung.value("running_mean_softmax", points=6)
@pytest.mark.parametrize(
    ("sizes", "by_softmax"),
    [
        *(pytest.param(sizes, False, id=str(sizes)) for sizes in SIZES),
        # Right means without a softmax count as little as wrong means.
        pytest.param((3, 4, 7), True, id="by a softmax", marks=rung.quotes("softmax")),
    ],
)
def test_running_mean_softmax_agrees_with_the_reference(
    student, reference, make, sizes, by_softmax
):
    """Each token becomes the mean of itself and all before it, by way of a softmax or an exp."""
    x = sequences(make, *sizes)
    if by_softmax:
        assert_uses(student.running_mean_softmax, ROADS, x)
    else:
        assert_agrees(student.running_mean_softmax(x), reference.running_mean_softmax(x))


@rung.property("running_mean_softmax", rules=("returns",))
def test_running_mean_softmax_works_for_a_single_token(student, make):
    """The mean of a single token is the token itself, also in a batch of one sequence."""
    for batch in (1, 3):
        x = sequences(make, batch, 1, 4)
        assert_agrees(student.running_mean_softmax(x), x)


@rung.property("running_mean_softmax")
def test_running_mean_softmax_gives_nothing_to_the_future(student, make):
    """A later token does not change an earlier mean at all, however large it is."""
    x = sequences(make, 2, 6, 3)
    before = student.running_mean_softmax(x)
    for cut in (1, 3, 5):
        changed = x.clone()
        changed[:, cut:] = 1e15  # shows a weight too small even for the test in float64
        assert_that(
            agree(before[:, :cut], student.running_mean_softmax(changed)[:, :cut]),
            f"the means of {first_tokens(cut)} changed when later tokens became very large: is "
            "their weight exactly zero? exp(-inf) is, and nothing else",
        )


@rung.property("running_mean_softmax", rules=("dtype",))
def test_running_mean_softmax_keeps_float64(student, reference, make):
    """Sequences in float64 give means in float64, to full precision."""
    x = sequences(make, 2, 7, 3, torch.float64)
    # Large terms cancel, and float32 would lose the digits of the small rest.
    x[:, 0::2] += 2.0**5
    x[:, 1::2] -= 2.0**5
    assert_agrees_to_float64(
        student.running_mean_softmax(x), reference.running_mean_softmax(x), within=DIGITS
    )


@rung.property("running_mean_softmax", rules=("unchanged",))
def test_running_mean_softmax_leaves_its_input_alone(student, make):
    """The sequences passed in stay as they were."""
    assert_input_unchanged(student.running_mean_softmax, sequences(make, 2, 5, 3))


@rung.gradient("running_mean_softmax", rules=("gradients",))
def test_running_mean_softmax_has_the_right_gradient(student, reference, make):
    """Gradients flow back to every token that a mean was made of."""
    assert_gradients_agree(
        student.running_mean_softmax,
        reference.running_mean_softmax,
        sequences(make, 2, 5, 3),
        make=make,
    )
