"""Public checks of unit 7, cross-attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_input_unchanged,
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
    """It is right for other lengths, also where the longest sentence has padding."""
    lengths = make.integers(0, 7, batch=5)
    assert_agrees(
        student.padding_mask(lengths, num_tokens), reference.padding_mask(lengths, num_tokens)
    )


@rung.property("padding_mask")
def test_padding_mask_keeps_the_lengths(student):
    """The lengths that were passed in stay as they were."""
    assert_input_unchanged(student.padding_mask, torch.tensor([2, 4, 1]), 5)


# --- CrossAttention ------------------------------------------------------------------------------

TWO_QUERIES = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
THREE_KEYS = torch.tensor([[[1.0, 0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 3.0, 5.0]]])
LAST_HIDDEN = torch.tensor([[False, False, True]])


def small_crossing(student, reference):
    """The student's module with the weights of the reference, and the reference."""
    theirs = student.CrossAttention(4, 5, 6, 3)
    ours = reference.CrossAttention(4, 5, 6, 3)
    adopt(theirs, ours)
    return theirs, ours


def small_sequences(make):
    """Two sentences of seven queries, with eight keys each, the hidden ones not the same."""
    x = make.normal(batch=2, queries=7, d_query=4)
    context = make.normal(batch=2, keys=8, d_context=5)
    mask = torch.zeros(2, 8, dtype=torch.bool)
    mask[0, 5:] = mask[1, 1::2] = True
    return x, context, mask


@rung.shape("CrossAttention")
def test_cross_attention_gives_one_vector_per_query(student, make):
    """One vector of size d_out comes back for each token of x."""
    attention = student.CrossAttention(4, 5, 6, 3)
    x = make.normal(batch=2, queries=7, d_query=4)
    attention(x, make.normal(batch=2, keys=8, d_context=5))


@rung.value("CrossAttention")
def test_cross_attention_with_identity_weights(student, reference):
    """With ones on the diagonals, it gives the answer of the example."""
    theirs = student.CrossAttention(2, 3, 2, 1)
    adopt_identity_weights(theirs, reference.CrossAttention(2, 3, 2, 1))
    result = theirs(TWO_QUERIES, THREE_KEYS, LAST_HIDDEN)
    expected = torch.tensor([[[0.6698, 0.3302], [0.1956, 0.8044]]])
    assert_agrees(result, expected, rtol=0, atol=1e-4, what="two queries, and two visible keys")


@rung.value("CrossAttention")
def test_cross_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no mask, the result is that of the reference."""
    theirs, ours = small_crossing(student, reference)
    x, context, _ = small_sequences(make)
    assert_agrees(theirs(x, context), ours(x, context))


@rung.value("CrossAttention")
def test_cross_attention_hides_what_the_mask_says(student, reference, make):
    """With a mask, each sentence does without the tokens that are hidden from it."""
    theirs, ours = small_crossing(student, reference)
    x, context, mask = small_sequences(make)
    assert_agrees(theirs(x, context, mask), ours(x, context, mask), what="the result with a mask")


@rung.property("CrossAttention")
def test_cross_attention_takes_none_for_a_mask(student, reference, make):
    """None for a mask is no mask."""
    theirs, ours = small_crossing(student, reference)
    x, context, _ = small_sequences(make)
    result, expected = theirs(x, context, None), ours(x, context, None)
    assert_agrees(result, expected, what="the result with the mask None")


@rung.property("CrossAttention")
def test_cross_attention_does_not_care_what_is_hidden(student, make):
    """What a hidden token of the context holds changes no output."""
    attention = student.CrossAttention(4, 5, 6, 3)
    x, context, mask = small_sequences(make)
    other = torch.where(mask[..., None], 5.0 - 20.0 * context, context)
    assert_that(
        torch.allclose(attention(x, other, mask), attention(x, context, mask), atol=1e-5),
        "only hidden tokens of the context changed, and outputs changed with them: how much of "
        "its weight does a hidden token keep?",
    )


@rung.property("CrossAttention")
def test_cross_attention_has_one_bias_only(student, reference):
    """Queries, keys and values have no bias, and the last layer has one."""
    assert_one_bias(
        student.CrossAttention(4, 5, 6, 3),
        reference.CrossAttention(4, 5, 6, 3),
        "queries, keys and values",
    )


# --- EncoderSelfAttention ------------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0]]])


def small_encoding(student, reference):
    """The student's module with the weights of the reference, and the reference."""
    theirs = student.EncoderSelfAttention(4, 6, 3)
    ours = reference.EncoderSelfAttention(4, 6, 3)
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("EncoderSelfAttention")
def test_encoder_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.EncoderSelfAttention(4, 6, 3)
    attention(make.normal(batch=5, tokens=7, d_in=4))


@rung.value("EncoderSelfAttention")
def test_encoder_with_identity_weights(student, reference):
    """With identity matrices and zero biases, it gives the answer of the example."""
    theirs = student.EncoderSelfAttention(4, 4, 2)
    adopt_identity_weights(theirs, reference.EncoderSelfAttention(4, 4, 2))
    result = theirs(THREE_TOKENS, LAST_HIDDEN)[:, :2]
    expected = torch.tensor([[[0.6698, 0.6605, 0.5, 1.0], [0.0558, 1.8884, 0.6698, 1.0]]])
    assert_agrees(result, expected, rtol=0, atol=1e-4, what="two tokens, the third is padding")


@rung.value("EncoderSelfAttention")
def test_encoder_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no padding, the result is that of the reference."""
    theirs, ours = small_encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=4)
    assert_agrees(theirs(x), ours(x))


@rung.value("EncoderSelfAttention")
def test_encoder_hides_padding(student, reference, make):
    """With padding, the outputs of real tokens are those of the reference."""
    theirs, ours = small_encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=4)
    padding = torch.arange(7) >= torch.tensor([[5], [3]])
    at_padding = padding[..., None]
    result = theirs(x, padding).masked_fill(at_padding, 0.0)
    expected = ours(x, padding).masked_fill(at_padding, 0.0)
    assert_agrees(result, expected, what="the result for real tokens")


@rung.property("EncoderSelfAttention")
def test_encoder_takes_none_for_padding(student, reference, make):
    """None for padding is no padding."""
    theirs, ours = small_encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=4)
    assert_agrees(theirs(x, None), ours(x, None), what="the result with the padding None")


@rung.property("EncoderSelfAttention")
def test_encoder_sees_later_tokens(student, make):
    """A token at the end changes the outputs of all tokens before it."""
    attention = student.EncoderSelfAttention(4, 6, 3)
    x = make.normal(batch=2, tokens=7, d_in=4)
    other = x.clone()
    other[:, -1] = 1.0 - 3.0 * other[:, -1]
    moved = (attention(other) - attention(x)).abs().amax(dim=-1) > 1e-6
    assert_that(
        bool(moved.all()),
        "the last token changed, and there are earlier outputs that did not: an encoder has no "
        "future to hide",
    )


@rung.property("EncoderSelfAttention")
def test_encoder_does_not_care_what_padding_holds(student, make):
    """What a padded token holds changes no output of a real one."""
    attention = student.EncoderSelfAttention(4, 6, 3)
    x = make.normal(batch=2, tokens=7, d_in=4)
    padding = torch.arange(7) >= torch.tensor([[5], [3]])
    other = torch.where(padding[..., None], 5.0 - 20.0 * x, x)
    before, after = attention(x, padding)[~padding], attention(other, padding)[~padding]
    assert_that(
        torch.allclose(before, after, atol=1e-5),
        "only padding changed, and outputs of real tokens changed with it: how much of its weight "
        "does a padded token keep?",
    )


@rung.property("EncoderSelfAttention")
def test_encoder_has_one_bias_only(student, reference):
    """Queries, keys and values have no bias, and the last layer has one."""
    assert_one_bias(
        student.EncoderSelfAttention(4, 6, 3),
        reference.EncoderSelfAttention(4, 6, 3),
        "queries, keys and values",
    )
