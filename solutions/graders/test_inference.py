"""Hidden graders of unit 9, fast decoding."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
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
    assert_grows_at_most,
    assert_input_unchanged,
    assert_moves,
    assert_one_bias,
    assert_that,
)

# --- repeat_kv -----------------------------------------------------------------------------------

# batch, kv_heads, tokens, head_dim, groups
REPEATS = [(2, 3, 5, 4, 6), (4, 2, 3, 7, 5), (3, 5, 4, 6, 2)]


@rung.shape("repeat_kv")
@pytest.mark.parametrize(("batch", "kv_heads", "tokens", "head_dim", "groups"), REPEATS)
def test_repeat_kv_gives_more_heads(student, make, batch, kv_heads, tokens, head_dim, groups):
    """There are `groups` times as many heads, and no other dimension grows."""
    x = make.normal(batch=batch, kv_heads=kv_heads, tokens=tokens, head_dim=head_dim)
    student.repeat_kv(x, groups)


@rung.value("repeat_kv", points=4)
@pytest.mark.parametrize(("batch", "kv_heads", "tokens", "head_dim", "groups"), REPEATS)
def test_repeat_kv_agrees_with_the_reference(
    student, reference, make, batch, kv_heads, tokens, head_dim, groups
):
    """The copies of a head are neighbours, and the heads keep their order."""
    x = make.normal(batch=batch, kv_heads=kv_heads, tokens=tokens, head_dim=head_dim)
    assert_agrees(student.repeat_kv(x, groups), reference.repeat_kv(x, groups))


@rung.value("repeat_kv")
@pytest.mark.parametrize(("kv_heads", "groups"), [(1, 3), (3, 1)], ids=["one head", "one copy"])
def test_repeat_kv_takes_one_head_or_one_copy(student, reference, make, kv_heads, groups):
    """A single head can be repeated, and groups = 1 leaves the heads as they are."""
    x = make.normal(batch=2, kv_heads=kv_heads, tokens=5, head_dim=4)
    assert_agrees(student.repeat_kv(x, groups), reference.repeat_kv(x, groups))


@rung.property("repeat_kv", rules=("dtype",))
def test_repeat_kv_keeps_float64(student, reference, make):
    """Float64 stays float64, to the last digit."""
    x = make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4, dtype=torch.float64)
    assert_agrees_to_float64(student.repeat_kv(x, 6), reference.repeat_kv(x, 6), within=ALL_DIGITS)


@rung.property("repeat_kv", rules=("unchanged",))
def test_repeat_kv_leaves_its_input_alone(student, make):
    """The tensor that was passed in stays as it was."""
    x = make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4)
    assert_input_unchanged(student.repeat_kv, x, 6)


@rung.gradient("repeat_kv", rules=("gradients",))
def test_repeat_kv_has_the_right_gradient(student, reference, make):
    """A head's gradient is the sum of the gradients of its copies."""
    assert_gradients_agree(
        lambda x: student.repeat_kv(x, 6),
        lambda x: reference.repeat_kv(x, 6),
        make.normal(batch=2, kv_heads=3, tokens=5, head_dim=4),
        make=make,
    )


# --- all three modules ---------------------------------------------------------------------------

# called in this order: what a module keeps from one length does not fit the next
LENGTHS = (6, 2, 1, 256, 9)
# Rounding may differ: products have no fixed order (one head at a time, weights absorbed).


def with_low_scores(ours, keys, make, d_in):
    """Sentences in which all scores lie near -700, those of the future too.

    `keys` is the layer of `ours` that makes the keys. Its input has a token's first feature first.
    """
    with torch.no_grad():
        ours.W_query.weight[:, 0], keys.weight[:, 0] = 18.7, -18.7  # 4 · 18.7² / √4
    x = make.normal(0.3, batch=2, tokens=8, d_in=d_in)
    x[..., 0] = 1.0
    return x


def assert_head_is_alone(
    theirs, ours, keys, x, head, kv_head, head_dim, call=lambda module, x: module(x)
):
    """Fail if very large scores in one head change the results of other heads.

    `keys` is the layer of `ours` that makes the keys, and `kv_head` is the head of keys that `head`
    looks at. The first feature of the inputs of `keys` and of W_query is 1 everywhere.
    """
    own_queries = slice(head * head_dim, (head + 1) * head_dim)
    own_keys = slice(kv_head * head_dim, (kv_head + 1) * head_dim)
    with torch.no_grad():
        ours.out_proj.weight.copy_(torch.eye(*ours.out_proj.weight.shape))
        ours.out_proj.bias.zero_()
        ours.W_query.weight[own_queries] *= 0.1
        keys.weight[own_keys] *= 0.1
    adopt(theirs, ours)
    before = call(theirs, x).unflatten(-1, (-1, head_dim))
    with torch.no_grad():
        # The scores of this head become about 800. One maximum for all heads would then reduce all
        # weights of the others to 0. In other heads that share these keys, all scores of a row
        # change by the same amount, which a softmax ignores.
        ours.W_query.weight[own_queries, 0] = keys.weight[own_keys, 0] = 20.0
    adopt(theirs, ours)
    after = call(theirs, x).unflatten(-1, (-1, head_dim))
    assert_that(
        not agree(before[..., head, :], after[..., head, :]),
        f"head {head} got other weights, and its features did not change",
    )
    others = [other for other in range(before.shape[-2]) if other != head]
    assert_agrees(
        after[..., others, :],
        before[..., others, :],
        within=UNMOVED,
        what=f"all heads but head {head}, the only one that got other queries",
    )


# --- GroupedQueryAttention -----------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads, num_kv_heads; head_dim is 4 and 5, groups of 2 and 3
GROUPED = [(5, 7, 11, 24, 6, 3), (2, 9, 7, 60, 12, 4)]
# one head of keys for all; one for each
EXTREMES = [(2, 7, 5, 24, 4, 1), (2, 7, 5, 12, 3, 3)]


@rung.shape("GroupedQueryAttention")
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "num_kv_heads"), [*GROUPED, *EXTREMES]
)
def test_grouped_query_attention_has_the_shape_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads, num_kv_heads
):
    """One vector of size d_out comes back for each token, however many heads share keys."""
    attention = student.GroupedQueryAttention(d_in, d_out, num_heads, num_kv_heads)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


@rung.value("GroupedQueryAttention", points=8)
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "num_kv_heads"), [*GROUPED, *EXTREMES]
)
def test_grouped_query_attention_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads, num_kv_heads
):
    """With the same weights, every query head uses the keys and values of its group."""
    theirs = student.GroupedQueryAttention(d_in, d_out, num_heads, num_kv_heads)
    ours = reference.GroupedQueryAttention(d_in, d_out, num_heads, num_kv_heads)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.value("GroupedQueryAttention", points=2, rules=("length", "computes"))
def test_grouped_query_attention_takes_any_length(student, reference, make):
    """Sentences of different lengths work, one after another, in any order."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    ours = reference.GroupedQueryAttention(5, 24, 6, 3)
    adopt(theirs, ours)
    for tokens in LENGTHS:
        x = make.normal(batch=2, tokens=tokens, d_in=5)
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=f"the result for {tokens} tokens")


@rung.property("GroupedQueryAttention", rules=("batch",))
def test_grouped_query_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    adopt(theirs, reference.GroupedQueryAttention(5, 24, 6, 3))
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    assert_batch_rows_do_not_mix(theirs, x)


@rung.property("GroupedQueryAttention", rules=("large",))
def test_grouped_query_attention_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head does not depend on the queries of another head."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    ours = reference.GroupedQueryAttention(5, 24, 6, 3)
    x = make.normal(batch=2, tokens=7, d_in=5)
    x[..., 0] = 1.0
    assert_head_is_alone(theirs, ours, ours.W_key, x, head=2, kv_head=1, head_dim=4)


@rung.stability("GroupedQueryAttention", rules=("large",))
def test_grouped_query_attention_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    ours = reference.GroupedQueryAttention(5, 24, 6, 3)
    x = with_low_scores(ours, ours.W_key, make, d_in=5)
    adopt(theirs, ours)
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what="the result for low scores")


@rung.property("GroupedQueryAttention", rules=("bias",))
def test_grouped_query_attention_has_one_bias(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.GroupedQueryAttention(5, 24, 6, 3),
        reference.GroupedQueryAttention(5, 24, 6, 3),
        "queries, keys and values",
    )


@rung.property("GroupedQueryAttention", rules=("device",))
def test_grouped_query_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.GroupedQueryAttention(5, 24, 6, 3), make.normal(batch=2, tokens=7, d_in=5))


@rung.property("GroupedQueryAttention", rules=("dtype",))
def test_grouped_query_attention_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    ours = reference.GroupedQueryAttention(5, 24, 6, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("GroupedQueryAttention", points=0.5, rules=("unchanged",))
def test_grouped_query_attention_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    adopt(theirs, reference.GroupedQueryAttention(5, 24, 6, 3))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=7, d_in=5))


@rung.gradient("GroupedQueryAttention", rules=("gradients",))
def test_grouped_query_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all four layers, from every head of a group."""
    theirs = student.GroupedQueryAttention(5, 24, 6, 3)
    ours = reference.GroupedQueryAttention(5, 24, 6, 3)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=7, d_in=5), make=make)


# --- causal_mask_after ---------------------------------------------------------------------------


@rung.shape("causal_mask_after")
@pytest.mark.parametrize(("seen", "tokens"), [(3, 2), (4, 7), (5, 1), (0, 6)])
def test_causal_mask_after_has_the_shape_of_the_statement(student, seen, tokens):
    """The mask is boolean, a row for each new token, a column for each key."""
    student.causal_mask_after(seen, tokens)


@rung.value("causal_mask_after", points=2)
@pytest.mark.parametrize(("seen", "tokens"), [(3, 5), (6, 4), (1, 2), (2, 9), (8, 3)])
def test_causal_mask_after_agrees_with_the_reference(student, reference, seen, tokens):
    """After a past, the mask is True exactly where a new token may not look."""
    assert_agrees(
        student.causal_mask_after(seen, tokens), reference.causal_mask_after(seen, tokens)
    )


@rung.value("causal_mask_after")
@pytest.mark.parametrize(("seen", "tokens"), [(0, 1), (0, 5), (7, 1)])
def test_causal_mask_after_takes_no_past_and_a_single_token(student, reference, seen, tokens):
    """Without a past, the mask is the usual causal mask; a single new token sees everything."""
    assert_agrees(
        student.causal_mask_after(seen, tokens), reference.causal_mask_after(seen, tokens)
    )


# --- CachedAttention -----------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads; head_dim is 4 and 5
CACHED = [(2, 7, 5, 12, 3), (3, 8, 6, 10, 2)]
ONE_BY_ONE = [1] * 9
FEEDS = [ONE_BY_ONE, [3, 1, 4], [1, 6, 1], [5, 2]]  # lengths of the chunks


def fed(module, x, lengths, cache=None):
    """The outputs for `x`, fed to a module in chunks of these lengths."""
    outputs = []
    for chunk in x.split(lengths, dim=1):
        out, cache = module(chunk) if cache is None else module(chunk, cache)
        outputs.append(out)
    return torch.cat(outputs, dim=1)


def cache_of(module, x):
    """The cache that a module makes of `x`, without its graph."""
    return tuple(part.detach() for part in module(x)[1])


def out_of(result):
    """The output, without the cache."""
    return result[0]


@rung.shape("CachedAttention")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), CACHED)
def test_cached_attention_has_the_shapes_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads
):
    """A call returns outputs of the new tokens, and a cache that has grown by as many tokens."""
    attention = student.CachedAttention(d_in, d_out, num_heads)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))
    _out, cache = attention(make.normal(batch=batch, tokens=4, d_in=d_in))
    for more in (1, tokens):
        _out, cache = attention(make.normal(batch=batch, tokens=more, d_in=d_in), cache)


@rung.value("CachedAttention", points=4)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), CACHED)
def test_cached_attention_agrees_with_the_reference_without_a_cache(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs = student.CachedAttention(d_in, d_out, num_heads)
    ours = reference.CachedAttention(d_in, d_out, num_heads)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x)[0], ours(x)[0], what="the output")


@rung.value("CachedAttention", points=12)
@pytest.mark.parametrize("lengths", FEEDS, ids=lambda lengths: "+".join(map(str, lengths)))
def test_cached_attention_gives_in_steps_what_it_gives_at_once(student, reference, make, lengths):
    """When tokens come one at a time or in chunks, the results equal those of all at once."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=sum(lengths), d_in=5)
    how = ", then ".join(map(str, lengths))
    assert_agrees(fed(theirs, x, lengths), ours(x)[0], what=f"the output for {how} tokens")


@rung.property("CachedAttention", rules=("length",))
def test_cached_attention_takes_texts_of_any_length(student, reference, make):
    """A text may grow to 40 tokens, and another to 256."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    for lengths in ([30, 1, 9], [200, 55, 1]):
        x = make.normal(batch=2, tokens=sum(lengths), d_in=5)
        what = f"the output for {', then '.join(map(str, lengths))} tokens"
        assert_agrees(fed(theirs, x, lengths), ours(x)[0], within=REORDERED, what=what)


@rung.property("CachedAttention", points=2, rules=("state",))
def test_cached_attention_goes_on_with_the_cache_it_is_given(student, reference, make):
    """For two texts in turn, and for two continuations of one text, only the cache counts."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    one, other = make.normal(batch=2, tokens=7, d_in=5), make.normal(batch=2, tokens=8, d_in=5)
    cache_of_one, cache_of_other = cache_of(theirs, one[:, :4]), cache_of(theirs, other[:, :6])
    for what, text, seen, lengths, cache in (
        ("the first of two texts in turn", one, 4, [3], cache_of_one),
        ("the second of two texts in turn", other, 6, [1, 1], cache_of_other),
        ("a cache that is used a second time", one, 4, [1, 2], cache_of_one),
    ):
        found = fed(theirs, text[:, seen:], lengths, cache)
        assert_agrees(found, ours(text)[0][:, seen:], what=what)


@rung.property("CachedAttention", rules=("none",))
def test_cached_attention_takes_none_for_no_cache(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_in=5)
    assert_agrees(theirs(x, None)[0], ours(x)[0], what="the output with cache=None")


@rung.property("CachedAttention", rules=("batch",))
def test_cached_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave outputs of others as they were, with a cache too."""
    theirs = student.CachedAttention(5, 12, 3)
    adopt(theirs, reference.CachedAttention(5, 12, 3))
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    assert_batch_rows_do_not_mix(lambda x: fed(theirs, x, [3, 4]), x)


@rung.property("CachedAttention", rules=("large",))
def test_cached_attention_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head does not depend on the queries of another head."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    x = make.normal(batch=2, tokens=7, d_in=5)
    x[..., 0] = 1.0
    assert_head_is_alone(
        theirs,
        ours,
        ours.W_key,
        x,
        head=1,
        kv_head=1,
        head_dim=4,
        call=lambda module, x: module(x)[0],
    )


@rung.stability("CachedAttention", rules=("large",))
def test_cached_attention_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    x = with_low_scores(ours, ours.W_key, make, d_in=5)
    adopt(theirs, ours)
    assert_agrees(theirs(x)[0], ours(x)[0], within=LARGE_SCORES, what="the result for low scores")


@rung.property("CachedAttention", rules=("bias",))
def test_cached_attention_has_one_bias(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.CachedAttention(5, 12, 3),
        reference.CachedAttention(5, 12, 3),
        "queries, keys and values",
    )


@rung.property("CachedAttention", rules=("device",))
def test_cached_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.CachedAttention(5, 12, 3), make.normal(batch=2, tokens=7, d_in=5))


@rung.property("CachedAttention", rules=("dtype",))
def test_cached_attention_works_in_float64(student, reference, make):
    """In float64, the module takes and gives float64, the cache too, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=8, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(fed(theirs.double(), x, [3, 1, 4]), ours.double()(x)[0], within=DIGITS)


@rung.property("CachedAttention", rules=("unchanged",))
def test_cached_attention_leaves_what_it_is_given_alone(student, reference, make):
    """The tokens and the cache that were passed in stay as they were."""
    theirs = student.CachedAttention(5, 12, 3)
    adopt(theirs, reference.CachedAttention(5, 12, 3))
    cache = cache_of(theirs, make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.gradient("CachedAttention", rules=("gradients",))
def test_cached_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all four layers."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make, of=out_of)


@rung.gradient("CachedAttention", rules=("gradients",))
def test_cached_attention_has_the_right_gradients_after_a_cache(student, reference, make):
    """New tokens get the right gradients, whatever the cache holds."""
    theirs, ours = student.CachedAttention(5, 12, 3), reference.CachedAttention(5, 12, 3)
    adopt(theirs, ours)
    past = make.normal(0.5, batch=2, tokens=4, d_in=5)
    their_cache, our_cache = cache_of(theirs, past), cache_of(ours, past)
    assert_gradients_agree(
        lambda x: theirs(x, their_cache)[0],
        lambda x: ours(x, our_cache)[0],
        make.normal(0.5, batch=2, tokens=3, d_in=5),
        make=make,
    )


@rung.efficiency("CachedAttention", points=3, rules=("cost",))
def test_cached_attention_does_not_project_the_past_again(student, make):
    """A step after 64 tokens takes little more work than a step after 16."""
    # The projections of a token take six times the work of its attention to 64 keys and values.
    attention = student.CachedAttention(192, 256, 4)
    x = make.normal(batch=1, tokens=1, d_in=192)
    short, long = (
        (x, cache_of(attention, make.normal(batch=1, tokens=seen, d_in=192))) for seen in (16, 64)
    )
    assert_grows_at_most(attention, short, long, work=2)


# --- LatentAttention -----------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads, d_latent; head_dim is 4 and 5
LATENTS = [(2, 7, 10, 12, 3, 5), (4, 8, 9, 15, 3, 7)]
# a latent of one number; a latent that is wider than input and output
ODD_LATENTS = [(2, 7, 5, 12, 3, 1), (2, 7, 5, 12, 3, 13)]


@rung.shape("LatentAttention")
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "d_latent"), [*LATENTS, *ODD_LATENTS]
)
def test_latent_attention_has_the_shape_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads, d_latent
):
    """One vector of size d_out comes back for each token, however small the latent is."""
    attention = student.LatentAttention(d_in, d_out, num_heads, d_latent)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


@rung.value("LatentAttention", points=8)
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "d_latent"), [*LATENTS, *ODD_LATENTS]
)
def test_latent_attention_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads, d_latent
):
    """With the same weights, the result is that of the reference, for a latent of any width."""
    theirs = student.LatentAttention(d_in, d_out, num_heads, d_latent)
    ours = reference.LatentAttention(d_in, d_out, num_heads, d_latent)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.value("LatentAttention", points=2, rules=("length", "computes"))
def test_latent_attention_takes_any_length(student, reference, make):
    """Sentences of different lengths work, one after another, in any order."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    ours = reference.LatentAttention(7, 12, 3, 5)
    adopt(theirs, ours)
    for tokens in LENGTHS:
        x = make.normal(batch=2, tokens=tokens, d_in=7)
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=f"the result for {tokens} tokens")


@rung.property("LatentAttention", rules=("batch",))
def test_latent_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    adopt(theirs, reference.LatentAttention(7, 12, 3, 5))
    x = make.normal(0.5, batch=2, tokens=6, d_in=7)
    assert_batch_rows_do_not_mix(theirs, x)


@rung.property("LatentAttention", rules=("large",))
def test_latent_attention_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head does not depend on the queries of another head."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    ours = reference.LatentAttention(7, 12, 3, 5)
    x = make.normal(batch=2, tokens=6, d_in=7)
    x[..., 0] = 1.0
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(7)[0]  # latent[0] is that 1
    assert_head_is_alone(theirs, ours, ours.W_up_key, x, head=1, kv_head=1, head_dim=4)


@rung.stability("LatentAttention", rules=("large",))
def test_latent_attention_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    ours = reference.LatentAttention(7, 12, 3, 5)
    x = with_low_scores(ours, ours.W_up_key, make, d_in=7)
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(7)[0]  # latent[0] is the token's feature 0
    adopt(theirs, ours)
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what="the result for low scores")


@rung.property("LatentAttention", rules=("bias",))
def test_latent_attention_has_one_bias(student, reference):
    """Only the last layer has a bias: the queries and the layers of the latent have none."""
    assert_one_bias(
        student.LatentAttention(7, 12, 3, 5),
        reference.LatentAttention(7, 12, 3, 5),
        "queries, latent, keys and values",
    )


@rung.property("LatentAttention", rules=("device",))
def test_latent_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(student.LatentAttention(7, 12, 3, 5), make.normal(batch=2, tokens=6, d_in=7))


@rung.property("LatentAttention", rules=("dtype",))
def test_latent_attention_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs = student.LatentAttention(7, 12, 3, 5)
    ours = reference.LatentAttention(7, 12, 3, 5)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=7, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("LatentAttention", points=0.5, rules=("unchanged",))
def test_latent_attention_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    adopt(theirs, reference.LatentAttention(7, 12, 3, 5))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=6, d_in=7))


@rung.gradient("LatentAttention", rules=("gradients",))
def test_latent_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all five layers."""
    theirs = student.LatentAttention(7, 12, 3, 5)
    ours = reference.LatentAttention(7, 12, 3, 5)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=6, d_in=7), make=make)
