"""Public checks of unit 5, causal attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_causal,
    assert_drops_weights,
    assert_input_unchanged,
    assert_rows_sum_to_one,
    assert_that,
    extra_biases,
)

# --- causal_mask ---------------------------------------------------------------------------------


@rung.shape("causal_mask")
def test_causal_mask_is_a_square_of_booleans(student):
    """The mask is boolean and square."""
    student.causal_mask(5)


@rung.value("causal_mask")
def test_causal_mask_hides_the_future_of_three_tokens(student):
    """For three tokens it hides the second and third from the first, the third from the second."""
    expected = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
    assert_agrees(student.causal_mask(3), expected, what="the mask of three tokens")


@rung.value("causal_mask")
@pytest.mark.parametrize("num_tokens", [5, 1, 8])
def test_causal_mask_fits_any_length(student, reference, num_tokens):
    """It is right for other numbers of tokens, one included."""
    assert_agrees(student.causal_mask(num_tokens), reference.causal_mask(num_tokens))


# --- masked_softmax ------------------------------------------------------------------------------


def half_hidden(make, **sizes):
    """Hide about half of the keys, and never the first one."""
    mask = make.booleans(0.5, **sizes)
    mask[..., 0] = False
    return mask


SCORES = torch.tensor([[0.0, 9.0, 9.0], [1.0, 1.0, 9.0], [1.0, 2.0, 3.0]])
MASK = torch.tensor([[False, True, True], [False, False, True], [True, True, True]])


@rung.shape("masked_softmax")
def test_masked_softmax_gives_one_weight_per_score(student, make):
    """The weights have the shape and dtype of the scores."""
    student.masked_softmax(make.normal(queries=3, keys=5), half_hidden(make, queries=3, keys=5))


@rung.value("masked_softmax")
def test_masked_softmax_gives_nothing_to_hidden_nines(student):
    """However large the score of a hidden key, it weighs nothing."""
    result = student.masked_softmax(SCORES[:2], MASK[:2])
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert_agrees(result, expected, what="the first two rows of the example")


@rung.value("masked_softmax")
def test_masked_softmax_works_for_other_sizes(student, reference, make):
    """It is right for a batch of scores too, with one mask for all sentences."""
    scores = make.normal(2.0, batch=2, queries=3, keys=5)
    mask = half_hidden(make, queries=3, keys=5)
    assert_agrees(student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask))


@rung.property("masked_softmax")
def test_masked_softmax_shares_out_all_of_the_attention(student, make):
    """The visible keys of a query share out a weight of one, and hidden keys weigh nothing."""
    scores, mask = make.normal(2.0, queries=4, keys=6), half_hidden(make, queries=4, keys=6)
    weights = student.masked_softmax(scores, mask)
    assert_that(
        bool((weights[mask] == 0).all()),
        "a hidden key has some weight: which score does softmax turn into exactly 0?",
    )
    assert_rows_sum_to_one(weights)


@rung.property("masked_softmax")
def test_masked_softmax_builds_a_new_tensor(student, make):
    """The scores passed in stay as they were."""
    scores, mask = make.normal(queries=3, keys=5), half_hidden(make, queries=3, keys=5)
    assert_input_unchanged(student.masked_softmax, scores, mask)


@rung.property("masked_softmax")
def test_masked_softmax_of_a_row_where_all_is_hidden(student, make):
    """A query that may see nothing gets zeros, and does not spoil the gradients."""
    scores = SCORES.clone().requires_grad_()
    weights = student.masked_softmax(scores, MASK)
    expected = torch.zeros(3)
    assert_agrees(weights[2], expected, what="the last row of the example, where all is hidden")
    (weights * make.normal(queries=3, keys=3)).sum().backward()
    assert_that(
        scores.grad is not None and bool(scores.grad.isfinite().all()),
        "the gradient is missing, or not finite, when everything is hidden from one query: "
        "replacing a score and adding an infinity to it are not the same for the gradient",
    )


# --- renormalized_causal_weights -----------------------------------------------------------------


@rung.shape("renormalized_causal_weights")
def test_renormalized_weights_are_as_many_as_before(student, make):
    """The result has the shape and dtype of the weights."""
    student.renormalized_causal_weights(make.normal(queries=4, keys=4).softmax(dim=-1))


@rung.value("renormalized_causal_weights")
def test_renormalized_weights_of_three_tokens(student):
    """What is left of each row is divided by its sum: 0.2 and 0.6 become 1/4 and 3/4."""
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.1, 0.2, 0.7]])
    result = student.renormalized_causal_weights(weights)
    assert_agrees(result, expected, what="the weights of the example")


@rung.value("renormalized_causal_weights")
def test_renormalized_weights_work_for_other_sizes(student, reference, make):
    """It is right for other numbers of tokens."""
    weights = make.normal(queries=6, keys=6).softmax(dim=-1)
    theirs = student.renormalized_causal_weights(weights)
    assert_agrees(theirs, reference.renormalized_causal_weights(weights))


@rung.property("renormalized_causal_weights")
def test_renormalized_weights_are_shared_out_among_the_past(student, make):
    """Every row sums to one again, and nothing is left for the future."""
    weights = make.normal(queries=7, keys=7).softmax(dim=-1)
    result = student.renormalized_causal_weights(weights)
    for token in range(7):
        assert_that(
            bool((result[token, token + 1 :] == 0).all()),
            f"token {token} still gives some weight to tokens that come after it",
        )
    assert_rows_sum_to_one(result)


# --- apply_dropout -------------------------------------------------------------------------------


@rung.shape("apply_dropout")
def test_apply_dropout_gives_one_number_per_weight(student, make):
    """The result has the shape and dtype of the weights."""
    student.apply_dropout(make.uniform(queries=3, keys=5), make.booleans(queries=3, keys=5), 0.4)


@rung.value("apply_dropout")
def test_apply_dropout_divides_the_survivors(student):
    """With p = 0.2 the survivors are divided by 0.8, and the others are zero."""
    weights = torch.tensor([[0.50, 0.50], [0.25, 0.75]])
    keep = torch.tensor([[True, False], [False, True]])
    expected = torch.tensor([[0.625, 0.0], [0.0, 0.9375]])
    result = student.apply_dropout(weights, keep, 0.2)
    assert_agrees(result, expected, what="the weights of the example")


@rung.value("apply_dropout")
def test_apply_dropout_works_for_other_sizes(student, reference, make):
    """It is right for other shapes and another p."""
    weights, keep = (
        make.uniform(batch=2, queries=3, keys=5),
        make.booleans(0.6, batch=2, queries=3, keys=5),
    )
    theirs = student.apply_dropout(weights, keep, 0.4)
    assert_agrees(theirs, reference.apply_dropout(weights, keep, 0.4))


@rung.property("apply_dropout")
def test_apply_dropout_keeps_the_average(student, make):
    """Over many weights, what dropout takes from some it gives to others."""
    keep = make.booleans(0.7, queries=100, keys=100)
    average = student.apply_dropout(torch.ones(100, 100), keep, 0.3).mean().item()
    assert_that(
        abs(average - 1) < 0.05,
        f"10,000 weights of 1 should still be about 1 on average when 30% of them are dropped, "
        f"and they are {average:.2f}: how much must the survivors grow?",
    )


# --- CausalAttention -----------------------------------------------------------------------------


@rung.shape("CausalAttention")
def test_causal_attention_gives_one_vector_per_token(student, make):
    """One context vector of size d_out comes back for each token."""
    for tokens in (4, 5):
        attention = student.CausalAttention(3, 4, tokens, 0.0)
        attention(make.normal(batch=2, tokens=tokens, d_in=3))


@rung.value("CausalAttention")
def test_causal_attention_with_identity_weights(student, reference):
    """With every weight matrix the identity, it gives the answer of the example."""
    theirs = student.CausalAttention(2, 2, 4, 0.0)
    adopt_identity_weights(theirs, reference.CausalAttention(2, 2, 4, 0.0))
    result = theirs(torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]]))
    expected = torch.tensor([[[1.0, 0.0], [0.0558, 1.8884], [1.8765, 1.9732]]])
    assert_agrees(result, expected, rtol=0, atol=1e-4, what="three tokens with identity weights")


@rung.value("CausalAttention")
def test_causal_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the context vectors are those of the reference."""
    theirs = student.CausalAttention(3, 4, 8, 0.0)
    ours = reference.CausalAttention(3, 4, 8, 0.0)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.property("CausalAttention")
def test_causal_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.CausalAttention(3, 4, 8, 0.0)
    assert_causal(attention, make.normal(batch=2, tokens=5, d_in=3))


@rung.property("CausalAttention")
def test_causal_attention_throws_dice_in_training_only(student, make):
    """With dropout, two calls differ in training, and agree in evaluation mode."""
    attention = student.CausalAttention(3, 4, 8, 0.5)
    x = make.normal(batch=4, tokens=8, d_in=3)
    once, again = attention.train().each([(x,), (x,)])
    calm, calmer = attention.eval().each([(x,), (x,)])
    assert_that(
        not torch.equal(once, again),
        "with dropout 0.5, two calls in training gave the very same result: is anything dropped?",
    )
    assert_that(
        torch.equal(calm, calmer),
        "two calls in evaluation mode differ: dropout must know whether the module is training",
    )


@rung.property("CausalAttention")
def test_causal_attention_has_no_biases_unless_asked(student, reference):
    """Queries, keys and values have no bias unless asked."""
    theirs = student.CausalAttention(3, 4, 6, 0.0)
    adopt(theirs, reference.CausalAttention(3, 4, 6, 0.0))
    biases = extra_biases(theirs)
    assert_that(
        not biases,
        f"nobody asked for a bias, and there is {', '.join(biases)}: do all three layers know of "
        "qkv_bias, and is it False to begin with?",
    )


@rung.property("CausalAttention")
def test_causal_attention_drops_weights_and_nothing_else(student, reference, make):
    """Dropout falls on the attention weights: not on scores, values or the result."""
    tokens, p = 10, 0.4
    theirs = student.CausalAttention(tokens, 2 * tokens, tokens, p)
    ours = reference.CausalAttention(tokens, 2 * tokens, tokens, p)
    # Every token is one-hot, and so is its value, twice: the result shows the weights, twice.
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
        ours.W_key.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(2, 1))
    adopt(theirs, ours)
    x = torch.eye(tokens).expand(18, tokens, tokens)
    weights, _ = ours.eval()(x).detach().chunk(2, dim=-1)
    dropped, twins = theirs.train()(x).chunk(2, dim=-1)
    assert_drops_weights(dropped, twins, weights, p)
