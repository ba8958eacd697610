"""Public checks of unit 11, the block around attention."""

import pytest
import torch
from torch import nn

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_ROWS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    ROUGHLY_GELU,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_agrees_to_float64,
    assert_causal,
    assert_curves_in_float64,
    assert_drops_only_weights,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_rises_in_float64,
    assert_that,
)

LEADING = {"no leading dimensions": {}, "two leading dimensions": {"batch": 2, "tokens": 3}}

# --- layer_norm ----------------------------------------------------------------------------------


@rung.shape("layer_norm")
def test_layer_norm_gives_rows_of_the_same_shape(student, make):
    """The result has the shape and dtype of x."""
    student.layer_norm(make.normal(tokens=3, d=5), make.normal(d=5), make.normal(d=5))


@rung.value("layer_norm")
def test_layer_norm_of_the_example(student):
    """A row with mean 3 and variance 3.5 comes out as in the example."""
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    gain, shift = torch.tensor([1.0, 1.0, 2.0, 2.0]), torch.tensor([0.0, 0.0, 0.0, 10.0])
    expected = torch.tensor([[-1.0690, -0.5345, 0.0, 13.2071]])
    assert_agrees(student.layer_norm(x, gain, shift), expected, within=PRINTED)


@rung.value("layer_norm")
def test_layer_norm_works_for_other_rows(student, reference, make):
    """The result is right for other rows, another gain and another shift."""
    given = make.normal(10.0, tokens=4, d=7) + 20.0, make.normal(d=7), make.normal(d=7)
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=REORDERED)


@rung.value("layer_norm", rules=("computes", "leading"))
@pytest.mark.parametrize("leading", LEADING.values(), ids=LEADING.keys())
def test_layer_norm_takes_any_leading_dimensions(student, reference, make, leading):
    """A single row works, and so does a batch of sentences."""
    given = make.normal(10.0, **leading, d=6) + 20.0, make.normal(d=6), make.normal(d=6)
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=REORDERED)


@rung.property("layer_norm", rules=("eps",))
@pytest.mark.parametrize("eps", [(0.5,), ()], ids=["0.5", "none given"])
def test_layer_norm_uses_eps(student, reference, make, eps):
    """Rows of nearly equal numbers, where eps matters, are right with any eps."""
    x = make.normal(0.5 if eps else 0.01, tokens=3, d=5)
    given = x, make.normal(d=5), make.normal(d=5), *eps
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=REORDERED)


@rung.property("layer_norm", rules=("constant",))
def test_layer_norm_gives_shift_for_a_constant_row(student, make):
    """A row of equal numbers gives the shift."""
    shift = make.normal(d=4)
    result = student.layer_norm(torch.full((2, 4), 3.0), make.normal(d=4), shift)
    assert_agrees(result, shift.repeat(2, 1), what="the result for a row of threes")


@rung.stability("layer_norm", rules=("large",))
def test_layer_norm_is_right_around_a_thousand(student, reference, make):
    """Rows around 1000 whose numbers differ by about 1 come out right."""
    given = make.normal(tokens=8, d=16) + 1000.0, make.normal(d=16), make.normal(d=16)
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=LARGE_ROWS)


@rung.property("layer_norm", rules=("dtype",))
def test_layer_norm_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, in full precision."""
    x = make.normal(1e6, tokens=8, d=6, dtype=torch.float64)
    gain, shift = make.normal(d=6, dtype=torch.float64), make.normal(d=6, dtype=torch.float64)
    assert_agrees_to_float64(
        student.layer_norm(x, gain, shift), reference.layer_norm(x, gain, shift), within=ALL_DIGITS
    )


@rung.property("layer_norm", rules=("unchanged",))
def test_layer_norm_leaves_what_it_was_given(student, make):
    """The tensors that were passed in stay as they were."""
    given = make.normal(tokens=3, d=5), make.normal(d=5), make.normal(d=5)
    assert_input_unchanged(student.layer_norm, *given)


@rung.gradient("layer_norm", rules=("gradients",))
def test_layer_norm_lets_gradients_through(student, reference, make):
    """Gradients reach x, gain and shift."""
    given = make.normal(3.0, tokens=3, d=5), make.normal(d=5), make.normal(d=5)
    assert_gradients_agree(student.layer_norm, reference.layer_norm, *given, make=make)


# --- rms_norm ------------------------------------------------------------------------------------


@rung.shape("rms_norm")
def test_rms_norm_gives_rows_of_the_same_shape(student, make):
    """The result has the shape and dtype of x."""
    student.rms_norm(make.normal(tokens=3, d=5), make.normal(d=5))


@rung.value("rms_norm")
def test_rms_norm_of_the_example(student):
    """A row whose root mean square is 3 comes out as in the example."""
    result = student.rms_norm(
        torch.tensor([[1.0, 1.0, 5.0, 3.0]]), torch.tensor([1.0, 1.0, 2.0, 10.0])
    )
    expected = torch.tensor([[0.3333, 0.3333, 3.3333, 10.0]])
    assert_agrees(result, expected, within=PRINTED)


@rung.value("rms_norm")
def test_rms_norm_works_for_other_rows(student, reference, make):
    """The result is right for other rows and another gain."""
    given = make.normal(10.0, tokens=4, d=7) + 20.0, make.normal(d=7)
    assert_agrees(student.rms_norm(*given), reference.rms_norm(*given), within=REORDERED)


@rung.value("rms_norm", rules=("computes", "leading"))
@pytest.mark.parametrize("leading", LEADING.values(), ids=LEADING.keys())
def test_rms_norm_takes_any_leading_dimensions(student, reference, make, leading):
    """A single row works, and so does a batch of sentences."""
    given = make.normal(10.0, **leading, d=6) + 20.0, make.normal(d=6)
    assert_agrees(student.rms_norm(*given), reference.rms_norm(*given), within=REORDERED)


@rung.property("rms_norm", rules=("eps",))
@pytest.mark.parametrize("eps", [(0.5,), ()], ids=["0.5", "none given"])
def test_rms_norm_uses_eps(student, reference, make, eps):
    """Rows of small numbers, where eps matters, are right with any eps."""
    given = make.normal(0.5 if eps else 0.002, tokens=3, d=5), make.normal(d=5), *eps
    assert_agrees(student.rms_norm(*given), reference.rms_norm(*given), within=REORDERED)


@rung.property("rms_norm", rules=("zeros",))
def test_rms_norm_gives_zeros_for_zeros(student, make):
    """A row of zeros stays a row of zeros."""
    zeros = torch.zeros(2, 4)
    assert_agrees(student.rms_norm(zeros, make.normal(d=4)), zeros, what="the result for zeros")


@rung.property("rms_norm", rules=("dtype",))
def test_rms_norm_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, in full precision."""
    x = make.normal(1e6, tokens=8, d=6, dtype=torch.float64)
    gain = make.normal(d=6, dtype=torch.float64)
    assert_agrees_to_float64(
        student.rms_norm(x, gain), reference.rms_norm(x, gain), within=ALL_DIGITS
    )


@rung.property("rms_norm", rules=("unchanged",))
def test_rms_norm_leaves_what_it_was_given(student, make):
    """The tensors that were passed in stay as they were."""
    assert_input_unchanged(student.rms_norm, make.normal(tokens=3, d=5), make.normal(d=5))


@rung.gradient("rms_norm", rules=("gradients",))
def test_rms_norm_lets_gradients_through(student, reference, make):
    """Gradients reach x and gain."""
    given = make.normal(3.0, tokens=3, d=5), make.normal(d=5)
    assert_gradients_agree(student.rms_norm, reference.rms_norm, *given, make=make)


# --- gelu ----------------------------------------------------------------------------------------


@rung.shape("gelu")
def test_gelu_gives_a_number_for_each(student, make):
    """The result has the shape and dtype of x."""
    student.gelu(make.normal(tokens=3, d=5))


@rung.value("gelu")
def test_gelu_of_the_example(student):
    """The GELU of -1, 0, 1 and 3 is that of the example."""
    expected = torch.tensor([[-0.1587, 0.0], [0.8413, 2.9960]])
    result = student.gelu(torch.tensor([[-1.0, 0.0], [1.0, 3.0]]))
    assert_agrees(result, expected, within=ROUGHLY_GELU)


@rung.value("gelu")
def test_gelu_works_for_other_numbers(student, reference, make):
    """The result is right for other numbers, near zero."""
    x = make.uniform(-0.25, 0.25, tokens=4, d=6)
    assert_agrees(student.gelu(x), reference.gelu(x))


@rung.value("gelu", rules=("computes", "leading"))
@pytest.mark.parametrize("sizes", [{}, {"batch": 2, "tokens": 3, "d": 5}], ids=["none", "three"])
def test_gelu_takes_any_dimensions(student, reference, make, sizes):
    """A tensor of a single number works, and so does a batch of sentences."""
    x = make.uniform(-0.25, 0.25, **sizes)
    assert_agrees(student.gelu(x), reference.gelu(x))


@rung.property("gelu", rules=("gelu",))
def test_gelu_is_no_approximation(student, reference):
    """Near ±2.7, where the approximation by tanh is worst, the numbers come out right."""
    x = torch.tensor([-3.0, -2.7, -2.4, 2.4, 2.7, 3.0])
    assert_agrees(student.gelu(x), reference.gelu(x), what="the GELU of numbers near ±2.7")


@rung.property("gelu", rules=("dtype",))
def test_gelu_gives_float64_for_float64(student, reference, make):
    """Float64 stays float64, in full precision."""
    x = make.uniform(2e-4, 5e-4, tokens=4, d=6, dtype=torch.float64)
    theirs, ours = (lambda x, gelu=who.gelu: 4e8 * gelu(x) for who in (student, reference))
    assert_curves_in_float64(theirs, ours, x)


@rung.property("gelu", rules=("unchanged",))
def test_gelu_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.gelu, make.normal(tokens=4, d=6))


@rung.stability("gelu", rules=("large",))
def test_gelu_is_right_for_a_thousand(student, reference):
    """1000 stays 1000, and -1000 becomes 0."""
    x = torch.tensor([-1000.0, 1000.0, 20.0])
    assert_agrees(student.gelu(x), reference.gelu(x))


@rung.gradient("gelu", rules=("gradients",))
def test_gelu_lets_gradients_through(student, reference, make):
    """Gradients reach x."""
    x = make.uniform(-0.05, 0.05, tokens=4, d=6)
    assert_gradients_agree(student.gelu, reference.gelu, x, make=make)


# --- FeedForward ---------------------------------------------------------------------------------


def keep_hidden_within(bound, layer, x):
    """Scale a layer so that no output for `x` is larger than `bound`.

    For such small numbers, the GELU and its approximation by tanh are nearly the same. So the
    approximation fails only in the check of the rule `gelu`.
    """
    with torch.no_grad():
        largest = (x @ layer.weight.T + layer.bias).abs().max()
        layer.weight *= bound / largest
        layer.bias *= bound / largest


@rung.shape("FeedForward")
def test_feed_forward_gives_one_vector_per_token(student, make):
    """One vector of size d_model comes back for each token."""
    student.FeedForward(5, 12)(make.normal(batch=2, tokens=7, d_model=5))


@rung.value("FeedForward")
def test_feed_forward_with_identity_weights(student, reference):
    """With ones on the diagonal and zero biases, the layer gives the answer of the example."""
    theirs = student.FeedForward(2, 3)
    adopt_identity_weights(theirs, reference.FeedForward(2, 3))
    expected = torch.tensor([[[0.1159, -0.0841], [0.0, 0.0540]]])
    result = theirs(torch.tensor([[[0.2, -0.2], [0.0, 0.1]]]))
    assert_agrees(result, expected, within=PRINTED)


@rung.value("FeedForward")
@pytest.mark.parametrize("d_hidden", [11, 3], ids="{} in between".format)
def test_feed_forward_with_the_weights_of_the_reference(student, reference, make, d_hidden):
    """With the same weights, the result is that of the reference, for any width in between."""
    theirs, ours = student.FeedForward(5, d_hidden), reference.FeedForward(5, d_hidden)
    x = make.normal(batch=2, tokens=7, d_model=5)
    keep_hidden_within(0.25, ours.up, x)
    adopt(theirs, ours)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("FeedForward", rules=("gelu",))
def test_feed_forward_uses_the_exact_gelu(student, reference, make):
    """With large numbers between the layers, the result is that of the exact GELU."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    adopt(theirs, ours)
    x = make.normal(1.5, batch=2, tokens=12, d_model=5)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for large numbers")


@rung.property("FeedForward", rules=("bias",))
def test_feed_forward_has_a_bias_in_each_layer(student, reference):
    """Both layers have a bias, and there are no extra parameters."""
    theirs = student.FeedForward(5, 12)
    adoption = adopt(theirs, reference.FeedForward(5, 12))
    lacking = " and ".join(role.removesuffix(".bias") for role in adoption.missing)
    assert_that(not lacking, f"both layers have a bias, but none was found for {lacking}")
    assert_learns_no_more(theirs, "there is one bias for each of the two layers")


@rung.property("FeedForward", rules=("dtype",))
def test_feed_forward_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    x = make.normal(batch=2, tokens=5, d_model=5, dtype=torch.float64)
    with torch.no_grad():  # without biases, x and -x give numbers of one size
        ours.up.bias.zero_()
        ours.down.bias.zero_()
        ours.down.weight *= 1e9
    keep_hidden_within(5e-4, ours.up, x.float())
    adopt(theirs, ours)
    assert_curves_in_float64(theirs.double(), ours.double(), x)


@rung.property("FeedForward", rules=("unchanged",))
def test_feed_forward_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.FeedForward(5, 12), make.normal(batch=2, tokens=5, d_model=5))


@rung.gradient("FeedForward", rules=("gradients",))
def test_feed_forward_can_be_trained(student, reference, make):
    """Gradients reach the input and both layers."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    x = make.normal(batch=2, tokens=5, d_model=5)
    keep_hidden_within(0.05, ours.up, x)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, x, make=make)


# --- SwiGLU --------------------------------------------------------------------------------------


@rung.shape("SwiGLU")
def test_swiglu_gives_one_vector_per_token(student, make):
    """One vector of size d_model comes back for each token."""
    student.SwiGLU(5, 12)(make.normal(batch=2, tokens=7, d_model=5))


@rung.value("SwiGLU")
def test_swiglu_with_identity_weights(student, reference):
    """With ones on the diagonal, the layer gives the answer of the example."""
    theirs = student.SwiGLU(2, 3)
    adopt_identity_weights(theirs, reference.SwiGLU(2, 3))
    expected = torch.tensor([[[0.7311, 0.2689], [3.5232, 8.5732]]])
    assert_agrees(theirs(torch.tensor([[[1.0, -1.0], [2.0, 3.0]]])), expected, within=PRINTED)


@rung.value("SwiGLU")
@pytest.mark.parametrize("d_hidden", [11, 3], ids="{} in between".format)
def test_swiglu_with_the_weights_of_the_reference(student, reference, make, d_hidden):
    """With the same weights, the result is that of the reference, for any width in between."""
    theirs, ours = student.SwiGLU(5, d_hidden), reference.SwiGLU(5, d_hidden)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_model=5)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("SwiGLU", rules=("bias",))
def test_swiglu_has_no_bias_anywhere(student, reference):
    """No layer has a bias, and there are no extra parameters."""
    theirs = student.SwiGLU(5, 12)
    adopt(theirs, reference.SwiGLU(5, 12))
    assert_learns_no_more(theirs, "no layer has a bias here")


@rung.property("SwiGLU", rules=("dtype",))
def test_swiglu_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_model=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SwiGLU", rules=("unchanged",))
def test_swiglu_leaves_what_it_was_given(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.SwiGLU(5, 12), make.normal(batch=2, tokens=5, d_model=5))


@rung.stability("SwiGLU", rules=("large",))
def test_swiglu_survives_large_gates(student, reference, make):
    """Gates of several hundred, positive and negative, give numbers and not NaN."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    with torch.no_grad():
        ours.W_gate.weight *= 200.0
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=5, d_model=5)
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what="the result for large gates")


@rung.gradient("SwiGLU", rules=("gradients",))
def test_swiglu_can_be_trained(student, reference, make):
    """Gradients reach the input and all three layers."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=5, d_model=5), make=make)


# --- TransformerBlock ----------------------------------------------------------------------------


def small_block(student, reference, context_length=7, dropout=0.0, gentle=0.02):
    """The student's block and the reference, with the same weights.

    The factor `gentle` makes the GELU's inputs small: near 0, its approximation by tanh is right.
    """
    theirs = student.TransformerBlock(8, 2, 10, context_length, dropout)
    ours = reference.TransformerBlock(8, 2, 10, context_length, dropout)
    with torch.no_grad():
        for weight in ours.get_submodule("feed_forward.up").parameters():
            weight *= gentle
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("TransformerBlock")
def test_transformer_block_gives_one_vector_per_token(student, make):
    """Each output is as wide as its token, whatever the width of the hidden layer."""
    block = student.TransformerBlock(8, 2, 10, 7, 0.0)
    block(make.normal(60.0, batch=3, tokens=7, d_model=8))


@rung.value("TransformerBlock")
def test_transformer_block_of_the_example(student, reference):
    """With identity matrices and vectors of 0.1, the block gives the numbers of the example."""
    theirs = student.TransformerBlock(4, 2, 6, 3, 0.0)
    ours = reference.TransformerBlock(4, 2, 6, 3, 0.0)
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.1)
    adopt(theirs, ours)
    # A third token fills the context; neither of the first two tokens may see it.
    x = torch.tensor([[[8.0, 0.0, 0.0, 8.0], [0.0, 16.0, 8.0, 8.0], [16.0, 16.0, 0.0, 0.0]]])
    assert_agrees(
        theirs(x)[:, :2], ours(x)[:, :2], within=REORDERED, what="the block of the example"
    )


@rung.value("TransformerBlock")
def test_transformer_block_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs, ours = small_block(student, reference)
    x = make.normal(60.0, batch=3, tokens=7, d_model=8)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.value("TransformerBlock")
def test_transformer_block_is_causal(student, reference, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    block, _ = small_block(student, reference)
    assert_causal(block, make.normal(60.0, batch=3, tokens=7, d_model=8))


@rung.property("TransformerBlock", rules=("shorter",))
def test_transformer_block_takes_shorter_sentences(student, reference, make):
    """Sentences may be shorter than context_length; each call may have another length."""
    theirs, ours = small_block(student, reference, context_length=9)
    for tokens in (3, 5):
        x = make.normal(60.0, batch=3, tokens=tokens, d_model=8)
        what = f"the result for {tokens} tokens of at most 9"
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=what)


@rung.property("TransformerBlock", rules=("norms",))
def test_transformer_block_learns_gains_and_shifts(student, reference):
    """Both norms have a gain and a shift of their own."""
    theirs = student.TransformerBlock(8, 2, 10, 7, 0.0)
    missing = adopt(theirs, reference.TransformerBlock(8, 2, 10, 7, 0.0)).missing
    lacking = [role for role in missing if role.startswith("norm")]
    assert_that(
        not lacking,
        "each of the two norms learns a gain, which it multiplies by, and a shift, which it adds: "
        f"{4 - len(lacking)} of these four vectors were found",
    )


@rung.property("TransformerBlock", rules=("bias",))
def test_transformer_block_has_its_biases(student, reference):
    """Queries, keys and values have no bias; the output layer, up and down have a bias."""
    theirs = student.TransformerBlock(8, 2, 10, 7, 0.0)
    adoption = adopt(theirs, reference.TransformerBlock(8, 2, 10, 7, 0.0))
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")
    layers = ("attention.out_proj", "feed_forward.up", "feed_forward.down")
    missing = [layer for layer in layers if f"{layer}.bias" in adoption.missing]
    assert_that(not missing, f"no bias was found for {', '.join(missing)}")


@rung.stability("TransformerBlock", rules=("eps",))
def test_transformer_block_norms_small_numbers(student, reference, make):
    """Where numbers are very small, the norms depend on eps."""
    theirs, ours = small_block(student, reference)
    x = make.normal(3e-3, batch=2, tokens=7, d_model=8)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for small numbers")


@rung.property("TransformerBlock", rules=("gelu",))
def test_transformer_block_has_the_exact_gelu(student, reference, make):
    """The GELU is the exact function, and not its tanh form."""
    theirs, ours = small_block(student, reference, gentle=1.0)
    x = make.normal(60.0, batch=2, tokens=7, d_model=8)
    what = "what the block adds, with large weights,"
    assert_agrees(theirs(x) - x, ours(x) - x, within=REORDERED, what=what)


@rung.property("TransformerBlock", rules=("dropout",))
def test_transformer_block_drops_while_it_trains(student, reference, make):
    """In training, a head whose only weight is dropped adds nothing to the first token."""
    theirs, ours = (
        student.TransformerBlock(8, 2, 10, 7, 0.5),
        reference.TransformerBlock(8, 2, 10, 7, 0.5),
    )
    with torch.no_grad():  # attention multiplies its input by 1000; feed-forward adds 0
        ours.get_submodule("attention.W_value").weight.copy_(1000.0 * torch.eye(8))
        ours.get_submodule("attention.out_proj").weight.copy_(torch.eye(8))
        for weight in ours.get_submodule("feed_forward.down").parameters():
            weight.zero_()
    adopt(theirs, ours)
    x = make.normal(12.0, batch=1, tokens=7, d_model=8)
    calm = ours.eval()(x)[0, 0].view(2, 4)
    found = theirs.train()(x.expand(400, 7, 8))[:, 0].detach().view(400, 2, 4)
    assert_drops_only_weights(found, calm, 0.5)


@rung.property("TransformerBlock", rules=("eval",))
def test_transformer_block_is_calm_in_evaluation(student, reference, make):
    """After .eval(), two calls give the same result."""
    block, _ = small_block(student, reference, dropout=0.5)
    x = make.normal(60.0, batch=3, tokens=7, d_model=8)
    once, again = block.eval().each([(x,), (x,)])
    assert_agrees(again, once, what="a second call after .eval(), where dropout is off,")


@rung.property("TransformerBlock", rules=("device",))
def test_transformer_block_moves_to_another_device(student, make):
    """After a move to another device, the module takes inputs there: its mask has moved too."""
    block = student.TransformerBlock(8, 2, 10, 7, 0.0)
    assert_moves(block, make.normal(60.0, batch=2, tokens=7, d_model=8))


@rung.property("TransformerBlock", rules=("dtype",))
def test_transformer_block_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    theirs, ours = small_block(student, reference)
    x = make.normal(batch=2, tokens=7, d_model=8, dtype=torch.float64)
    assert_rises_in_float64(theirs.double(), ours.double(), x)


@rung.property("TransformerBlock", rules=("unchanged",))
def test_transformer_block_keeps_its_input(student, make):
    """The tensor that was passed in stays as it was."""
    block = student.TransformerBlock(8, 2, 10, 7, 0.0)
    assert_input_unchanged(block, make.normal(60.0, batch=2, tokens=7, d_model=8))


@rung.gradient("TransformerBlock", rules=("gradients",))
def test_transformer_block_lets_gradients_through(student, reference, make):
    """Gradients reach the input, both norms, the attention and the feed-forward network."""
    theirs, ours = small_block(student, reference, gentle=5e-3)
    with torch.no_grad():  # a gradient is as large as the weights that it passes
        for weight in ours.parameters():
            weight *= 0.5
    adopt(theirs, ours)
    x = make.normal(40.0, batch=2, tokens=7, d_model=8)
    assert_gradients_agree(theirs, ours, x, make=make)
