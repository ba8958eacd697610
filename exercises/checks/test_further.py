"""Public checks of unit 13, a look inside, and the parts wired together."""

import torch
from torch import nn

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    UNMOVED,
    adopt,
    adopt_identity_weights,
    agree,
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

FOUR_FEATURES = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]])


def sentences_and_matrices(make, dtype=torch.float32):
    """Two sentences of six tokens, and matrices for three heads of four features."""
    return (
        make.normal(batch=2, tokens=6, d_in=5, dtype=dtype),
        make.normal(0.5, d_in=5, d_out=12, dtype=dtype),
        make.normal(0.5, d_in=5, d_out=12, dtype=dtype),
    )


@rung.shape("head_weights")
def test_head_weights_gives_a_square_for_every_head(student, make):
    """For each head, there is a row for every query and a column for every key."""
    student.head_weights(*sentences_and_matrices(make), 3)


@rung.value("head_weights")
def test_head_weights_of_the_example(student):
    """With identity matrices and two heads, the weights are those of the example."""
    expected = torch.tensor(
        [[[[1.0, 0.0], [0.0558, 0.9442]], [[1.0, 0.0], [0.3302, 0.6698]]]],
    )
    found = student.head_weights(FOUR_FEATURES, torch.eye(4), torch.eye(4), 2)
    assert_agrees(found, expected, within=PRINTED, what="the weights of two heads")


@rung.value("head_weights")
def test_head_weights_of_other_sentences(student, reference, make):
    """The weights are right for other sentences and other matrices."""
    inputs = sentences_and_matrices(make)
    assert_agrees(student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3))


@rung.property("head_weights", rules=("batch",))
def test_head_weights_keeps_sentences_apart(student, make):
    """Huge scores in one sentence leave the weights of other sentences as they were."""
    x, W_query, W_key = sentences_and_matrices(make)
    assert_batch_rows_do_not_mix(lambda x: student.head_weights(x, W_query, W_key, 3), x)


@rung.property("head_weights", rules=("dtype",))
def test_head_weights_gives_float64_for_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    x, W_query, W_key = sentences_and_matrices(make, torch.float64)
    x[..., 0], W_query[0], W_key[0] = 1.0, 4.0, 4.0  # float32 rounds scores near 32
    inputs = x, W_query, W_key
    assert_agrees_to_float64(
        student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3), within=DIGITS
    )


@rung.property("head_weights", rules=("unchanged",))
def test_head_weights_leaves_what_it_was_given(student, make):
    """The tensors that were passed in stay as they were."""
    assert_input_unchanged(student.head_weights, *sentences_and_matrices(make), 3)


@rung.gradient("head_weights", rules=("gradients",))
def test_head_weights_lets_gradients_through(student, reference, make):
    """Gradients reach the tokens and both matrices."""
    assert_gradients_agree(
        lambda *inputs: student.head_weights(*inputs, 3),
        lambda *inputs: reference.head_weights(*inputs, 3),
        *sentences_and_matrices(make),
        make=make,
    )


@rung.stability("head_weights", rules=("large",))
def test_head_weights_survives_a_head_of_large_scores(student, reference, make):
    """When one head has scores of 800, the weights of all heads are still right."""
    x, W_query, W_key = sentences_and_matrices(make)
    x[..., 0] = 1.0
    for matrix in (W_query, W_key):
        matrix[:, :4] *= 0.1
        matrix[0, :4] = 20.0  # 4 · 20 · 20 / √4 = 800
    assert_agrees(
        student.head_weights(x, W_query, W_key, 3),
        reference.head_weights(x, W_query, W_key, 3),
        within=LARGE_SCORES,
        what="the weights when one head has scores of 800",
    )


@rung.stability("head_weights", rules=("large",))
def test_head_weights_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are about -800, the future still gets no weight."""
    x, W_query, W_key = sentences_and_matrices(make)
    x[..., 0] = 1.0
    for matrix, weight in ((W_query, 20.0), (W_key, -20.0)):
        matrix *= 0.1
        matrix[0] = weight
    assert_agrees(
        student.head_weights(x, W_query, W_key, 3),
        reference.head_weights(x, W_query, W_key, 3),
        within=LARGE_SCORES,
        what="the weights when all scores are about -800",
    )


# --- bilinear_form -------------------------------------------------------------------------------


def two_matrices(make, dtype=torch.float32):
    """The two matrices of a head, for tokens of five features and queries of three features."""
    return [make.normal(d_in=5, d_out=3, dtype=dtype) for _ in range(2)]


@rung.shape("bilinear_form")
def test_bilinear_form_is_as_wide_as_the_tokens(student, make):
    """The result has a row and a column for each feature of a token."""
    student.bilinear_form(*two_matrices(make))


@rung.value("bilinear_form")
def test_bilinear_form_of_the_example(student):
    """In the example, feature 0 searches for feature 1, and feature 1 searches for feature 2."""
    W_query = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    W_key = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    expected = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_agrees(student.bilinear_form(W_query, W_key), expected, what="the form of the example")


@rung.value("bilinear_form")
def test_bilinear_form_of_other_matrices(student, reference, make):
    """The result is right for other matrices."""
    matrices = two_matrices(make)
    assert_agrees(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


@rung.property("bilinear_form", rules=("dtype",))
def test_bilinear_form_gives_float64_for_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    matrices = two_matrices(make, torch.float64)
    assert_agrees_to_float64(
        student.bilinear_form(*matrices), reference.bilinear_form(*matrices), within=DIGITS
    )


@rung.property("bilinear_form", rules=("unchanged",))
def test_bilinear_form_leaves_what_it_was_given(student, make):
    """The matrices that were passed in stay as they were."""
    assert_input_unchanged(student.bilinear_form, *two_matrices(make))


@rung.gradient("bilinear_form", rules=("gradients",))
def test_bilinear_form_lets_gradients_through(student, reference, make):
    """Gradients reach both matrices."""
    assert_gradients_agree(
        student.bilinear_form, reference.bilinear_form, *two_matrices(make), make=make
    )


# --- absorb_keys ---------------------------------------------------------------------------------


def query_and_up_key(make, dtype=torch.float32):
    """Matrices for three heads of four features: tokens of five, latents of seven."""
    return (
        make.normal(d_in=5, d_out=12, dtype=dtype),
        make.normal(d_latent=7, d_out=12, dtype=dtype),
    )


@rung.shape("absorb_keys")
def test_absorb_keys_gives_a_matrix_for_every_head(student, make):
    """There is a matrix for each head, from tokens to latents."""
    student.absorb_keys(*query_and_up_key(make), 3)


@rung.value("absorb_keys")
def test_absorb_keys_of_the_example(student):
    """With two heads of one column each, a head's matrix is the product of its own two columns."""
    W_query = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    W_up_key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    expected = torch.tensor([[[1.0, 0.0, 1.0], [0.0] * 3], [[0.0] * 3, [0.0, 2.0, 2.0]]])
    assert_agrees(student.absorb_keys(W_query, W_up_key, 2), expected, what="two heads")


@rung.value("absorb_keys")
def test_absorb_keys_of_other_matrices(student, reference, make):
    """The result is right for other matrices and other numbers of heads."""
    matrices = query_and_up_key(make)
    for num_heads in (3, 2):
        assert_agrees(
            student.absorb_keys(*matrices, num_heads),
            reference.absorb_keys(*matrices, num_heads),
            what=f"the matrices of {num_heads} heads",
        )


@rung.property("absorb_keys", rules=("dtype",))
def test_absorb_keys_gives_float64_for_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    matrices = query_and_up_key(make, torch.float64)
    assert_agrees_to_float64(
        student.absorb_keys(*matrices, 3), reference.absorb_keys(*matrices, 3), within=DIGITS
    )


@rung.property("absorb_keys", rules=("unchanged",))
def test_absorb_keys_leaves_what_it_was_given(student, make):
    """The matrices that were passed in stay as they were."""
    assert_input_unchanged(student.absorb_keys, *query_and_up_key(make), 3)


@rung.gradient("absorb_keys", rules=("gradients",))
def test_absorb_keys_lets_gradients_through(student, reference, make):
    """Gradients reach both matrices."""
    assert_gradients_agree(
        lambda *matrices: student.absorb_keys(*matrices, 3),
        lambda *matrices: reference.absorb_keys(*matrices, 3),
        *query_and_up_key(make),
        make=make,
    )


# --- both modules --------------------------------------------------------------------------------


def make_loud(*layers, rows):
    """Let heads of width 4 score 400 or more wherever the first feature of tokens is 1.

    `rows` are the features of queries and keys that get large weights. A softmax ignores a
    constant that is added to all scores of a row, so right results stay small.
    """
    with torch.no_grad():
        for layer in layers:
            layer.weight[rows] *= 0.1
            layer.weight[rows, 0] = 20.0  # each row adds 20 · 20 / √4 = 200 to a score


def make_low(queries, keys, rows):
    """Like `make_loud`, with a negative sign: scores are -400 or less."""
    make_loud(queries, keys, rows=rows)
    with torch.no_grad():
        keys.weight[rows, 0] *= -1.0


LOUD = {"within": LARGE_SCORES, "what": "the output when one head has very large scores"}
LOW = {"within": LARGE_SCORES, "what": "the output when all scores are very low"}


# --- LatentCachedAttention -----------------------------------------------------------------------


def two_latent_modules(student, reference):
    """The student's module and ours, of four heads of three features, with the same weights."""
    theirs = student.LatentCachedAttention(5, 12, 4, 6)
    ours = reference.LatentCachedAttention(5, 12, 4, 6)
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("LatentCachedAttention")
def test_latent_cached_attention_gives_an_output_and_a_cache(student, make):
    """A call returns outputs of the new tokens, and a cache that has grown by as many latents."""
    attention = student.LatentCachedAttention(5, 12, 4, 2)
    _out, cache = attention(make.normal(batch=2, tokens=6, d_in=5))
    _out, cache = attention(make.normal(batch=2, tokens=1, d_in=5), cache)
    attention(make.normal(batch=2, tokens=7, d_in=5), cache)


@rung.value("LatentCachedAttention")
def test_latent_cached_attention_with_identity_weights(student, reference):
    """With identity matrices, one token and then another give the output of the example."""
    theirs = student.LatentCachedAttention(4, 4, 2, 2)
    adopt_identity_weights(theirs, reference.LatentCachedAttention(4, 4, 2, 2))
    first, cache = theirs(FOUR_FEATURES[:, :1])
    expected = torch.tensor([[[1.0, 0.0, 0.0, 0.0]]])
    assert_agrees(first, expected, within=PRINTED, what="the output for the first token")
    second, _cache = theirs(FOUR_FEATURES[:, 1:], cache)
    expected = torch.tensor([[[0.0558, 1.8884, 0.0, 0.0]]])
    assert_agrees(second, expected, within=PRINTED, what="the output for the second token")


@rung.value("LatentCachedAttention")
def test_latent_cached_attention_without_a_cache(student, reference, make):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=20, d_in=5)
    assert_agrees(theirs(x)[0], ours(x)[0], within=REORDERED, what="the output")


@rung.value("LatentCachedAttention")
def test_latent_cached_attention_in_two_chunks(student, reference, make):
    """For four tokens and then three more, the outputs equal those of all seven at once."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5)
    whole = ours(x)[0]
    first, cache = theirs(x[:, :4])
    assert_agrees(first, whole[:, :4], within=REORDERED, what="the first four tokens")
    second, _cache = theirs(x[:, 4:], cache)
    assert_agrees(second, whole[:, 4:], within=REORDERED, what="the three tokens after those")


@rung.value("LatentCachedAttention")
def test_latent_cached_attention_token_by_token(student, reference, make):
    """When tokens come one at a time, the outputs equal those of all tokens at once."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=5, d_in=5)
    whole = ours(x)[0]
    out, cache = theirs(x[:, :1])
    for position in range(1, 5):
        out, cache = theirs(x[:, position : position + 1], cache)
        expected = whole[:, position : position + 1]
        what = f"the output at position {position}, fed alone"
        assert_agrees(out, expected, within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("cache",))
def test_latent_cached_attention_keeps_latents(student, reference, make):
    """After two chunks, the cache holds the latents of all tokens, the oldest first."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5)
    _out, cache = theirs(x[:, :4])
    _out, cache = theirs(x[:, 4:], cache)
    assert_agrees(cache, ours(x)[1], what="the cache after four tokens and three more")


@rung.property("LatentCachedAttention", rules=("length",))
def test_latent_cached_attention_takes_a_long_text(student, reference, make):
    """A last token may come after 255 others."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=256, d_in=5)
    _out, cache = theirs(x[:, :255])
    out, _cache = theirs(x[:, 255:], cache)
    what = "the output for 1 token after 255"
    assert_agrees(out, ours(x)[0][:, 255:], within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("none",))
def test_latent_cached_attention_takes_none_for_no_past(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(batch=2, tokens=4, d_in=5)
    found, expected = theirs(x, None)[0], ours(x)[0]
    assert_agrees(found, expected, within=REORDERED, what="the output with cache=None")


@rung.property("LatentCachedAttention", rules=("state",))
def test_latent_cached_attention_writes_two_texts_in_turn(student, reference, make):
    """With two caches, one module continues two texts in turn."""
    theirs, ours = two_latent_modules(student, reference)
    one, other = make.normal(batch=2, tokens=4, d_in=5), make.normal(batch=2, tokens=6, d_in=5)
    _out, cache_of_one = theirs(one[:, :2])
    _out, cache_of_other = theirs(other[:, :4])
    for what, text, cache in (("first", one, cache_of_one), ("second", other, cache_of_other)):
        out, _cache = theirs(text[:, -2:], cache)
        expected = ours(text)[0][:, -2:]
        what = f"the last two tokens of the {what} text"
        assert_agrees(out, expected, within=REORDERED, what=what)


@rung.property("LatentCachedAttention", rules=("unchanged",))
def test_latent_cached_attention_leaves_its_cache_alone(student, make):
    """The cache that was passed in stays as it was."""
    attention = student.LatentCachedAttention(5, 12, 4, 3)
    _out, cache = attention(make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(attention, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.property("LatentCachedAttention", rules=("bias",))
def test_latent_cached_attention_has_a_bias_at_the_end_only(student, reference):
    """Only the last layer has a bias: the queries and the layers of the latent have none."""
    assert_one_bias(
        student.LatentCachedAttention(7, 12, 3, 5),
        reference.LatentCachedAttention(7, 12, 3, 5),
        "queries, latent, keys and values",
    )


@rung.property("LatentCachedAttention", rules=("batch",))
def test_latent_cached_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs, _ours = two_latent_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_batch_rows_do_not_mix(lambda x: theirs(x)[0], x)


@rung.property("LatentCachedAttention", rules=("device",))
def test_latent_cached_attention_works_on_another_device(student, make):
    """After a move to another device, the module takes inputs from that device."""
    attention = student.LatentCachedAttention(5, 12, 4, 3)
    assert_moves(attention, make.normal(batch=2, tokens=5, d_in=5))


@rung.property("LatentCachedAttention", rules=("dtype",))
def test_latent_cached_attention_computes_in_float64(student, reference, make):
    """After `.double()`, output and cache are computed in float64."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs, ours = two_latent_modules(student, reference)
    theirs.double()
    x = make.normal(batch=2, tokens=5, d_in=5, dtype=torch.float64)
    _out, cache = theirs(x[:, :3])
    out, _cache = theirs(x[:, 3:], cache)
    assert_agrees_to_float64(out, ours.double()(x)[0][:, 3:], within=DIGITS)


@rung.gradient("LatentCachedAttention", rules=("gradients",))
def test_latent_cached_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all layers."""
    theirs, ours = two_latent_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make, of=lambda result: result[0])


@rung.stability("LatentCachedAttention", rules=("large",))
def test_latent_cached_attention_survives_a_head_of_large_scores(student, reference, make):
    """When one head has very large scores, all heads give numbers, not NaN."""
    theirs, ours = two_latent_modules(student, reference)
    make_loud(ours.W_query, ours.W_up_key, rows=slice(4))
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(5)[0]  # latent[0] is the token's feature 0
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOUD)


@rung.stability("LatentCachedAttention", rules=("large",))
def test_latent_cached_attention_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are very low, the future still gets no weight."""
    theirs, ours = two_latent_modules(student, reference)
    make_low(ours.W_query, ours.W_up_key, rows=slice(12))
    with torch.no_grad():
        ours.W_down.weight[0] = torch.eye(5)[0]  # latent[0] is the token's feature 0
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOW)


# --- RotaryAttention -----------------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]])
# Heads of four features have a fast pair and a slow pair. In a few tokens, the slow pair hardly
# turns.
SLOW = [2, 3, 6, 7, 10, 11]


def two_rotary_modules(student, reference, d_out=12):
    """The student's module and ours, of three heads, with the same weights."""
    theirs, ours = (who.RotaryAttention(5, d_out, 3) for who in (student, reference))
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("RotaryAttention")
def test_rotary_attention_gives_an_output_and_a_cache(student, make):
    """A call returns outputs of the new tokens, and a cache that has grown by as many tokens."""
    attention = student.RotaryAttention(5, 16, 4)
    _out, cache = attention(make.normal(batch=2, tokens=6, d_in=5))
    _out, cache = attention(make.normal(batch=2, tokens=1, d_in=5), cache)
    attention(make.normal(batch=2, tokens=7, d_in=5), cache)


@rung.value("RotaryAttention")
def test_rotary_attention_with_identity_weights(student, reference):
    """With identity matrices, two tokens and then a third give the outputs of the example."""
    theirs = student.RotaryAttention(2, 2, 1)
    adopt_identity_weights(theirs, reference.RotaryAttention(2, 2, 1))
    first, cache = theirs(THREE_TOKENS[:, :2])
    expected = torch.tensor([[[1.0, 0.0], [0.0177, 1.9647]]])
    assert_agrees(first, expected, within=PRINTED, what="the output for the first two tokens")
    last, _cache = theirs(THREE_TOKENS[:, 2:], cache)
    expected = torch.tensor([[[0.4576, 1.0848]]])
    assert_agrees(last, expected, within=PRINTED, what="the output for the third token")


@rung.value("RotaryAttention")
def test_rotary_attention_without_a_cache(student, reference, make):
    """For all tokens at once, without a cache, the output is that of the reference."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=20, d_in=5)
    assert_agrees(theirs(x)[0], ours(x)[0], within=REORDERED, what="the output")


@rung.value("RotaryAttention")
def test_rotary_attention_in_two_chunks(student, reference, make):
    """For four tokens and then three more, the outputs equal those of all seven at once."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=7, d_in=5)
    whole = ours(x)[0]
    first, cache = theirs(x[:, :4])
    assert_agrees(first, whole[:, :4], within=REORDERED, what="the first four tokens")
    second, _cache = theirs(x[:, 4:], cache)
    assert_agrees(second, whole[:, 4:], within=REORDERED, what="the three tokens after those")


@rung.value("RotaryAttention")
def test_rotary_attention_token_by_token(student, reference, make):
    """When tokens come one at a time, the outputs equal those of all tokens at once."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=5, d_in=5)
    whole = ours(x)[0]
    out, cache = theirs(x[:, :1])
    for position in range(1, 5):
        out, cache = theirs(x[:, position : position + 1], cache)
        expected = whole[:, position : position + 1]
        what = f"the output at position {position}, fed alone"
        assert_agrees(out, expected, within=REORDERED, what=what)


@rung.property("RotaryAttention", rules=("length",))
def test_rotary_attention_takes_a_long_text(student, reference, make):
    """A last token may come after 127 others."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=128, d_in=5)
    _out, cache = theirs(x[:, :127])
    out, _cache = theirs(x[:, 127:], cache)
    what = "the output for 1 token after 127"
    assert_agrees(out, ours(x)[0][:, 127:], within=REORDERED, what=what)


@rung.property("RotaryAttention", rules=("none",))
def test_rotary_attention_takes_none_for_no_past(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(batch=2, tokens=4, d_in=5)
    found, expected = theirs(x, None)[0], ours(x)[0]
    assert_agrees(found, expected, within=REORDERED, what="the output with cache=None")


@rung.property("RotaryAttention", rules=("state",))
def test_rotary_attention_writes_two_texts_in_turn(student, reference, make):
    """With two caches, one module continues two texts in turn."""
    theirs, ours = two_rotary_modules(student, reference)
    one, other = make.normal(batch=2, tokens=4, d_in=5), make.normal(batch=2, tokens=6, d_in=5)
    _out, cache_of_one = theirs(one[:, :2])
    _out, cache_of_other = theirs(other[:, :4])
    for what, text, cache in (("first", one, cache_of_one), ("second", other, cache_of_other)):
        out, _cache = theirs(text[:, -2:], cache)
        expected = ours(text)[0][:, -2:]
        what = f"the last two tokens of the {what} text"
        assert_agrees(out, expected, within=REORDERED, what=what)


@rung.property("RotaryAttention", rules=("unchanged",))
def test_rotary_attention_leaves_its_cache_alone(student, make):
    """The cache that was passed in stays as it was."""
    attention = student.RotaryAttention(5, 12, 3)
    _out, cache = attention(make.normal(batch=2, tokens=4, d_in=5))
    assert_input_unchanged(attention, make.normal(batch=2, tokens=3, d_in=5), cache)


@rung.property("RotaryAttention", rules=("bias",))
def test_rotary_attention_has_a_bias_at_the_end_only(student, reference):
    """Queries, keys and values have no bias; the last layer has a bias."""
    assert_one_bias(
        student.RotaryAttention(5, 12, 3),
        reference.RotaryAttention(5, 12, 3),
        "queries, keys and values",
    )


@rung.property("RotaryAttention", rules=("batch",))
def test_rotary_attention_keeps_sentences_apart(student, reference, make):
    """Huge scores in one sentence leave the outputs of other sentences as they were."""
    theirs, _ours = two_rotary_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_batch_rows_do_not_mix(lambda x: theirs(x)[0], x)


@rung.property("RotaryAttention", rules=("dtype",))
def test_rotary_attention_computes_in_float64(student, reference, make):
    """After `.double()`, output, angles and cache are computed in float64."""
    # Heads of 16 features: the root of 16 is exact, so a scale that is kept in float32 loses no
    # digits. The speeds of the pairs are no powers of ten, and have no exact inverses.
    theirs, ours = two_rotary_modules(student, reference, d_out=48)
    with torch.no_grad():  # an error of float32 stays so small that no other message shows it
        ours.out_proj.weight *= 0.1
    adopt(theirs, ours)
    theirs.double()
    x = make.normal(2.0, batch=2, tokens=53, d_in=5, dtype=torch.float64)
    _out, cache = theirs(x[:, :3])
    out, _cache = theirs(x[:, 3:], cache)
    assert_agrees_to_float64(out, ours.double()(x)[0][:, 3:], within=DIGITS)


@rung.gradient("RotaryAttention", rules=("gradients",))
def test_rotary_attention_can_be_trained(student, reference, make):
    """Gradients reach the input and all layers."""
    theirs, ours = two_rotary_modules(student, reference)
    x = make.normal(0.5, batch=2, tokens=5, d_in=5)
    assert_gradients_agree(theirs, ours, x, make=make, of=lambda result: result[0])


@rung.stability("RotaryAttention", rules=("large",))
def test_rotary_attention_survives_a_head_of_large_scores(student, reference, make):
    """When one head has very large scores, all heads give numbers, not NaN."""
    theirs, ours = two_rotary_modules(student, reference)
    make_loud(ours.W_query, ours.W_key, rows=SLOW[:2])
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOUD)


@rung.stability("RotaryAttention", rules=("large",))
def test_rotary_attention_hides_the_future_below_minus_a_hundred(student, reference, make):
    """When all scores are very low, the future still gets no weight."""
    theirs, ours = two_rotary_modules(student, reference)
    make_low(ours.W_query, ours.W_key, rows=SLOW)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_in=5)
    x[..., 0] = 1.0
    assert_agrees(theirs(x)[0], ours(x)[0], **LOW)


@rung.efficiency("RotaryAttention", rules=("cost",))
def test_rotary_attention_projects_new_tokens_only(student, make):
    """A new token after 64 others takes at most twice the work of a new token after 16."""
    attention = student.RotaryAttention(256, 256, 16)
    token = make.normal(batch=1, tokens=1, d_in=256)
    _out, short = attention(make.normal(batch=1, tokens=16, d_in=256))
    _out, long = attention(make.normal(batch=1, tokens=64, d_in=256))
    assert_grows_at_most(attention, (token, short), (token, long), work=2)


# --- LlamaBlock ----------------------------------------------------------------------------------


def two_llamas(student, reference, d_model=8):
    """The student's block and ours, of two heads, with the same weights."""
    theirs, ours = (who.LlamaBlock(d_model, 2, 10) for who in (student, reference))
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("LlamaBlock")
def test_llama_block_gives_one_vector_per_token(student, make):
    """Each output is as wide as its token, whatever the width of the hidden layer."""
    student.LlamaBlock(8, 2, 10)(make.normal(batch=3, tokens=7, d_model=8))


@rung.value("LlamaBlock")
def test_llama_block_of_the_example(student, reference):
    """With identity matrices and vectors of 0.5, the block gives the numbers of the example."""
    theirs, ours = student.LlamaBlock(2, 1, 3), reference.LlamaBlock(2, 1, 3)
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.5)
    adopt(theirs, ours)
    x = torch.tensor([[[6.0, 0.0], [0.0, 12.0]]])
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the block of the example")


@rung.value("LlamaBlock")
def test_llama_block_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs, ours = two_llamas(student, reference)
    x = make.normal(60.0, batch=3, tokens=7, d_model=8)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.value("LlamaBlock")
def test_llama_block_is_causal(student, reference, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    theirs, _ours = two_llamas(student, reference)
    assert_causal(theirs, make.normal(60.0, batch=3, tokens=7, d_model=8))


@rung.property("LlamaBlock", rules=("length",))
def test_llama_block_takes_a_short_and_a_long_sentence(student, reference, make):
    """The block takes a short sentence, and then a longer one."""
    theirs, ours = two_llamas(student, reference)
    for tokens in (3, 128):
        x = make.normal(60.0, batch=2, tokens=tokens, d_model=8)
        what = f"the result for {tokens} tokens"
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=what)


@rung.property("LlamaBlock", rules=("norms",))
def test_llama_block_learns_two_gains(student, reference):
    """Both norms have a gain of their own."""
    theirs = student.LlamaBlock(8, 2, 10)
    missing = adopt(theirs, reference.LlamaBlock(8, 2, 10)).missing
    lacking = [role for role in missing if role.startswith("norm")]
    assert_that(
        not lacking,
        f"each of the two norms learns a gain of its own: {2 - len(lacking)} gains were found",
    )


@rung.property("LlamaBlock", rules=("bias",))
def test_llama_block_has_a_single_bias(student, reference):
    """Only the attention's last layer has a bias."""
    theirs, ours = student.LlamaBlock(8, 2, 10), reference.LlamaBlock(8, 2, 10)
    layers = "queries, keys, values and the feed-forward layers"
    assert_one_bias(theirs, ours, layers, "attention.out_proj")


@rung.stability("LlamaBlock", rules=("eps",))
def test_llama_block_norms_small_numbers(student, reference, make):
    """Where numbers are very small, the norms depend on eps."""
    theirs, ours = two_llamas(student, reference)
    x = make.normal(1e-3, batch=2, tokens=7, d_model=8)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for small numbers")


@rung.property("LlamaBlock", rules=("dtype",))
def test_llama_block_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    # Heads of 16 features: the root of 16 is exact, so a scale that is kept in float32 loses no
    # digits. The speeds of the pairs are no powers of ten, and have no exact inverses.
    theirs, ours = two_llamas(student, reference, d_model=32)
    with torch.no_grad():  # an error of float32 stays so small that no other message shows it
        ours.attention.out_proj.weight *= 0.1
        ours.feed_forward.W_down.weight *= 0.1
    adopt(theirs, ours)
    # The inputs are so large that eps has no effect. The test compares what the block adds to them.
    x = make.normal(1.3e3, batch=2, tokens=50, d_model=32, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x) - x, ours.double()(x) - x, within=DIGITS)


@rung.property("LlamaBlock", rules=("unchanged",))
def test_llama_block_keeps_its_input(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs, _ours = two_llamas(student, reference)
    assert_input_unchanged(theirs, make.normal(60.0, batch=2, tokens=7, d_model=8))


@rung.gradient("LlamaBlock", rules=("gradients",))
def test_llama_block_lets_gradients_through(student, reference, make):
    """Gradients reach the input, both gains, the attention and the feed-forward layer."""
    theirs, ours = two_llamas(student, reference)
    with torch.no_grad():  # a gradient is as large as the weights that it passes
        for weight in ours.parameters():
            weight *= 0.5
    adopt(theirs, ours)
    x = make.normal(60.0, batch=2, tokens=7, d_model=8)
    assert_gradients_agree(theirs, ours, x, make=make)


# --- EncoderDecoderBlock -------------------------------------------------------------------------

GENTLE_GELU = 0.02  # keeps inputs of the GELU within ±0.25, where its tanh form agrees
TRANSLATOR = (8, 2, 11)


def translators(student, reference, low=None):
    """The student's block and the reference, with the same weights.

    Scores are near one or two. `low` names a norm and the attention after it: the scores of this
    attention become about -800.
    """
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    ours = reference.EncoderDecoderBlock(*TRANSLATOR)
    weights = dict(ours.named_parameters())
    with torch.no_grad():
        for name in ("feed_forward.up.weight", "feed_forward.up.bias"):
            weights[name] *= GENTLE_GELU
        for part in ("attention", "cross"):
            weights[f"{part}.W_query.weight"] *= 0.4
            weights[f"{part}.W_value.weight"] *= 0.4
        if low is not None:
            norm, part = low
            weights[f"{norm}.weight"][0], weights[f"{norm}.bias"][0] = 0.0, 1.0
            weights[f"{part}.W_key.weight"] *= 0.2
            weights[f"{part}.W_query.weight"][:, 0] = 20.0
            weights[f"{part}.W_key.weight"][:, 0] = -20.0
    adopt(theirs, ours)
    return theirs, ours


def two_sentences(make, dtype=torch.float32, size=30.0):
    """Three target sentences of five tokens, sources of seven, and a mask for the sources.

    Targets are so large that the eps of the norms has no effect.
    """
    x = make.normal(size, batch=3, targets=5, d_model=8, dtype=dtype)
    context = make.normal(batch=3, sources=7, d_model=8, dtype=dtype)
    mask = torch.zeros(3, 7, dtype=torch.bool)
    mask[::2, 4:] = mask[1, 1::2] = True
    return x, context, mask


@rung.shape("EncoderDecoderBlock")
def test_encoder_decoder_block_gives_one_vector_per_token_of_x(student, make):
    """The result has one vector of size d_model for each token of x."""
    x, context, _ = two_sentences(make)
    student.EncoderDecoderBlock(*TRANSLATOR)(x, context)


@rung.value("EncoderDecoderBlock")
def test_encoder_decoder_block_adds_what_its_parts_find(student, reference):
    """With weights of zero and biases of 1, 2 and 3, the block gives the answer of the example."""
    theirs, ours = student.EncoderDecoderBlock(2, 1, 3), reference.EncoderDecoderBlock(2, 1, 3)
    added = {"attention.out_proj.bias": 1.0, "cross.out_proj.bias": 2.0}
    added["feed_forward.down.bias"] = 3.0
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            weight.fill_(added.get(name, 0.0))
    adopt(theirs, ours)
    inputs = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 4, 2)
    # A block that lacks a bias is compared with a reference that lacks it too.
    assert_agrees(theirs(*inputs), ours(*inputs), what="two tokens, and three biases")


@rung.value("EncoderDecoderBlock")
def test_encoder_decoder_block_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no mask, the result is that of the reference."""
    theirs, ours = translators(student, reference)
    x, context, _ = two_sentences(make)
    expected = ours(x, context)
    assert_agrees(theirs(x, context), expected, within=REORDERED)
    what = "the result with the mask None"
    assert_agrees(theirs(x, context, None), expected, within=REORDERED, what=what)


@rung.value("EncoderDecoderBlock", rules=("hidden", "computes"))
def test_encoder_decoder_block_hides_what_the_mask_says(student, reference, make):
    """With a mask, each sentence ignores the tokens of the context that are hidden from it."""
    theirs, ours = translators(student, reference)
    inputs = two_sentences(make)
    what = "the result with a mask"
    assert_agrees(theirs(*inputs), ours(*inputs), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("causal",))
def test_encoder_decoder_block_sees_no_future(student, reference, make):
    """Later tokens of x change no output before them, even if all scores are low."""
    theirs, _ = translators(student, reference, low=("norm1", "attention"))
    x, context, _ = two_sentences(make)
    assert_causal(lambda x: theirs(x, context), x)


@rung.property("EncoderDecoderBlock", rules=("hidden",))
def test_encoder_decoder_block_does_not_care_what_is_hidden(student, reference, make):
    """The content of hidden tokens changes no output, even if all scores are low."""
    theirs, _ = translators(student, reference, low=("norm2", "cross"))
    x, context, mask = two_sentences(make)
    other = torch.where(mask[..., None], 1.0 - context.flip(1), context)
    context[..., 0] = other[..., 0] = 1.0
    assert_that(
        agree(theirs(x, other, mask), theirs(x, context, mask), within=UNMOVED),
        "only hidden tokens of the context changed, and outputs changed with them: how much of "
        "its weight does a hidden token keep, even if all scores are low?",
    )


@rung.property("EncoderDecoderBlock", rules=("length",))
def test_encoder_decoder_block_takes_short_and_long_sentences(student, reference, make):
    """The block takes a single token and a long context, and then the opposite."""
    theirs, ours = translators(student, reference)
    for targets, sources in ((1, 300), (300, 1)):
        x = make.normal(60.0, batch=2, targets=targets, d_model=8)
        context = make.normal(batch=2, sources=sources, d_model=8)
        what = f"the result for {targets} tokens and a context of {sources}"
        assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("norms",))
def test_encoder_decoder_block_learns_in_three_norms(student, reference):
    """Each of the three norms has a gain and a shift of its own."""
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    missing = set(adopt(theirs, reference.EncoderDecoderBlock(*TRANSLATOR)).missing)
    lacking = [
        f"the {what} of the {place} norm"
        for role, place in (("norm1", "first"), ("norm2", "second"), ("norm3", "third"))
        for part, what in (("", "gain"), (".bias", "shift"))
        if role + part in missing
    ]
    assert_that(not lacking, f"the block has no parameters for {' and '.join(lacking)}")


@rung.property("EncoderDecoderBlock", rules=("bias",))
def test_encoder_decoder_block_has_four_biases(student, reference):
    """Queries, keys and values have no bias; both output layers, up and down have a bias."""
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    adoption = adopt(theirs, reference.EncoderDecoderBlock(*TRANSLATOR))
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")
    names = ("attention.out_proj", "cross.out_proj", "feed_forward.up", "feed_forward.down")
    missing = [name for name in names if f"{name}.bias" in adoption.missing]
    assert_that(not missing, f"no bias was found for {', '.join(missing)}")


@rung.stability("EncoderDecoderBlock", rules=("eps",))
def test_encoder_decoder_block_norms_small_numbers(student, reference, make):
    """Where numbers are very small, the norms depend on eps."""
    theirs, ours = translators(student, reference)
    x, context, _ = two_sentences(make, size=3e-3)
    what = "the result for small numbers"
    assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("gelu",))
def test_encoder_decoder_block_has_the_exact_gelu(student, reference, make):
    """For large numbers too, the GELU is exact, not the approximation by tanh."""
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    ours = reference.EncoderDecoderBlock(*TRANSLATOR)
    adopt(theirs, ours)
    x, context, _ = two_sentences(make)
    what = "the result with large weights"
    assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("device",))
def test_encoder_decoder_block_moves_to_another_device(student, make):
    """After a move to another device, the module takes both sequences and the mask from there."""
    assert_moves(student.EncoderDecoderBlock(*TRANSLATOR), *two_sentences(make))


@rung.property("EncoderDecoderBlock", rules=("dtype",))
def test_encoder_decoder_block_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    theirs, ours = student.EncoderDecoderBlock(8, 2, 11), reference.EncoderDecoderBlock(8, 2, 11)
    with torch.no_grad():  # this near 0, the GELU and its tanh form have the same digits
        for name, weight in ours.named_parameters():
            if name.startswith("feed_forward.up"):
                weight *= 0.05 * GENTLE_GELU
            elif name == "feed_forward.down.weight":
                weight *= 100.0
            elif name.endswith(("W_query.weight", "W_value.weight")):
                weight *= 0.4
    adopt(theirs, ours)
    # The inputs are so large that eps has no effect. The test compares what the block adds to them.
    x, *others = two_sentences(make, torch.float64, size=1e4)
    assert_agrees_to_float64(
        theirs.double()(x, *others) - x, ours.double()(x, *others) - x, within=DIGITS
    )


@rung.property("EncoderDecoderBlock", rules=("unchanged",))
def test_encoder_decoder_block_keeps_its_inputs(student, make):
    """Both sequences and the mask stay as they were."""
    assert_input_unchanged(student.EncoderDecoderBlock(*TRANSLATOR), *two_sentences(make))


@rung.gradient("EncoderDecoderBlock", rules=("gradients",))
def test_encoder_decoder_block_lets_gradients_through(student, reference, make):
    """Gradients reach both sequences, all norms, both attentions and the network."""
    theirs, ours = translators(student, reference)
    with torch.no_grad():  # a gradient is as large as the weights that it passes
        for weight in ours.parameters():
            weight *= 0.5
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, *two_sentences(make, size=60.0), make=make)
