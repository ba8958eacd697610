"""Public checks of unit 7, cross-attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    PRINTED,
    UNMOVED,
    adopt,
    adopt_identity_weights,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_moves,
    assert_one_bias,
    assert_that,
)

# --- padding_mask --------------------------------------------------------------------------------


@rung.shape("padding_mask")
def test_padding_mask_has_a_row_for_each_sentence(student):
    """The mask is boolean, with a row for each sentence and a column for each token."""
    student.padding_mask(torch.tensor([2, 4, 1]), 5)


@rung.value("padding_mask")
def test_padding_mask_of_three_sentences(student):
    """Sentences of four, two and no tokens are padded as in the example."""
    expected = torch.tensor(
        [[False, False, False, False], [False, False, True, True], [True, True, True, True]]
    )
    result = student.padding_mask(torch.tensor([4, 2, 0]), 4)
    assert_agrees(result, expected, what="the padding of lengths 4, 2 and 0")


@rung.value("padding_mask")
@pytest.mark.parametrize("num_tokens", [6, 9])
def test_padding_mask_fits_any_batch(student, reference, make, num_tokens):
    """The mask is right for other lengths, also where the longest sentence has padding."""
    lengths = make.integers(0, 7, batch=5)
    assert_agrees(
        student.padding_mask(lengths, num_tokens), reference.padding_mask(lengths, num_tokens)
    )


@rung.property("padding_mask", rules=("unchanged",))
def test_padding_mask_keeps_the_lengths(student):
    """The lengths that were passed in stay as they were."""
    assert_input_unchanged(student.padding_mask, torch.tensor([2, 4, 1]), 5)


@rung.property("padding_mask", rules=("device",))
def test_padding_mask_goes_where_the_lengths_are(student):
    """Lengths on another device give a mask on that device."""
    assert_moves(student.padding_mask, torch.tensor([2, 4, 1]), 5)


# --- both modules --------------------------------------------------------------------------------

# Heads have two features. ROOT gives scores of about 50, or 110 if a token begins with LOUD.
LOUD, ROOT = 2.2, 6.0
# FAR gives scores of about 70 or -70: exp does not overflow, and a score 140 lower gets no weight.
FAR = 7.0


def with_large_scores(ours, root):
    """Make scores about 1.4 · root², where tokens begin with a one."""
    with torch.no_grad():
        ours.W_query.weight[:, 0] = ours.W_key.weight[:, 0] = root
    return ours


def made_loud(tokens, mask):
    """Replace tokens where the mask is True by others with larger scores."""
    loud = tokens.flip(1)
    loud[..., 0] = LOUD
    return torch.where(mask[..., None], loud, tokens)


def with_quiet_heads(ours):
    """Make all scores about -70, and let the output layer pass on the features of the heads."""
    with torch.no_grad():
        ours.W_query.weight[:, 0] = FAR
        ours.W_key.weight[:, 0] = -FAR
        ours.out_proj.weight.copy_(torch.eye(len(ours.out_proj.weight)))
        ours.out_proj.bias.zero_()
    return ours


def with_a_loud_second_head(fresh, ours, make):
    """A new reference with our weights, except that head 1 of three has scores of about 70."""
    fresh.load_state_dict(ours.state_dict())
    with torch.no_grad():
        for projection in (fresh.W_query, fresh.W_key, fresh.W_value):
            projection.weight[2:4] = make.normal(0.1, rows=2, columns=projection.weight.shape[1])
        fresh.W_query.weight[2:4, 0] = fresh.W_key.weight[2:4, 0] = FAR
    return fresh


def assert_other_heads_kept(after, before):
    """Fail if heads 0 and 2 have changed, though only head 1 got other weights."""
    for head, kept in ((0, slice(0, 2)), (2, slice(4, 6))):
        what = f"head {head}, after head 1 got other weights and larger scores,"
        assert_agrees(after[..., kept], before[..., kept], what=what)


# --- CrossAttention ------------------------------------------------------------------------------

TWO_QUERIES = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
THREE_KEYS = torch.tensor([[[1.0, 0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 3.0, 5.0]]])
LAST_HIDDEN = torch.tensor([[False, False, True]])


def small_crossing(student, reference):
    """The student's module and the reference, with the same weights."""
    theirs = student.CrossAttention(4, 5, 6, 3)
    ours = reference.CrossAttention(4, 5, 6, 3)
    adopt(theirs, ours)
    return theirs, ours


def small_sequences(make, scale=1.0):
    """Nine sentences of seven queries and eight keys, and a mask that differs between them."""
    x = make.normal(scale, batch=9, queries=7, d_query=4)
    context = make.normal(scale, batch=9, keys=8, d_context=5)
    mask = torch.zeros(9, 8, dtype=torch.bool)
    mask[::2, 5:] = mask[1::2, 1::2] = True
    return x, context, mask


@rung.shape("CrossAttention")
def test_cross_attention_gives_one_vector_per_query(student, make):
    """One vector of size d_out comes back for each token of x."""
    attention = student.CrossAttention(4, 5, 6, 3)
    x = make.normal(batch=2, queries=7, d_query=4)
    attention(x, make.normal(batch=2, keys=8, d_context=5))


@rung.value("CrossAttention")
def test_cross_attention_with_identity_weights(student, reference):
    """With ones on the diagonals, the module gives the answer of the example."""
    theirs = student.CrossAttention(2, 3, 2, 1)
    adopt_identity_weights(theirs, reference.CrossAttention(2, 3, 2, 1))
    result = theirs(TWO_QUERIES, THREE_KEYS, LAST_HIDDEN)
    expected = torch.tensor([[[0.669761, 0.330239], [0.195570, 0.804430]]])
    assert_agrees(result, expected, within=PRINTED, what="two queries, and two visible keys")


@rung.value("CrossAttention")
def test_cross_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no mask, the result is that of the reference."""
    theirs, ours = small_crossing(student, reference)
    x, context, _ = small_sequences(make)
    assert_agrees(theirs(x, context), ours(x, context))


@rung.value("CrossAttention")
def test_cross_attention_hides_what_the_mask_says(student, reference, make):
    """With a mask, each sentence ignores the tokens of the context that are hidden from it."""
    theirs, ours = small_crossing(student, reference)
    x, context, mask = small_sequences(make)
    assert_agrees(theirs(x, context, mask), ours(x, context, mask), what="the result with a mask")


@rung.property("CrossAttention")
def test_cross_attention_takes_none_for_a_mask(student, reference, make):
    """A mask of None hides nothing."""
    theirs, ours = small_crossing(student, reference)
    x, context, _ = small_sequences(make)
    result, expected = theirs(x, context, None), ours(x, context, None)
    assert_agrees(result, expected, what="the result with the mask None")


@rung.property("CrossAttention", rules=("hidden",))
def test_cross_attention_does_not_care_what_is_hidden(student, reference, make):
    """The content of a hidden token of the context changes no output."""
    theirs = student.CrossAttention(4, 5, 6, 3)
    adopt(theirs, with_large_scores(reference.CrossAttention(4, 5, 6, 3), ROOT))
    x, context, mask = small_sequences(make, 0.3)
    x[..., 0] = context[..., 0] = 1.0
    before, after = theirs(x, context, mask), theirs(x, made_loud(context, mask), mask)
    assert_that(
        agree(after, before, within=UNMOVED),
        "only hidden tokens of the context changed, and outputs changed with them: how much of "
        "its weight does a hidden token keep, even if its score is large?",
    )


@rung.property("CrossAttention", rules=("batch",))
def test_cross_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of x leaves the outputs of the others as they were."""
    theirs, _ = small_crossing(student, reference)
    x, context, mask = small_sequences(make)
    assert_batch_rows_do_not_mix(lambda x: theirs(x, context, mask), x)


@rung.property("CrossAttention", rules=("heads",))
def test_cross_attention_keeps_its_heads_apart(student, reference, make):
    """Larger scores in head 1 leave the features of the other heads as they were."""
    theirs = student.CrossAttention(4, 5, 6, 3)
    ours = with_quiet_heads(reference.CrossAttention(4, 5, 6, 3))
    adopt(theirs, ours)
    x, context, _ = small_sequences(make, 0.3)
    x[..., 0] = context[..., 0] = 1.0
    before = theirs(x, context)
    loud = with_a_loud_second_head(reference.CrossAttention(4, 5, 6, 3), ours, make)
    adopt(theirs, loud)
    assert_other_heads_kept(theirs(x, context), before)


@rung.property("CrossAttention", rules=("bias",))
def test_cross_attention_has_one_bias_only(student, reference):
    """Queries, keys and values have no bias, and the last layer has a bias."""
    assert_one_bias(
        student.CrossAttention(4, 5, 6, 3),
        reference.CrossAttention(4, 5, 6, 3),
        "queries, keys and values",
    )


@rung.property("CrossAttention", rules=("device",))
def test_cross_attention_moves_to_another_device(student, make):
    """After a move to another device, the module takes both sequences and the mask from there."""
    assert_moves(student.CrossAttention(4, 5, 6, 3), *small_sequences(make))


@rung.property("CrossAttention", rules=("dtype",))
def test_cross_attention_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    # The root of head_dim, 4, is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = student.CrossAttention(4, 5, 8, 2), reference.CrossAttention(4, 5, 8, 2)
    adopt(theirs, ours)
    x, context, mask = small_sequences(make)
    inputs = x.double(), context.double(), mask
    assert_agrees_to_float64(theirs.double()(*inputs), ours.double()(*inputs), within=DIGITS)


@rung.property("CrossAttention", rules=("unchanged",))
def test_cross_attention_keeps_its_inputs(student, make):
    """Both sequences and the mask stay as they were."""
    assert_input_unchanged(student.CrossAttention(4, 5, 6, 3), *small_sequences(make))


@rung.gradient("CrossAttention", rules=("gradients",))
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_lets_gradients_through(student, reference, make, masked):
    """Gradients reach both sequences, all three projections and the output layer."""
    theirs, ours = small_crossing(student, reference)
    x, context, mask = small_sequences(make, 0.5)
    hidden = [mask] if masked else []
    assert_gradients_agree(theirs, ours, x, context, *hidden, make=make)


@rung.stability("CrossAttention", rules=("large", "hidden"))
def test_cross_attention_takes_large_scores(student, reference, make):
    """Scores of hundreds do not overflow; below minus a hundred, hidden tokens stay hidden."""
    theirs = student.CrossAttention(4, 5, 6, 3)
    ours = with_large_scores(reference.CrossAttention(4, 5, 6, 3), 20.0)
    adopt(theirs, ours)
    x, context, mask = small_sequences(make, 0.3)
    x[..., 0] = context[..., 0] = 1.0
    what = "the result for large scores"
    assert_agrees(theirs(x, context), ours(x, context), within=LARGE_SCORES, what=what)
    theirs = student.CrossAttention(4, 5, 6, 3)
    adopt(theirs, ours)
    context[..., 0] = -1.0
    what = "the result where all scores are low"
    assert_agrees(theirs(x, context, mask), ours(x, context, mask), within=LARGE_SCORES, what=what)


# --- EncoderSelfAttention ------------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0]]])


def small_encoding(student, reference):
    """The student's module and the reference, with the same weights."""
    theirs = student.EncoderSelfAttention(4, 6, 3)
    ours = reference.EncoderSelfAttention(4, 6, 3)
    adopt(theirs, ours)
    return theirs, ours


def small_sentences(make, scale=1.0):
    """Two sentences of seven tokens, with two and four tokens of padding."""
    x = make.normal(scale, batch=2, tokens=7, d_in=4)
    return x, torch.arange(7) >= torch.tensor([[5], [3]])


@rung.shape("EncoderSelfAttention")
def test_encoder_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.EncoderSelfAttention(4, 6, 3)
    attention(make.normal(batch=5, tokens=7, d_in=4))


@rung.value("EncoderSelfAttention")
def test_encoder_with_identity_weights(student, reference):
    """With identity matrices and zero biases, the module gives the answer of the example."""
    theirs = student.EncoderSelfAttention(4, 4, 2)
    adopt_identity_weights(theirs, reference.EncoderSelfAttention(4, 4, 2))
    result = theirs(THREE_TOKENS, LAST_HIDDEN)[:, :2]
    expected = torch.tensor([[[0.669761, 0.660477, 0.5, 1.0], [0.055807, 1.888386, 0.669761, 1.0]]])
    assert_agrees(result, expected, within=PRINTED, what="two tokens, the third is padding")


@rung.value("EncoderSelfAttention")
def test_encoder_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no padding, the result is that of the reference."""
    theirs, ours = small_encoding(student, reference)
    x = make.normal(batch=5, tokens=7, d_in=4)
    assert_agrees(theirs(x), ours(x))


@rung.value("EncoderSelfAttention")
def test_encoder_hides_padding(student, reference, make):
    """With padding, the outputs of real tokens are those of the reference."""
    theirs, ours = small_encoding(student, reference)
    x, padding = small_sentences(make)
    at_padding = padding[..., None]
    result = theirs(x, padding).masked_fill(at_padding, 0.0)
    expected = ours(x, padding).masked_fill(at_padding, 0.0)
    assert_agrees(result, expected, what="the result for real tokens")


@rung.value("EncoderSelfAttention")
def test_encoder_sees_later_tokens(student, make):
    """A token at the end changes the outputs of all tokens before it."""
    attention = student.EncoderSelfAttention(4, 6, 3)
    x = make.normal(batch=2, tokens=7, d_in=4)
    other = x.clone()
    other[:, -1] = 1.0 - 3.0 * other[:, -1]
    moved = (attention(other) - attention(x)).abs().amax(dim=-1) > 1e-6
    assert_that(
        bool(moved.all()),
        "the last token changed, but some earlier outputs did not change: an encoder has no future "
        "to hide",
    )


@rung.property("EncoderSelfAttention")
def test_encoder_takes_none_for_padding(student, reference, make):
    """With None for padding, every token counts as real."""
    theirs, ours = small_encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=4)
    assert_agrees(theirs(x, None), ours(x, None), what="the result with the padding None")


@rung.property("EncoderSelfAttention", rules=("hidden",))
def test_encoder_does_not_care_what_padding_holds(student, reference, make):
    """The content of a padded token changes no output of a real token."""
    theirs = student.EncoderSelfAttention(4, 6, 3)
    adopt(theirs, with_large_scores(reference.EncoderSelfAttention(4, 6, 3), ROOT))
    x, padding = small_sentences(make, 0.3)
    x[..., 0] = 1.0
    before, after = theirs(x, padding)[~padding], theirs(made_loud(x, padding), padding)[~padding]
    assert_that(
        agree(after, before, within=UNMOVED),
        "only padding changed, and outputs of real tokens changed with it: how much of its weight "
        "does a padded token keep, even if its score is large?",
    )


@rung.property("EncoderSelfAttention", rules=("length", "computes"))
def test_encoder_reads_sentences_of_any_length(student, reference, make):
    """In a sentence of 150 tokens, each token sees all others; a single token sees itself."""
    theirs, ours = small_encoding(student, reference)
    for tokens in (150, 1):
        x = make.normal(batch=2, tokens=tokens, d_in=4)
        assert_agrees(theirs(x), ours(x), what=f"the result for sentences of length {tokens}")


@rung.property("EncoderSelfAttention", rules=("batch",))
def test_encoder_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs, _ = small_encoding(student, reference)
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, tokens=7, d_in=4))


@rung.property("EncoderSelfAttention", rules=("heads",))
def test_encoder_keeps_its_heads_apart(student, reference, make):
    """Larger scores in head 1 leave the features of the other heads as they were."""
    theirs = student.EncoderSelfAttention(4, 6, 3)
    ours = with_quiet_heads(reference.EncoderSelfAttention(4, 6, 3))
    adopt(theirs, ours)
    x = make.normal(0.3, batch=2, tokens=7, d_in=4)
    x[..., 0] = 1.0
    before = theirs(x)
    loud = with_a_loud_second_head(reference.EncoderSelfAttention(4, 6, 3), ours, make)
    adopt(theirs, loud)
    assert_other_heads_kept(theirs(x), before)


@rung.property("EncoderSelfAttention", rules=("bias",))
def test_encoder_has_one_bias_only(student, reference):
    """Queries, keys and values have no bias, and the last layer has a bias."""
    assert_one_bias(
        student.EncoderSelfAttention(4, 6, 3),
        reference.EncoderSelfAttention(4, 6, 3),
        "queries, keys and values",
    )


@rung.property("EncoderSelfAttention", rules=("device",))
def test_encoder_moves_to_another_device(student, make):
    """After a move to another device, the module takes sentences and padding from there."""
    assert_moves(student.EncoderSelfAttention(4, 6, 3), *small_sentences(make))


@rung.property("EncoderSelfAttention", rules=("dtype",))
def test_encoder_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    # The root of head_dim, 4, is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = student.EncoderSelfAttention(4, 8, 2), reference.EncoderSelfAttention(4, 8, 2)
    adopt(theirs, ours)
    x, padding = small_sentences(make)
    result = theirs.double()(x.double(), padding)[~padding]
    assert_agrees_to_float64(result, ours.double()(x.double(), padding)[~padding], within=DIGITS)


@rung.property("EncoderSelfAttention", rules=("unchanged",))
def test_encoder_keeps_its_inputs(student, make):
    """Sentences and padding stay as they were."""
    assert_input_unchanged(student.EncoderSelfAttention(4, 6, 3), *small_sentences(make))


@rung.gradient("EncoderSelfAttention", rules=("gradients",))
@pytest.mark.parametrize(
    "padded", [False, pytest.param(True, marks=rung.quotes("gradients", "padded"))]
)
def test_encoder_lets_gradients_through(student, reference, make, padded):
    """Gradients of the real tokens' outputs reach the input and all four layers."""
    theirs, ours = small_encoding(student, reference)
    x, padding = small_sentences(make, 0.5)
    if padded:
        at_padding = padding[..., None]

        def of(result):
            return result.masked_fill(at_padding, 0.0)

        assert_gradients_agree(theirs, ours, x, padding, make=make, of=of)
    else:
        assert_gradients_agree(theirs, ours, x, make=make)


@rung.stability("EncoderSelfAttention", rules=("large", "hidden"))
def test_encoder_takes_large_scores(student, reference, make):
    """Scores of hundreds do not overflow; below minus a hundred, padding stays hidden."""
    theirs = student.EncoderSelfAttention(4, 6, 3)
    ours = with_large_scores(reference.EncoderSelfAttention(4, 6, 3), 20.0)
    adopt(theirs, ours)
    x = make.normal(0.3, batch=2, tokens=7, d_in=4)
    x[..., 0] = 1.0
    what = "the result for large scores"
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what=what)
    theirs = student.EncoderSelfAttention(4, 6, 3)
    ours = with_large_scores(reference.EncoderSelfAttention(4, 6, 3), 20.0)
    with torch.no_grad():
        ours.W_key.weight[:, 0] *= -1.0
    adopt(theirs, ours)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 5:] = padding[1, 3:] = True
    what = "the result for real tokens where all scores are low"
    assert_agrees(
        theirs(x, padding)[~padding], ours(x, padding)[~padding], within=LARGE_SCORES, what=what
    )
