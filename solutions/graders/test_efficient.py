"""Hidden graders of unit 10, efficient."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    REORDERED,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_grows_at_most,
    assert_input_unchanged,
    assert_maxima_do_not_run_ahead,
    assert_operations_do_not_grow,
    assert_reduces_at_most,
    assert_work_at_most,
)

# exp(scores - logarithm of the sum) is a right way, too. At 1000 it loses one or two steps of
# float32, of 6e-5 each.

# --- online_step ---------------------------------------------------------------------------------

BLOCKS = {  # sizes of the rows, and how many scores come
    "one row dimension": ({"queries": 3}, 5),
    "no leading dimensions": ({}, 4),
    "a single score": ({"queries": 4}, 1),
    "a single row": ({"queries": 1}, 6),
    "a large block": ({"batch": 2, "queries": 3}, 11),
    "many leading dimensions": ({"batch": 3, "heads": 2, "queries": 4}, 7),
}


def quoting_leading(cases):
    """Parameters by name; those with leading dimensions quote the rule `leading`."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=name,
            marks=rung.quotes("leading", "returns") if "leading" in name else (),
        )
        for name, case in cases.items()
    ]


def state_and_block(make, n, dtype=torch.float32, **rows):
    """A running maximum and total of each row, and the next block of scores."""
    maximum = make.normal(2.0, dtype=dtype, **rows)
    total = make.uniform(1.0, 4.0, dtype=dtype, **rows)
    return maximum, total, make.normal(2.0, dtype=dtype, **rows, n=n)


@rung.shape("online_step")
@pytest.mark.parametrize(("rows", "n"), quoting_leading(BLOCKS))
def test_online_step_gives_two_numbers_per_row(student, make, rows, n):
    """A maximum and a total come back for each row."""
    student.online_step(*state_and_block(make, n, **rows))


@rung.value("online_step", points=9)
@pytest.mark.parametrize(("rows", "n"), BLOCKS.values(), ids=BLOCKS.keys())
def test_online_step_agrees_with_the_reference(student, reference, make, rows, n):
    """Maximum and total are right, whether the block's scores are above earlier ones or below."""
    for before, now, where in (
        (0.0, 0.0, "about"),
        (0.0, 3.0, "above"),
        (0.0, -3.0, "below"),
        (-30.0, 0.0, "far above"),
        (0.0, -30.0, "far below"),
    ):
        maximum, total, block = state_and_block(make, n, **rows)
        state = maximum + before, total, block + now
        assert_agrees(
            student.online_step(*state),
            reference.online_step(*state),
            what=f"maximum and total, with a block {where} what came before,",
        )


@rung.property("online_step", points=2, rules=("empty",))
def test_online_step_counts_the_first_state_as_nothing(student, make):
    """From (-inf, 0) on, step by step, maximum and total are those of all scores so far."""
    scores = make.normal(2.0, batch=2, queries=4, n=8) - 9.0  # all of them below 0
    maximum, total = torch.full((2, 4), -torch.inf), torch.zeros(2, 4)
    seen = 0
    for block in scores.split([3, 1, 4], dim=-1):
        maximum, total = student.online_step(maximum, total, block)
        seen += block.shape[-1]
        largest = scores[..., :seen].amax(dim=-1)
        expected = torch.exp(scores[..., :seen] - largest[..., None]).sum(dim=-1)
        assert_agrees((maximum, total), (largest, expected), what=f"what {seen} scores leave")


@rung.property("online_step", rules=("empty",))
def test_online_step_takes_rows_that_begin_beside_others(student, reference, make):
    """States are right where some rows have seen no score yet, and other rows have."""
    maximum, total, block = state_and_block(make, 5, batch=3, queries=4)
    nothing = torch.zeros(3, 4, dtype=torch.bool)
    nothing[0], nothing[1, ::2] = True, True
    state = maximum.masked_fill(nothing, -torch.inf), total.masked_fill(nothing, 0.0), block
    assert_agrees(student.online_step(*state), reference.online_step(*state))


@rung.property("online_step", rules=("dtype",))
def test_online_step_keeps_float64(student, reference, make):
    """A state and a block in float64 give a state in float64, to full precision."""
    state = state_and_block(make, 6, dtype=torch.float64, rows=50)
    assert_agrees_to_float64(
        student.online_step(*state), reference.online_step(*state), within=ALL_DIGITS
    )


@rung.property("online_step", rules=("unchanged",))
def test_online_step_leaves_its_inputs_alone(student, make):
    """Maximum, total and block stay as they were."""
    assert_input_unchanged(student.online_step, *state_and_block(make, 4, rows=5))


@rung.stability("online_step", points=2, rules=("large",))
def test_online_step_takes_scores_of_a_thousand(student, reference, make):
    """Scores of ±1000 give right states: in the old state, in the block, and in both."""
    so_far = torch.tensor([1000.0, -1000.0, 0.0, 1000.0, 0.0, -1000.0, 999.0])
    centres = torch.tensor([1000.0, -1000.0, 1000.0, 0.0, -1000.0, 1000.0, 1000.0])
    maximum, total, block = state_and_block(make, 5, rows=7)
    state = maximum + so_far, total, block + centres[:, None]
    assert_agrees(student.online_step(*state), reference.online_step(*state), within=LARGE_SCORES)


def logarithm_of(state):
    """The logarithm of the sum of the exponentials of all scores that a state has met."""
    return torch.log(state[1]) + state[0]


@rung.gradient("online_step", rules=("gradients",))
def test_online_step_has_the_right_gradients(student, reference, make):
    """Gradients reach maximum, total and block."""
    state = state_and_block(make, 4, batch=2, queries=5)
    assert_gradients_agree(
        student.online_step, reference.online_step, *state, make=make, of=logarithm_of
    )


# --- softmax_online ------------------------------------------------------------------------------

ROWS = {  # sizes of the scores, and the block size
    "blocks of one size": ({"batch": 2, "queries": 3, "n": 12}, 4),
    "a short last block": ({"queries": 3, "n": 11}, 4),
    "no leading dimensions": ({"n": 13}, 5),
    "one score at a time": ({"queries": 2, "n": 7}, 1),
    "one block for everything": ({"queries": 4, "n": 6}, 6),
    "a block larger than a row": ({"queries": 3, "n": 5}, 9),
    "a single score": ({"queries": 4, "n": 1}, 3),
    "many leading dimensions": ({"batch": 3, "heads": 2, "queries": 4, "n": 7}, 5),
}


@rung.shape("softmax_online")
@pytest.mark.parametrize(("sizes", "block_size"), quoting_leading(ROWS))
def test_softmax_online_gives_a_weight_per_score(student, make, sizes, block_size):
    """The weights have the shape and dtype of the scores."""
    student.softmax_online(make.normal(**sizes), block_size)


@rung.value("softmax_online", points=12)
@pytest.mark.parametrize(("sizes", "block_size"), ROWS.values(), ids=ROWS.keys())
def test_softmax_online_agrees_with_the_reference(student, reference, make, sizes, block_size):
    """The weights are those of a softmax, for blocks of any size, wherever the maximum is."""
    steps = torch.arange(float(sizes["n"]))
    for drift, order in ((0.0, "in any order"), (0.75, "rising"), (-0.75, "falling")):
        scores = make.normal(2.0, **sizes) + drift * steps
        assert_agrees(
            student.softmax_online(scores, block_size),
            reference.softmax_online(scores, block_size),
            what=f"the weights of scores {order}",
        )


@rung.property("softmax_online", rules=("dtype",))
def test_softmax_online_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.normal(2.0, rows=50, n=11, dtype=torch.float64) + 60.0  # costs float32 digits
    assert_agrees_to_float64(
        student.softmax_online(scores, 4), reference.softmax_online(scores, 4), within=DIGITS
    )


@rung.property("softmax_online", rules=("unchanged",))
def test_softmax_online_leaves_the_scores_alone(student, make):
    """The scores passed in stay as they were."""
    assert_input_unchanged(student.softmax_online, make.normal(rows=3, n=11), 4)


@rung.stability("softmax_online", points=3, rules=("large",))
def test_softmax_online_takes_scores_of_a_thousand(student, reference, make):
    """Scores of ±1000 give right weights: in a whole row, in one block, in the last block."""
    scores = make.normal(rows=7, n=11)
    scores[0] += 1000.0
    scores[1] -= 1000.0
    scores[2, 9:] += 1000.0  # the last block holds all that counts
    scores[3, :8] -= 1000.0
    scores[4, :4] += 1000.0
    scores[5, 4:8] -= 1000.0
    scores[5, :4] -= 500.0
    # Row 6 lies far below some rows, and far above others.
    assert_agrees(
        student.softmax_online(scores, 4), reference.softmax_online(scores, 4), within=LARGE_SCORES
    )


@rung.efficiency("softmax_online", points=4, rules=("block",))
@pytest.mark.parametrize("block_size", [8, 10], ids="block size {}".format)
def test_softmax_online_looks_at_one_block_at_a_time(student, make, block_size):
    """No maximum and no sum runs over more than block_size scores."""
    scores = make.normal(rows=3, n=60)  # at most as many blocks as a block has scores
    # A block, and the maximum so far.
    width, blocks = block_size + 1, -(-60 // block_size)
    assert_reduces_at_most(
        student.softmax_online, width, scores, block_size, leaving=2 * 3 * blocks
    )


@rung.efficiency("softmax_online", points=2, rules=("once",))
def test_softmax_online_reads_the_scores_once(student, make):
    """Exponentials are summed before the maximum of all blocks is known."""
    small, large = make.normal(rows=3, n=16), make.normal(rows=3, n=64)
    assert_maxima_do_not_run_ahead(
        student.softmax_online, (small, 8), (large, 8), leaving=2 * 3 * 8
    )


# --- merge_states --------------------------------------------------------------------------------

QUERIES = {  # sizes of the queries, and of a value
    "a batch": ({"batch": 2, "queries": 3}, 5),
    "no leading dimensions": ({"queries": 4}, 3),
    "a single query": ({"batch": 3, "queries": 1}, 4),
    "values of one number": ({"batch": 2, "queries": 5}, 1),
    "many leading dimensions": ({"batch": 3, "heads": 2, "queries": 4}, 7),
}


def two_states(make, d, dtype=torch.float32, **queries):
    """Maximum, total and mix of each query, for two sets of keys."""
    return tuple(
        (
            make.normal(2.0, dtype=dtype, **queries),
            make.uniform(1.0, 4.0, dtype=dtype, **queries),
            make.normal(3.0, dtype=dtype, **queries, d=d),
        )
        for _ in range(2)
    )


def emptied(state, nothing):
    """The state, with the queries where `nothing` is True made empty."""
    maximum, total, mix = state
    return (
        maximum.masked_fill(nothing, -torch.inf),
        total.masked_fill(nothing, 0.0),
        mix.masked_fill(nothing[..., None], 0.0),
    )


@rung.shape("merge_states")
@pytest.mark.parametrize(("queries", "d"), quoting_leading(QUERIES))
def test_merge_states_gives_a_state(student, make, queries, d):
    """Maximum, total and mix come back for each query."""
    student.merge_states(*two_states(make, d, **queries))


@rung.value("merge_states", points=11)
@pytest.mark.parametrize(("queries", "d"), QUERIES.values(), ids=QUERIES.keys())
def test_merge_states_agrees_with_the_reference(student, reference, make, queries, d):
    """Maximum, total and mix are right, whichever state comes first."""
    for apart in (0.0, 30.0):
        first, (maximum, *sums) = two_states(make, d, **queries)
        second = maximum - apart, *sums
        expected = reference.merge_states(first, second)
        assert_agrees(student.merge_states(first, second), expected, what="the merged state")
        assert_agrees(student.merge_states(second, first), expected, what="the other way round: it")


@rung.property("merge_states", points=3, rules=("empty",))
@pytest.mark.parametrize("which", ["first", "second", "both"])
def test_merge_states_takes_empty_states(student, make, which):
    """An empty state changes nothing, and two empty ones make an empty one."""
    some, _ = two_states(make, 5, batch=2, queries=3)
    empty = emptied(some, torch.ones(2, 3, dtype=torch.bool))
    pair, expected, within = {
        "first": ((empty, some), some, None),
        "second": ((some, empty), some, None),
        "both": ((empty, empty), empty, ALL_DIGITS),
    }[which]
    merged = student.merge_states(*pair)
    assert_agrees(merged, expected, within=within, what="the merged state")


@rung.property("merge_states", points=2, rules=("empty",))
def test_merge_states_takes_queries_that_are_empty_beside_others(student, reference, make):
    """A single query may be empty: in the first state, in the second, in both, in neither."""
    first, second = two_states(make, 5, batch=2, queries=4)
    not_first = torch.tensor([[True, False, True, False]] * 2)
    not_second = torch.tensor([[False, True, True, False]] * 2)
    merged = student.merge_states(emptied(first, not_first), emptied(second, not_second))
    both = reference.merge_states(first, second)
    empty = emptied(first, torch.ones(2, 4, dtype=torch.bool))
    for number, name in enumerate(("maximum", "total", "mix")):
        for query, expected in enumerate((second, first, empty, both)):
            assert_agrees(
                merged[number][:, query],
                expected[number][:, query],
                what=f"the {name} of query {query}",
            )


@rung.property("merge_states", rules=("dtype",))
def test_merge_states_keeps_float64(student, reference, make):
    """States in float64 give a state in float64, to full precision."""
    states = two_states(make, 5, dtype=torch.float64, queries=30)
    assert_agrees_to_float64(
        student.merge_states(*states), reference.merge_states(*states), within=ALL_DIGITS
    )


@rung.property("merge_states", rules=("unchanged",))
def test_merge_states_leaves_both_states_alone(student, make):
    """The two states stay as they were."""
    assert_input_unchanged(student.merge_states, *two_states(make, 5, batch=2, queries=4))


@rung.stability("merge_states", points=2, rules=("large",))
def test_merge_states_takes_maxima_of_a_thousand(student, reference, make):
    """Maxima of ±1000 give right states: in one of the two states, and in both."""
    one = torch.tensor([1000.0, -1000.0, 1000.0, -1000.0, 0.0, 999.0])
    other = torch.tensor([1000.0, -1000.0, -1000.0, 1000.0, -1000.0, 1000.0])
    first, second = two_states(make, 5, queries=6)
    pair = (first[0] + one, *first[1:]), (second[0] + other, *second[1:])
    assert_agrees(student.merge_states(*pair), reference.merge_states(*pair), within=LARGE_SCORES)


def meaning_of(state):
    """The parts that do not depend on the order of merging: weighted mean and `logarithm_of`."""
    return state[2] / state[1].unsqueeze(-1), logarithm_of(state)


@rung.gradient("merge_states", rules=("gradients",))
def test_merge_states_has_the_right_gradients(student, reference, make):
    """Gradients reach all three parts of both states."""
    first, second = two_states(make, 5, batch=2, queries=4)
    assert_gradients_agree(
        lambda *parts: student.merge_states(parts[:3], parts[3:]),
        lambda *parts: reference.merge_states(parts[:3], parts[3:]),
        *first,
        *second,
        make=make,
        of=meaning_of,
    )


# --- flash_attention -----------------------------------------------------------------------------

TILES = {  # sizes of queries, keys and values, and the block size
    "blocks of one size": ({"batch": 2, "heads": 3, "tokens": 12, "head_dim": 5}, 4),
    "a short last block": ({"batch": 3, "heads": 2, "tokens": 11, "head_dim": 6}, 4),
    "one key at a time": ({"batch": 2, "heads": 3, "tokens": 7, "head_dim": 4}, 1),
    "a block larger than a sentence": ({"batch": 2, "heads": 4, "tokens": 5, "head_dim": 3}, 9),
    "more features than tokens": ({"batch": 3, "heads": 2, "tokens": 8, "head_dim": 10}, 5),
}


def three(make, scale=1.5, dtype=torch.float32, **sizes):
    """Queries, keys and values of one shape."""
    return tuple(make.normal(scale, dtype=dtype, **sizes) for _ in range(3))


@rung.shape("flash_attention")
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
@pytest.mark.parametrize(("sizes", "block_size"), TILES.values(), ids=TILES.keys())
def test_flash_attention_gives_a_vector_per_query(student, make, sizes, block_size, causal):
    """The result has the shape of the queries."""
    student.flash_attention(*three(make, **sizes), block_size, causal)


@rung.value("flash_attention", points=9)
@pytest.mark.parametrize(("sizes", "block_size"), TILES.values(), ids=TILES.keys())
def test_flash_attention_agrees_with_the_reference(student, reference, make, sizes, block_size):
    """Each query mixes the values of all keys, for blocks of any size."""
    inputs = three(make, **sizes)
    assert_agrees(
        student.flash_attention(*inputs, block_size), reference.flash_attention(*inputs, block_size)
    )


@rung.value("flash_attention", points=7)
@pytest.mark.parametrize(("sizes", "block_size"), TILES.values(), ids=TILES.keys())
def test_flash_attention_can_be_causal(student, reference, make, sizes, block_size):
    """If causal, each query mixes the values at and before its position; if not, all values."""
    inputs = three(make, **sizes)
    for causal in (True, False):
        assert_agrees(
            student.flash_attention(*inputs, block_size, causal),
            reference.flash_attention(*inputs, block_size, causal),
            what=f"the result with causal={causal}",
        )


@rung.property("flash_attention", rules=("dtype",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
def test_flash_attention_keeps_float64(student, reference, make, causal):
    """Inputs in float64 give a result in float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    inputs = three(make, dtype=torch.float64, batch=2, heads=3, tokens=11, head_dim=4)
    assert_agrees_to_float64(
        student.flash_attention(*inputs, 4, causal),
        reference.flash_attention(*inputs, 4, causal),
        within=DIGITS,
    )


@rung.property("flash_attention", rules=("unchanged",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
def test_flash_attention_leaves_its_inputs_alone(student, make, causal):
    """Queries, keys and values stay as they were."""
    inputs = three(make, batch=2, heads=3, tokens=11, head_dim=5)
    assert_input_unchanged(student.flash_attention, *inputs, 4, causal)


def with_scores(make, centres):
    """Queries, keys and values: `centres` has the mean score of each key.

    Numbers are small fractions of powers of two: scaling is exact, wherever it is done.
    """
    tokens = len(centres)
    queries = make.integers(-4, 5, batch=2, heads=3, tokens=tokens, head_dim=4) / 4.0
    keys = make.integers(-4, 5, batch=2, heads=3, tokens=tokens, head_dim=4) / 4.0
    queries[..., 0] = 2.0
    keys[..., 0] = torch.tensor(centres)  # times 2, and divided by the root of 4
    return queries, keys, make.normal(batch=2, heads=3, tokens=tokens, head_dim=4)


CENTRES = {  # three blocks
    "the last block 200 above the others": [0.0] * 8 + [200.0] * 3,
    "the last block 400 above the others": [-200.0] * 8 + [200.0] * 3,
    "all scores about -200": [-200.0] * 11,
    "all scores about 200": [200.0] * 11,
    "the first block 400 above the others": [200.0] * 4 + [-200.0] * 7,
    "one key in the middle": [-100.0] * 5 + [200.0] + [100.0] * 5,
}


@rung.stability("flash_attention", points=3, rules=("large",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
@pytest.mark.parametrize("centres", CENTRES.values(), ids=CENTRES.keys())
def test_flash_attention_takes_large_scores(student, reference, make, centres, causal):
    """Scores of ±200 give finite and right results, wherever the largest is."""
    inputs = with_scores(make, centres)
    assert_agrees(
        student.flash_attention(*inputs, 4, causal),
        reference.flash_attention(*inputs, 4, causal),
        within=LARGE_SCORES,
    )


@rung.efficiency("flash_attention", points=3, rules=("block",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
def test_flash_attention_looks_at_one_block_at_a_time(student, make, causal):
    """No maximum, sum or softmax runs over more than block_size keys."""
    inputs = three(make, batch=1, heads=2, tokens=34, head_dim=7)  # five blocks, the last one short
    # A block, and the maximum so far. The inputs have twice as many numbers as may leave torch.
    assert_reduces_at_most(student.flash_attention, 8, *inputs, 7, causal, leaving=2 * (2 * 34) * 5)


@rung.efficiency("flash_attention", points=4, rules=("memory",))
@pytest.mark.parametrize("causal", [False, True], ids="causal {}".format)
def test_flash_attention_stores_no_matrix_of_weights(student, make, causal):
    """Four times the tokens take at most four times the memory."""
    # Small enough for a loop over single queries, because counting operations is slow. The inputs
    # have three times as many numbers as may leave torch: two for each query and block.
    small = three(make, batch=1, heads=2, tokens=16, head_dim=16)
    large = three(make, batch=1, heads=2, tokens=64, head_dim=16)
    assert_grows_at_most(
        student.flash_attention,
        [*small, 8, causal],
        [*large, 8, causal],
        memory=4,
        held=4,
        leaving=2 * (2 * 64) * 8,
    )


@rung.efficiency("flash_attention", points=4, memory_mb=60, rules=("memory", "loops"))
def test_flash_attention_fits_into_little_memory(student, reference, make):
    """A sentence of 4096 tokens needs less memory than the matrix of its weights would fill."""
    # The weights fill 67 MB, and the scores for a block of keys 2 MB. Blockwise answers need 20 MB.
    inputs = three(make, batch=1, heads=1, tokens=4096, head_dim=8)
    expected = reference.flash_attention(*inputs, 128)
    assert_agrees(student.flash_attention(*inputs, 128), expected, within=REORDERED)


# --- softmax_backward ----------------------------------------------------------------------------

WEIGHTS = {  # sizes of the weights
    "rows of a matrix": {"queries": 3, "n": 5},
    "no leading dimensions": {"n": 6},
    "a single weight": {"queries": 4, "n": 1},
    "two weights": {"batch": 3, "queries": 4, "n": 2},
    "many leading dimensions": {"batch": 3, "heads": 2, "queries": 5, "n": 7},
}


def rows_and_their_gradient(make, **sizes):
    """Weights that come out of a softmax, and the gradient of a loss for these weights."""
    scores, gradient = make.normal(1.5, **sizes), make.normal(2.0, **sizes)
    return scores.softmax(dim=-1), gradient


@rung.shape("softmax_backward")
@pytest.mark.parametrize("sizes", quoting_leading(WEIGHTS))
def test_softmax_backward_gives_a_gradient_per_score(student, make, sizes):
    """The result has the shape of the weights."""
    student.softmax_backward(*rows_and_their_gradient(make, **sizes))


@rung.value("softmax_backward", points=5)
@pytest.mark.parametrize("sizes", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_softmax_backward_agrees_with_the_reference(student, reference, make, sizes):
    """The gradient of each score is right, each row by itself."""
    inputs = rows_and_their_gradient(make, **sizes)
    assert_agrees(student.softmax_backward(*inputs), reference.softmax_backward(*inputs))


@rung.property("softmax_backward", rules=("hidden",))
def test_softmax_backward_gives_nothing_to_hidden_keys(student, reference, make):
    """The scores of keys with weight 0 get a gradient of 0, and the others are right."""
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)  # the first row sees a single key
    scores = make.normal(1.5, batch=2, queries=6, keys=6).masked_fill(hidden, -torch.inf)
    inputs = torch.softmax(scores, dim=-1), make.normal(2.0, batch=2, queries=6, keys=6)
    assert_agrees(student.softmax_backward(*inputs), reference.softmax_backward(*inputs))


@rung.property("softmax_backward", rules=("dtype",))
def test_softmax_backward_agrees_with_autograd_in_float64(student, make):
    """In float64, the gradient equals that of autograd, to full precision."""
    scores = make.normal(1.5, dtype=torch.float64, rows=30, n=7).requires_grad_()
    weights = torch.softmax(scores, dim=-1)
    gradient = make.normal(2.0, dtype=torch.float64, rows=30, n=7)
    (found,) = torch.autograd.grad(weights, scores, gradient)
    theirs = student.softmax_backward(weights.detach(), gradient)
    assert_agrees_to_float64(theirs, found, within=ALL_DIGITS)


@rung.property("softmax_backward", rules=("unchanged",))
def test_softmax_backward_leaves_its_inputs_alone(student, make):
    """The weights and their gradient stay as they were."""
    assert_input_unchanged(student.softmax_backward, *rows_and_their_gradient(make, rows=3, n=5))


# --- attention_backward --------------------------------------------------------------------------

BACKWARD_SIZES = [(2, 5, 3), (3, 4, 7), (2, 9, 4)]  # batch, tokens, d


def four(make, batch, tokens, d, dtype=torch.float32):
    """Queries, keys, values, and the gradient that arrives at the output."""
    sizes = {"batch": batch, "tokens": tokens, "d": d}
    return tuple(make.normal(1.2, dtype=dtype, **sizes) for _ in range(4))


@rung.shape("attention_backward")
@pytest.mark.parametrize("sizes", BACKWARD_SIZES, ids=str)
def test_attention_backward_gives_three_gradients(student, make, sizes):
    """Three tensors come back, each of the shape of its input."""
    student.attention_backward(*four(make, *sizes))


@rung.value("attention_backward", points=3)
@pytest.mark.parametrize("sizes", BACKWARD_SIZES, ids=str)
def test_attention_backward_finds_the_gradient_of_the_values(student, reference, make, sizes):
    """The third result is the gradient of the values."""
    inputs = four(make, *sizes)
    theirs, ours = student.attention_backward(*inputs), reference.attention_backward(*inputs)
    assert_agrees(theirs[2], ours[2], what="grad_values")


@rung.value("attention_backward", points=3)
@pytest.mark.parametrize("sizes", BACKWARD_SIZES, ids=str)
def test_attention_backward_finds_the_gradient_of_the_queries(student, reference, make, sizes):
    """The first result is the gradient of the queries."""
    inputs = four(make, *sizes)
    theirs, ours = student.attention_backward(*inputs), reference.attention_backward(*inputs)
    assert_agrees(theirs[0], ours[0], what="grad_queries")


@rung.value("attention_backward", points=3)
@pytest.mark.parametrize("sizes", BACKWARD_SIZES, ids=str)
def test_attention_backward_finds_the_gradient_of_the_keys(student, reference, make, sizes):
    """The second result is the gradient of the keys."""
    inputs = four(make, *sizes)
    theirs, ours = student.attention_backward(*inputs), reference.attention_backward(*inputs)
    assert_agrees(theirs[1], ours[1], what="grad_keys")


@rung.property("attention_backward", points=2, rules=("dtype",))
def test_attention_backward_agrees_with_autograd_in_float64(student, make):
    """In float64, all three gradients equal those of autograd, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    *inputs, grad_output = four(make, 2, 6, 4, torch.float64)
    queries, keys, values = (x.clone().requires_grad_() for x in inputs)
    output = torch.softmax(queries @ keys.mT / 2.0, dim=-1) @ values
    found = torch.autograd.grad(output, (queries, keys, values), grad_output)
    assert_agrees_to_float64(student.attention_backward(*inputs, grad_output), found, within=DIGITS)


@rung.property("attention_backward", rules=("unchanged",))
def test_attention_backward_leaves_its_inputs_alone(student, make):
    """Queries, keys, values and the gradient that arrived stay as they were."""
    assert_input_unchanged(student.attention_backward, *four(make, 2, 5, 3))


@rung.stability("attention_backward", rules=("large",))
@pytest.mark.parametrize("centre", [100.0, -110.0], ids="scores around {:g}".format)
def test_attention_backward_takes_large_scores(student, reference, make, centre):
    """Scores for which exp overflows, or vanishes, give finite and right gradients."""
    # Small fractions of powers of two, and d = 4: scaling is exact, wherever it is done.
    queries = make.integers(-4, 5, batch=2, tokens=6, d=4) / 4.0
    keys = make.integers(-4, 5, batch=2, tokens=6, d=4) / 4.0
    queries[..., 0] = 2.0
    queries[:, ::2, 0] = -2.0  # scores of every other query have the opposite sign
    keys[..., 0] += centre
    values, grad_output = make.normal(batch=2, tokens=6, d=4), make.normal(batch=2, tokens=6, d=4)
    inputs = queries, keys, values, grad_output
    # Keys of 100 make gradients of 100, which have lost some digits.
    assert_agrees(
        student.attention_backward(*inputs),
        reference.attention_backward(*inputs),
        within=LARGE_SCORES,
    )


@rung.efficiency("attention_backward", points=2, rules=("loops",))
def test_attention_backward_has_no_loop_over_tokens(student, make):
    """Sentences three times as long take no more operations."""
    assert_operations_do_not_grow(
        student.attention_backward, four(make, 2, 4, 3), four(make, 2, 12, 3)
    )


@rung.efficiency("attention_backward", points=3, rules=("cost",))
def test_attention_backward_works_no_more_than_sixteen_forward_passes(student, make):
    """The work is at most sixteen times that of the forward pass."""
    batch, tokens, d = 1, 96, 6  # so many tokens that their cube exceeds the limit
    forward = 2 * batch * tokens**2 * d  # multiply-adds of QKᵀ and of the product with V
    assert_work_at_most(student.attention_backward, 16 * forward, *four(make, batch, tokens, d))


# --- linear_attention ----------------------------------------------------------------------------

LINEAR_SIZES = [(2, 5, 3, 4), (3, 7, 4, 2), (2, 4, 6, 5)]  # batch, tokens, d_k, d_v


def features_and_values(make, batch, tokens, d_k, d_v, dtype=torch.float32):
    """Queries, keys and values; φ is curved for about half of the numbers."""
    return (
        make.normal(1.5, batch=batch, tokens=tokens, d_k=d_k, dtype=dtype),
        make.normal(1.5, batch=batch, tokens=tokens, d_k=d_k, dtype=dtype),
        make.normal(2.0, batch=batch, tokens=tokens, d_v=d_v, dtype=dtype),
    )


@rung.shape("linear_attention")
@pytest.mark.parametrize("sizes", LINEAR_SIZES, ids=str)
def test_linear_attention_gives_a_mix_of_values_per_query(student, make, sizes):
    """Each query gets one vector, as long as a value."""
    student.linear_attention(*features_and_values(make, *sizes))


@rung.value("linear_attention", points=7)
@pytest.mark.parametrize("sizes", LINEAR_SIZES, ids=str)
def test_linear_attention_agrees_with_the_reference(student, reference, make, sizes):
    """Each query mixes the values in proportion to φ(q)·φ(k)."""
    inputs = features_and_values(make, *sizes)
    assert_agrees(student.linear_attention(*inputs), reference.linear_attention(*inputs))


@rung.property("linear_attention", rules=("dtype",))
def test_linear_attention_keeps_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    # Sums so large that adding 1e-6 against a division by zero has no effect.
    queries, keys, values = features_and_values(make, 2, 150, 7, 3, torch.float64)
    inputs = queries, keys, 1000.0 * values
    assert_agrees_to_float64(
        student.linear_attention(*inputs), reference.linear_attention(*inputs), within=DIGITS
    )


@rung.property("linear_attention", rules=("unchanged",))
def test_linear_attention_leaves_its_inputs_alone(student, make):
    """Queries, keys and values stay as they were."""
    assert_input_unchanged(student.linear_attention, *features_and_values(make, 2, 5, 3, 4))


@rung.gradient("linear_attention", points=2, rules=("gradients",))
def test_linear_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach queries, keys and values."""
    inputs = features_and_values(make, 2, 5, 3, 4)
    assert_gradients_agree(student.linear_attention, reference.linear_attention, *inputs, make=make)


@rung.efficiency("linear_attention", points=3, rules=("cost",))
def test_linear_attention_costs_no_more_than_the_tokens_do(student, make):
    """Four times the tokens take at most four times the memory and the work."""
    small = features_and_values(make, 2, 16, 4, 3)
    large = features_and_values(make, 2, 64, 4, 3)
    assert_grows_at_most(student.linear_attention, small, large, memory=4, work=4)
