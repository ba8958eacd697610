"""Public checks of unit 9, fast decoding."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
    assert_grows_at_most,
    assert_input_unchanged,
    assert_moves,
    assert_one_bias,
)

# --- repeat_kv -----------------------------------------------------------------------------------


@rung.shape("repeat_kv")
def test_repeat_kv_gives_three_times_as_many_heads(student, make):
    """Two heads become six with groups = 3, and no other dimension grows."""
    student.repeat_kv(make.normal(batch=4, kv_heads=2, tokens=5, head_dim=7), 3)


@rung.value("repeat_kv")
def test_repeat_kv_writes_every_head_twice(student):
    """Heads a and b become a, a, b, b."""
    x = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    expected = torch.tensor([[[[1.0, 2.0]], [[1.0, 2.0]], [[3.0, 4.0]], [[3.0, 4.0]]]])
    assert_agrees(student.repeat_kv(x, 2), expected, what="two heads, each written twice")


@rung.value("repeat_kv")
def test_repeat_kv_works_for_other_sizes(student, reference, make):
    """The result is right for other numbers of heads, tokens and copies."""
    x = make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4)
    assert_agrees(student.repeat_kv(x, 6), reference.repeat_kv(x, 6))


@rung.property("repeat_kv", rules=("dtype",))
def test_repeat_kv_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, with all digits."""
    x = make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4, dtype=torch.float64)
    assert_agrees_to_float64(student.repeat_kv(x, 2), reference.repeat_kv(x, 2), within=ALL_DIGITS)


@rung.property("repeat_kv", rules=("unchanged",))
def test_repeat_kv_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(
        student.repeat_kv, make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4), 2
    )


@rung.gradient("repeat_kv", rules=("gradients",))
def test_repeat_kv_lets_gradients_through(student, reference, make):
    """A head gets the sum of the gradients that its copies get."""
    assert_gradients_agree(
        lambda x: student.repeat_kv(x, 3),
        lambda x: reference.repeat_kv(x, 3),
        make.normal(batch=2, kv_heads=2, tokens=3, head_dim=4),
        make=make,
    )


# --- all three modules ---------------------------------------------------------------------------


def make_one_head_loud(*layers):
    """Let head 0, of width 4, score about 800 wherever the first feature of tokens is 1.

    A softmax ignores a constant that is added to all scores of a row: right results stay small.
    """
    with torch.no_grad():
        for layer in layers:
            layer.weight[:4] *= 0.1
            layer.weight[:4, 0] = 20.0  # 4 · 20 · 20 / √4 = 800


def make_scores_low(queries, keys):
    """Let every head, of width 4, score about -800 wherever the first feature of tokens is 1."""
    with torch.no_grad():
        for layer, weight in ((queries, 20.0), (keys, -20.0)):
            layer.weight *= 0.1
            layer.weight[:, 0] = weight


LOUD = {"within": LARGE_SCORES, "what": "the result when one head has scores of 800"}
LOW = {"within": LARGE_SCORES, "what": "the result when all scores are about -800"}


# --- GroupedQueryAttention -----------------------------------------------------------------------

FOUR_FEATURES = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])


@rung.shape("GroupedQueryAttention")
def test_grouped_query_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.GroupedQueryAttention(5, 12, 4, 2)
    attention(make.normal(batch=6, tokens=7, d_in=5))


@rung.value("GroupedQueryAttention")
def test_grouped_query_attention_with_identity_weights(student, reference):
    """With identity matrices and zero biases, the module gives the answer of the example."""
    theirs = student.GroupedQueryAttention(4, 4, 2, 1)
    adopt_identity_weights(theirs, reference.GroupedQueryAttention(4, 4, 2, 1))
    expected = torch.tensor([[[1.0, 0.0, 1.0, 0.0], [0.0558, 1.8884, 0.3302, 1.3395]]])
    assert_agrees(
        theirs(FOUR_FEATURES), expected, within=PRINTED, what="two heads with the same keys"
    )


@rung.value("GroupedQueryAttention")
def test_grouped_query_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, six query heads use the right two heads of keys and values."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 2)
    ours = reference.GroupedQueryAttention(5, 24, 6, 2)
    adopt(theirs, ours)
    x = make.normal(batch=3, tokens=7, d_in=5)
    assert_agrees(theirs(x), ours(x))


@rung.value("GroupedQueryAttention", rules=("length", "computes"))
def test_grouped_query_attention_takes_sentences_of_any_length(student, reference, make):
    """The module takes a long sentence, then a short one, and then a longer one."""
    theirs, ours = (
        student.GroupedQueryAttention(5, 12, 4, 2),
        reference.GroupedQueryAttention(5, 12, 4, 2),
    )
    adopt(theirs, ours)
    for tokens in (9, 1, 24):
        x = make.normal(batch=2, tokens=tokens, d_in=5)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} tokens")


@rung.property("GroupedQueryAttention", rules=("bias",))
def test_grouped_query_attention_has_a_bias_at_the_end_only(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.GroupedQueryAttention(5, 12, 4, 2),
        reference.GroupedQueryAttention(5, 12, 4, 2),
        "queries, keys and values",
    )


@rung.property("GroupedQueryAttention", rules=("batch",))
def test_grouped_query_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs = student.GroupedQueryAttention(5, 12, 4, 2)
    adopt(theirs, reference.GroupedQueryAttention(5, 12, 4, 2))
    assert_batch_rows_do_not_mix(theirs, make.normal(0.5, batch=2, tokens=5, d_in=5))


@rung.property("GroupedQueryAttention", rules=("device",))
def test_grouped_query_attention_works_on_another_device(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.GroupedQueryAttention(5, 12, 4, 2), make.normal(batch=2, tokens=5, d_in=5))


@rung.property("GroupedQueryAttention", rules=("dtype",))
def test_grouped_query_attention_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64."""
    theirs, ours = (
        student.GroupedQueryAttention(5, 16, 4, 2),
        reference.GroupedQueryAttention(5, 16, 4, 2),
    )
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("GroupedQueryAttention", rules=("unchanged",))
def test_grouped_query_attention_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(
        student.GroupedQueryAttention(5, 12, 4, 2), make.normal(batch=2, tokens=5, d_in=5)
    )


@rung.gradient("GroupedQueryAttention", rules=("gradients",))
def test_grouped_query_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all layers."""
    theirs, ours = (
        student.GroupedQueryAttention(5, 12, 4, 2),
        reference.GroupedQueryAttention(5, 12, 4, 2),
    )
    adopt(theirs, ours)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make)


@rung.stability("GroupedQueryAttention", rules=("large",))
def test_grouped_query_attention_survives_a_head_of_large_scores(student, reference, make):
    """When one head has scores of 800, all heads give numbers, not NaN."""
    theirs, ours = (
        student.GroupedQueryAttention(5, 12, 3, 3),
        reference.GroupedQueryAttention(5, 12, 3, 3),
    )
    make_one_head_loud(ours.W_query, ours.W_key)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x), ours(x), **LOUD)


@rung.stability("GroupedQueryAttention", rules=("large",))
def test_grouped_query_attention_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are about -800, the future still gets no weight."""
    theirs, ours = (
        student.GroupedQueryAttention(5, 12, 3, 3),
        reference.GroupedQueryAttention(5, 12, 3, 3),
    )
    make_scores_low(ours.W_query, ours.W_key)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x), ours(x), **LOW)


# --- causal_mask_after ---------------------------------------------------------------------------


@rung.shape("causal_mask_after")
def test_causal_mask_after_has_a_row_per_new_token(student):
    """The mask is boolean, with a row for each new token and a column for each key."""
    student.causal_mask_after(2, 3)


@rung.value("causal_mask_after")
def test_causal_mask_after_hides_the_key_of_the_example(student):
    """With two new tokens after three, the first new token may not look at the second."""
    expected = torch.tensor([[False, False, False, False, True], [False] * 5])
    assert_agrees(student.causal_mask_after(3, 2), expected, what="the mask of the example")


@rung.value("causal_mask_after")
@pytest.mark.parametrize(("seen", "tokens"), [(2, 4), (5, 3), (4, 1), (0, 3)])
def test_causal_mask_after_fits_any_past(student, reference, seen, tokens):
    """The mask is right for other numbers of old and new tokens, also without old ones."""
    assert_agrees(
        student.causal_mask_after(seen, tokens), reference.causal_mask_after(seen, tokens)
    )


# --- CachedAttention -----------------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])


@rung.shape("CachedAttention")
def test_cached_attention_gives_an_output_and_a_cache(student, make):
    """A call returns outputs of the new tokens, and a cache that has grown by as many tokens."""
    attention = student.CachedAttention(5, 12, 4)
    _out, cache = attention(make.normal(batch=2, tokens=6, d_in=5))
    _out, cache = attention(make.normal(batch=2, tokens=1, d_in=5), cache)
    attention(make.normal(batch=2, tokens=7, d_in=5), cache)


@rung.value("CachedAttention")
def test_cached_attention_with_identity_weights(student, reference):
    """With identity matrices, two tokens and then a third give the answers of the example."""
    theirs = student.CachedAttention(2, 2, 1)
    adopt_identity_weights(theirs, reference.CachedAttention(2, 2, 1))
    first, cache = theirs(THREE_TOKENS[:, :2])
    expected = torch.tensor([[[1.0, 0.0], [0.0558, 1.8884]]])
    assert_agrees(first, expected, within=PRINTED, what="the output for the first two tokens")
    last, _cache = theirs(THREE_TOKENS[:, 2:], cache)
    expected = torch.tensor([[[1.8765, 1.9732]]])
    assert_agrees(last, expected, within=PRINTED, what="the output for the third token")


@rung.value("CachedAttention")
def test_cached_attention_without_a_cache(student, reference, make):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=20, d_in=5)
    assert_agrees(theirs(x)[0], ours(x)[0], what="the output")


@rung.value("CachedAttention")
def test_cached_attention_in_two_chunks(student, reference, make):
    """For four tokens and then three more, the outputs equal those of all seven at once."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_in=5)
    whole = ours(x)[0]
    first, cache = theirs(x[:, :4])
    assert_agrees(first, whole[:, :4], what="the output for the first four tokens")
    second, _cache = theirs(x[:, 4:], cache)
    assert_agrees(second, whole[:, 4:], what="the output for the three tokens after those")


@rung.value("CachedAttention")
def test_cached_attention_token_by_token(student, reference, make):
    """When tokens come one at a time, the outputs equal those of all tokens at once."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    whole = ours(x)[0]
    out, cache = theirs(x[:, :1])
    for position in range(1, 5):
        out, cache = theirs(x[:, position : position + 1], cache)
        expected = whole[:, position : position + 1]
        assert_agrees(out, expected, what=f"the output at position {position}, fed alone")


@rung.property("CachedAttention", rules=("length",))
def test_cached_attention_takes_a_long_text(student, reference, make):
    """A last token may come after 255 others."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=256, d_in=5)
    _out, cache = theirs(x[:, :255])
    out, _cache = theirs(x[:, 255:], cache)
    what = "the output for 1 token after 255"
    assert_agrees(out, ours(x)[0][:, 255:], within=REORDERED, what=what)


@rung.property("CachedAttention", rules=("none",))
def test_cached_attention_takes_none_for_no_past(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=4, d_in=5)
    assert_agrees(theirs(x, None)[0], ours(x)[0], what="the output with cache=None")


@rung.property("CachedAttention", rules=("state",))
def test_cached_attention_writes_two_texts_in_turn(student, reference, make):
    """With two caches, one module continues two texts in turn."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    one, other = make.normal(batch=2, tokens=4, d_in=5), make.normal(batch=2, tokens=6, d_in=5)
    _out, cache_of_one = theirs(one[:, :2])
    _out, cache_of_other = theirs(other[:, :4])
    for what, text, cache in (("first", one, cache_of_one), ("second", other, cache_of_other)):
        out, _cache = theirs(text[:, -2:], cache)
        assert_agrees(out, ours(text)[0][:, -2:], what=f"the last two tokens of the {what} text")


@rung.property("CachedAttention", rules=("unchanged",))
def test_cached_attention_leaves_its_cache_alone(student, make):
    """The cache that was passed in stays as it was."""
    attention = student.CachedAttention(5, 12, 4)
    _out, cache = attention(make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(attention, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.property("CachedAttention", rules=("bias",))
def test_cached_attention_has_a_bias_at_the_end_only(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.CachedAttention(5, 12, 4),
        reference.CachedAttention(5, 12, 4),
        "queries, keys and values",
    )


@rung.property("CachedAttention", rules=("batch",))
def test_cached_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs = student.CachedAttention(5, 12, 4)
    adopt(theirs, reference.CachedAttention(5, 12, 4))
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_batch_rows_do_not_mix(lambda x: theirs(x)[0], x)


@rung.property("CachedAttention", rules=("device",))
def test_cached_attention_works_on_another_device(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.CachedAttention(5, 12, 4), make.normal(batch=2, tokens=5, d_in=5))


@rung.property("CachedAttention", rules=("dtype",))
def test_cached_attention_computes_in_float64(student, reference, make):
    """After `.double()`, output and cache are computed in float64."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    theirs.double()
    x = make.normal(batch=2, tokens=5, d_in=5, dtype=torch.float64)
    _out, cache = theirs(x[:, :3])
    out, _cache = theirs(x[:, 3:], cache)
    assert_agrees_to_float64(out, ours.double()(x)[0][:, 3:], within=DIGITS)


@rung.gradient("CachedAttention", rules=("gradients",))
def test_cached_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all layers."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make, of=lambda result: result[0])


@rung.stability("CachedAttention", rules=("large",))
def test_cached_attention_survives_a_head_of_large_scores(student, reference, make):
    """When one head has scores of 800, all heads give numbers, not NaN."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    make_one_head_loud(ours.W_query, ours.W_key)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOUD)


@rung.stability("CachedAttention", rules=("large",))
def test_cached_attention_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are about -800, the future still gets no weight."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    make_scores_low(ours.W_query, ours.W_key)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOW)


@rung.efficiency("CachedAttention", rules=("cost",))
def test_cached_attention_projects_new_tokens_only(student, make):
    """A new token after 64 others takes at most twice the work of a new token after 16."""
    attention = student.CachedAttention(192, 256, 4)
    token = make.normal(batch=1, tokens=1, d_in=192)
    _out, short = attention(make.normal(batch=1, tokens=16, d_in=192))
    _out, long = attention(make.normal(batch=1, tokens=64, d_in=192))
    assert_grows_at_most(attention, (token, short), (token, long), work=2)


# --- LatentAttention -----------------------------------------------------------------------------


@rung.shape("LatentAttention")
def test_latent_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.LatentAttention(5, 12, 4, 2)
    attention(make.normal(batch=6, tokens=7, d_in=5))


@rung.value("LatentAttention")
def test_latent_attention_with_identity_weights(student, reference):
    """With identity matrices, only the features that fit into the latent reach the output."""
    theirs = student.LatentAttention(4, 4, 2, 2)
    adopt_identity_weights(theirs, reference.LatentAttention(4, 4, 2, 2))
    expected = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0558, 1.8884, 0.0, 0.0]]])
    assert_agrees(theirs(FOUR_FEATURES), expected, within=PRINTED, what="a latent of two features")


@rung.value("LatentAttention")
def test_latent_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs = student.LatentAttention(7, 15, 3, 4)
    ours = reference.LatentAttention(7, 15, 3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=7)
    # An output is a product of four matrices, which answers multiply in any order.
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.value("LatentAttention", rules=("length", "computes"))
def test_latent_attention_takes_sentences_of_any_length(student, reference, make):
    """The module takes a long sentence, then a short one, and then a longer one."""
    theirs, ours = student.LatentAttention(5, 12, 4, 3), reference.LatentAttention(5, 12, 4, 3)
    adopt(theirs, ours)
    for tokens in (9, 1, 24):
        x = make.normal(batch=2, tokens=tokens, d_in=5)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} tokens")


@rung.property("LatentAttention", rules=("bias",))
def test_latent_attention_has_a_bias_at_the_end_only(student, reference):
    """Only the last layer has a bias: the queries and the layers of the latent have none."""
    assert_one_bias(
        student.LatentAttention(7, 12, 3, 5),
        reference.LatentAttention(7, 12, 3, 5),
        "queries, latent, keys and values",
    )


@rung.property("LatentAttention", rules=("batch",))
def test_latent_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs = student.LatentAttention(5, 12, 4, 3)
    adopt(theirs, reference.LatentAttention(5, 12, 4, 3))
    assert_batch_rows_do_not_mix(theirs, make.normal(0.5, batch=2, tokens=5, d_in=5))


@rung.property("LatentAttention", rules=("device",))
def test_latent_attention_works_on_another_device(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.LatentAttention(5, 12, 4, 3), make.normal(batch=2, tokens=5, d_in=5))


@rung.property("LatentAttention", rules=("dtype",))
def test_latent_attention_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = student.LatentAttention(5, 12, 3, 4), reference.LatentAttention(5, 12, 3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("LatentAttention", rules=("unchanged",))
def test_latent_attention_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(
        student.LatentAttention(5, 12, 4, 3), make.normal(batch=2, tokens=5, d_in=5)
    )


@rung.gradient("LatentAttention", rules=("gradients",))
def test_latent_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all layers."""
    theirs, ours = student.LatentAttention(5, 12, 4, 3), reference.LatentAttention(5, 12, 4, 3)
    adopt(theirs, ours)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make)


@rung.stability("LatentAttention", rules=("large",))
def test_latent_attention_survives_a_head_of_large_scores(student, reference, make):
    """When one head has scores of 800, all heads give numbers, not NaN."""
    theirs, ours = student.LatentAttention(5, 12, 3, 4), reference.LatentAttention(5, 12, 3, 4)
    make_one_head_loud(ours.W_query, ours.W_up_key)
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(5)[0]  # latent[0] is the token's feature 0
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x), ours(x), **LOUD)


@rung.stability("LatentAttention", rules=("large",))
def test_latent_attention_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are about -800, the future still gets no weight."""
    theirs, ours = student.LatentAttention(5, 12, 3, 4), reference.LatentAttention(5, 12, 3, 4)
    make_scores_low(ours.W_query, ours.W_up_key)
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(5)[0]  # latent[0] is the token's feature 0
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x), ours(x), **LOW)
