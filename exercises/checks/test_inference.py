"""Public checks of unit 9, fast decoding."""

import torch

from grader.course.collection import rung
from grader.testing import (
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_causal,
    assert_input_unchanged,
    assert_one_bias,
)

# --- repeat_kv -----------------------------------------------------------------------------------


@rung.shape("repeat_kv")
def test_repeat_kv_gives_three_times_as_many_heads(student, make):
    """Two heads become six with groups = 3, and nothing else grows."""
    student.repeat_kv(make.normal(batch=4, kv_heads=2, tokens=5, head_dim=7), 3)


@rung.value("repeat_kv")
def test_repeat_kv_writes_every_head_twice(student):
    """Heads a and b become a, a, b, b."""
    x = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    expected = torch.tensor([[[[1.0, 2.0]], [[1.0, 2.0]], [[3.0, 4.0]], [[3.0, 4.0]]]])
    assert_agrees(student.repeat_kv(x, 2), expected, what="two heads, each written twice")


@rung.value("repeat_kv")
def test_repeat_kv_works_for_other_sizes(student, reference, make):
    """It is right for other numbers of heads, tokens and copies."""
    x = make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4)
    assert_agrees(student.repeat_kv(x, 6), reference.repeat_kv(x, 6))


@rung.property("repeat_kv")
def test_repeat_kv_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(
        student.repeat_kv, make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4), 2
    )


# --- GroupedQueryAttention -----------------------------------------------------------------------

FOUR_FEATURES = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])


@rung.shape("GroupedQueryAttention")
def test_grouped_query_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.GroupedQueryAttention(5, 12, 4, 2)
    attention(make.normal(batch=6, tokens=7, d_in=5))


@rung.value("GroupedQueryAttention")
def test_grouped_query_attention_with_identity_weights(student, reference):
    """With identity matrices and zero biases it gives the answer of the example."""
    theirs = student.GroupedQueryAttention(4, 4, 2, 1)
    adopt_identity_weights(theirs, reference.GroupedQueryAttention(4, 4, 2, 1))
    expected = torch.tensor([[[1.0, 0.0, 1.0, 0.0], [0.0558, 1.8884, 0.3302, 1.3395]]])
    assert_agrees(
        theirs(FOUR_FEATURES), expected, rtol=0, atol=1e-4, what="two heads with the same keys"
    )


@rung.value("GroupedQueryAttention")
def test_grouped_query_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, six query heads find their two heads of keys and values."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 2)
    ours = reference.GroupedQueryAttention(5, 24, 6, 2)
    adopt(theirs, ours)
    x = make.normal(batch=3, tokens=7, d_in=5)
    assert_agrees(theirs(x), ours(x))


@rung.property("GroupedQueryAttention")
def test_grouped_query_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.GroupedQueryAttention(5, 12, 4, 2)
    assert_causal(attention, make.normal(batch=2, tokens=6, d_in=5))


@rung.property("GroupedQueryAttention")
def test_grouped_query_attention_has_a_bias_at_the_end_only(student, reference):
    """Queries, keys and values have no bias; the last layer has one."""
    assert_one_bias(
        student.GroupedQueryAttention(5, 12, 4, 2),
        reference.GroupedQueryAttention(5, 12, 4, 2),
        "queries, keys and values",
    )


# --- CachedAttention -----------------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])


@rung.shape("CachedAttention")
def test_cached_attention_gives_an_output_and_a_cache(student, make):
    """An output for the new tokens comes back, and a cache that grows by as many."""
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
    assert_agrees(first, expected, rtol=0, atol=1e-4, what="the output for the first two tokens")
    last, _cache = theirs(THREE_TOKENS[:, 2:], cache)
    expected = torch.tensor([[[1.8765, 1.9732]]])
    assert_agrees(last, expected, rtol=0, atol=1e-4, what="the output for the third token")


@rung.value("CachedAttention")
def test_cached_attention_without_a_cache(student, reference, make):
    """All tokens at once, without a cache: the output is that of the reference."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=5)
    assert_agrees(theirs(x)[0], ours(x)[0], what="the output")


@rung.value("CachedAttention")
def test_cached_attention_in_two_chunks(student, reference, make):
    """Four tokens and then three more: the outputs are those of all seven at once."""
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
    """One token at a time: each gets what it gets when all of them come at once."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    whole = ours(x)[0]
    out, cache = theirs(x[:, :1])
    for position in range(1, 5):
        out, cache = theirs(x[:, position : position + 1], cache)
        expected = whole[:, position : position + 1]
        assert_agrees(out, expected, what=f"the output at position {position}, fed alone")


@rung.property("CachedAttention")
def test_cached_attention_writes_two_texts_in_turn(student, reference, make):
    """With two caches, one module goes on with one text and with another."""
    theirs, ours = student.CachedAttention(5, 12, 4), reference.CachedAttention(5, 12, 4)
    adopt(theirs, ours)
    one, other = make.normal(batch=2, tokens=4, d_in=5), make.normal(batch=2, tokens=6, d_in=5)
    _out, cache_of_one = theirs(one[:, :2])
    _out, cache_of_other = theirs(other[:, :4])
    for what, text, cache in (("first", one, cache_of_one), ("second", other, cache_of_other)):
        out, _cache = theirs(text[:, -2:], cache)
        assert_agrees(out, ours(text)[0][:, -2:], what=f"the last two tokens of the {what} text")


@rung.property("CachedAttention")
def test_cached_attention_leaves_its_cache_alone(student, make):
    """The cache that was passed in stays as it was."""
    attention = student.CachedAttention(5, 12, 4)
    _out, cache = attention(make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(attention, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.property("CachedAttention")
def test_cached_attention_has_a_bias_at_the_end_only(student, reference):
    """Queries, keys and values have no bias; the last layer has one."""
    assert_one_bias(
        student.CachedAttention(5, 12, 4),
        reference.CachedAttention(5, 12, 4),
        "queries, keys and values",
    )


# --- LatentAttention -----------------------------------------------------------------------------


@rung.shape("LatentAttention")
def test_latent_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token."""
    attention = student.LatentAttention(5, 12, 4, 2)
    attention(make.normal(batch=6, tokens=7, d_in=5))


@rung.value("LatentAttention")
def test_latent_attention_with_identity_weights(student, reference):
    """With identity matrices, only what fits into the latent gets through."""
    theirs = student.LatentAttention(4, 4, 2, 2)
    adopt_identity_weights(theirs, reference.LatentAttention(4, 4, 2, 2))
    expected = torch.tensor([[[1.0, 0.0, 0.0, 0.0], [0.0558, 1.8884, 0.0, 0.0]]])
    assert_agrees(
        theirs(FOUR_FEATURES), expected, rtol=0, atol=1e-4, what="a latent of two features"
    )


@rung.value("LatentAttention")
def test_latent_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs = student.LatentAttention(7, 15, 3, 4)
    ours = reference.LatentAttention(7, 15, 3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=7)
    assert_agrees(theirs(x), ours(x))


@rung.property("LatentAttention")
def test_latent_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.LatentAttention(5, 12, 4, 2)
    assert_causal(attention, make.normal(batch=2, tokens=6, d_in=5))


@rung.property("LatentAttention")
def test_latent_attention_has_a_bias_at_the_end_only(student, reference):
    """Neither the queries nor the way through the latent have a bias; the last layer has one."""
    assert_one_bias(
        student.LatentAttention(7, 12, 3, 5),
        reference.LatentAttention(7, 12, 3, 5),
        "queries, latent, keys and values",
    )
