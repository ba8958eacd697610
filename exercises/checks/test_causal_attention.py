"""Public checks of unit 5, causal attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    PRINTED,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_drops_weights,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_rows_sum_to_one,
    assert_that,
)

# --- causal_mask ---------------------------------------------------------------------------------


@rung.shape("causal_mask")
def test_causal_mask_is_a_square_of_booleans(student):
    """The mask is boolean and square."""
    student.causal_mask(5)


@rung.value("causal_mask")
def test_causal_mask_hides_the_future_of_three_tokens(student):
    """For three tokens, the mask hides two tokens from the first, and one from the second."""
    expected = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
    assert_agrees(student.causal_mask(3), expected, what="the mask of three tokens")


@rung.value("causal_mask")
@pytest.mark.parametrize("num_tokens", [5, 1, 8])
def test_causal_mask_fits_any_length(student, reference, num_tokens):
    """The mask is right for other numbers of tokens, and for a single token."""
    assert_agrees(student.causal_mask(num_tokens), reference.causal_mask(num_tokens))


# --- masked_softmax ------------------------------------------------------------------------------


def half_hidden(make, **sizes):
    """Hide about half of the keys, but never the first key."""
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
    """A hidden key gets no weight, however large its score is."""
    result = student.masked_softmax(SCORES[:2], MASK[:2])
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert_agrees(result, expected, what="the first two rows of the example")


@rung.value("masked_softmax")
def test_masked_softmax_works_for_other_sizes(student, reference, make):
    """The weights are right for other numbers of queries and keys."""
    scores, mask = make.normal(2.0, queries=3, keys=5), half_hidden(make, queries=3, keys=5)
    assert_agrees(student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask))


@rung.value("masked_softmax", rules=("leading", "computes"))
@pytest.mark.parametrize(
    ("scores_have", "mask_has"),
    [
        ({"batch": 2, "queries": 3, "keys": 5}, {"queries": 3, "keys": 5}),
        ({"batch": 2, "queries": 3, "keys": 5}, {"batch": 2, "queries": 1, "keys": 5}),
        ({"batch": 2, "heads": 2, "queries": 3, "keys": 5}, {"queries": 3, "keys": 5}),
    ],
    ids=["one mask for a batch", "keys hidden per sentence", "heads"],
)
def test_masked_softmax_takes_a_batch_and_heads(student, reference, make, scores_have, mask_has):
    """Scores may have a batch and heads as leading dimensions, to which the mask broadcasts."""
    scores, mask = make.normal(2.0, **scores_have), half_hidden(make, **mask_has)
    assert_agrees(student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask))


@rung.value("masked_softmax")
def test_masked_softmax_shares_out_all_of_the_attention(student, make):
    """The weights of a query's visible keys sum to one, and hidden keys get no weight."""
    scores, mask = make.normal(2.0, queries=4, keys=6), half_hidden(make, queries=4, keys=6)
    weights = student.masked_softmax(scores, mask)
    assert_that(
        bool((weights[mask] == 0).all()),
        "a hidden key has some weight: which score does softmax turn into exactly 0?",
    )
    assert_rows_sum_to_one(weights)


@rung.property("masked_softmax", rules=("dtype",))
def test_masked_softmax_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, with all digits."""
    scores = make.normal(2.0, queries=3, keys=5, dtype=torch.float64) + 60.0  # costs float32 digits
    mask = half_hidden(make, queries=3, keys=5)
    assert_agrees_to_float64(
        student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask), within=DIGITS
    )


@rung.property("masked_softmax", rules=("unchanged",))
def test_masked_softmax_builds_a_new_tensor(student, make):
    """The scores and the mask passed in stay as they were."""
    scores, mask = make.normal(queries=3, keys=5), half_hidden(make, queries=3, keys=5)
    assert_input_unchanged(student.masked_softmax, scores, mask)


@rung.property("masked_softmax", rules=("empty",))
def test_masked_softmax_of_a_row_where_all_is_hidden(student, make):
    """A query whose keys are all hidden gets weights of zero, and gradients stay finite."""
    scores = SCORES.clone().requires_grad_()
    weights = student.masked_softmax(scores, MASK)
    expected = torch.zeros(3)
    assert_agrees(weights[2], expected, what="the last row of the example, where all is hidden")
    total = (weights * make.normal(queries=3, keys=3)).sum()
    if total.requires_grad:
        total.backward()
    assert_that(
        scores.grad is None or bool(scores.grad.isfinite().all()),
        "the gradient is not finite when all keys are hidden from one query: replacing a score and "
        "adding an infinity to it have different gradients",
    )


@rung.gradient("masked_softmax", rules=("gradients",))
def test_masked_softmax_can_be_learned_through(student, reference, make):
    """A gradient comes back to the visible scores."""
    mask = half_hidden(make, queries=3, keys=5)
    assert_gradients_agree(
        lambda scores: student.masked_softmax(scores, mask),
        lambda scores: reference.masked_softmax(scores, mask),
        make.normal(queries=3, keys=5),
        make=make,
    )


@rung.stability("masked_softmax", rules=("large",))
@pytest.mark.parametrize("shift", [900.0, -900.0], ids=["up", "down"])
def test_masked_softmax_takes_scores_of_nearly_a_thousand(student, reference, make, shift):
    """Scores around 900 and around -900 give finite and right weights."""
    scores = make.normal(2.0, queries=3, keys=5) + shift
    mask = half_hidden(make, queries=3, keys=5)
    scores[0, 1:], mask[0, 1:] = -shift, True  # hidden scores far from the visible ones
    weights = student.masked_softmax(scores, mask)
    assert_agrees(weights, reference.masked_softmax(scores, mask), within=LARGE_SCORES)


# --- renormalized_causal_weights -----------------------------------------------------------------


@rung.shape("renormalized_causal_weights")
def test_renormalized_weights_are_as_many_as_before(student, make):
    """The result has the shape and dtype of the weights."""
    student.renormalized_causal_weights(make.normal(queries=4, keys=4).softmax(dim=-1))


@rung.value("renormalized_causal_weights")
def test_renormalized_weights_of_three_tokens(student):
    """The visible weights are divided by their sum: 0.2 and 0.6 become 1/4 and 3/4."""
    weights = torch.tensor([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.1, 0.2, 0.7]])
    result = student.renormalized_causal_weights(weights)
    assert_agrees(result, expected, what="the weights of the example")


@rung.value("renormalized_causal_weights")
def test_renormalized_weights_work_for_other_sizes(student, reference, make):
    """The weights are right for other numbers of tokens."""
    weights = make.normal(queries=6, keys=6).softmax(dim=-1)
    theirs = student.renormalized_causal_weights(weights)
    assert_agrees(theirs, reference.renormalized_causal_weights(weights))


@rung.value("renormalized_causal_weights")
def test_renormalized_weights_are_shared_out_among_the_past(student, make):
    """Every row sums to one again, and later tokens have no weight."""
    weights = make.normal(queries=7, keys=7).softmax(dim=-1)
    result = student.renormalized_causal_weights(weights)
    for token in range(7):
        assert_that(
            bool((result[token, token + 1 :] == 0).all()),
            f"token {token} still gives some weight to tokens that come after it",
        )
    assert_rows_sum_to_one(result)


@rung.property("renormalized_causal_weights", rules=("dtype",))
def test_renormalized_weights_keep_float64(student, reference, make):
    """Weights in float64 stay in float64, with all digits."""
    weights = make.normal(queries=4, keys=4, dtype=torch.float64).softmax(dim=-1)
    assert_agrees_to_float64(
        student.renormalized_causal_weights(weights),
        reference.renormalized_causal_weights(weights),
        within=ALL_DIGITS,
    )


@rung.property("renormalized_causal_weights", rules=("unchanged",))
def test_renormalized_weights_leave_their_input_alone(student, make):
    """The weights passed in stay as they were."""
    weights = make.normal(queries=4, keys=4).softmax(dim=-1)
    assert_input_unchanged(student.renormalized_causal_weights, weights)


@rung.gradient("renormalized_causal_weights", rules=("gradients",))
def test_renormalized_weights_can_be_learned_through(student, reference, make):
    """A gradient comes back to the weights, through the sums too."""
    assert_gradients_agree(
        student.renormalized_causal_weights,
        reference.renormalized_causal_weights,
        make.normal(0.5, queries=4, keys=4).softmax(dim=-1),
        make=make,
    )


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
    """The result is right for other sizes and another p."""
    weights, keep = make.uniform(queries=3, keys=5), make.booleans(0.6, queries=3, keys=5)
    theirs = student.apply_dropout(weights, keep, 0.4)
    assert_agrees(theirs, reference.apply_dropout(weights, keep, 0.4))


@rung.value("apply_dropout", rules=("leading", "computes"))
@pytest.mark.parametrize(
    "sizes",
    [{"keys": 5}, {"batch": 2, "queries": 3, "keys": 5}],
    ids=["one dimension", "three dimensions"],
)
def test_apply_dropout_takes_any_number_of_dimensions(student, reference, make, sizes):
    """Weights may be one row, or a batch of matrices."""
    weights, keep = make.uniform(**sizes), make.booleans(0.6, **sizes)
    theirs = student.apply_dropout(weights, keep, 0.4)
    assert_agrees(theirs, reference.apply_dropout(weights, keep, 0.4))


@rung.value("apply_dropout")
def test_apply_dropout_keeps_the_average(student, make):
    """Over many weights, dropout keeps the average: kept weights grow as others are dropped."""
    keep = make.booleans(0.7, queries=100, keys=100)
    average = student.apply_dropout(torch.ones(100, 100), keep, 0.3).mean().item()
    assert_that(
        abs(average - 1) < 0.05,
        f"10,000 weights of 1 should still be about 1 on average when 30% of them are dropped, "
        f"but their average is {average:.2f}: how much must the kept weights grow?",
    )


@rung.property("apply_dropout", rules=("dtype",))
def test_apply_dropout_keeps_float64(student, reference, make):
    """Weights in float64 stay in float64, with all digits."""
    weights = make.uniform(queries=3, keys=5, dtype=torch.float64)
    keep = make.booleans(0.6, queries=3, keys=5)
    assert_agrees_to_float64(
        student.apply_dropout(weights, keep, 0.4),
        reference.apply_dropout(weights, keep, 0.4),
        within=ALL_DIGITS,
    )


@rung.property("apply_dropout", rules=("unchanged",))
def test_apply_dropout_leaves_its_inputs_alone(student, make):
    """The weights and the keep mask passed in stay as they were."""
    weights, keep = make.uniform(queries=3, keys=5), make.booleans(0.6, queries=3, keys=5)
    assert_input_unchanged(student.apply_dropout, weights, keep, 0.4)


@rung.gradient("apply_dropout", rules=("gradients",))
def test_apply_dropout_can_be_learned_through(student, reference, make):
    """A gradient comes back to the weights that are kept, and to no other."""
    keep = make.booleans(0.6, queries=3, keys=5)
    assert_gradients_agree(
        lambda weights: student.apply_dropout(weights, keep, 0.4),
        lambda weights: reference.apply_dropout(weights, keep, 0.4),
        make.uniform(queries=3, keys=5),
        make=make,
    )


# --- CausalAttention -----------------------------------------------------------------------------


@rung.shape("CausalAttention")
def test_causal_attention_gives_one_vector_per_token(student, make):
    """One context vector of size d_out comes back for each token."""
    for tokens in (4, 5):
        attention = student.CausalAttention(3, 4, tokens, 0.0)
        attention(make.normal(batch=2, tokens=tokens, d_in=3))


@rung.value("CausalAttention", rules=("computes", "shorter"))
def test_causal_attention_with_identity_weights(student, reference):
    """With identity matrices as weights, the layer gives the answer of the example."""
    theirs = student.CausalAttention(2, 2, 4, 0.0)
    adopt_identity_weights(theirs, reference.CausalAttention(2, 2, 4, 0.0))
    result = theirs(torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]]))
    expected = torch.tensor([[[1.0, 0.0], [0.0558, 1.8884], [1.8765, 1.9732]]])
    assert_agrees(result, expected, within=PRINTED, what="three tokens with identity weights")


def alike(student, reference, *arguments):
    """The student's layer and the reference, with the same weights."""
    theirs, ours = student.CausalAttention(*arguments), reference.CausalAttention(*arguments)
    adopt(theirs, ours)
    return theirs, ours


@rung.value("CausalAttention")
def test_causal_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the context vectors are those of the reference."""
    theirs, ours = alike(student, reference, 3, 4, 5, 0.0)
    x = make.normal(batch=2, tokens=5, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.value("CausalAttention", rules=("shorter", "computes"))
def test_causal_attention_takes_shorter_sentences(student, reference, make):
    """With a context_length of 8, calls with three tokens and then with five tokens are right."""
    theirs, ours = alike(student, reference, 3, 4, 8, 0.0)
    for tokens in (3, 5):
        x = make.normal(batch=2, tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} of 8 tokens")


@rung.value("CausalAttention")
def test_causal_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.CausalAttention(3, 4, 5, 0.0)
    assert_causal(attention, make.normal(batch=2, tokens=5, d_in=3))


@rung.property("CausalAttention", rules=("batch",))
def test_causal_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of a batch leaves the outputs of the other as they were."""
    theirs, _ = alike(student, reference, 3, 4, 5, 0.0)
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, tokens=5, d_in=3))


@rung.property("CausalAttention", rules=("dropout",))
def test_causal_attention_drops_at_random_in_training(student, make):
    """With dropout, two calls in training differ."""
    attention = student.CausalAttention(3, 4, 8, 0.5)
    x = make.normal(batch=4, tokens=8, d_in=3)
    once, again = attention.train().each([(x,), (x,)])
    assert_that(
        not torch.equal(once, again),
        "with dropout 0.5, two calls in training gave the very same result: is anything dropped?",
    )


@rung.property("CausalAttention", rules=("eval",))
def test_causal_attention_drops_nothing_in_evaluation(student, make):
    """After .eval(), two calls give the same result."""
    attention = student.CausalAttention(3, 4, 8, 0.5)
    x = make.normal(batch=4, tokens=8, d_in=3)
    calm, calmer = attention.eval().each([(x,), (x,)])
    assert_that(
        torch.equal(calm, calmer),
        "two calls in evaluation mode differ: dropout must know whether the module is training",
    )


@rung.property("CausalAttention", rules=("dropout",))
def test_causal_attention_drops_weights_and_nothing_else(student, reference, make):
    """Dropout acts on the attention weights: not on scores, values or the result."""
    tokens, p = 10, 0.4
    theirs = student.CausalAttention(tokens, 2 * tokens, tokens, p)
    ours = reference.CausalAttention(tokens, 2 * tokens, tokens, p)
    # Tokens are one-hot, and a value holds its token twice: the result shows the weights twice.
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
        ours.W_key.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(2, 1))
    adopt(theirs, ours)
    x = torch.eye(tokens).expand(18, tokens, tokens)
    weights, _ = ours.eval()(x).detach().chunk(2, dim=-1)
    dropped, twins = theirs.train()(x).chunk(2, dim=-1)
    assert_drops_weights(dropped, twins, weights, p)


@rung.property("CausalAttention", rules=("bias",))
def test_causal_attention_has_no_biases_unless_asked(student, reference):
    """Queries, keys and values have no bias by default."""
    theirs, _ = alike(student, reference, 3, 4, 6, 0.0)
    assert_learns_no_more(theirs, "qkv_bias is False by default")


@rung.property("CausalAttention", rules=("bias",))
def test_causal_attention_has_biases_when_asked(student, reference, make):
    """With qkv_bias=True, queries, keys and values have a bias, and use it."""
    theirs = student.CausalAttention(3, 4, 5, 0.0, True)
    ours = reference.CausalAttention(3, 4, 5, 0.0, True)
    missing = adopt(theirs, ours).missing
    assert_that(
        not missing,
        f"qkv_bias=True should make biases, but {', '.join(missing)} could not be found: do all "
        "three layers use qkv_bias?",
    )
    x = make.normal(batch=2, tokens=5, d_in=3)
    assert_agrees(theirs(x), ours(x), what="the result with qkv_bias=True")


@rung.property("CausalAttention", rules=("device",))
def test_causal_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.CausalAttention(3, 4, 5, 0.0), make.normal(batch=2, tokens=5, d_in=3))


@rung.property("CausalAttention", rules=("dtype",))
def test_causal_attention_works_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    # The root of head_dim, 4, is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = alike(student, reference, 3, 4, 9, 0.0)
    x = make.normal(3.0, batch=6, tokens=9, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("CausalAttention", rules=("unchanged",))
def test_causal_attention_leaves_its_input_alone(student, reference, make):
    """The tokens passed in stay as they were."""
    theirs, _ = alike(student, reference, 3, 4, 5, 0.0)
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=5, d_in=3))


@rung.gradient("CausalAttention", rules=("gradients",))
def test_causal_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all three layers."""
    theirs, ours = alike(student, reference, 3, 4, 5, 0.0)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=5, d_in=3), make=make)
