"""Public checks of unit 13, a look inside, and the parts wired together."""

import torch

from grader.course.collection import rung
from grader.testing import (
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    UNMOVED,
    adopt,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
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
    """They are right for other sentences and other matrices."""
    inputs = sentences_and_matrices(make)
    assert_agrees(student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3))


@rung.property("head_weights", rules=("batch",))
def test_head_weights_keeps_sentences_apart(student, make):
    """Another sentence of the batch, with huge scores, leaves weights as they were."""
    x, W_query, W_key = sentences_and_matrices(make)
    assert_batch_rows_do_not_mix(lambda x: student.head_weights(x, W_query, W_key, 3), x)


@rung.property("head_weights", rules=("dtype",))
def test_head_weights_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, and is computed to its precision."""
    x, W_query, W_key = sentences_and_matrices(make, torch.float64)
    x[..., 0], W_query[0], W_key[0] = 1.0, 4.0, 4.0  # scores near 32: float32 rounds them
    inputs = x, W_query, W_key
    assert_agrees_to_float64(student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3))


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
    """The matrices of one head, for tokens of five features and queries of three."""
    return [make.normal(d_in=5, d_out=3, dtype=dtype) for _ in range(2)]


@rung.shape("bilinear_form")
def test_bilinear_form_is_as_wide_as_the_tokens(student, make):
    """Features of the query go down, features of the key go across."""
    student.bilinear_form(*two_matrices(make))


@rung.value("bilinear_form")
def test_bilinear_form_of_the_example(student):
    """Feature 0 searches for feature 1, feature 1 for feature 2, feature 2 for nothing."""
    W_query = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    W_key = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    expected = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_agrees(student.bilinear_form(W_query, W_key), expected, what="the form of the example")


@rung.value("bilinear_form")
def test_bilinear_form_of_other_matrices(student, reference, make):
    """It is right for other matrices."""
    matrices = two_matrices(make)
    assert_agrees(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


@rung.property("bilinear_form", rules=("dtype",))
def test_bilinear_form_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, and is computed to its precision."""
    matrices = two_matrices(make, torch.float64)
    assert_agrees_to_float64(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


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
    """Two heads of one feature: each multiplies its own columns."""
    W_query = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    W_up_key = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    expected = torch.tensor([[[1.0, 0.0, 1.0], [0.0] * 3], [[0.0] * 3, [0.0, 2.0, 2.0]]])
    assert_agrees(student.absorb_keys(W_query, W_up_key, 2), expected, what="two heads")


@rung.value("absorb_keys")
def test_absorb_keys_of_other_matrices(student, reference, make):
    """It is right for other matrices and other numbers of heads."""
    matrices = query_and_up_key(make)
    for num_heads in (3, 2):
        assert_agrees(
            student.absorb_keys(*matrices, num_heads),
            reference.absorb_keys(*matrices, num_heads),
            what=f"the matrices of {num_heads} heads",
        )


@rung.property("absorb_keys", rules=("dtype",))
def test_absorb_keys_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, and is computed to its precision."""
    matrices = query_and_up_key(make, torch.float64)
    assert_agrees_to_float64(student.absorb_keys(*matrices, 3), reference.absorb_keys(*matrices, 3))


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


# --- EncoderDecoderBlock -------------------------------------------------------------------------

GENTLE_GELU = 0.02  # what goes into the GELU stays within ±0.25: there its tanh form is the same
TRANSLATOR = (8, 2, 11)


def translators(student, reference, low=None):
    """The student's block with the weights of the reference, and the reference.

    Scores are one or two; of the attention that is `low`, after this norm, they are about -800.
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


def two_sentences(make, dtype=torch.float32):
    """Five tokens that are written, seven that are translated, and a mask of these."""
    x = make.normal(batch=2, targets=5, d_model=8, dtype=dtype)
    context = make.normal(batch=2, sources=7, d_model=8, dtype=dtype)
    mask = torch.zeros(2, 7, dtype=torch.bool)
    mask[0, 4:] = mask[1, 1::2] = True
    return x, context, mask


@rung.shape("EncoderDecoderBlock")
def test_encoder_decoder_block_gives_one_vector_per_token_of_x(student, make):
    """One vector of size d_model comes back for each token of x."""
    x, context, _ = two_sentences(make)
    student.EncoderDecoderBlock(*TRANSLATOR)(x, context)


@rung.value("EncoderDecoderBlock")
def test_encoder_decoder_block_adds_what_its_parts_find(student, reference):
    """With weights of zero and biases of 1, 2 and 3, it gives the answer of the example."""
    theirs, ours = student.EncoderDecoderBlock(2, 1, 3), reference.EncoderDecoderBlock(2, 1, 3)
    added = {"attention.out_proj.bias": 1.0, "cross.out_proj.bias": 2.0}
    added["feed_forward.down.bias"] = 3.0
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            weight.fill_(added.get(name, 0.0))
    adopt(theirs, ours)
    result = theirs(torch.tensor([[[1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 4, 2))
    expected = torch.tensor([[[7.0, 6.0], [6.0, 8.0]]])
    assert_agrees(result, expected, what="two tokens, and three biases")


@rung.value("EncoderDecoderBlock")
def test_encoder_decoder_block_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights and no mask, the result is that of the reference."""
    theirs, ours = translators(student, reference)
    x, context, _ = two_sentences(make)
    expected = ours(x, context)
    assert_agrees(theirs(x, context), expected, within=REORDERED)
    what = "the result with the mask None"
    assert_agrees(theirs(x, context, None), expected, within=REORDERED, what=what)


@rung.value("EncoderDecoderBlock", rules=("computes", "hidden"))
def test_encoder_decoder_block_hides_what_the_mask_says(student, reference, make):
    """With a mask, each sentence does without the tokens that are hidden from it."""
    theirs, ours = translators(student, reference)
    inputs = two_sentences(make)
    what = "the result with a mask"
    assert_agrees(theirs(*inputs), ours(*inputs), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("causal",))
def test_encoder_decoder_block_sees_no_future(student, reference, make):
    """Whatever later tokens of x hold, nothing before them moves, where all scores are low too."""
    theirs, _ = translators(student, reference, low=("norm1", "attention"))
    x, context, _ = two_sentences(make)
    assert_causal(lambda x: theirs(x, context), x)


@rung.property("EncoderDecoderBlock", rules=("hidden",))
def test_encoder_decoder_block_does_not_care_what_is_hidden(student, reference, make):
    """Whatever hidden tokens of the context hold, nothing moves, where all scores are low too."""
    theirs, _ = translators(student, reference, low=("norm2", "cross"))
    x, context, mask = two_sentences(make)
    other = torch.where(mask[..., None], 1.0 - context.flip(1), context)
    context[..., 0] = other[..., 0] = 1.0
    assert_that(
        agree(theirs(x, other, mask), theirs(x, context, mask), within=UNMOVED),
        "only hidden tokens of the context changed, and outputs changed with them: how much of "
        "its weight does a hidden token keep, even if all scores are low?",
    )


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
    """No bias for queries, keys and values; one for both output layers, for up and for down."""
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    adoption = adopt(theirs, reference.EncoderDecoderBlock(*TRANSLATOR))
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")
    names = ("attention.out_proj", "cross.out_proj", "feed_forward.up", "feed_forward.down")
    missing = [name for name in names if f"{name}.bias" in adoption.missing]
    assert_that(not missing, f"no bias could be found that belongs to {', '.join(missing)}")


@rung.property("EncoderDecoderBlock", rules=("gelu",))
def test_encoder_decoder_block_has_the_exact_gelu(student, reference, make):
    """Where large numbers go into the GELU, it is the exact one and not its tanh form."""
    theirs = student.EncoderDecoderBlock(*TRANSLATOR)
    ours = reference.EncoderDecoderBlock(*TRANSLATOR)
    adopt(theirs, ours)
    x, context, _ = two_sentences(make)
    what = "the result with large weights"
    assert_agrees(theirs(x, context), ours(x, context), within=REORDERED, what=what)


@rung.property("EncoderDecoderBlock", rules=("device",))
def test_encoder_decoder_block_moves_to_another_device(student, make):
    """Moved to another device, it takes both sequences and the mask from there."""
    assert_moves(student.EncoderDecoderBlock(*TRANSLATOR), *two_sentences(make))


@rung.property("EncoderDecoderBlock", rules=("dtype",))
def test_encoder_decoder_block_computes_in_float64(student, reference, make):
    """After .double(), it takes and gives float64, with all of its digits."""
    theirs, ours = student.EncoderDecoderBlock(8, 2, 11), reference.EncoderDecoderBlock(8, 2, 11)
    with torch.no_grad():  # so near to 0 the tanh form of the GELU has the same digits
        for name, weight in ours.named_parameters():
            if name.startswith("feed_forward.up"):
                weight *= 0.05 * GENTLE_GELU
            elif name == "feed_forward.down.weight":
                weight *= 100.0
            elif name.endswith(("W_query.weight", "W_value.weight")):
                weight *= 0.4
    adopt(theirs, ours)
    inputs = two_sentences(make, torch.float64)
    assert_agrees_to_float64(theirs.double()(*inputs), ours.double()(*inputs))


@rung.property("EncoderDecoderBlock", rules=("unchanged",))
def test_encoder_decoder_block_keeps_its_inputs(student, make):
    """Both sequences and the mask stay as they were."""
    assert_input_unchanged(student.EncoderDecoderBlock(*TRANSLATOR), *two_sentences(make))


@rung.gradient("EncoderDecoderBlock", rules=("gradients",))
def test_encoder_decoder_block_lets_gradients_through(student, reference, make):
    """Gradients reach both sequences, all norms, both attentions and the network."""
    theirs, ours = translators(student, reference)
    assert_gradients_agree(theirs, ours, *two_sentences(make), make=make)
