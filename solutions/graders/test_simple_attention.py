"""Hidden graders of unit 3, attention without weights to train."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_operations_do_not_grow,
    assert_that,
)

# Pairs of tokens and d_in: more tokens than features, and fewer.
SIZES = [(7, 3), (4, 6), (2, 5)]
# Tokens, d_in and the query: one in the middle, the first token, the last one.
QUERIES = [(7, 3, 4), (7, 3, 0), (7, 3, 6), (4, 6, 2), (5, 2, 3), (2, 5, 0), (2, 5, 1)]


def some_tokens(make, tokens, d_in, dtype=torch.float32):
    """Random tokens, small enough that each query gives weight to several tokens."""
    return make.normal(0.8, tokens=tokens, d_in=d_in, dtype=dtype)


def loud_tokens(make, tokens, d_in):
    """Tokens in two groups: scores lie near 77 within a group, and near -77 between the groups."""
    inputs = make.uniform(-0.7, 0.7, tokens=tokens, d_in=d_in)
    inputs[:, 0] = 8.75 + 0.14 * inputs[:, 0]
    inputs[1::2] *= -1.0
    return inputs


# --- attention_scores_for_query ------------------------------------------------------------------


@rung.shape("attention_scores_for_query")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_scores_for_a_query_are_one_per_token(student, make, tokens, d_in):
    """There is one score for each token."""
    student.attention_scores_for_query(some_tokens(make, tokens, d_in), 1)


@rung.value("attention_scores_for_query", points=4)
@pytest.mark.parametrize(("tokens", "d_in", "query_index"), QUERIES)
def test_scores_for_a_query_agree_with_the_reference(
    student, reference, make, tokens, d_in, query_index
):
    """The scores are right for the first token, the last, and those between."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(
        student.attention_scores_for_query(inputs, query_index),
        reference.attention_scores_for_query(inputs, query_index),
    )


@rung.property("attention_scores_for_query", rules=("dtype",))
def test_scores_for_a_query_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    assert_agrees_to_float64(
        student.attention_scores_for_query(inputs, 2),
        reference.attention_scores_for_query(inputs, 2),
        within=ALL_DIGITS,
    )


@rung.property("attention_scores_for_query", rules=("unchanged",))
def test_scores_for_a_query_leave_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.attention_scores_for_query, some_tokens(make, 5, 4), 2)


@rung.gradient("attention_scores_for_query", rules=("gradients",))
def test_scores_for_a_query_have_the_right_gradient(student, reference, make):
    """Gradients flow to all tokens, and to the query from both sides."""
    assert_gradients_agree(
        student.attention_scores_for_query,
        reference.attention_scores_for_query,
        some_tokens(make, 5, 4),
        2,
        make=make,
    )


# --- attention_scores_loop -----------------------------------------------------------------------


@rung.shape("attention_scores_loop")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_looped_scores_are_a_square_table(student, make, tokens, d_in):
    """There is a row for each query, with a score for each token."""
    student.attention_scores_loop(some_tokens(make, tokens, d_in))


@rung.value("attention_scores_loop", points=4)
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_looped_scores_agree_with_the_reference(student, reference, make, tokens, d_in):
    """Every pair of tokens has the right score."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(student.attention_scores_loop(inputs), reference.attention_scores_loop(inputs))


@rung.property("attention_scores_loop", rules=("dtype",))
def test_looped_scores_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    assert_agrees_to_float64(
        student.attention_scores_loop(inputs),
        reference.attention_scores_loop(inputs),
        within=ALL_DIGITS,
    )


@rung.property("attention_scores_loop", rules=("unchanged",))
def test_looped_scores_leave_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.attention_scores_loop, some_tokens(make, 5, 4))


@rung.gradient("attention_scores_loop", rules=("gradients",))
def test_looped_scores_have_the_right_gradient(student, reference, make):
    """Gradients flow through every dot product, to both of its tokens."""
    assert_gradients_agree(
        student.attention_scores_loop,
        reference.attention_scores_loop,
        some_tokens(make, 5, 4),
        make=make,
    )


# --- attention_scores ----------------------------------------------------------------------------


@rung.shape("attention_scores")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_attention_scores_are_a_square_table(student, make, tokens, d_in):
    """There is a row for each query, with a score for each token."""
    student.attention_scores(some_tokens(make, tokens, d_in))


@rung.value("attention_scores", points=5)
@pytest.mark.parametrize(("tokens", "d_in"), [*SIZES, (5, 5)])
def test_attention_scores_agree_with_the_reference(student, reference, make, tokens, d_in):
    """Every pair of tokens has the right score, with as many tokens as features too."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(student.attention_scores(inputs), reference.attention_scores(inputs))


@rung.property("attention_scores", rules=("dtype",))
def test_attention_scores_keep_float64(student, reference, make):
    """Inputs in float64 give scores in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    assert_agrees_to_float64(
        student.attention_scores(inputs), reference.attention_scores(inputs), within=ALL_DIGITS
    )


@rung.property("attention_scores", rules=("unchanged",))
def test_attention_scores_leave_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.attention_scores, some_tokens(make, 5, 4))


@rung.gradient("attention_scores", rules=("gradients",))
def test_attention_scores_have_the_right_gradient(student, reference, make):
    """Gradients flow to every token, as query and as key."""
    assert_gradients_agree(
        student.attention_scores, reference.attention_scores, some_tokens(make, 5, 4), make=make
    )


@rung.efficiency("attention_scores", points=2, rules=("loops",))
def test_attention_scores_take_one_product(student, make):
    """With more tokens, the matrix product gets larger, but there are no more products."""
    few, many = some_tokens(make, 3, 4), some_tokens(make, 12, 4)
    assert_operations_do_not_grow(student.attention_scores, [few], [many])


# --- attention_weights ---------------------------------------------------------------------------


@rung.shape("attention_weights")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_attention_weights_are_a_square_table(student, make, tokens, d_in):
    """There is a row for each query, with a weight for each token."""
    student.attention_weights(some_tokens(make, tokens, d_in))


@rung.value("attention_weights", points=4)
@pytest.mark.parametrize(("tokens", "d_in"), [*SIZES, (1, 4), (9, 4)])
def test_attention_weights_agree_with_the_reference(student, reference, make, tokens, d_in):
    """The weights of each query over the keys are those of the reference."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(student.attention_weights(inputs), reference.attention_weights(inputs))


@rung.property("attention_weights")
def test_attention_weights_takes_large_scores(student, reference, make):
    """Scores near 80 and near -80 give the right weights."""
    inputs = loud_tokens(make, 7, 4)
    theirs, ours = student.attention_weights(inputs), reference.attention_weights(inputs)
    assert_agrees(theirs, ours, within=LARGE_SCORES)


@rung.property("attention_weights", rules=("dtype",))
def test_attention_weights_keep_float64(student, reference, make):
    """Inputs in float64 give weights in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    inputs[:, 0] = 8.3  # shifts all scores alike: no weight changes, but float32 loses digits
    assert_agrees_to_float64(
        student.attention_weights(inputs), reference.attention_weights(inputs), within=DIGITS
    )


@rung.property("attention_weights", rules=("unchanged",))
def test_attention_weights_leave_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.attention_weights, some_tokens(make, 5, 4))


@rung.gradient("attention_weights", rules=("gradients",))
def test_attention_weights_have_the_right_gradient(student, reference, make):
    """Gradients flow through the softmax to every token."""
    assert_gradients_agree(
        student.attention_weights, reference.attention_weights, some_tokens(make, 5, 4), make=make
    )


# --- context_vector ------------------------------------------------------------------------------


@rung.shape("context_vector")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_context_vector_is_as_long_as_a_token(student, make, tokens, d_in):
    """The context vector has d_in numbers, like a token."""
    student.context_vector(some_tokens(make, tokens, d_in), 1)


@rung.value("context_vector", points=4)
@pytest.mark.parametrize(("tokens", "d_in", "query_index"), QUERIES)
def test_context_vector_agrees_with_the_reference(
    student, reference, make, tokens, d_in, query_index
):
    """The context is right for the first token, the last, and those between."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(
        student.context_vector(inputs, query_index), reference.context_vector(inputs, query_index)
    )


@rung.value("context_vector")
def test_context_vector_of_a_single_token_is_that_token(student, make):
    """A single token is its own context."""
    inputs = some_tokens(make, 1, 4)
    assert_agrees(student.context_vector(inputs, 0), inputs[0])


@rung.property("context_vector")
def test_context_vector_takes_large_scores(student, reference, make):
    """Scores near 80 and near -80 give the right context."""
    inputs = loud_tokens(make, 7, 4)
    theirs, ours = student.context_vector(inputs, 2), reference.context_vector(inputs, 2)
    assert_agrees(theirs, ours, within=LARGE_SCORES)


@rung.property("context_vector", rules=("dtype",))
def test_context_vector_keeps_float64(student, reference, make):
    """Inputs in float64 give a context in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    inputs[:, 0] = 8.3  # shifts all scores alike: no weight changes, but float32 loses digits
    assert_agrees_to_float64(
        student.context_vector(inputs, 2), reference.context_vector(inputs, 2), within=DIGITS
    )


@rung.property("context_vector", rules=("unchanged",))
def test_context_vector_leaves_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.context_vector, some_tokens(make, 5, 4), 2)


@rung.gradient("context_vector", rules=("gradients",))
def test_context_vector_has_the_right_gradient(student, reference, make):
    """Gradients flow through the weights and through the tokens that are mixed."""
    assert_gradients_agree(
        student.context_vector, reference.context_vector, some_tokens(make, 5, 4), 2, make=make
    )


# --- simple_self_attention -----------------------------------------------------------------------


@rung.shape("simple_self_attention")
@pytest.mark.parametrize(("tokens", "d_in"), SIZES)
def test_simple_self_attention_keeps_the_shape_of_the_inputs(student, make, tokens, d_in):
    """There is a context vector for each token, as long as the token."""
    student.simple_self_attention(some_tokens(make, tokens, d_in))


@rung.value("simple_self_attention", points=5)
@pytest.mark.parametrize(("tokens", "d_in"), [*SIZES, (5, 5)])
def test_simple_self_attention_agrees_with_the_reference(student, reference, make, tokens, d_in):
    """Every token's context vector is right, with as many tokens as features too."""
    inputs = some_tokens(make, tokens, d_in)
    assert_agrees(student.simple_self_attention(inputs), reference.simple_self_attention(inputs))


@rung.value("simple_self_attention")
def test_simple_self_attention_stays_between_the_tokens(student, make):
    """Context vectors lie between the smallest and the largest token; a single token stays."""
    inputs = some_tokens(make, 8, 3)
    context = student.simple_self_attention(inputs)
    inside = (context >= inputs.amin(0) - 1e-5) & (context <= inputs.amax(0) + 1e-5)
    assert_that(bool(inside.all()), "a context vector lies outside of what the tokens span")
    alone = inputs[:1]
    assert_agrees(student.simple_self_attention(alone), alone, what="the result for one token")


@rung.property("simple_self_attention")
def test_simple_self_attention_does_not_know_the_order_of_tokens(student, make):
    """Many tokens, shuffled, give the same context vectors, shuffled in the same way."""
    inputs, order = some_tokens(make, 40, 3), make.normal(tokens=40).argsort()
    shuffled = student.simple_self_attention(inputs[order])
    assert_agrees(
        shuffled,
        student.simple_self_attention(inputs)[order],
        what="the result for shuffled tokens",
    )


@rung.property("simple_self_attention")
def test_simple_self_attention_takes_large_scores(student, reference, make):
    """Scores near 80 and near -80 give the right context vectors."""
    inputs = loud_tokens(make, 7, 4)
    theirs, ours = student.simple_self_attention(inputs), reference.simple_self_attention(inputs)
    assert_agrees(theirs, ours, within=LARGE_SCORES)


@rung.property("simple_self_attention", rules=("dtype",))
def test_simple_self_attention_keeps_float64(student, reference, make):
    """Inputs in float64 give context vectors in float64, to full precision."""
    inputs = some_tokens(make, 5, 4, torch.float64)
    inputs[:, 0] = 8.3  # shifts all scores alike: no weight changes, but float32 loses digits
    theirs, ours = student.simple_self_attention(inputs), reference.simple_self_attention(inputs)
    assert_agrees_to_float64(theirs - inputs.amax(0), ours - inputs.amax(0), within=DIGITS)


@rung.property("simple_self_attention", rules=("unchanged",))
def test_simple_self_attention_leaves_the_inputs_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.simple_self_attention, some_tokens(make, 5, 4))


@rung.gradient("simple_self_attention", rules=("gradients",))
def test_simple_self_attention_has_the_right_gradient(student, reference, make):
    """Gradients flow through the weights and through the tokens that are mixed."""
    assert_gradients_agree(
        student.simple_self_attention,
        reference.simple_self_attention,
        some_tokens(make, 5, 4),
        make=make,
    )
