"""Hidden graders of unit 13, a look inside, and the parts wired together."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    LARGE_SCORES,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
    assert_input_unchanged,
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


@rung.value("head_weights", points=5)
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


@rung.property("head_weights", rules=("batch",))
def test_head_weights_of_a_sentence_are_its_own(student, make):
    """Another sentence, with huge scores, leaves weights as they were."""
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12)
    assert_batch_rows_do_not_mix(lambda x: student.head_weights(x, W_query, W_key, 3), x)


@rung.property("head_weights", rules=("dtype",))
def test_head_weights_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to its precision."""
    # The root of 4 is exact: a scale that is kept in float32 costs nothing.
    x, W_query, W_key = sentences_and_matrices(make, 2, 7, 5, 12, torch.float64)
    x[..., 0], W_query[0], W_key[0] = 1.0, 4.0, 4.0  # scores near 32: float32 rounds them
    inputs = x, W_query, W_key
    assert_agrees_to_float64(student.head_weights(*inputs, 3), reference.head_weights(*inputs, 3))


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
    """One head has scores of 800, and the weights of all heads are still right."""
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
    """Where a token scores its past very low, its future gets no weight even so."""
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
    """It is square, and as wide as the tokens."""
    student.bilinear_form(*two_matrices(make, d_in, d_out))


@rung.value("bilinear_form", points=5)
@pytest.mark.parametrize(("d_in", "d_out"), FORMS)
def test_bilinear_form_agrees_with_the_reference(student, reference, make, d_in, d_out):
    """Features of the query go down, and features of the key go across."""
    matrices = two_matrices(make, d_in, d_out)
    assert_agrees(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


@rung.property("bilinear_form", rules=("dtype",))
def test_bilinear_form_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to its precision."""
    matrices = two_matrices(make, 6, 3, torch.float64)
    assert_agrees_to_float64(student.bilinear_form(*matrices), reference.bilinear_form(*matrices))


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
    """The matrix that makes queries of tokens, and the one that makes keys of latents."""
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
    """Every head multiplies its own columns of both matrices."""
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
    """Numbers in float64 stay in float64, to its precision."""
    matrices = query_and_up_key(make, 5, 7, 12, torch.float64)
    assert_agrees_to_float64(student.absorb_keys(*matrices, 3), reference.absorb_keys(*matrices, 3))


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
