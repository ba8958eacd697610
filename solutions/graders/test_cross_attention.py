"""Hidden graders of unit 7, cross-attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    REORDERED,
    UNMOVED,
    adopt,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_that,
)

# --- padding_mask --------------------------------------------------------------------------------


@rung.shape("padding_mask")
@pytest.mark.parametrize(("batch", "num_tokens"), [(3, 5), (6, 4)])
def test_padding_mask_has_a_row_for_every_sentence(student, make, batch, num_tokens):
    """The mask is boolean, (batch, num_tokens), even if no sentence has num_tokens tokens."""
    student.padding_mask(make.integers(1, num_tokens, batch=batch), num_tokens)


@rung.value("padding_mask", points=4)
@pytest.mark.parametrize(("batch", "num_tokens"), [(5, 7), (8, 6), (4, 4)])
def test_padding_mask_marks_what_lies_beyond_a_length(student, reference, make, batch, num_tokens):
    """Positions from the length on are padding, and no others."""
    lengths = make.integers(1, num_tokens, batch=batch)
    lengths[:3] = torch.tensor([2, 3, 1])  # at least three that differ, and not in order
    assert_agrees(
        student.padding_mask(lengths, num_tokens), reference.padding_mask(lengths, num_tokens)
    )


@rung.value("padding_mask", points=2)
@pytest.mark.parametrize("lengths", [[6, 0, 0, 6, 6], [0, 0], [6, 6, 6]])
def test_padding_mask_takes_full_and_empty_sentences(student, reference, lengths):
    """The mask is all False for a full sentence, and all True for one without real tokens."""
    lengths = torch.tensor(lengths)
    assert_agrees(student.padding_mask(lengths, 6), reference.padding_mask(lengths, 6))


@rung.value("padding_mask")
@pytest.mark.parametrize(("lengths", "num_tokens"), [([5], 5), ([1, 1, 1], 1), ([1], 1)])
def test_padding_mask_takes_one_sentence_or_one_token(student, reference, lengths, num_tokens):
    """A batch of one sentence, and sentences of one token, keep both dimensions."""
    lengths = torch.tensor(lengths)
    assert_agrees(
        student.padding_mask(lengths, num_tokens), reference.padding_mask(lengths, num_tokens)
    )


@rung.property("padding_mask", rules=("unchanged",))
def test_padding_mask_leaves_its_input_alone(student):
    """The lengths that were passed in stay as they were."""
    assert_input_unchanged(student.padding_mask, torch.tensor([4, 1, 5]), 6)


@rung.property("padding_mask", rules=("device",))
def test_padding_mask_is_where_the_lengths_are(student):
    """Lengths on another device give a mask on that device."""
    assert_moves(student.padding_mask, torch.tensor([4, 1, 5]), 6)


# --- both modules --------------------------------------------------------------------------------


def some_hidden(make, **sizes):
    """Hide about half of the tokens: in every sentence at least one, and never all."""
    mask = make.booleans(0.5, **sizes)
    rows = torch.arange(mask.shape[0])
    mask[rows, rows % mask.shape[1]] = True
    mask[rows, (rows + 2) % mask.shape[1]] = False
    return mask


def all_but_one(batch, tokens):
    """A mask with one visible token in each sentence, at different places."""
    mask = torch.ones(batch, tokens, dtype=torch.bool)
    rows = torch.arange(batch)
    mask[rows, (rows + 1) % tokens] = False
    return mask


LOUD = 6.0  # if queries and keys have it in four features, the score is 72


def with_quiet_heads(ours):
    """Make scores about -72 where tokens begin with a one, and let out_proj pass on features."""
    with torch.no_grad():
        ours.W_query.weight[:, 0] = LOUD
        ours.W_key.weight[:, 0] = -LOUD
        ours.out_proj.weight.copy_(torch.eye(ours.out_proj.in_features))
        ours.out_proj.bias.zero_()
    return ours


def with_a_loud_second_head(ours, make):
    """Give head 1 of three new weights, so that its scores are near 72.

    No exponential overflows. But with one maximum for all heads, other heads would get no weight.
    """
    with torch.no_grad():
        for projection in (ours.W_query, ours.W_key, ours.W_value):
            drawn = make.normal(0.1, rows=4, columns=projection.in_features)
            projection.weight[4:8] = drawn
        ours.W_query.weight[4:8, 0] = ours.W_key.weight[4:8, 0] = LOUD
    return ours


def with_large_scores(ours, root):
    """Make scores of four features about 2 · root², where both tokens begin with a one."""
    with torch.no_grad():
        ours.W_query.weight[:, 0] = ours.W_key.weight[:, 0] = root
    return ours


def made_loud(tokens, mask):
    """Replace tokens where the mask is True by others with much larger scores.

    With roots of 5, scores are about 60 larger. That is enough to show a mask that only lowers
    scores. It still leaves weights to divide by, if an answer renormalises after the softmax.
    """
    loud = tokens.flip(1)
    loud[..., 0] = 2.2
    return torch.where(mask[..., None], loud, tokens)


def assert_only_the_second_head_changed(after, before):
    """Fail unless, of three heads with four features each, only head 1 has changed."""
    assert_that(
        not agree(before[..., 4:8], after[..., 4:8]),
        "head 1 got other weights, and its features did not change",
    )
    for kept in (slice(0, 4), slice(8, 12)):
        assert_agrees(after[..., kept], before[..., kept], what="a head whose weights were kept")


def assert_has_no_biases(theirs, ours):
    """Fail if queries, keys or values have a bias."""
    adopt(theirs, ours)
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")


def assert_ends_with_a_bias(theirs, ours):
    """Fail unless the output layer has a bias."""
    assert_that(
        "out_proj.bias" not in adopt(theirs, ours).missing,
        "the output layer has no bias that could be found: queries, keys and values have none, and "
        "the last layer has one",
    )


# --- CrossAttention ------------------------------------------------------------------------------

# batch, queries, keys, d_query, d_context, d_out, num_heads; head_dim is 4, 8 and 2
CROSSINGS = [
    (2, 5, 7, 6, 8, 12, 3),
    (4, 3, 6, 5, 7, 16, 2),
    (3, 8, 4, 7, 6, 10, 5),
]
ALIKE = (3, 3, 3, 5, 4, 6, 3)  # batch, queries, keys and heads are equal: swaps raise no error


def crossing(student, reference, d_query=6, d_context=8, d_out=12, num_heads=3):
    """The student's module with the weights of the reference, and the reference."""
    theirs = student.CrossAttention(d_query, d_context, d_out, num_heads)
    ours = reference.CrossAttention(d_query, d_context, d_out, num_heads)
    adopt(theirs, ours)
    return theirs, ours


def two_sequences(make, scale=1.0, dtype=torch.float32):
    """Five queries and seven keys in each of two sentences."""
    x = make.normal(scale, batch=2, queries=5, d_query=6, dtype=dtype)
    return x, make.normal(scale, batch=2, keys=7, d_context=8, dtype=dtype)


@rung.shape("CrossAttention")
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "d_query", "d_context", "d_out", "num_heads"), CROSSINGS
)
def test_cross_attention_has_the_promised_shape(
    student, make, batch, queries, keys, d_query, d_context, d_out, num_heads
):
    """One vector of size d_out comes back for each query, however many keys there are."""
    attention = student.CrossAttention(d_query, d_context, d_out, num_heads)
    attention(
        make.normal(batch=batch, queries=queries, d_query=d_query),
        make.normal(batch=batch, keys=keys, d_context=d_context),
    )


@rung.value("CrossAttention", points=6)
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "d_query", "d_context", "d_out", "num_heads"),
    [*CROSSINGS, ALIKE],
)
def test_cross_attention_agrees_with_the_reference(
    student, reference, make, batch, queries, keys, d_query, d_context, d_out, num_heads
):
    """With the same weights and no mask, the result is that of the reference."""
    theirs, ours = crossing(student, reference, d_query, d_context, d_out, num_heads)
    x = make.normal(batch=batch, queries=queries, d_query=d_query)
    context = make.normal(batch=batch, keys=keys, d_context=d_context)
    nothing = torch.zeros(batch, keys, dtype=torch.bool)
    expected = ours(x, context)
    assert_agrees(theirs(x, context), expected)
    assert_agrees(theirs(x, context, None), expected, what="the result with the mask None")
    assert_agrees(theirs(x, context, nothing), expected, what="the result with nothing hidden")


@rung.value("CrossAttention", points=4)
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "d_query", "d_context", "d_out", "num_heads"),
    [*CROSSINGS, ALIKE],
)
def test_cross_attention_skips_hidden_tokens_of_the_context(
    student, reference, make, batch, queries, keys, d_query, d_context, d_out, num_heads
):
    """Each sentence hides other tokens of its context, from all queries and heads."""
    theirs, ours = crossing(student, reference, d_query, d_context, d_out, num_heads)
    x = make.normal(batch=batch, queries=queries, d_query=d_query)
    context = make.normal(batch=batch, keys=keys, d_context=d_context)
    masks = {
        "with some tokens hidden": some_hidden(make, batch=batch, keys=keys),
        "with a single token left": all_but_one(batch, keys),
    }
    for what, mask in masks.items():
        assert_agrees(theirs(x, context, mask), ours(x, context, mask), what=f"the result {what}")
    assert_agrees(
        theirs(x, context), ours(x, context), what="the result without a mask, afterwards"
    )


@rung.property("CrossAttention", rules=("hidden",))
def test_cross_attention_ignores_what_hidden_tokens_hold(student, reference, make):
    """Hidden tokens may hold anything, large numbers too: no output changes."""
    theirs = student.CrossAttention(6, 8, 12, 3)
    adopt(theirs, with_large_scores(reference.CrossAttention(6, 8, 12, 3), 5.0))
    x, context = two_sequences(make, 0.5)
    x[..., 0] = context[..., 0] = 1.0
    mask = some_hidden(make, batch=2, keys=7)
    assert_agrees(
        theirs(x, made_loud(context, mask), mask),
        theirs(x, context, mask),
        within=UNMOVED,
        what="the result after only hidden tokens of the context changed",
    )


@rung.property("CrossAttention")
def test_cross_attention_takes_the_context_in_any_order(student, reference, make):
    """Reordering the context together with its mask changes no output."""
    theirs, _ = crossing(student, reference)
    x, context = two_sequences(make)
    mask = some_hidden(make, batch=2, keys=7)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    before = theirs(x, context, mask)
    assert_agrees(
        theirs(x, context[:, order], mask[:, order]),
        before,
        what="the result for the same context in another order",
    )


@rung.property("CrossAttention", points=0.5)
def test_cross_attention_takes_a_context_of_any_length(student, reference, make):
    """One layer takes a context of many tokens, a context of one, and others in between."""
    theirs, ours = crossing(student, reference)
    x = make.normal(batch=2, queries=5, d_query=6)
    for keys in (7, 300, 1, 9):
        context = make.normal(batch=2, keys=keys, d_context=8)
        what = f"the result for a context of {keys}"
        assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("CrossAttention", points=0.5, rules=("returns",))
def test_cross_attention_answers_each_query_by_itself(student, reference, make):
    """A query alone gets the same output as among other queries."""
    theirs, _ = crossing(student, reference)
    x, context = two_sequences(make)
    mask = some_hidden(make, batch=2, keys=7)
    together = theirs(x, context, mask)
    for query in range(x.shape[1]):
        one = slice(query, query + 1)
        what = f"the answer to query {query}, asked alone,"
        assert_agrees(theirs(x[:, one], context, mask), together[:, one], what=what)


@rung.property("CrossAttention", points=0.5, rules=("batch",))
def test_cross_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of x leaves the outputs of the others as they were."""
    theirs, _ = crossing(student, reference)
    x, context = two_sequences(make)
    mask = some_hidden(make, batch=2, keys=7)
    assert_batch_rows_do_not_mix(lambda x: theirs(x, context, mask), x)


@rung.property("CrossAttention", points=0.5, rules=("heads",))
def test_cross_attention_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head's features do not depend on another head's weights."""
    theirs = student.CrossAttention(6, 8, 12, 3)
    ours = with_quiet_heads(reference.CrossAttention(6, 8, 12, 3))
    adopt(theirs, ours)
    x, context = two_sequences(make, 0.3)
    x[..., 0] = context[..., 0] = 1.0
    before = theirs(x, context)
    adopt(theirs, with_a_loud_second_head(ours, make))
    assert_only_the_second_head_changed(theirs(x, context), before)


@rung.property("CrossAttention", rules=("bias",))
def test_cross_attention_has_no_biases(student, reference):
    """Queries, keys and values have no bias."""
    assert_has_no_biases(student.CrossAttention(6, 8, 12, 3), reference.CrossAttention(6, 8, 12, 3))


@rung.property("CrossAttention", points=0.5, rules=("bias",))
def test_cross_attention_ends_with_a_bias(student, reference):
    """The output layer has a bias."""
    assert_ends_with_a_bias(
        student.CrossAttention(6, 8, 12, 3), reference.CrossAttention(6, 8, 12, 3)
    )


@rung.property("CrossAttention", points=0.5, rules=("device",))
def test_cross_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes both sequences and the mask from there."""
    x, context = two_sequences(make)
    mask = some_hidden(make, batch=2, keys=7)
    assert_moves(student.CrossAttention(6, 8, 12, 3), x, context, mask)


@rung.property("CrossAttention", points=0.5, rules=("dtype",))
def test_cross_attention_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = crossing(student, reference)
    x, context = two_sequences(make, dtype=torch.float64)
    mask = some_hidden(make, batch=2, keys=7)
    assert_agrees_to_float64(
        theirs.double()(x, context, mask), ours.double()(x, context, mask), within=DIGITS
    )


@rung.property("CrossAttention", points=0.5, rules=("unchanged",))
def test_cross_attention_leaves_its_inputs_alone(student, reference, make):
    """Both sequences and the mask stay as they were."""
    theirs, _ = crossing(student, reference)
    x, context = two_sequences(make)
    assert_input_unchanged(theirs, x, context, some_hidden(make, batch=2, keys=7))


@rung.gradient("CrossAttention", points=1.5, rules=("gradients",))
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_has_the_right_gradients(student, reference, make, masked):
    """Gradients reach both sequences, all three projections and the output layer."""
    theirs, ours = crossing(student, reference)
    x, context = two_sequences(make, 0.5)
    mask = some_hidden(make, batch=2, keys=7) if masked else None
    assert_gradients_agree(theirs, ours, x, context, mask, make=make)


@rung.stability("CrossAttention", points=0.5, rules=("large", "hidden"))
def test_cross_attention_stays_finite_for_large_scores(student, reference, make):
    """Scores of hundreds do not overflow; where all scores are low, hidden tokens stay hidden."""
    theirs = student.CrossAttention(6, 8, 12, 3)
    ours = with_large_scores(reference.CrossAttention(6, 8, 12, 3), 20.0)
    adopt(theirs, ours)
    x, context = two_sequences(make, 0.3)
    mask = some_hidden(make, batch=2, keys=7)
    x[..., 0] = context[..., 0] = 1.0
    what = "the result for large scores"
    assert_agrees(theirs(x, context), ours(x, context), within=LARGE_SCORES, what=what)
    theirs = student.CrossAttention(6, 8, 12, 3)
    adopt(theirs, ours)
    context[..., 0] = -1.0
    what = "the result where all scores are low"
    assert_agrees(theirs(x, context, mask), ours(x, context, mask), within=LARGE_SCORES, what=what)


# --- EncoderSelfAttention ------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads; head_dim is 4, 8 and 2
ENCODERS = [(2, 7, 5, 12, 3), (4, 6, 7, 16, 2), (3, 8, 4, 10, 5)]
SQUARE = (3, 3, 4, 6, 3)  # batch, tokens and heads are equal: swaps raise no error


def encoding(student, reference, d_in=5, d_out=12, num_heads=3):
    """The student's module with the weights of the reference, and the reference."""
    theirs = student.EncoderSelfAttention(d_in, d_out, num_heads)
    ours = reference.EncoderSelfAttention(d_in, d_out, num_heads)
    adopt(theirs, ours)
    return theirs, ours


def real(padding):
    """Return a function that sets the outputs of padding to zero, even where they are NaN."""
    return lambda result: result.masked_fill(padding[..., None], 0.0)


@rung.shape("EncoderSelfAttention")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), ENCODERS)
def test_encoder_has_the_promised_shape(student, make, batch, tokens, d_in, d_out, num_heads):
    """One vector of size d_out comes back for each token, however many heads there are."""
    attention = student.EncoderSelfAttention(d_in, d_out, num_heads)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


@rung.value("EncoderSelfAttention", points=6)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), [*ENCODERS, SQUARE])
def test_encoder_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """With the same weights and no padding, the result is that of the reference."""
    theirs, ours = encoding(student, reference, d_in, d_out, num_heads)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    nothing = torch.zeros(batch, tokens, dtype=torch.bool)
    expected = ours(x)
    assert_agrees(theirs(x), expected)
    assert_agrees(theirs(x, None), expected, what="the result with the padding None")
    assert_agrees(theirs(x, nothing), expected, what="the result with nothing padded")


@rung.value("EncoderSelfAttention", points=4)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), [*ENCODERS, SQUARE])
def test_encoder_skips_padding(student, reference, make, batch, tokens, d_in, d_out, num_heads):
    """Real tokens see all real tokens of their sentence, and no padding."""
    theirs, ours = encoding(student, reference, d_in, d_out, num_heads)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    lengths = torch.arange(batch) % (tokens - 1) + 1
    paddings = {
        "with padding at the end": torch.arange(tokens) >= lengths[:, None],
        "with padding here and there": some_hidden(make, batch=batch, tokens=tokens),
        "with a single real token": all_but_one(batch, tokens),
    }
    for what, padding in paddings.items():
        of = real(padding)
        result, expected = of(theirs(x, padding)), of(ours(x, padding))
        assert_agrees(result, expected, what=f"the result {what}")
    assert_agrees(theirs(x), ours(x), what="the result without padding, afterwards")


@rung.property("EncoderSelfAttention", rules=("hidden",))
def test_encoder_ignores_what_padding_holds(student, reference, make):
    """Padding may hold anything, or be cut off: real tokens get the same outputs."""
    theirs = student.EncoderSelfAttention(5, 12, 3)
    adopt(theirs, with_large_scores(reference.EncoderSelfAttention(5, 12, 3), 5.0))
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    x[..., 0] = 1.0
    padding = torch.arange(7) >= torch.tensor([[4], [4]])
    of = real(padding)
    before, after = of(theirs(x, padding)), of(theirs(made_loud(x, padding), padding))
    assert_agrees(
        after,
        before,
        within=UNMOVED,
        what="the result for real tokens after only padding changed",
    )
    assert_agrees(
        theirs(x[:, :4]),
        before[:, :4],
        within=UNMOVED,
        what="the result for the same tokens without padding",
    )


@rung.property("EncoderSelfAttention", rules=("length", "computes"))
def test_encoder_looks_both_ways_at_any_distance(student, reference, make):
    """In a long sentence, the first output depends on the last token, and the last on the first."""
    theirs, ours = encoding(student, reference)
    x = make.normal(0.3, batch=2, tokens=300, d_in=5)
    before = theirs(x)
    for changed, seen in ((-1, 0), (0, -1)):
        other = x.clone()
        other[:, changed] = 9.0 - other[:, changed]
        assert_that(
            not agree(theirs(other)[:, seen], before[:, seen]),
            f"token {changed % 300} of 300 changed, and the output of token {seen % 300} did not: "
            "what keeps one from seeing the other?",
        )
    assert_agrees(before, ours(x), what="the result for 300 tokens")


@rung.property("EncoderSelfAttention", points=0.5, rules=("length",))
def test_encoder_takes_a_sentence_of_one_token(student, reference, make):
    """A sentence of one token, and a batch of one sentence, keep their dimensions."""
    theirs, ours = encoding(student, reference)
    for batch, tokens in ((2, 1), (1, 4), (1, 1)):
        x = make.normal(batch=batch, tokens=tokens, d_in=5)
        what = f"the result for {batch} of {tokens}"
        assert_agrees(theirs(x), ours(x), what=what)


@rung.property("EncoderSelfAttention", points=0.5, rules=("batch",))
def test_encoder_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs, _ = encoding(student, reference)
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, tokens=7, d_in=5))


@rung.property("EncoderSelfAttention", points=0.5, rules=("heads",))
def test_encoder_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head's features do not depend on another head's weights."""
    theirs = student.EncoderSelfAttention(5, 12, 3)
    ours = with_quiet_heads(reference.EncoderSelfAttention(5, 12, 3))
    adopt(theirs, ours)
    x = make.normal(0.3, batch=2, tokens=7, d_in=5)
    x[..., 0] = 1.0
    before = theirs(x)
    adopt(theirs, with_a_loud_second_head(ours, make))
    assert_only_the_second_head_changed(theirs(x), before)


@rung.property("EncoderSelfAttention", rules=("bias",))
def test_encoder_has_no_biases(student, reference):
    """Queries, keys and values have no bias."""
    assert_has_no_biases(
        student.EncoderSelfAttention(5, 12, 3), reference.EncoderSelfAttention(5, 12, 3)
    )


@rung.property("EncoderSelfAttention", points=0.5, rules=("bias",))
def test_encoder_ends_with_a_bias(student, reference):
    """The output layer has a bias."""
    assert_ends_with_a_bias(
        student.EncoderSelfAttention(5, 12, 3), reference.EncoderSelfAttention(5, 12, 3)
    )


@rung.property("EncoderSelfAttention", points=0.5, rules=("device",))
def test_encoder_moves_as_a_whole(student, make):
    """After a move to another device, the module takes sentences and padding from there."""
    x = make.normal(batch=2, tokens=7, d_in=5)
    padding = some_hidden(make, batch=2, tokens=7)
    assert_moves(student.EncoderSelfAttention(5, 12, 3), x, padding)


@rung.property("EncoderSelfAttention", points=0.5, rules=("dtype",))
def test_encoder_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5, dtype=torch.float64)
    padding = some_hidden(make, batch=2, tokens=7)
    of = real(padding)
    assert_agrees_to_float64(
        of(theirs.double()(x, padding)), of(ours.double()(x, padding)), within=DIGITS
    )


@rung.property("EncoderSelfAttention", points=0.5, rules=("unchanged",))
def test_encoder_leaves_its_inputs_alone(student, reference, make):
    """Sentences and padding stay as they were."""
    theirs, _ = encoding(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5)
    assert_input_unchanged(theirs, x, some_hidden(make, batch=2, tokens=7))


@rung.gradient("EncoderSelfAttention", points=1.5, rules=("gradients",))
@pytest.mark.parametrize(
    "padded", [False, pytest.param(True, marks=rung.quotes("gradients", "padded"))]
)
def test_encoder_has_the_right_gradients(student, reference, make, padded):
    """Gradients of the real tokens' outputs reach the input and all four layers."""
    theirs, ours = encoding(student, reference)
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    padding = some_hidden(make, batch=2, tokens=7)
    if padded:
        assert_gradients_agree(theirs, ours, x, padding, make=make, of=real(padding))
    else:
        assert_gradients_agree(theirs, ours, x, make=make)


@rung.stability("EncoderSelfAttention", points=0.5, rules=("large", "hidden"))
def test_encoder_stays_finite_for_large_scores(student, reference, make):
    """Scores of hundreds do not overflow; where all scores are low, padding stays hidden."""
    theirs = student.EncoderSelfAttention(5, 12, 3)
    ours = with_large_scores(reference.EncoderSelfAttention(5, 12, 3), 20.0)
    adopt(theirs, ours)
    x = make.normal(0.3, batch=2, tokens=7, d_in=5)
    x[..., 0] = 1.0
    what = "the result for large scores"
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what=what)
    with torch.no_grad():
        ours.W_key.weight[:, 0] *= -1.0
    adopt(theirs, ours)
    padding = some_hidden(make, batch=2, tokens=7)
    of, what = real(padding), "the result where all scores are low"
    assert_agrees(of(theirs(x, padding)), of(ours(x, padding)), within=LARGE_SCORES, what=what)
