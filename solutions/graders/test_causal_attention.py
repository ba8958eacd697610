"""Hidden graders of unit 5, causal attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    adopt,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
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
@pytest.mark.parametrize("num_tokens", [2, 7])
def test_causal_mask_has_the_shape_of_the_statement(student, num_tokens):
    """The mask is boolean, num_tokens by num_tokens."""
    student.causal_mask(num_tokens)


@rung.value("causal_mask", points=2)
@pytest.mark.parametrize("num_tokens", [1, 2, 3, 6, 11])
def test_causal_mask_agrees_with_the_reference(student, reference, num_tokens):
    """The mask is True exactly where a query may not look."""
    assert_agrees(student.causal_mask(num_tokens), reference.causal_mask(num_tokens))


# --- masked_softmax ------------------------------------------------------------------------------

MATRIX = {"queries": 4, "keys": 6}
BATCH = {"batch": 2, **MATRIX}
HEADS = {"batch": 2, "heads": 3, **MATRIX}


def some_mask(make, **sizes):
    """Hide about half of the keys, never the last one, and none from the first of many queries."""
    mask = make.booleans(0.5, **sizes)
    mask[..., -1] = False
    if sizes["queries"] > 1:
        mask[..., 0, :] = False
    return mask


@rung.shape("masked_softmax")
def test_masked_softmax_keeps_the_shape_of_the_scores(student, make):
    """The weights have the shape and dtype of the scores."""
    student.masked_softmax(make.normal(queries=4, keys=6), some_mask(make, queries=4, keys=6))


@rung.value("masked_softmax", points=7, rules=("leading", "computes"))
@pytest.mark.parametrize(
    ("scores_have", "mask_has"),
    [
        pytest.param(MATRIX, MATRIX, id="one sentence", marks=rung.quotes("computes")),
        pytest.param(BATCH, MATRIX, id="one mask for the whole batch"),
        pytest.param(BATCH, BATCH, id="a mask per batch row"),
        pytest.param(BATCH, BATCH | {"queries": 1}, id="keys hidden from all queries"),
        pytest.param(HEADS, MATRIX, id="one mask for all heads"),
        pytest.param(HEADS, HEADS | {"heads": 1, "queries": 1}, id="keys hidden, with heads"),
    ],
)
def test_masked_softmax_agrees_with_the_reference(student, reference, make, scores_have, mask_has):
    """Visible keys share the weight as in the reference, with any leading dimensions."""
    scores, mask = make.normal(3.0, **scores_have), some_mask(make, **mask_has)
    assert_agrees(student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask))


@rung.property("masked_softmax", points=3, rules=("empty",))
def test_masked_softmax_gives_zeros_where_all_is_hidden(student, make):
    """A row with every key hidden gives zeros, with finite gradients."""
    scores = make.normal(queries=4, keys=6).requires_grad_()
    mask = some_mask(make, queries=4, keys=6)
    mask[2] = True
    weights = student.masked_softmax(scores, mask)
    assert_that(bool((weights[2] == 0).all()), "the hidden row should be all zeros")
    assert_rows_sum_to_one(weights[[0, 1, 3]])
    total = (weights * make.normal(queries=4, keys=6)).sum()
    if total.requires_grad:
        total.backward()
    assert_that(
        scores.grad is None or bool(scores.grad.isfinite().all()),
        "the gradient is not finite when a row is hidden: what is the gradient of an infinity?",
    )


@rung.property("masked_softmax", rules=("dtype",))
def test_masked_softmax_keeps_float64(student, reference, make):
    """Scores in float64 give weights in float64, to full precision."""
    scores = make.normal(3.0, queries=4, keys=6, dtype=torch.float64) + 60.0  # costs float32 digits
    mask = some_mask(make, queries=4, keys=6)
    theirs, ours = student.masked_softmax(scores, mask), reference.masked_softmax(scores, mask)
    assert_agrees_to_float64(theirs, ours, within=DIGITS)


@rung.property("masked_softmax", rules=("unchanged",))
def test_masked_softmax_leaves_the_scores_alone(student, make):
    """Neither scores nor mask are changed in place."""
    scores = make.normal(queries=4, keys=6)
    assert_input_unchanged(student.masked_softmax, scores, some_mask(make, queries=4, keys=6))


@rung.gradient("masked_softmax", rules=("gradients",))
def test_masked_softmax_has_the_right_gradient(student, reference, make):
    """Gradients flow to the visible scores."""
    scores, mask = make.normal(queries=4, keys=6), some_mask(make, queries=4, keys=6)
    assert_gradients_agree(
        lambda x: student.masked_softmax(x, mask),
        lambda x: reference.masked_softmax(x, mask),
        scores,
        make=make,
    )


@rung.stability("masked_softmax", rules=("large",))
def test_masked_softmax_takes_large_scores(student, reference, make):
    """Scores far above and far below zero, hidden ones too, give the right weights."""
    scores = make.normal(100.0, queries=4, keys=6)
    mask = some_mask(make, queries=4, keys=6)
    mask[:2, 0] = True
    scores[0, 0] = 1000.0  # the largest score of its row is hidden
    scores[1] = -1000.0 + make.uniform(keys=6)  # all visible scores are far below zero
    scores[1, 0] = 1000.0  # and all hidden scores are far above
    scores[2] = 1000.0 - torch.arange(6)
    weights = student.masked_softmax(scores, mask)
    assert_agrees(weights, reference.masked_softmax(scores, mask), within=LARGE_SCORES)


# --- renormalized_causal_weights -----------------------------------------------------------------


def softmax_weights(make, tokens, scale=2.0, dtype=torch.float32):
    """Rows that sum to one."""
    return make.normal(scale, queries=tokens, keys=tokens, dtype=dtype).softmax(dim=-1)


@rung.shape("renormalized_causal_weights")
def test_renormalized_weights_keep_their_shape(student, make):
    """The result has the shape and dtype of the weights."""
    student.renormalized_causal_weights(softmax_weights(make, 5))


@rung.value("renormalized_causal_weights", points=2)
@pytest.mark.parametrize("tokens", [1, 2, 5, 8])
def test_renormalized_weights_agree_with_the_reference(student, reference, make, tokens):
    """Later tokens get no weight, and the other weights of a row are divided by their sum."""
    weights = softmax_weights(make, tokens)
    assert_agrees(
        student.renormalized_causal_weights(weights),
        reference.renormalized_causal_weights(weights),
    )


@rung.property("renormalized_causal_weights", points=0.5, rules=("dtype",))
def test_renormalized_weights_keep_float64(student, reference, make):
    """Weights in float64 stay in float64, to full precision."""
    weights = softmax_weights(make, 5, dtype=torch.float64)
    assert_agrees_to_float64(
        student.renormalized_causal_weights(weights),
        reference.renormalized_causal_weights(weights),
        within=ALL_DIGITS,
    )


@rung.property("renormalized_causal_weights", points=0.5, rules=("unchanged",))
def test_renormalized_weights_leave_their_input_alone(student, make):
    """The weights that were passed in stay as they were."""
    assert_input_unchanged(student.renormalized_causal_weights, softmax_weights(make, 5))


@rung.gradient("renormalized_causal_weights", rules=("gradients",))
def test_renormalized_weights_have_the_right_gradient(student, reference, make):
    """Gradients flow through the division too."""
    assert_gradients_agree(
        student.renormalized_causal_weights,
        reference.renormalized_causal_weights,
        softmax_weights(make, 5, 0.5),
        make=make,
    )


# --- apply_dropout -------------------------------------------------------------------------------


@rung.shape("apply_dropout")
def test_apply_dropout_keeps_the_shape(student, make):
    """The result has the shape and dtype of the weights."""
    student.apply_dropout(make.uniform(queries=3, keys=4), make.booleans(queries=3, keys=4), 0.3)


@rung.value("apply_dropout", points=2)
@pytest.mark.parametrize("p", [0.0, 0.2, 0.75])
def test_apply_dropout_agrees_with_the_reference(student, reference, make, p):
    """Kept entries are divided by 1 - p, the others are zero."""
    weights, keep = make.normal(queries=3, keys=4), make.booleans(queries=3, keys=4)
    assert_agrees(
        student.apply_dropout(weights, keep, p), reference.apply_dropout(weights, keep, p)
    )


@rung.value("apply_dropout", rules=("leading", "computes"))
@pytest.mark.parametrize(
    "sizes",
    [{"keys": 6}, {"batch": 2, "queries": 3, "keys": 4}, {"batch": 2, "heads": 3, "q": 2, "k": 4}],
    ids=["one dimension", "three dimensions", "four dimensions"],
)
def test_apply_dropout_takes_any_number_of_dimensions(student, reference, make, sizes):
    """Weights may have any number of dimensions."""
    weights, keep = make.normal(**sizes), make.booleans(**sizes)
    assert_agrees(
        student.apply_dropout(weights, keep, 0.3),
        reference.apply_dropout(weights, keep, 0.3),
    )


@rung.property("apply_dropout", points=0.5, rules=("dtype",))
def test_apply_dropout_keeps_float64(student, reference, make):
    """Weights in float64 stay in float64, to full precision."""
    weights = make.normal(queries=3, keys=4, dtype=torch.float64)
    keep = make.booleans(queries=3, keys=4)
    assert_agrees_to_float64(
        student.apply_dropout(weights, keep, 0.3),
        reference.apply_dropout(weights, keep, 0.3),
        within=ALL_DIGITS,
    )


@rung.property("apply_dropout", points=0.5, rules=("unchanged",))
def test_apply_dropout_leaves_its_inputs_alone(student, make):
    """Neither the weights nor the keep mask are changed in place."""
    weights, keep = make.normal(queries=3, keys=4), make.booleans(queries=3, keys=4)
    assert_input_unchanged(student.apply_dropout, weights, keep, 0.3)


@rung.gradient("apply_dropout", rules=("gradients",))
def test_apply_dropout_has_the_right_gradient(student, reference, make):
    """Gradients flow to the kept entries only."""
    weights, keep = make.normal(queries=3, keys=4), make.booleans(queries=3, keys=4)
    assert_gradients_agree(
        lambda w: student.apply_dropout(w, keep, 0.3),
        lambda w: reference.apply_dropout(w, keep, 0.3),
        weights,
        make=make,
    )


# --- CausalAttention -----------------------------------------------------------------------------

SIZES = [(2, 8, 3, 4), (3, 5, 7, 6)]  # batch, tokens, d_in, d_out


@rung.shape("CausalAttention")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out"), SIZES)
def test_causal_attention_has_the_shape_of_the_statement(student, make, batch, tokens, d_in, d_out):
    """One context vector of size d_out comes back for each token."""
    attention = student.CausalAttention(d_in, d_out, tokens, 0.0)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


def alike(student, reference, *arguments):
    """The student's CausalAttention with the weights of the reference's, and that one too."""
    theirs, ours = student.CausalAttention(*arguments), reference.CausalAttention(*arguments)
    adopt(theirs, ours)
    return theirs, ours


@rung.value("CausalAttention", points=6)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out"), SIZES)
def test_causal_attention_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out
):
    """With the same weights, the context vectors are those of the reference."""
    theirs, ours = alike(student, reference, d_in, d_out, tokens, 0.0)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.value("CausalAttention", points=3, rules=("shorter", "computes"))
def test_causal_attention_takes_inputs_shorter_than_the_context(student, reference, make):
    """Inputs shorter than context_length work, one after another, in any order."""
    theirs, ours = alike(student, reference, 3, 4, 8, 0.0)
    for tokens in (5, 2, 1, 7):
        x = make.normal(batch=2, tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} of 8 tokens")


@rung.property("CausalAttention", rules=("batch",))
def test_causal_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of a batch leaves the outputs of the others as they were."""
    theirs, _ = alike(student, reference, 3, 4, 6, 0.0)
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, tokens=6, d_in=3))


@rung.property("CausalAttention", rules=("bias",))
def test_causal_attention_has_biases_only_when_asked(student, reference, make):
    """Queries, keys and values have no bias by default, and a bias with qkv_bias=True."""
    for qkv_bias in ((False,), ()):
        theirs = student.CausalAttention(3, 4, 5, 0.0, *qkv_bias)
        adopt(theirs, reference.CausalAttention(3, 4, 5, 0.0))
        assert_learns_no_more(theirs, "qkv_bias is False unless someone asks")
    theirs = student.CausalAttention(3, 4, 5, 0.0, True)
    ours = reference.CausalAttention(3, 4, 5, 0.0, True)
    missing = adopt(theirs, ours).missing
    assert_that(
        not missing, f"qkv_bias=True should make biases: {', '.join(missing)} could not be found"
    )
    x = make.normal(batch=2, tokens=5, d_in=3)
    assert_agrees(theirs(x), ours(x), what="the result with qkv_bias=True")


def one_hot(student, reference, make, tokens, p):
    """A layer, one-hot tokens and the expected result, which holds the weights twice."""
    theirs = student.CausalAttention(tokens, 2 * tokens, tokens, p)
    ours = reference.CausalAttention(tokens, 2 * tokens, tokens, p)
    # Scores small enough that no weight is tiny.
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.7, rows=2 * tokens, d_in=tokens))
        ours.W_key.weight.copy_(make.normal(0.7, rows=2 * tokens, d_in=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(2, 1))
    adopt(theirs, ours)
    x = torch.eye(tokens).expand(16, tokens, tokens)
    return theirs, x, ours.eval()(x).detach()


@rung.property("CausalAttention", points=2, rules=("dropout",))
def test_causal_attention_drops_weights_in_training(student, reference, make):
    """Dropout acts on the weights, and scales up those that it keeps."""
    tokens, p = 24, 0.3
    theirs, x, expected = one_hot(student, reference, make, tokens, p)
    once, again = theirs.train().each([(x,), (x,)])
    assert_drops_weights(once[..., :tokens], once[..., tokens:], expected[..., :tokens], p)
    assert_that(not torch.equal(once, again), "in training, two calls should drop differently")


@rung.property("CausalAttention", rules=("eval",))
def test_causal_attention_drops_nothing_in_evaluation(student, reference, make):
    """After .eval() there is no dropout, and two calls agree."""
    theirs, x, expected = one_hot(student, reference, make, 6, 0.3)
    calm, calmer = theirs.eval().each([(x,), (x,)])
    assert_agrees(calm, calmer, what="a second call in evaluation mode")
    assert_agrees(calm, expected, what="the result in evaluation mode")


@rung.property("CausalAttention", rules=("device",))
def test_causal_attention_moves_as_a_whole(student, make):
    """Mask and weights go along when the module moves to another device."""
    assert_moves(student.CausalAttention(3, 4, 5, 0.0), make.normal(batch=2, tokens=5, d_in=3))


@rung.property("CausalAttention", rules=("dtype",))
def test_causal_attention_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = alike(student, reference, 3, 4, 9, 0.0)
    x = make.normal(3.0, batch=6, tokens=9, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("CausalAttention", rules=("unchanged",))
def test_causal_attention_leaves_its_input_alone(student, reference, make):
    """The sentences passed in are the same after the call as before it."""
    theirs, _ = alike(student, reference, 3, 4, 5, 0.0)
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=5, d_in=3))


@rung.gradient("CausalAttention", rules=("gradients",))
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_causal_attention_has_the_right_gradients(student, reference, make, qkv_bias):
    """Gradients reach the input and all three projections."""
    theirs, ours = alike(student, reference, 3, 4, 5, 0.0, qkv_bias)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=5, d_in=3), make=make)
