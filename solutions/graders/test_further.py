"""Hidden graders of unit 13, a look inside, and the parts wired together."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    REORDERED,
    UNMOVED,
    adopt,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_gradients_agree,
    assert_grows_at_most,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_one_bias,
    assert_that,
)

# --- head_weights --------------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads; head_dim is 4 and 5
HEADS = [(2, 7, 5, 12, 3), (4, 8, 9, 10, 2)]
# one token; one head; heads of one feature
SMALL_HEADS = [(2, 1, 5, 12, 3), (3, 7, 5, 6, 1), (2, 7, 5, 6, 6)]


def sentences_and_matrices(make, batch, tokens, d_in, d_out, dtype=torch.float32):
    """Sentences, and matrices that give scores of one or two."""
    return (
        make.normal(batch=batch, tokens=tokens, d_in=d_in, dtype=dtype),
        make.normal(0.5, d_in=d_in, d_out=d_out, dtype=dtype),
        make.normal(0.5, d_in=d_in, d_out=d_out, dtype=dtype),
    )


@rung.shape("head_weights")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), HEADS)
def test_head_weights_has_the_shape_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads
):
    """For each head, there is a row for every query and a column for every key."""
    student.head_weights(*sentences_and_matrices(make, batch, tokens, d_in, d_out), num_heads)


@rung.value("head_weights", points=6)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), HEADS)
def test_head_weights_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """Every head weighs the keys as in the reference."""
    inputs = sentences_and_matrices(make, batch, tokens, d_in, d_out)
    assert_agrees(
        student.head_weights(*inputs, num_heads), reference.head_weights(*inputs, num_heads)
    )


@rung.value("head_weights")
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads"),
    SMALL_HEADS,
    ids=["one token", "one head", "one feature"],
)
def test_head_weights_takes_one_of_anything(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """A single token, a single head, and heads of a single feature are fine too."""
    inputs = sentences_and_matrices(make, batch, tokens, d_in, d_out)
    assert_agrees(
        student.head_weights(*inputs, num_heads), reference.head_weights(*inputs, num_heads)
    )


@rung.property("head_weights", points=0.5)
def test_head_weights_takes_long_sentences(student, reference, make):
    """A sentence of 300 tokens gets the right weights."""
    inputs = sentences_and_matrices(make, 2, 300, 5, 12)
    assert_agrees(student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3))


@rung.property("head_weights", rules=("batch",))
def test_head_weights_of_a_sentence_are_its_own(student, make):
    """Huge scores in one sentence leave the weights of other sentences as they were."""
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12)
    assert_batch_rows_do_not_mix(lambda x: student.head_weights(x, W_query, W_key, 3), x)


@rung.property("head_weights", rules=("dtype",))
def test_head_weights_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12, torch.float64)
    x[..., 0], W_query[0], W_key[0] = 1.0, 4.0, 4.0  # scores near 32: float32 rounds them
    inputs = x, W_query, W_key
    assert_agrees_to_float64(
        student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3), within=DIGITS
    )


@rung.property("head_weights", rules=("unchanged",))
def test_head_weights_leaves_its_inputs_alone(student, make):
    """Neither the tokens nor the matrices are changed in place."""
    assert_input_unchanged(student.head_weights, *sentences_and_matrices(make, 2, 7, 5, 12), 3)


@rung.gradient("head_weights", rules=("gradients",))
def test_head_weights_has_the_right_gradients(student, reference, make):
    """Gradients reach the tokens and both matrices."""
    assert_gradients_agree(
        lambda *inputs: student.head_weights(*inputs, 3),
        lambda *inputs: reference.head_weights(*inputs, 3),
        *sentences_and_matrices(make, 2, 7, 5, 12),
        make=make,
    )


@rung.stability("head_weights", rules=("large",))
def test_head_weights_of_a_loud_head_leave_the_others_alone(student, reference, make):
    """When one head has scores of 800, the weights of all heads are still right."""
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12)
    x[..., 0] = 1.0
    for matrix in (W_query, W_key):
        matrix[:, 4:8] *= 0.1
        matrix[0, 4:8] = 20.0  # 4 · 20 · 20 / √4 = 800
    assert_agrees(
        student.head_weights(x, W_query, W_key, 3),
        reference.head_weights(x, W_query, W_key, 3),
        within=LARGE_SCORES,
        what="the weights when head 1 has scores of 800",
    )


@rung.stability("head_weights", rules=("large",))
def test_head_weights_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12)
    x[..., 0] = 1.0
    for matrix, weight in ((W_query, 18.7), (W_key, -18.7)):
        matrix *= 0.1
        matrix[0] = weight  # 4 · 18.7² / √4 is 700
    assert_agrees(
        student.head_weights(x, W_query, W_key, 3),
        reference.head_weights(x, W_query, W_key, 3),
        within=LARGE_SCORES,
        what="the weights when all scores are about -700",
    )


# --- bilinear_form -------------------------------------------------------------------------------

FORMS = [(6, 2), (3, 5), (4, 4), (5, 1), (1, 3)]  # d_in, d_out


def two_matrices(make, d_in, d_out, dtype=torch.float32):
    """A matrix each for queries and keys."""
    return [make.normal(d_in=d_in, d_out=d_out, dtype=dtype) for _ in range(2)]


@rung.shape("bilinear_form")
@pytest.mark.parametrize(("d_in", "d_out"), FORMS)
def test_bilinear_form_has_the_shape_of_the_contract(student, make, d_in, d_out):
    """The result is square, and as wide as the tokens."""
    student.bilinear_form(*two_matrices(make, d_in, d_out))


@rung.value("bilinear_form", points=5)
@pytest.mark.parametrize(("d_in", "d_out"), FORMS)
def test_bilinear_form_agrees_with_the_reference(student, reference, make, d_in, d_out):
    """The result has a row and a column for each feature of a token."""
    matrices = two_matrices(make, d_in, d_out)
    assert_agrees(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


@rung.property("bilinear_form", rules=("dtype",))
def test_bilinear_form_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    matrices = two_matrices(make, 6, 3, torch.float64)
    assert_agrees_to_float64(
        student.bilinear_form(*matrices), reference.bilinear_form(*matrices), within=DIGITS
    )


@rung.property("bilinear_form", rules=("unchanged",))
def test_bilinear_form_leaves_its_inputs_alone(student, make):
    """Neither matrix is changed in place."""
    assert_input_unchanged(student.bilinear_form, *two_matrices(make, 6, 3))


@rung.gradient("bilinear_form", rules=("gradients",))
def test_bilinear_form_has_the_right_gradients(student, reference, make):
    """Gradients reach both matrices."""
    assert_gradients_agree(
        student.bilinear_form, reference.bilinear_form, *two_matrices(make, 6, 3), make=make
    )


# --- absorb_keys ---------------------------------------------------------------------------------

# d_in, d_latent, d_out, num_heads; head_dim is 4 and 5
ABSORBED = [(5, 7, 12, 3), (9, 3, 10, 2), (6, 6, 8, 4)]
# one head; heads of one feature; a latent of one number
SMALL_ABSORBED = [(5, 4, 6, 1), (5, 4, 6, 6), (5, 1, 4, 1)]


def query_and_up_key(make, d_in, d_latent, d_out, dtype=torch.float32):
    """The matrix that turns tokens into queries, and the matrix that turns latents into keys."""
    return (
        make.normal(d_in=d_in, d_out=d_out, dtype=dtype),
        make.normal(d_latent=d_latent, d_out=d_out, dtype=dtype),
    )


@rung.shape("absorb_keys")
@pytest.mark.parametrize(("d_in", "d_latent", "d_out", "num_heads"), ABSORBED)
def test_absorb_keys_has_the_shape_of_the_contract(student, make, d_in, d_latent, d_out, num_heads):
    """There is a matrix for each head, from tokens to latents."""
    student.absorb_keys(*query_and_up_key(make, d_in, d_latent, d_out), num_heads)


@rung.value("absorb_keys", points=5)
@pytest.mark.parametrize(("d_in", "d_latent", "d_out", "num_heads"), ABSORBED)
def test_absorb_keys_agrees_with_the_reference(
    student, reference, make, d_in, d_latent, d_out, num_heads
):
    """Every head's matrix is the product of its own columns of both matrices."""
    matrices = query_and_up_key(make, d_in, d_latent, d_out)
    assert_agrees(
        student.absorb_keys(*matrices, num_heads), reference.absorb_keys(*matrices, num_heads)
    )


@rung.value("absorb_keys")
@pytest.mark.parametrize(
    ("d_in", "d_latent", "d_out", "num_heads"),
    SMALL_ABSORBED,
    ids=["one head", "one feature", "one number"],
)
def test_absorb_keys_takes_one_of_anything(
    student, reference, make, d_in, d_latent, d_out, num_heads
):
    """A single head, heads of a single feature and a latent of one number are fine too."""
    matrices = query_and_up_key(make, d_in, d_latent, d_out)
    assert_agrees(
        student.absorb_keys(*matrices, num_heads), reference.absorb_keys(*matrices, num_heads)
    )


@rung.property("absorb_keys", rules=("dtype",))
def test_absorb_keys_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    matrices = query_and_up_key(make, 5, 7, 12, torch.float64)
    assert_agrees_to_float64(
        student.absorb_keys(*matrices, 3), reference.absorb_keys(*matrices, 3), within=DIGITS
    )


@rung.property("absorb_keys", rules=("unchanged",))
def test_absorb_keys_leaves_its_inputs_alone(student, make):
    """Neither matrix is changed in place."""
    assert_input_unchanged(student.absorb_keys, *query_and_up_key(make, 5, 7, 12), 3)


@rung.gradient("absorb_keys", rules=("gradients",))
def test_absorb_keys_has_the_right_gradients(student, reference, make):
    """Gradients reach both matrices."""
    assert_gradients_agree(
        lambda *matrices: student.absorb_keys(*matrices, 3),
        lambda *matrices: reference.absorb_keys(*matrices, 3),
        *query_and_up_key(make, 5, 7, 12),
        make=make,
    )


# --- both modules --------------------------------------------------------------------------------

ONE_BY_ONE = [1] * 9
FEEDS = [ONE_BY_ONE, [3, 1, 4], [1, 6, 1], [5, 2]]  # lengths of the chunks


def named(lengths):
    """The name of a parameter: the lengths of its chunks, in order."""
    return "+".join(map(str, lengths))


def fed(module, x, lengths, cache=None):
    """The outputs for `x`, fed to a module in chunks of these lengths."""
    outputs = []
    for chunk in x.split(lengths, dim=1):
        out, cache = module(chunk) if cache is None else module(chunk, cache)
        outputs.append(out)
    return torch.cat(outputs, dim=1)


def cache_of(module, x):
    """The cache that a module makes of `x`, without its graph."""
    cache = module(x)[1]
    if isinstance(cache, torch.Tensor):
        return cache.detach()
    return tuple(part.detach() for part in cache)


def out_of(result):
    """The output, without the cache."""
    return result[0]


def make_loud(*layers, rows):
    """Let scores of heads of width 4 reach 400 and more, wherever tokens begin with a 1.

    `rows` are the features of queries and keys that get large weights. A softmax ignores a
    constant that is added to all scores of a row, so right results stay small.
    """
    with torch.no_grad():
        for layer in layers:
            layer.weight[rows] *= 0.1
            layer.weight[rows, 0] = 20.0  # for each of them 20 · 20 / √4 = 200


def make_low(queries, keys, rows):
    """Like `make_loud`, with a negative sign: scores are -400 or less."""
    make_loud(queries, keys, rows=rows)
    with torch.no_grad():
        keys.weight[rows, 0] *= -1.0


def sentences_of_ones(make, d_in):
    """Sentences whose tokens all begin with a 1."""
    x = make.normal(batch=2, tokens=7, d_in=d_in)
    x[..., 0] = 1.0
    return x


# --- LatentCachedAttention -----------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads, d_latent; head_dim is 4 and 5
LATENTS = [(2, 7, 10, 12, 3, 5), (4, 8, 9, 15, 3, 7)]
# a latent of one number; a latent that is wider than input and output
ODD_LATENTS = [(2, 7, 5, 12, 3, 1), (2, 7, 5, 12, 3, 13)]


def two_latent_modules(student, reference):
    """A module of the student's, and ours: three heads, four features each, weights alike."""
    theirs = student.LatentCachedAttention(7, 12, 3, 5)
    ours = reference.LatentCachedAttention(7, 12, 3, 5)
    adopt(theirs, ours)
    return theirs, ours


def begin_latents_with_the_first_feature(ours):
    """Let the first number of every latent be the token's first feature."""
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(7)[0]


@rung.shape("LatentCachedAttention")
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "d_latent"), [*LATENTS, *ODD_LATENTS]
)
def test_latent_cached_attention_has_the_shapes_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads, d_latent
):
    """A call returns outputs of the new tokens, and a cache that has grown by as many latents."""
    attention = student.LatentCachedAttention(d_in, d_out, num_heads, d_latent)
    _out, cache = attention(make.normal(batch=batch, tokens=4, d_in=d_in))
    for more in (1, tokens):
        _out, cache = attention(make.normal(batch=batch, tokens=more, d_in=d_in), cache)


@rung.value("LatentCachedAttention", points=4)
@pytest.mark.parametrize(
    ("batch", "tokens", "d_in", "d_out", "num_heads", "d_latent"), [*LATENTS, *ODD_LATENTS]
)
def test_latent_cached_attention_agrees_with_the_reference_without_a_cache(
    student, reference, make, batch, tokens, d_in, d_out, num_heads, d_latent
):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs = student.LatentCachedAttention(d_in, d_out, num_heads, d_latent)
    ours = reference.LatentCachedAttention(d_in, d_out, num_heads, d_latent)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x)[0], ours(x)[0], within=REORDERED, what="the output")


@rung.value("LatentCachedAttention", points=10)
@pytest.mark.parametrize("lengths", FEEDS, ids=named)
def test_latent_cached_attention_gives_in_steps_what_it_gives_at_once(
    student, reference, make, lengths
):
    """When tokens come one at a time or in chunks, the results equal those of all at once."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=sum(lengths), d_in=7)
    what = f"the output for {', then '.join(map(str, lengths))} tokens"
    assert_agrees(fed(theirs, x, lengths), ours(x)[0], within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("length",))
def test_latent_cached_attention_takes_texts_of_any_length(student, reference, make):
    """A text may grow to 40 tokens, and another to 256."""
    theirs, ours = two_latent_modules(student, reference)
    for lengths in ([30, 1, 9], [200, 55, 1]):
        x = make.normal(batch=2, tokens=sum(lengths), d_in=7)
        what = f"the output for {', then '.join(map(str, lengths))} tokens"
        assert_agrees(fed(theirs, x, lengths), ours(x)[0], within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("cache",))
def test_latent_cached_attention_keeps_the_latents_as_they_are(student, reference, make):
    """After chunks of several lengths, the cache holds all tokens' latents, the oldest first."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=8, d_in=7)
    _out, cache = theirs(x[:, :3])
    _out, cache = theirs(x[:, 3:4], cache)
    _out, cache = theirs(x[:, 4:], cache)
    assert_agrees(cache, ours(x)[1], what="the cache after 3, then 1, then 4 tokens")


@rung.property("LatentCachedAttention", points=2, rules=("state",))
def test_latent_cached_attention_goes_on_with_the_cache_it_is_given(student, reference, make):
    """For two texts in turn, and for two continuations of one text, only the cache counts."""
    theirs, ours = two_latent_modules(student, reference)
    one, other = make.normal(batch=2, tokens=7, d_in=7), make.normal(batch=2, tokens=8, d_in=7)
    cache_of_one, cache_of_other = cache_of(theirs, one[:, :4]), cache_of(theirs, other[:, :6])
    for what, text, seen, lengths, cache in (
        ("the first of two texts in turn", one, 4, [3], cache_of_one),
        ("the second of two texts in turn", other, 6, [1, 1], cache_of_other),
        ("a cache that is used a second time", one, 4, [1, 2], cache_of_one),
    ):
        found = fed(theirs, text[:, seen:], lengths, cache)
        assert_agrees(found, ours(text)[0][:, seen:], within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("none",))
def test_latent_cached_attention_takes_none_for_no_cache(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=6, d_in=7)
    found, expected = theirs(x, None)[0], ours(x)[0]
    assert_agrees(found, expected, within=REORDERED, what="the output with cache=None")


@rung.property("LatentCachedAttention", rules=("batch",))
def test_latent_cached_attention_of_a_sentence_is_its_own(student, reference, make):
    """Huge scores in one sentence leave outputs of others as they were, with a cache too."""
    theirs, _ours = two_latent_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=7, d_in=7)
    assert_batch_rows_do_not_mix(lambda x: fed(theirs, x, [3, 4]), x)


@rung.property("LatentCachedAttention", rules=("bias",))
def test_latent_cached_attention_has_one_bias(student, reference):
    """Only the last layer has a bias: the queries and the layers of the latent have none."""
    assert_one_bias(
        student.LatentCachedAttention(7, 12, 3, 5),
        reference.LatentCachedAttention(7, 12, 3, 5),
        "queries, latent, keys and values",
    )


@rung.property("LatentCachedAttention", rules=("device",))
def test_latent_cached_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    attention = student.LatentCachedAttention(7, 12, 3, 5)
    assert_moves(attention, make.normal(batch=2, tokens=6, d_in=7))


@rung.property("LatentCachedAttention", rules=("dtype",))
def test_latent_cached_attention_works_in_float64(student, reference, make):
    """In float64, the module takes and gives float64, the cache too, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=8, d_in=7, dtype=torch.float64)
    assert_agrees_to_float64(fed(theirs.double(), x, [3, 1, 4]), ours.double()(x)[0], within=DIGITS)


@rung.property("LatentCachedAttention", rules=("unchanged",))
def test_latent_cached_attention_leaves_what_it_is_given_alone(student, reference, make):
    """The tokens and the cache that were passed in stay as they were."""
    theirs, _ours = two_latent_modules(student, reference)
    cache = cache_of(theirs, make.normal(batch=2, tokens=4, d_in=7))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=3, d_in=7), cache)


@rung.gradient("LatentCachedAttention", rules=("gradients",))
def test_latent_cached_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all five layers."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=6, d_in=7)
    assert_gradients_agree(theirs, ours, x, make=make, of=out_of)


@rung.gradient("LatentCachedAttention", rules=("gradients",))
def test_latent_cached_attention_has_the_right_gradients_after_a_cache(student, reference, make):
    """New tokens get the right gradients, whatever the cache holds."""
    theirs, ours = two_latent_modules(student, reference)
    past = make.normal(0.5, batch=2, tokens=4, d_in=7)
    their_cache, our_cache = cache_of(theirs, past), cache_of(ours, past)
    assert_gradients_agree(
        lambda x: theirs(x, their_cache)[0],
        lambda x: ours(x, our_cache)[0],
        make.normal(0.5, batch=2, tokens=3, d_in=7),
        make=make,
    )


@rung.stability("LatentCachedAttention", rules=("large",))
def test_latent_cached_attention_keeps_a_loud_head_to_itself(student, reference, make):
    """When one head has very large scores, all heads are still right."""
    theirs, ours = two_latent_modules(student, reference)
    make_loud(ours.W_query, ours.W_up_key, rows=slice(4, 8))
    begin_latents_with_the_first_feature(ours)
    adopt(theirs, ours)
    x = sentences_of_ones(make, 7)
    what = "the output when head 1 has very large scores"
    assert_agrees(theirs(x)[0], ours(x)[0], within=LARGE_SCORES, what=what)


@rung.stability("LatentCachedAttention", rules=("large",))
def test_latent_cached_attention_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    theirs, ours = two_latent_modules(student, reference)
    make_low(ours.W_query, ours.W_up_key, rows=slice(12))
    begin_latents_with_the_first_feature(ours)
    adopt(theirs, ours)
    x = sentences_of_ones(make, 7)
    what = "the output for low scores"
    assert_agrees(theirs(x)[0], ours(x)[0], within=LARGE_SCORES, what=what)


# --- RotaryAttention -----------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads; head_dim is 4 and 6, and 2 with a single pair
ROTATED = [(2, 7, 5, 12, 3), (4, 9, 7, 30, 5), (3, 8, 5, 6, 3)]
# Heads of four features have a fast pair and a slow one, which hardly turns in a few tokens.
SLOW = [2, 3, 6, 7, 10, 11]


def two_rotary_modules(student, reference, d_out=12):
    """The student's module and ours, of three heads, with the same weights."""
    theirs, ours = (who.RotaryAttention(5, d_out, 3) for who in (student, reference))
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("RotaryAttention")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), ROTATED)
def test_rotary_attention_has_the_shapes_of_the_contract(
    student, make, batch, tokens, d_in, d_out, num_heads
):
    """A call returns outputs of the new tokens, and a cache that has grown by as many tokens."""
    attention = student.RotaryAttention(d_in, d_out, num_heads)
    _out, cache = attention(make.normal(batch=batch, tokens=4, d_in=d_in))
    for more in (1, tokens):
        _out, cache = attention(make.normal(batch=batch, tokens=more, d_in=d_in), cache)


@rung.value("RotaryAttention", points=5)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), ROTATED)
def test_rotary_attention_agrees_with_the_reference_without_a_cache(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs = student.RotaryAttention(d_in, d_out, num_heads)
    ours = reference.RotaryAttention(d_in, d_out, num_heads)
    adopt(theirs, ours)
    x = make.normal(1.5, batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x)[0], ours(x)[0], within=REORDERED, what="the output")


@rung.value("RotaryAttention", points=11)
@pytest.mark.parametrize("lengths", FEEDS, ids=named)
def test_rotary_attention_gives_in_steps_what_it_gives_at_once(student, reference, make, lengths):
    """When tokens come one at a time or in chunks, the results equal those of all at once."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(1.5, batch=2, tokens=sum(lengths), d_in=5)
    what = f"the output for {', then '.join(map(str, lengths))} tokens"
    assert_agrees(fed(theirs, x, lengths), ours(x)[0], within=REORDERED, what=what)


@rung.property("RotaryAttention", rules=("length",))
def test_rotary_attention_takes_texts_of_any_length(student, reference, make):
    """A text may grow to 40 tokens, and another to 128."""
    theirs, ours = two_rotary_modules(student, reference)
    for lengths in ([30, 1, 9], [100, 27, 1]):
        x = make.normal(1.5, batch=2, tokens=sum(lengths), d_in=5)
        what = f"the output for {', then '.join(map(str, lengths))} tokens"
        assert_agrees(fed(theirs, x, lengths), ours(x)[0], within=REORDERED, what=what)


@rung.property("RotaryAttention", points=2, rules=("state",))
def test_rotary_attention_goes_on_with_the_cache_it_is_given(student, reference, make):
    """For two texts in turn, and for two continuations of one text, only the cache counts."""
    theirs, ours = two_rotary_modules(student, reference)
    one, other = make.normal(batch=2, tokens=7, d_in=5), make.normal(batch=2, tokens=8, d_in=5)
    cache_of_one, cache_of_other = cache_of(theirs, one[:, :4]), cache_of(theirs, other[:, :6])
    for what, text, seen, lengths, cache in (
        ("the first of two texts in turn", one, 4, [3], cache_of_one),
        ("the second of two texts in turn", other, 6, [1, 1], cache_of_other),
        ("a cache that is used a second time", one, 4, [1, 2], cache_of_one),
    ):
        found = fed(theirs, text[:, seen:], lengths, cache)
        assert_agrees(found, ours(text)[0][:, seen:], within=REORDERED, what=what)


@rung.property("RotaryAttention", rules=("none",))
def test_rotary_attention_takes_none_for_no_cache(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5)
    found, expected = theirs(x, None)[0], ours(x)[0]
    assert_agrees(found, expected, within=REORDERED, what="the output with cache=None")


@rung.property("RotaryAttention", rules=("batch",))
def test_rotary_attention_of_a_sentence_is_its_own(student, reference, make):
    """Huge scores in one sentence leave outputs of others as they were, with a cache too."""
    theirs, _ours = two_rotary_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    assert_batch_rows_do_not_mix(lambda x: fed(theirs, x, [3, 4]), x)


@rung.property("RotaryAttention", rules=("bias",))
def test_rotary_attention_has_one_bias(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.RotaryAttention(5, 12, 3),
        reference.RotaryAttention(5, 12, 3),
        "queries, keys and values",
    )


@rung.property("RotaryAttention", rules=("dtype",))
def test_rotary_attention_works_in_float64(student, reference, make):
    """In float64, the module takes and gives float64, angles and cache too, to full precision."""
    # Heads of 16 features: the root of 16 is exact, so a scale that is kept in float32 loses no
    # digits. The speeds of the pairs are no powers of ten, and have no exact inverses.
    theirs, ours = two_rotary_modules(student, reference, d_out=48)
    with torch.no_grad():  # an error of float32 stays so small that no other message shows it
        ours.out_proj.weight *= 0.1
    adopt(theirs, ours)
    x = make.normal(2.0, batch=2, tokens=64, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(
        fed(theirs.double(), x, [30, 1, 33]), ours.double()(x)[0], within=DIGITS
    )


@rung.property("RotaryAttention", rules=("unchanged",))
def test_rotary_attention_leaves_what_it_is_given_alone(student, reference, make):
    """The tokens and the cache that were passed in stay as they were."""
    theirs, _ours = two_rotary_modules(student, reference)
    cache = cache_of(theirs, make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.gradient("RotaryAttention", rules=("gradients",))
def test_rotary_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all four layers."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=7, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make, of=out_of)


@rung.gradient("RotaryAttention", rules=("gradients",))
def test_rotary_attention_has_the_right_gradients_after_a_cache(student, reference, make):
    """New tokens get the right gradients, whatever the cache holds."""
    theirs, ours = two_rotary_modules(student, reference)
    past = make.normal(0.5, batch=2, tokens=4, d_in=5)
    their_cache, our_cache = cache_of(theirs, past), cache_of(ours, past)
    assert_gradients_agree(
        lambda x: theirs(x, their_cache)[0],
        lambda x: ours(x, our_cache)[0],
        make.normal(0.5, batch=2, tokens=3, d_in=5),
        make=make,
    )


@rung.stability("RotaryAttention", rules=("large",))
def test_rotary_attention_keeps_a_loud_head_to_itself(student, reference, make):
    """When one head has very large scores, all heads are still right."""
    theirs, ours = two_rotary_modules(student, reference)
    make_loud(ours.W_query, ours.W_key, rows=SLOW[2:4])
    adopt(theirs, ours)
    x = sentences_of_ones(make, 5)
    what = "the output when head 1 has very large scores"
    assert_agrees(theirs(x)[0], ours(x)[0], within=LARGE_SCORES, what=what)


@rung.stability("RotaryAttention", rules=("large",))
def test_rotary_attention_hides_the_future_of_low_scores(student, reference, make):
    """Even where a token's past has very low scores, its future gets no weight."""
    theirs, ours = two_rotary_modules(student, reference)
    make_low(ours.W_query, ours.W_key, rows=SLOW)
    adopt(theirs, ours)
    x = sentences_of_ones(make, 5)
    what = "the output for low scores"
    assert_agrees(theirs(x)[0], ours(x)[0], within=LARGE_SCORES, what=what)


@rung.efficiency("RotaryAttention", points=3, rules=("cost",))
def test_rotary_attention_does_not_project_the_past_again(student, make):
    """A step after 64 tokens takes little more work than a step after 16."""
    # The projections of a token take eight times the work of its attention to 64 keys and values.
    # So the limit also allows rotating 64 keys again.
    attention = student.RotaryAttention(256, 256, 16)
    x = make.normal(batch=1, tokens=1, d_in=256)
    short, long = (
        (x, cache_of(attention, make.normal(batch=1, tokens=seen, d_in=256))) for seen in (16, 64)
    )
    assert_grows_at_most(attention, short, long, work=2)


# --- LlamaBlock ----------------------------------------------------------------------------------

# batch, tokens, d_model, num_heads, d_hidden; head_dim is 4, 6 and 2
LLAMAS = [(2, 6, 12, 3, 20), (3, 13, 12, 2, 17), (4, 9, 8, 4, 32)]


def two_llamas(student, reference, *made_with):
    """The student's block with the weights of the reference, and the reference."""
    theirs, ours = student.LlamaBlock(*made_with), reference.LlamaBlock(*made_with)
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("LlamaBlock")
@pytest.mark.parametrize(("batch", "tokens", "d_model", "num_heads", "d_hidden"), LLAMAS)
def test_llama_block_keeps_the_shape(student, make, batch, tokens, d_model, num_heads, d_hidden):
    """One vector of size d_model comes back for each token, however wide the hidden layer is."""
    block = student.LlamaBlock(d_model, num_heads, d_hidden)
    block(make.normal(batch=batch, tokens=tokens, d_model=d_model))


@rung.value("LlamaBlock", points=8)
@pytest.mark.parametrize(("batch", "tokens", "d_model", "num_heads", "d_hidden"), LLAMAS)
def test_llama_block_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_model, num_heads, d_hidden
):
    """With the same weights, the result is that of the reference."""
    theirs, ours = two_llamas(student, reference, d_model, num_heads, d_hidden)
    x = make.normal(60.0, batch=batch, tokens=tokens, d_model=d_model)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("LlamaBlock", rules=("length",))
def test_llama_block_takes_any_length(student, reference, make):
    """Sentences of different lengths work, one after another, in any order."""
    theirs, ours = two_llamas(student, reference, 12, 3, 20)
    for tokens in (6, 2, 1, 128, 9):
        x = make.normal(60.0, batch=2, tokens=tokens, d_model=12)
        what = f"the result for {tokens} tokens"
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=what)


@rung.property("LlamaBlock", rules=("norms",))
def test_llama_block_has_two_gains(student, reference):
    """Each of the two norms has a gain of its own."""
    theirs, ours = (who.LlamaBlock(12, 3, 20) for who in (student, reference))
    missing = {"norm1", "norm2"} & set(adopt(theirs, ours).missing)
    assert_that(
        not missing,
        f"each of the two norms learns a gain of its own, and {2 - len(missing)} of them were "
        "found",
    )


@rung.property("LlamaBlock", rules=("bias",))
def test_llama_block_has_one_bias(student, reference):
    """Only the attention's last layer has a bias."""
    theirs, ours = (who.LlamaBlock(12, 3, 20) for who in (student, reference))
    assert_one_bias(
        theirs, ours, "queries, keys, values and the feed-forward layers", "attention.out_proj"
    )


@rung.stability("LlamaBlock", rules=("eps",))
def test_llama_block_adds_eps_to_small_squares(student, reference, make):
    """Where all features of a token are very small, the norms depend on the eps of 1e-6."""
    theirs, ours = two_llamas(student, reference, 12, 3, 20)
    with torch.no_grad():  # attention adds so little that both norms have nearly the same input
        for weight in ours.attention.out_proj.parameters():
            weight *= 1e-4
    adopt(theirs, ours)
    x = make.normal(1e-3, batch=2, tokens=7, d_model=12)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for small numbers")


@rung.property("LlamaBlock", points=0.5, rules=("dtype",))
def test_llama_block_works_in_float64(student, reference, make):
    """A block in float64 takes and gives float64, to full precision."""
    # Heads of 16 features: the root of 16 is exact, so a scale that is kept in float32 loses no
    # digits. The speeds of the pairs are no powers of ten, and have no exact inverses.
    theirs, ours = two_llamas(student, reference, 48, 3, 20)
    with torch.no_grad():  # an error of float32 stays so small that no other message shows it
        ours.attention.out_proj.weight *= 0.1
        ours.feed_forward.W_down.weight *= 0.1
    adopt(theirs, ours)
    # Inputs so large that eps has no effect. Compared are the block's additions, which are small.
    x = make.normal(1e3, batch=2, tokens=60, d_model=48, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x) - x, ours.double()(x) - x, within=DIGITS)


@rung.property("LlamaBlock", points=0.5, rules=("unchanged",))
def test_llama_block_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs, _ours = two_llamas(student, reference, 12, 3, 20)
    assert_input_unchanged(theirs, make.normal(60.0, batch=2, tokens=6, d_model=12))


@rung.gradient("LlamaBlock", rules=("gradients",))
def test_llama_block_has_the_right_gradients(student, reference, make):
    """Gradients reach the input, both gains, the attention and the feed-forward layer."""
    theirs, ours = two_llamas(student, reference, 12, 3, 20)
    with torch.no_grad():  # a gradient is as large as the weights that it passes
        for weight in ours.parameters():
            weight *= 0.5
    adopt(theirs, ours)
    x = make.normal(60.0, batch=2, tokens=6, d_model=12)
    assert_gradients_agree(theirs, ours, x, make=make)


# --- EncoderDecoderBlock -------------------------------------------------------------------------

# batch, targets, sources, d_model, num_heads, d_hidden; head_dim is 4, 5 and 3
TRANSLATORS = [(2, 6, 7, 12, 3, 20), (3, 7, 4, 10, 2, 9), (4, 5, 8, 15, 5, 32)]
AS_LONG = (3, 6, 6, 12, 3, 20)  # as many targets as sources: swaps raise no error
GENTLE_GELU = 0.02  # inputs of the GELU stay within ±0.25, where its tanh form agrees
TRANSLATOR = (12, 3, 20)


def translators(student, reference, *made_with):
    """The student's block with the weights of the reference, and the reference."""
    made_with = made_with or TRANSLATOR
    theirs = student.EncoderDecoderBlock(*made_with)
    ours = reference.EncoderDecoderBlock(*made_with)
    with torch.no_grad():
        for weight in ours.feed_forward.up.parameters():
            weight *= GENTLE_GELU
        for layer in (ours.attention, ours.cross):  # scores of one or two
            layer.W_query.weight *= 0.4
            layer.W_value.weight *= 0.4
    adopt(theirs, ours)
    return theirs, ours


def two_sentences(make, dtype=torch.float32, size=30.0):
    """Target sentences of six tokens, source sentences of seven, and a mask of the sources.

    Targets are so large that the eps of the norms has no effect.
    """
    x = make.normal(size, batch=2, targets=6, d_model=12, dtype=dtype)
    context = make.normal(batch=2, sources=7, d_model=12, dtype=dtype)
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[0, 4:] = mask[1, 1::2] = True
    return x, context, mask


@rung.shape("EncoderDecoderBlock")
@pytest.mark.parametrize(
    ("batch", "targets", "sources", "d_model", "num_heads", "d_hidden"), TRANSLATORS
)
def test_encoder_decoder_block_keeps_the_shape_of_what_is_written(
    student, make, batch, targets, sources, d_model, num_heads, d_hidden
):
    """One vector of size d_model comes back for each token of x, however long the context is."""
    block = student.EncoderDecoderBlock(d_model, num_heads, d_hidden)
    block(
        make.normal(batch=batch, targets=targets, d_model=d_model),
        make.normal(batch=batch, sources=sources, d_model=d_model),
    )


@rung.value("EncoderDecoderBlock", points=8)
@pytest.mark.parametrize(
    ("batch", "targets", "sources", "d_model", "num_heads", "d_hidden"), [*TRANSLATORS, AS_LONG]
)
def test_encoder_decoder_block_agrees_with_the_reference(
    student, reference, make, batch, targets, sources, d_model, num_heads, d_hidden
):
    """With the same weights, the result is that of the reference."""
    theirs, ours = translators(student, reference, d_model, num_heads, d_hidden)
    x = make.normal(30.0, batch=batch, targets=targets, d_model=d_model)
    context = make.normal(batch=batch, sources=sources, d_model=d_model)
    expected = ours(x, context)
    assert_agrees(theirs(x, context), expected, within=REORDERED)
    what = "the result with the mask None"
    assert_agrees(theirs(x, context, None), expected, within=REORDERED, what=what)


@rung.value("EncoderDecoderBlock", points=4, rules=("hidden", "computes"))
@pytest.mark.parametrize(
    ("batch", "targets", "sources", "d_model", "num_heads", "d_hidden"), [*TRANSLATORS, AS_LONG]
)
def test_encoder_decoder_block_skips_hidden_tokens_of_the_context(
    student, reference, make, batch, targets, sources, d_model, num_heads, d_hidden
):
    """Each sentence ignores the tokens of the context that are hidden from it."""
    theirs, ours = translators(student, reference, d_model, num_heads, d_hidden)
    x = make.normal(30.0, batch=batch, targets=targets, d_model=d_model)
    context = make.normal(batch=batch, sources=sources, d_model=d_model)
    rows = torch.arange(batch)
    mask = make.booleans(0.5, batch=batch, sources=sources)
    mask[rows, rows % sources], mask[rows, (rows + 2) % sources] = True, False
    assert_agrees(
        theirs(x, context, mask), ours(x, context, mask), within=REORDERED,
        what="the result with some tokens hidden",
    )  # fmt: skip


def lower_scores(norm, attention):
    """Make all scores of one attention about -800, if the first feature of the keys' input is 1.

    A mask that only lowers hidden scores to -60 would then give hidden keys all the weight.
    """
    with torch.no_grad():
        norm.weight[0], norm.bias[0] = 0.0, 1.0  # so the first feature of each query is 1
        attention.W_key.weight *= 0.2
        attention.W_query.weight[:, 0], attention.W_key.weight[:, 0] = 20.0, -20.0


@rung.property("EncoderDecoderBlock", rules=("causal",))
def test_encoder_decoder_block_never_looks_ahead(student, reference, make):
    """Later tokens of x change no output before them, even if all scores are low."""
    theirs, ours = translators(student, reference)
    lower_scores(ours.norm1, ours.attention)
    adopt(theirs, ours)
    x, context, _ = two_sentences(make)
    assert_causal(lambda x: theirs(x, context), x)


@rung.property("EncoderDecoderBlock", rules=("hidden",))
def test_encoder_decoder_block_does_not_hear_what_is_hidden(student, reference, make):
    """The content of hidden tokens changes no output, even if all scores are low."""
    theirs, ours = translators(student, reference)
    lower_scores(ours.norm2, ours.cross)
    adopt(theirs, ours)
    x, context, mask = two_sentences(make)
    other = torch.where(mask[..., None], 1.0 - context.flip(1), context)
    context[..., 0] = other[..., 0] = 1.0
    assert_agrees(
        theirs(x, other, mask), theirs(x, context, mask), within=UNMOVED,
        what="the result after only hidden tokens of the context changed",
    )  # fmt: skip


@rung.property("EncoderDecoderBlock", rules=("length",))
def test_encoder_decoder_block_takes_any_length(student, reference, make):
    """Sentences of different lengths work, one after another, in any order."""
    theirs, ours = translators(student, reference)
    for targets, sources in ((6, 2), (1, 7), (300, 9), (4, 300), (5, 1)):
        x = make.normal(60.0, batch=2, targets=targets, d_model=12)
        context = make.normal(batch=2, sources=sources, d_model=12)
        what = f"the result for {targets} tokens and a context of {sources}"
        assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("norms",))
def test_encoder_decoder_block_has_norms_with_gain_and_shift(student, reference):
    """Each of the three norms has a gain and a shift of its own."""
    theirs, ours = (who.EncoderDecoderBlock(*TRANSLATOR) for who in (student, reference))
    missing = set(adopt(theirs, ours).missing)
    lacking = [
        f"the {what} of the {place} norm"
        for role, place in (("norm1", "first"), ("norm2", "second"), ("norm3", "third"))
        for part, what in (("", "gain"), (".bias", "shift"))
        if role + part in missing
    ]
    assert_that(
        not lacking,
        f"the block has no parameters for {' and '.join(lacking)}: each norm learns a gain, which "
        "it multiplies by, and a shift, which it adds",
    )


@rung.property("EncoderDecoderBlock", rules=("bias",))
def test_encoder_decoder_block_has_the_biases_of_the_statement(student, reference):
    """Queries, keys and values have no bias; both output layers, up and down have a bias."""
    theirs, ours = (who.EncoderDecoderBlock(*TRANSLATOR) for who in (student, reference))
    adoption = adopt(theirs, ours)
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")
    names = ("attention.out_proj", "cross.out_proj", "feed_forward.up", "feed_forward.down")
    missing = [name for name in names if f"{name}.bias" in adoption.missing]
    assert_that(not missing, f"no bias could be found that belongs to {', '.join(missing)}")


@rung.stability("EncoderDecoderBlock", rules=("eps",))
def test_encoder_decoder_block_adds_eps_to_small_variances(student, reference, make):
    """Where the features of a token are nearly equal, the norms depend on the eps of 1e-5."""
    theirs, ours = translators(student, reference)
    with torch.no_grad():  # attention adds so little that all norms have nearly the same input
        for layer in (ours.attention.out_proj, ours.cross.out_proj):
            for weight in layer.parameters():
                weight *= 1e-3
    adopt(theirs, ours)
    x, context, _ = two_sentences(make, size=3e-3)
    what = "the result for small numbers"
    assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("gelu",))
def test_encoder_decoder_block_uses_the_exact_gelu(student, reference, make):
    """For large numbers too, the GELU is the exact function, and not its tanh form."""
    theirs, ours = translators(student, reference)
    with torch.no_grad():
        for weight in ours.feed_forward.up.parameters():
            weight /= GENTLE_GELU
    adopt(theirs, ours)
    x, context, _ = two_sentences(make)
    what = "the result with large weights"
    assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", points=0.5, rules=("device",))
def test_encoder_decoder_block_moves_as_a_whole(student, make):
    """After a move to another device, the module takes both sequences and the mask from there."""
    assert_moves(student.EncoderDecoderBlock(*TRANSLATOR), *two_sentences(make))


@rung.property("EncoderDecoderBlock", points=0.5, rules=("dtype",))
def test_encoder_decoder_block_works_in_float64(student, reference, make):
    """A block in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = translators(student, reference)
    with torch.no_grad():  # so near 0, the GELU and its tanh form have the same digits
        for weight in ours.feed_forward.up.parameters():
            weight *= 0.05
        ours.feed_forward.down.weight *= 100.0
    adopt(theirs, ours)
    # Inputs so large that eps has no effect. Compared are the block's additions, which are small.
    x, *others = two_sentences(make, torch.float64, size=1e4)
    assert_agrees_to_float64(
        theirs.double()(x, *others) - x, ours.double()(x, *others) - x, within=DIGITS
    )


@rung.property("EncoderDecoderBlock", points=0.5, rules=("unchanged",))
def test_encoder_decoder_block_leaves_its_inputs_alone(student, reference, make):
    """Both sequences and the mask stay as they were."""
    theirs, _ = translators(student, reference)
    assert_input_unchanged(theirs, *two_sentences(make))


@rung.gradient("EncoderDecoderBlock", rules=("gradients",))
@pytest.mark.parametrize("masked", [False, True])
def test_encoder_decoder_block_has_the_right_gradients(student, reference, make, masked):
    """Gradients reach both sequences, all norms, both attentions and the network."""
    theirs, ours = translators(student, reference)
    with torch.no_grad():
        for weight in ours.feed_forward.up.parameters():
            weight *= 0.2  # the tanh form of the GELU has nearly the same gradients there
        for layer in (ours.attention.out_proj, ours.cross.out_proj, ours.feed_forward.down):
            layer.weight *= 0.3  # without large gradients that cancel
    adopt(theirs, ours)
    x, context, mask = two_sentences(make, size=60.0)
    assert_gradients_agree(theirs, ours, x, context, mask if masked else None, make=make)
