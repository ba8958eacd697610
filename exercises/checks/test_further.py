"""Public checks of unit 13, a look inside, and the parts wired together."""

import torch

from grader.course.collection import rung
from grader.testing import (
    LARGE_SCORES,
    PRINTED,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_gradients_agree,
    assert_input_unchanged,
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
