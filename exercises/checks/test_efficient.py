"""Public checks of unit 10, efficient."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    PRINTED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_grows_at_most,
    assert_input_unchanged,
    assert_maxima_do_not_run_ahead,
    assert_operations_do_not_grow,
    assert_reduces_at_most,
    assert_that,
    assert_work_at_most,
)

# --- online_step ---------------------------------------------------------------------------------


def state_and_block(make, n, dtype=torch.float32, **rows):
    """A running maximum and total of each row, and the next block of scores."""
    maximum = make.normal(2.0, dtype=dtype, **rows)
    return (
        maximum,
        make.uniform(1.0, 4.0, dtype=dtype, **rows),
        make.normal(2.0, dtype=dtype, **rows, n=n),
    )


@rung.shape("online_step", rules=("returns", "leading"))
@pytest.mark.parametrize(
    "rows", [{"queries": 3}, {}, {"batch": 2, "heads": 4, "queries": 3}], ids=len
)
def test_online_step_gives_two_numbers_per_row(student, make, rows):
    """A maximum and a total come back for each row, however the rows are arranged."""
    student.online_step(*state_and_block(make, 5, **rows))


@rung.value("online_step")
def test_online_step_gives_the_numbers_of_the_example(student):
    """After the scores 1 and 3, the block of 2 and 5 leaves maximum 5 and total 1.2034."""
    result = student.online_step(torch.tensor(3.0), torch.tensor(1.1353), torch.tensor([2.0, 5.0]))
    assert_agrees(result[0], torch.tensor(5.0), what="the maximum of the example")
    expected = torch.tensor(1.2034)
    assert_agrees(result[1], expected, within=PRINTED, what="the total of the example")


@rung.value("online_step")
@pytest.mark.parametrize("n", [1, 4, 7], ids="{} scores in a block".format)
def test_online_step_takes_a_block_of_any_size(student, reference, make, n):
    """The state is right for other numbers, whether or not the block has a larger maximum."""
    state = state_and_block(make, n, batch=3, queries=5)
    assert_agrees(student.online_step(*state), reference.online_step(*state))


@rung.property("online_step", rules=("empty",))
def test_online_step_begins_with_nothing(student, reference, make):
    """From the empty state (-inf, 0), maximum and total are those of the first block alone."""
    block = make.normal(2.0, queries=3, n=4)
    state = torch.full((3,), -torch.inf), torch.zeros(3), block
    maximum, total = student.online_step(*state)
    assert_that(
        not total.isnan().any(),
        "there is a NaN: what do your lines compute from a maximum of -inf?",
    )
    assert_agrees((maximum, total), reference.online_step(*state))


@rung.property("online_step", rules=("dtype",))
def test_online_step_computes_in_float64(student, reference, make):
    """A state and a block in float64 give a state in float64, to full precision."""
    state = state_and_block(make, 6, dtype=torch.float64, queries=20)
    assert_agrees_to_float64(
        student.online_step(*state), reference.online_step(*state), within=ALL_DIGITS
    )


@rung.property("online_step", rules=("unchanged",))
def test_online_step_builds_new_tensors(student, make):
    """Maximum, total and block stay as they were."""
    assert_input_unchanged(student.online_step, *state_and_block(make, 4, queries=5))


@rung.stability("online_step", rules=("large",))
@pytest.mark.parametrize(
    ("so_far", "centre"),
    [(1000.0, 1000.0), (-1000.0, -1000.0), (-1000.0, 1000.0), (1000.0, -1000.0)],
    ids=["around 1000", "around -1000", "rising to 1000", "falling to -1000"],
)
def test_online_step_survives_large_scores(student, reference, so_far, centre):
    """Scores around ±1000 give numbers, not NaN and not infinity."""
    block = torch.tensor([[0.0, 1.0, -1.0], [-2.0, 0.0, -1.0]]) + centre
    state = torch.full((2,), so_far), torch.tensor([1.5, 2.5]), block
    result = student.online_step(*state)
    assert_that(
        bool(result[1].isfinite().all()),
        "the total is NaN or infinite: is every exponent a score minus a maximum that is at "
        "least as large?",
    )
    assert_agrees(result, reference.online_step(*state), within=LARGE_SCORES)


def logarithm_of(state):
    """The logarithm of the sum of all exponentials, from a maximum and a total."""
    maximum, total = state[:2]
    return maximum + total.log()


@rung.gradient("online_step", rules=("gradients",))
def test_online_step_can_be_learned_through(student, reference, make):
    """Gradients come back to maximum, total and block."""
    state = state_and_block(make, 4, queries=5)
    assert_gradients_agree(
        student.online_step, reference.online_step, *state, make=make, of=logarithm_of
    )


# --- softmax_online ------------------------------------------------------------------------------


@rung.shape("softmax_online", rules=("returns", "leading"))
@pytest.mark.parametrize(
    "sizes",
    [{"queries": 3, "n": 8}, {"n": 7}, {"batch": 2, "heads": 3, "queries": 4, "n": 7}],
    ids=["rows of a matrix", "no leading dimension", "three leading dimensions"],
)
def test_softmax_online_gives_a_weight_per_score(student, make, sizes):
    """The weights have the shape of the scores, with any number of leading dimensions."""
    student.softmax_online(make.normal(**sizes), 4)


@rung.value("softmax_online")
def test_softmax_online_gives_the_weights_of_the_example(student):
    """Five scores in blocks of two get the weights of the statement."""
    weights = student.softmax_online(torch.tensor([1.0, 3.0, 2.0, 5.0, 4.0]), 2)
    assert_that(
        abs(weights.sum().item() - 1) < 1e-4,
        f"the weights of the example sum to {weights.sum().item():.4g} and should sum to 1: after "
        "the second block the sum so far should be 1.2034, and 1.5713 at the end. Is yours?",
    )
    expected = torch.tensor([0.0117, 0.0861, 0.0317, 0.6364, 0.2341])
    assert_agrees(weights, expected, within=PRINTED, what="the weights of the example")


@rung.value("softmax_online")
@pytest.mark.parametrize("block_size", [1, 3, 4, 20], ids="block size {}".format)
def test_softmax_online_gives_the_same_for_all_block_sizes(student, reference, make, block_size):
    """Blocks of any size give the weights of a softmax."""
    scores = make.normal(2.0, batch=2, queries=3, n=11)
    assert_agrees(
        student.softmax_online(scores, block_size), reference.softmax_online(scores, block_size)
    )


@rung.property("softmax_online", rules=("dtype",))
def test_softmax_online_computes_in_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.normal(2.0, rows=20, n=8, dtype=torch.float64) + 60.0  # costs float32 digits
    assert_agrees_to_float64(
        student.softmax_online(scores, 3), reference.softmax_online(scores, 3), within=DIGITS
    )


@rung.property("softmax_online", rules=("unchanged",))
def test_softmax_online_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_online, make.normal(queries=3, n=8), 3)


@rung.stability("softmax_online", rules=("large",))
@pytest.mark.parametrize(
    "row",
    [
        [1000.0, 1001.0, 999.0, 1000.0, 1001.0],
        [-1000.0, -1001.0, -999.0, -1000.0, -1001.0],
        [-1000.0, -999.0, 0.0, 999.0, 1000.0],
    ],
    ids=["around 1000", "around -1000", "rising to 1000"],
)
def test_softmax_online_survives_large_scores(student, reference, row):
    """Scores around ±1000 give weights, not NaN."""
    scores = torch.tensor(row)
    weights = student.softmax_online(scores, 2)
    assert_that(
        not weights.isnan().any(),
        "there is a NaN: is every exponent a score minus a maximum that is at least as large? And "
        "what does the maximum start from?",
    )
    assert_agrees(weights, reference.softmax_online(scores, 2), within=LARGE_SCORES)


@rung.efficiency("softmax_online", rules=("block",))
def test_softmax_online_looks_at_one_block_at_a_time(student, make):
    """No maximum and no sum runs over more than block_size scores."""
    # At most 6 numbers: a block of 5, and the maximum so far.
    scores = make.normal(queries=3, n=23)
    assert_reduces_at_most(student.softmax_online, 6, scores, 5, leaving=2 * 3 * 5)


@rung.efficiency("softmax_online", rules=("once",))
def test_softmax_online_takes_maximum_and_sum_in_one_pass(student, make):
    """Exponentials of the first block are taken before the maximum of the next block."""
    small, large = make.normal(queries=2, n=20), make.normal(queries=2, n=60)
    assert_maxima_do_not_run_ahead(
        student.softmax_online, (small, 10), (large, 10), leaving=2 * 2 * 6
    )


# --- merge_states --------------------------------------------------------------------------------


def some_state(make, d, dtype=torch.float32, **queries):
    """Maximum, total and mix of each query."""
    maximum = make.normal(2.0, dtype=dtype, **queries)
    total = make.uniform(1.0, 4.0, dtype=dtype, **queries)
    return maximum, total, make.normal(3.0, dtype=dtype, **queries, d=d)


def two_states(make, d, dtype=torch.float32, **queries):
    """The states of two sets of keys."""
    return some_state(make, d, dtype, **queries), some_state(make, d, dtype, **queries)


def empty_state(d, *queries):
    """The state of queries that have met no key."""
    return torch.full(queries, -torch.inf), torch.zeros(queries), torch.zeros(*queries, d)


@rung.shape("merge_states", rules=("returns", "leading"))
@pytest.mark.parametrize("more", [{}, {"batch": 2}, {"batch": 2, "heads": 4}], ids=len)
def test_merge_states_gives_a_state(student, make, more):
    """Maximum, total and mix come back for each query, however the queries are arranged."""
    student.merge_states(*two_states(make, 5, **more, queries=3))


@rung.value("merge_states")
def test_merge_states_gives_the_numbers_of_the_example(student):
    """Merging a key of score 0 with two keys of score ln 2 gives the state of the statement."""
    first = torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([[1.0, 0.0]])
    second = torch.tensor([2.0]).log(), torch.tensor([2.0]), torch.tensor([[0.0, 2.0]])
    maximum, total, mix = student.merge_states(first, second)
    assert_agrees(maximum, torch.tensor([2.0]).log(), what="the maximum of the example")
    assert_agrees(total, torch.tensor([2.5]), what="the total of the example")
    assert_agrees(mix, torch.tensor([[0.5, 2.0]]), what="the mix of the example")


@rung.value("merge_states")
@pytest.mark.parametrize("queries", [1, 4, 6], ids="{} queries".format)
def test_merge_states_works_for_other_states(student, reference, make, queries):
    """The merged state is right for other numbers, whichever maximum is larger."""
    first, second = two_states(make, 5, batch=2, queries=queries)
    assert_agrees(student.merge_states(first, second), reference.merge_states(first, second))
    assert_agrees(student.merge_states(second, first), reference.merge_states(first, second))


def state_of(scores, values):
    """The state of keys with these scores, (queries, keys), and values, (keys, d)."""
    maximum = scores.amax(dim=-1)
    positive = torch.exp(scores - maximum[:, None])
    return maximum, positive.sum(dim=-1), positive @ values


@rung.value("merge_states")
def test_merge_states_of_two_blocks_is_attention(student, make):
    """After the states of two blocks of keys are merged, mix / total is attention over all keys."""
    scores, values = make.normal(2.0, queries=4, keys=9), make.normal(keys=9, d=5)
    first = state_of(scores[:, :3], values[:3])
    second = state_of(scores[:, 3:], values[3:])
    _maximum, total, mix = student.merge_states(first, second)
    expected = torch.softmax(scores, dim=-1) @ values
    assert_agrees(mix / total[:, None], expected, what="mix / total")


@rung.property("merge_states", rules=("empty",))
def test_merge_states_takes_empty_states(student, make):
    """An empty state changes nothing, and two empty states give an empty state."""
    some, empty = some_state(make, 5, queries=3), empty_state(5, 3)
    for what, pair, expected, within in (
        ("an empty state and another", (empty, some), some, None),
        ("a state and an empty one", (some, empty), some, None),
        ("two empty states", (empty, empty), empty, ALL_DIGITS),
    ):
        result = student.merge_states(*pair)
        assert_that(
            not any(part.isnan().any() for part in result),
            f"{what}: there is a NaN. What is -inf - (-inf)?",
        )
        assert_agrees(result, expected, within=within, what=what)


@rung.property("merge_states", rules=("dtype",))
def test_merge_states_computes_in_float64(student, reference, make):
    """States in float64 give a state in float64, to full precision."""
    states = two_states(make, 5, dtype=torch.float64, queries=20)
    assert_agrees_to_float64(
        student.merge_states(*states), reference.merge_states(*states), within=ALL_DIGITS
    )


@rung.property("merge_states", rules=("unchanged",))
def test_merge_states_builds_new_tensors(student, make):
    """Both states stay as they were."""
    assert_input_unchanged(student.merge_states, *two_states(make, 5, queries=4))


@rung.stability("merge_states", rules=("large",))
@pytest.mark.parametrize(
    ("one", "other"),
    [(1000.0, 1000.0), (-1000.0, -1000.0), (-1000.0, 1000.0)],
    ids=["both around 1000", "both around -1000", "2000 from one another"],
)
def test_merge_states_survives_large_scores(student, reference, make, one, other):
    """Maxima around ±1000 give numbers, not NaN and not infinity."""
    (_, first_total, first_mix), (_, second_total, second_mix) = two_states(make, 5, queries=3)
    near = torch.tensor([0.0, 1.0, -0.5])
    first, second = (one + near, first_total, first_mix), (other - near, second_total, second_mix)
    result = student.merge_states(first, second)
    assert_that(
        all(bool(part.isfinite().all()) for part in result),
        "there is NaN or infinity: is every exponent an old maximum minus the new one, which is at "
        "least as large?",
    )
    assert_agrees(result, reference.merge_states(first, second), within=LARGE_SCORES)


def meaning_of(state):
    """The mean of the values, and the logarithm of the sum of all exponentials, from a state."""
    _maximum, total, mix = state
    return mix / total[..., None], logarithm_of(state)


@rung.gradient("merge_states", rules=("gradients",))
def test_merge_states_can_be_learned_through(student, reference, make):
    """Gradients come back to both states."""
    first, second = two_states(make, 5, queries=4)
    assert_gradients_agree(
        lambda *parts: student.merge_states(parts[:3], parts[3:]),
        lambda *parts: reference.merge_states(parts[:3], parts[3:]),
        *first,
        *second,
        make=make,
        of=meaning_of,
    )


# --- flash_attention -----------------------------------------------------------------------------


def three(make, **sizes):
    """Queries, keys and values of one shape."""
    return make.normal(1.5, **sizes), make.normal(1.5, **sizes), make.normal(1.5, **sizes)


@rung.shape("flash_attention")
def test_flash_attention_gives_a_vector_per_query(student, make):
    """The result has the shape of the queries."""
    student.flash_attention(*three(make, batch=2, heads=3, tokens=8, head_dim=5), 4)


@rung.value("flash_attention")
@pytest.mark.parametrize(
    ("causal", "expected"),
    [
        (False, [[1 / 6, 1 / 3, 1 / 2, 0.0]] * 3),
        (True, [[1.0, 0.0, 0.0, 0.0], [1 / 3, 2 / 3, 0.0, 0.0], [1 / 6, 1 / 3, 1 / 2, 0.0]]),
    ],
    ids=["not causal", "causal"],
)
def test_flash_attention_gives_the_numbers_of_the_example(student, causal, expected):
    """Three keys in blocks of two get the weights of the statement."""
    queries = torch.tensor([2.0, 0.0, 0.0, 0.0]).repeat(1, 1, 3, 1)
    keys = torch.zeros(1, 1, 3, 4)
    keys[..., 0] = torch.tensor([1.0, 2.0, 3.0]).log()
    values = torch.eye(3, 4).reshape(1, 1, 3, 4)
    result = student.flash_attention(queries, keys, values, 2, causal)
    assert_agrees(result, torch.tensor([[expected]]), what="the result of the example")


@rung.value("flash_attention")
@pytest.mark.parametrize("block_size", [1, 3, 4, 20], ids="block size {}".format)
def test_flash_attention_gives_the_same_for_all_block_sizes(student, reference, make, block_size):
    """Blocks of any size give the same attention."""
    inputs = three(make, batch=2, heads=3, tokens=11, head_dim=5)
    assert_agrees(
        student.flash_attention(*inputs, block_size), reference.flash_attention(*inputs, block_size)
    )


@rung.value("flash_attention")
@pytest.mark.parametrize("block_size", [1, 4, 20], ids="block size {}".format)
def test_flash_attention_can_be_causal(student, reference, make, block_size):
    """If causal, no query sees a later key, whichever block holds it."""
    inputs = three(make, batch=2, heads=3, tokens=11, head_dim=5)
    assert_agrees(
        student.flash_attention(*inputs, block_size, True),
        reference.flash_attention(*inputs, block_size, True),
    )


@rung.property("flash_attention", rules=("dtype",))
def test_flash_attention_computes_in_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    inputs = three(make, batch=2, heads=3, tokens=8, head_dim=4, dtype=torch.float64)
    assert_agrees_to_float64(
        student.flash_attention(*inputs, 3, True),
        reference.flash_attention(*inputs, 3, True),
        within=DIGITS,
    )


@rung.property("flash_attention", rules=("unchanged",))
def test_flash_attention_builds_a_new_tensor(student, make):
    """Queries, keys and values stay as they were."""
    inputs = three(make, batch=2, heads=3, tokens=8, head_dim=5)
    assert_input_unchanged(student.flash_attention, *inputs, 3, True)


@rung.stability("flash_attention", rules=("large",))
@pytest.mark.parametrize("centre", [200.0, -200.0], ids="scores around {:g}".format)
def test_flash_attention_survives_large_scores(student, reference, make, centre):
    """Scores around ±200 give numbers, not NaN."""
    queries = torch.tensor([2.0, 0.5, 0.0, 0.25]).repeat(1, 2, 7, 1)
    keys = make.integers(-4, 5, batch=1, heads=2, tokens=7, head_dim=4) / 4.0
    keys[..., 0] = centre
    values = make.normal(batch=1, heads=2, tokens=7, head_dim=4)
    result = student.flash_attention(queries, keys, values, 3)
    assert_that(
        not result.isnan().any(),
        "there is a NaN: did exp overflow, or did all of a query's exponentials vanish? What does "
        "the maximum start from, when every score is far below 0?",
    )
    expected = reference.flash_attention(queries, keys, values, 3)
    assert_agrees(result, expected, within=LARGE_SCORES)


@rung.efficiency("flash_attention", rules=("block",))
def test_flash_attention_looks_at_one_block_at_a_time(student, make):
    """No maximum, sum or softmax runs over more than block_size keys."""
    inputs = three(make, batch=1, heads=2, tokens=34, head_dim=6)  # more blocks than keys in one
    # At most 6 numbers: a block of 5, and the maximum so far.
    assert_reduces_at_most(student.flash_attention, 6, *inputs, 5, leaving=2 * (2 * 34) * 7)


@rung.efficiency("flash_attention", rules=("memory",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
def test_flash_attention_stores_no_matrix_of_weights(student, make, causal):
    """Four times the tokens take at most four times the memory."""
    small = three(make, batch=1, heads=2, tokens=14, head_dim=16)
    large = three(make, batch=1, heads=2, tokens=56, head_dim=16)
    assert_grows_at_most(
        student.flash_attention,
        [*small, 7, causal],
        [*large, 7, causal],
        memory=4,
        held=4,
        leaving=2 * (2 * 56) * 8,  # two numbers for each query and block
    )


# --- softmax_backward ----------------------------------------------------------------------------


def weights_and_gradient(make, dtype=torch.float32, **sizes):
    """The result of a softmax, and the gradient that arrives at it."""
    weights = torch.softmax(make.normal(1.5, dtype=dtype, **sizes), dim=-1)
    return weights, make.normal(2.0, dtype=dtype, **sizes)


@rung.shape("softmax_backward", rules=("returns", "leading"))
@pytest.mark.parametrize(
    "sizes",
    [{"queries": 3, "n": 5}, {"n": 4}, {"batch": 2, "heads": 3, "queries": 5, "n": 4}],
    ids=len,
)
def test_softmax_backward_gives_a_gradient_per_score(student, make, sizes):
    """The result has the shape of the weights, whatever is in front of the last dimension."""
    student.softmax_backward(*weights_and_gradient(make, **sizes))


@rung.value("softmax_backward")
def test_softmax_backward_gives_the_numbers_of_the_example(student):
    """With an average of 2, the gradients are 1, -0.5 and -0.5."""
    weights, gradient = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([4.0, 0.0, 0.0])
    result = student.softmax_backward(weights, gradient)
    assert_that(
        abs(result.sum().item()) < 1e-4,
        f"the gradients of the example sum to {result.sum().item():.4g}. They should sum to 0: "
        "moving all scores of a row alike changes no weight.",
    )
    assert_agrees(result, torch.tensor([1.0, -0.5, -0.5]), what="the result of the example")


@rung.value("softmax_backward")
@pytest.mark.parametrize("n", [6, 2, 1], ids="rows of {}".format)
def test_softmax_backward_works_for_other_rows(student, reference, make, n):
    """The gradient is right for other numbers of weights in a row."""
    inputs = weights_and_gradient(make, batch=3, queries=4, n=n)
    assert_agrees(student.softmax_backward(*inputs), reference.softmax_backward(*inputs))


@rung.property("softmax_backward", rules=("hidden",))
def test_softmax_backward_gives_nothing_to_hidden_keys(student, reference):
    """The scores of hidden keys get a gradient of 0, and the others are right."""
    weights = torch.tensor([[0.25, 0.75, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    gradient = torch.tensor([[2.0, -1.0, 3.0, 1.0], [1.0, -2.0, 2.0, 0.5]])
    result = student.softmax_backward(weights, gradient)
    assert_that(
        not result.isnan().any(),
        "there is a NaN: do you divide by a weight, or take its logarithm?",
    )
    assert_agrees(result, reference.softmax_backward(weights, gradient))


@rung.property("softmax_backward", rules=("dtype",))
def test_softmax_backward_computes_in_float64(student, reference, make):
    """Weights in float64 give a gradient in float64, to full precision."""
    inputs = weights_and_gradient(make, dtype=torch.float64, queries=20, n=7)
    assert_agrees_to_float64(
        student.softmax_backward(*inputs), reference.softmax_backward(*inputs), within=ALL_DIGITS
    )


@rung.property("softmax_backward", rules=("unchanged",))
def test_softmax_backward_builds_a_new_tensor(student, make):
    """The weights and their gradient stay as they were."""
    assert_input_unchanged(student.softmax_backward, *weights_and_gradient(make, queries=3, n=5))


# --- attention_backward --------------------------------------------------------------------------


def four(make, batch, tokens, d, **dtype):
    """Queries, keys, values, and the gradient that arrives at the output."""
    sizes = {"batch": batch, "tokens": tokens, "d": d}
    return tuple(make.normal(1.2, **sizes, **dtype) for _ in range(4))


def feature_0(*numbers):
    """One sentence of tokens with four features: the given number, and three zeros."""
    tokens = torch.zeros(1, len(numbers), 4)
    tokens[0, :, 0] = torch.tensor(numbers)
    return tokens


@rung.shape("attention_backward")
def test_attention_backward_gives_three_gradients(student, make):
    """Three tensors come back, each of the shape of its input."""
    student.attention_backward(*four(make, 2, 5, 3))


@rung.value("attention_backward")
def test_attention_backward_gives_the_numbers_of_the_example(student):
    """With queries of zero, the gradients are those of the statement."""
    grad_queries, grad_keys, grad_values = student.attention_backward(
        feature_0(0.0, 0.0), feature_0(1.0, -1.0), feature_0(2.0, 0.0), feature_0(1.0, 0.0)
    )
    assert_agrees(grad_values, feature_0(0.5, 0.5), what="grad_values, the third result,")
    assert_agrees(grad_queries, feature_0(0.5, 0.0), what="grad_queries, the first result,")
    assert_agrees(grad_keys, feature_0(0.0, 0.0), what="grad_keys, the second result,")


@rung.value("attention_backward")
@pytest.mark.parametrize("sizes", [(2, 5, 3), (3, 4, 6)], ids=str)
def test_attention_backward_works_for_other_sizes(student, reference, make, sizes):
    """The three gradients are right for other numbers, too."""
    inputs = four(make, *sizes)
    theirs, ours = student.attention_backward(*inputs), reference.attention_backward(*inputs)
    # In the order in which they are computed: values first.
    for number, name in ((2, "grad_values"), (0, "grad_queries"), (1, "grad_keys")):
        assert_agrees(theirs[number], ours[number], what=name)


@rung.property("attention_backward", rules=("dtype",))
def test_attention_backward_computes_in_float64(student, reference, make):
    """Inputs in float64 give gradients in float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    *inputs, gradient = four(make, 2, 5, 4, dtype=torch.float64)
    inputs = *inputs, 5.0 * gradient
    assert_agrees_to_float64(
        student.attention_backward(*inputs), reference.attention_backward(*inputs), within=DIGITS
    )


@rung.property("attention_backward", rules=("unchanged",))
def test_attention_backward_builds_new_tensors(student, make):
    """Queries, keys, values and the gradient that arrived stay as they were."""
    assert_input_unchanged(student.attention_backward, *four(make, 2, 5, 3))


@rung.stability("attention_backward", rules=("large",))
@pytest.mark.parametrize("centre", [100.0, -110.0], ids="scores around {:g}".format)
def test_attention_backward_survives_large_scores(student, reference, make, centre):
    """Scores for which exp overflows, or vanishes, give numbers, not NaN."""
    queries = make.integers(-4, 5, batch=1, tokens=5, d=4) / 4.0
    keys = make.integers(-4, 5, batch=1, tokens=5, d=4) / 4.0
    queries[..., 0] = 2.0
    queries[:, ::2, 0] = -2.0  # every second query gets scores of the opposite sign
    keys[..., 0] += centre
    values, grad_output = make.normal(batch=1, tokens=5, d=4), make.normal(batch=1, tokens=5, d=4)
    inputs = queries, keys, values, grad_output
    gradients = student.attention_backward(*inputs)
    assert_that(
        not any(gradient.isnan().any() for gradient in gradients),
        "there is a NaN: did exp overflow, or did all exponentials of a row vanish? Which shift "
        "keeps exp at 1 or below?",
    )
    # Keys near 100 make gradients near 100, whose last digits float32 rounds away.
    assert_agrees(gradients, reference.attention_backward(*inputs), within=LARGE_SCORES)


@rung.efficiency("attention_backward", rules=("loops",))
def test_attention_backward_has_no_loop_over_tokens(student, make):
    """Longer sentences take no more operations."""
    assert_operations_do_not_grow(
        student.attention_backward, four(make, 2, 3, 2), four(make, 2, 9, 2)
    )


@rung.efficiency("attention_backward", rules=("cost",))
def test_attention_backward_costs_no_more_than_sixteen_forward_passes(student, make):
    """The work is at most sixteen times that of the forward pass."""
    # 96 tokens are enough: work that grows with the cube of the tokens exceeds the limit.
    batch, tokens, d = 1, 96, 5
    forward = 2 * batch * tokens**2 * d  # multiply-adds of the two products
    assert_work_at_most(student.attention_backward, 16 * forward, *four(make, batch, tokens, d))


# --- linear_attention ----------------------------------------------------------------------------


def features_and_values(make, batch, tokens, d_k, d_v, **dtype):
    """Queries, keys and values."""
    return (
        make.normal(1.5, batch=batch, tokens=tokens, d_k=d_k, **dtype),
        make.normal(1.5, batch=batch, tokens=tokens, d_k=d_k, **dtype),
        make.normal(2.0, batch=batch, tokens=tokens, d_v=d_v, **dtype),
    )


@rung.shape("linear_attention")
def test_linear_attention_gives_a_mix_of_values_per_query(student, make):
    """Each query gets one vector, as wide as a value."""
    student.linear_attention(*features_and_values(make, 2, 5, 3, 4))


@rung.value("linear_attention")
def test_linear_attention_gives_the_numbers_of_the_example(student):
    """Two queries mix two values with the weights of the statement."""
    queries = torch.tensor([[[0.0, 0.0], [1.0, 0.0]]])
    keys = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
    values = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
    result = student.linear_attention(queries, keys, values)
    totals = result[0, :, 2]
    assert_that(
        agree(totals, torch.ones(2)),
        f"the weights of the two queries sum to {totals[0].item():.4g} and "
        f"{totals[1].item():.4g}, and both sums should be 1: what are they divided by?",
    )
    expected = torch.tensor([[[3 / 7, 4 / 7, 1.0], [4 / 11, 7 / 11, 1.0]]])
    assert_agrees(result, expected, what="the result of the example")


@rung.value("linear_attention")
@pytest.mark.parametrize("sizes", [(2, 5, 3, 4), (3, 6, 4, 2)], ids=str)
def test_linear_attention_works_for_other_sizes(student, reference, make, sizes):
    """The result is right for other numbers, negative ones too."""
    inputs = features_and_values(make, *sizes)
    assert_agrees(student.linear_attention(*inputs), reference.linear_attention(*inputs))


@rung.property("linear_attention", rules=("dtype",))
def test_linear_attention_computes_in_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    # The sums are so large that a tiny number, added to avoid a division by zero, has no effect.
    queries, keys, values = features_and_values(make, 2, 40, 7, 3, dtype=torch.float64)
    inputs = queries, keys, 1000.0 * values
    assert_agrees_to_float64(
        student.linear_attention(*inputs), reference.linear_attention(*inputs), within=DIGITS
    )


@rung.property("linear_attention", rules=("unchanged",))
def test_linear_attention_builds_a_new_tensor(student, make):
    """Queries, keys and values stay as they were."""
    assert_input_unchanged(student.linear_attention, *features_and_values(make, 2, 5, 3, 4))


@rung.gradient("linear_attention", rules=("gradients",))
def test_linear_attention_can_be_learned_through(student, reference, make):
    """Gradients come back to queries, keys and values."""
    inputs = features_and_values(make, 2, 4, 3, 5)
    assert_gradients_agree(student.linear_attention, reference.linear_attention, *inputs, make=make)


@rung.efficiency("linear_attention", rules=("cost",))
def test_linear_attention_costs_no_more_than_the_tokens_do(student, make):
    """Four times the tokens take at most four times the memory and the work."""
    small = features_and_values(make, 2, 8, 4, 3)
    large = features_and_values(make, 2, 32, 4, 3)
    assert_grows_at_most(student.linear_attention, small, large, memory=4, work=4)
