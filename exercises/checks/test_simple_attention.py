"""Public checks of unit 3, attention without weights to train."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    PRINTED,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_rows_sum_to_one,
    assert_that,
)

# "Your journey starts with one step", with three numbers for each word.
WORDS = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
# Token 2 is the sum of tokens 0 and 1.
THREE = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])

# --- attention_scores_for_query ------------------------------------------------------------------


@rung.shape("attention_scores_for_query")
def test_scores_for_a_query_have_one_entry_per_token(student, make):
    """Five tokens get five scores."""
    student.attention_scores_for_query(make.normal(tokens=5, d_in=3), 2)


@rung.value("attention_scores_for_query")
def test_scores_for_a_query_do_the_example(student):
    """The scores of "journey" are those of the statement."""
    expected = torch.tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    assert_agrees(student.attention_scores_for_query(WORDS, 1), expected, within=PRINTED)


@rung.value("attention_scores_for_query")
@pytest.mark.parametrize("query_index", [0, 3, 4], ids=["first", "fourth", "last"])
def test_scores_for_a_query_start_counting_at_zero(student, reference, make, query_index):
    """Token 0 is the first of five, and token 4 the last."""
    inputs = make.normal(tokens=5, d_in=3)
    assert_agrees(
        student.attention_scores_for_query(inputs, query_index),
        reference.attention_scores_for_query(inputs, query_index),
    )


@rung.property("attention_scores_for_query", rules=("dtype",))
def test_scores_for_a_query_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(
        student.attention_scores_for_query(inputs, 2),
        reference.attention_scores_for_query(inputs, 2),
        within=ALL_DIGITS,
    )


@rung.property("attention_scores_for_query", rules=("unchanged",))
def test_scores_for_a_query_leave_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(
        student.attention_scores_for_query, make.normal(0.8, tokens=4, d_in=3), 2
    )


@rung.gradient("attention_scores_for_query", rules=("gradients",))
def test_scores_for_a_query_can_be_learned_through(student, reference, make):
    """A gradient comes back to every token, and to the query from both sides."""
    assert_gradients_agree(
        student.attention_scores_for_query,
        reference.attention_scores_for_query,
        make.normal(0.8, tokens=4, d_in=3),
        2,
        make=make,
    )


# --- attention_scores_loop -----------------------------------------------------------------------


@rung.shape("attention_scores_loop")
def test_looped_scores_have_a_row_for_each_query(student, make):
    """Four tokens give four rows of four scores."""
    student.attention_scores_loop(make.normal(tokens=4, d_in=3))


@rung.value("attention_scores_loop")
def test_looped_scores_do_the_example(student):
    """The three tokens of the example, the third a sum of the others, get their scores."""
    expected = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    assert_agrees(student.attention_scores_loop(THREE), expected)


@rung.value("attention_scores_loop")
def test_looped_scores_of_random_tokens(student, reference, make):
    """Four random tokens have the same scores as in the reference."""
    inputs = make.normal(tokens=4, d_in=3)
    assert_agrees(student.attention_scores_loop(inputs), reference.attention_scores_loop(inputs))


@rung.property("attention_scores_loop", rules=("dtype",))
def test_looped_scores_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(
        student.attention_scores_loop(inputs),
        reference.attention_scores_loop(inputs),
        within=ALL_DIGITS,
    )


@rung.property("attention_scores_loop", rules=("unchanged",))
def test_looped_scores_leave_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(student.attention_scores_loop, make.normal(0.8, tokens=4, d_in=3))


@rung.gradient("attention_scores_loop", rules=("gradients",))
def test_looped_scores_can_be_learned_through(student, make):
    """A gradient comes back to the tokens."""
    inputs = make.normal(tokens=4, d_in=3).requires_grad_()
    scores = student.attention_scores_loop(inputs)
    total = (scores * make.normal_like(scores, name="upstream")).sum()
    if total.requires_grad:
        total.backward()
    assert_that(
        inputs.grad is not None and bool(inputs.grad.any()),
        "backward() gives the tokens no gradient: does a score become a plain Python number on its "
        "way into the table?",
    )


# --- attention_scores ----------------------------------------------------------------------------


@rung.shape("attention_scores")
def test_attention_scores_have_a_row_for_each_query(student, make):
    """Four tokens give four rows of four scores."""
    student.attention_scores(make.normal(tokens=4, d_in=3))


@rung.value("attention_scores")
def test_attention_scores_do_the_example(student):
    """Two tokens with three numbers each give four scores."""
    inputs = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
    assert_agrees(student.attention_scores(inputs), torch.tensor([[5.0, 3.0], [3.0, 10.0]]))


@rung.value("attention_scores")
def test_attention_scores_of_random_tokens(student, reference, make):
    """Four random tokens have the same scores as in the reference."""
    inputs = make.normal(tokens=4, d_in=3)
    assert_agrees(student.attention_scores(inputs), reference.attention_scores(inputs))


@rung.property("attention_scores", rules=("dtype",))
def test_attention_scores_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(
        student.attention_scores(inputs), reference.attention_scores(inputs), within=ALL_DIGITS
    )


@rung.property("attention_scores", rules=("unchanged",))
def test_attention_scores_leave_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(student.attention_scores, make.normal(0.8, tokens=4, d_in=3))


@rung.gradient("attention_scores", rules=("gradients",))
def test_attention_scores_can_be_learned_through(student, reference, make):
    """A gradient comes back to every token, as a query and as a key."""
    assert_gradients_agree(
        student.attention_scores,
        reference.attention_scores,
        make.normal(0.8, tokens=4, d_in=3),
        make=make,
    )


@rung.efficiency("attention_scores", rules=("loops",))
def test_attention_scores_need_no_loop(student, make):
    """Eight tokens take no more operations than two tokens."""
    few, many = make.normal(tokens=2, d_in=3), make.normal(tokens=8, d_in=3)
    assert_operations_do_not_grow(student.attention_scores, [few], [many])


# --- attention_weights ---------------------------------------------------------------------------


@rung.shape("attention_weights")
def test_attention_weights_have_a_row_for_each_query(student, make):
    """Four tokens give four rows of four weights."""
    student.attention_weights(make.normal(tokens=4, d_in=3))


@rung.value("attention_weights")
def test_attention_weights_do_the_example(student):
    """The weights of three tokens are those of the statement, with a row for each query."""
    expected = torch.tensor(
        [[0.4223, 0.1554, 0.4223], [0.1554, 0.4223, 0.4223], [0.2119, 0.2119, 0.5761]]
    )
    assert_agrees(student.attention_weights(THREE), expected, within=PRINTED)


@rung.value("attention_weights")
def test_attention_weights_of_random_tokens(student, reference, make):
    """Four random tokens have the same weights as in the reference."""
    inputs = make.normal(0.8, tokens=4, d_in=5)
    assert_agrees(student.attention_weights(inputs), reference.attention_weights(inputs))


@rung.value("attention_weights")
def test_attention_weights_share_out_one_per_query(student, make):
    """The weights of each query sum to exactly one."""
    assert_rows_sum_to_one(student.attention_weights(make.normal(0.8, tokens=6, d_in=3)))


@rung.property("attention_weights", rules=("dtype",))
def test_attention_weights_keep_float64(student, reference, make):
    """Inputs in float64 give weights in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    inputs[:, 0] = 8.3  # adds 68.89 to all scores: no weight changes, but float32 loses digits
    assert_agrees_to_float64(
        student.attention_weights(inputs), reference.attention_weights(inputs), within=DIGITS
    )


@rung.property("attention_weights", rules=("unchanged",))
def test_attention_weights_leave_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(student.attention_weights, make.normal(0.8, tokens=4, d_in=3))


@rung.gradient("attention_weights", rules=("gradients",))
def test_attention_weights_can_be_learned_through(student, reference, make):
    """A gradient comes back to every token, as a query and as a key."""
    assert_gradients_agree(
        student.attention_weights,
        reference.attention_weights,
        make.normal(0.8, tokens=4, d_in=3),
        make=make,
    )


# --- context_vector ------------------------------------------------------------------------------


@rung.shape("context_vector")
def test_context_vector_has_the_length_of_a_token(student, make):
    """Five tokens of three numbers give a vector of three numbers."""
    student.context_vector(make.normal(tokens=5, d_in=3), 2)


@rung.value("context_vector")
def test_context_vector_does_the_example(student):
    """The context of "journey" is that of the statement."""
    expected = torch.tensor([0.4419, 0.6515, 0.5683])
    assert_agrees(student.context_vector(WORDS, 1), expected, within=PRINTED)


@rung.value("context_vector")
@pytest.mark.parametrize("query_index", [0, 3, 4], ids=["first", "fourth", "last"])
def test_context_vector_of_random_tokens(student, reference, make, query_index):
    """The contexts of the first, the fourth and the last of five tokens are right."""
    inputs = make.normal(0.8, tokens=5, d_in=3)
    assert_agrees(
        student.context_vector(inputs, query_index), reference.context_vector(inputs, query_index)
    )


@rung.value("context_vector")
def test_context_vector_of_equal_tokens_is_that_token(student):
    """If all tokens are the same, their weighted mean is that token again."""
    token = torch.tensor([1.0, -2.0, 0.5])
    context = student.context_vector(token.repeat(4, 1), 2)
    assert_that(
        agree(context, token),
        f"the weighted mean of four equal tokens should be that token, {token.tolist()}, and not "
        f"{context.tolist()}: do the weights sum to one?",
    )


@rung.property("context_vector", rules=("dtype",))
def test_context_vector_keeps_float64(student, reference, make):
    """Inputs in float64 give a context vector in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    inputs[:, 0] = 8.3  # adds 68.89 to all scores: no weight changes, but float32 loses digits
    assert_agrees_to_float64(
        student.context_vector(inputs, 2), reference.context_vector(inputs, 2), within=DIGITS
    )


@rung.property("context_vector", rules=("unchanged",))
def test_context_vector_leaves_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(student.context_vector, make.normal(0.8, tokens=4, d_in=3), 2)


@rung.gradient("context_vector", rules=("gradients",))
def test_context_vector_can_be_learned_through(student):
    """A gradient comes back to the tokens, through the weighted sum and through its weights."""
    inputs = THREE.clone().requires_grad_()
    # The query is [1, 0]. For the other tokens, the gradient through the weighted sum is in column
    # 1, the column of `number`, and the gradient through the weights is in column 0.
    number = student.context_vector(inputs, 0)[1]
    if number.requires_grad:
        number.backward()
    by_weights, by_mix = (torch.zeros(2, 2) if inputs.grad is None else inputs.grad[1:]).T
    assert_that(
        bool(by_mix.any() or by_weights.any()),
        "backward() gives the tokens no gradient: do you leave torch on the way, or detach the "
        "result?",
    )
    assert_that(
        bool(by_weights.any()),
        "backward() treats the weights as constants, but they depend on the tokens too: is "
        "something between the scores and the weighted sum detached?",
    )
    assert_that(
        bool(by_mix.any()),
        "backward() reaches the weights, but not the tokens in the weighted sum: are these tokens "
        "detached?",
    )


# --- simple_self_attention -----------------------------------------------------------------------


@rung.shape("simple_self_attention")
def test_simple_self_attention_gives_a_vector_for_each_token(student, make):
    """(tokens, d_in) stays (tokens, d_in)."""
    student.simple_self_attention(make.normal(tokens=5, d_in=3))


@rung.value("simple_self_attention")
def test_simple_self_attention_does_the_example(student):
    """Three tokens have the context vectors of the statement."""
    expected = torch.tensor([[0.8446, 0.5777], [0.5777, 0.8446], [0.7881, 0.7881]])
    assert_agrees(student.simple_self_attention(THREE), expected, within=PRINTED)


@rung.value("simple_self_attention")
def test_simple_self_attention_of_random_tokens(student, reference, make):
    """Five random tokens have the same context vectors as in the reference."""
    inputs = make.normal(0.8, tokens=5, d_in=3)
    assert_agrees(student.simple_self_attention(inputs), reference.simple_self_attention(inputs))


@rung.value("simple_self_attention")
def test_simple_self_attention_has_no_sense_of_order(student, make):
    """Tokens in another order give the same context vectors in that order."""
    inputs, order = make.normal(0.8, tokens=4, d_in=3), torch.tensor([2, 0, 3, 1])
    context, shuffled = student.simple_self_attention.each([(inputs,), (inputs[order],)])
    assert_that(
        agree(shuffled, context[order]),
        "shuffle the tokens, and the outputs should be shuffled in the same way: every token looks "
        "at all tokens, and no score depends on their order",
    )


@rung.property("simple_self_attention", rules=("dtype",))
def test_simple_self_attention_keeps_float64(student, reference, make):
    """Inputs in float64 give context vectors in float64, with all digits."""
    inputs = make.normal(0.8, tokens=4, d_in=3, dtype=torch.float64)
    inputs[:, 0] = 8.3  # adds 68.89 to all scores: no weight changes, but float32 loses digits
    theirs, ours = student.simple_self_attention(inputs), reference.simple_self_attention(inputs)
    assert_agrees_to_float64(theirs - inputs.amax(0), ours - inputs.amax(0), within=DIGITS)


@rung.property("simple_self_attention", rules=("unchanged",))
def test_simple_self_attention_leaves_the_inputs_alone(student, make):
    """The tokens passed in stay as they were."""
    assert_input_unchanged(student.simple_self_attention, make.normal(0.8, tokens=4, d_in=3))


@rung.gradient("simple_self_attention", rules=("gradients",))
def test_simple_self_attention_can_be_learned_through(student, reference, make):
    """A gradient comes back to every token, through the weights and through the weighted sum."""
    assert_gradients_agree(
        student.simple_self_attention,
        reference.simple_self_attention,
        make.normal(0.8, tokens=4, d_in=3),
        make=make,
    )
