"""Hidden graders of unit 11, the block around attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    LARGE_ROWS,
    LARGE_SCORES,
    REORDERED,
    ROUGHLY_GELU,
    adopt,
    assert_agrees,
    assert_agrees_to_float64,
    assert_curves_in_float64,
    assert_drops_only_weights,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_rises_in_float64,
    assert_that,
)

# An eps of 1e-5 has an effect in rows of small numbers. Tests of eps have small rows, all other
# tests have large rows.

SIZES = {  # sizes of a function's input; d comes last
    "rows": {"tokens": 3, "d": 5},
    "one row": {"tokens": 1, "d": 6},
    "wide rows": {"tokens": 4, "d": 96},
    "no leading dimensions": {"d": 7},
    "two leading dimensions": {"batch": 2, "tokens": 3, "d": 5},
    "many leading dimensions": {"batch": 2, "heads": 3, "tokens": 5, "d": 4},
}


def quoting_leading(sizes):
    """Parameters by name; those with leading dimensions quote the rule `leading`."""
    return [
        pytest.param(
            case, id=name, marks=rung.quotes("leading", "returns") if "leading" in name else ()
        )
        for name, case in sizes.items()
    ]


def gain_and_shift(make, d, dtype=torch.float32):
    """A gain without ones, and a shift without zeros."""
    return make.uniform(1.2, 2.0, d=d, dtype=dtype), make.uniform(0.5, 1.5, d=d, dtype=dtype)


def rows_of_their_own(make, **sizes):
    """Rows with different means and a standard deviation of about 10."""
    x = make.normal(10.0, **sizes)
    return x + make.normal(20.0, **{**sizes, "d": 1})


# --- layer_norm ----------------------------------------------------------------------------------


@rung.shape("layer_norm")
@pytest.mark.parametrize("sizes", quoting_leading(SIZES))
def test_layer_norm_keeps_the_shape(student, make, sizes):
    """The result has the shape and dtype of x."""
    student.layer_norm(make.normal(**sizes), *gain_and_shift(make, sizes["d"]))


@rung.value("layer_norm", points=9)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_layer_norm_agrees_with_the_reference(student, reference, make, sizes):
    """Each row is normalised by itself, stretched and shifted."""
    given = rows_of_their_own(make, **sizes), *gain_and_shift(make, sizes["d"])
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=REORDERED)


@rung.property("layer_norm", points=2, rules=("eps",))
@pytest.mark.parametrize("eps", [(0.5,), (1e-3,), ()], ids=["0.5", "0.001", "none given"])
def test_layer_norm_adds_eps_to_the_variance(student, reference, make, eps):
    """In rows whose numbers hardly differ, eps matters: its default, and another value."""
    spread = (eps[0] if eps else 1e-5) ** 0.5
    x = make.normal(spread, batch=3, tokens=4, d=6) + 2 * spread
    given = x, *gain_and_shift(make, 6), *eps
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=REORDERED)


@rung.property("layer_norm", rules=("constant",))
@pytest.mark.parametrize("d", [8, 1], ids="{} numbers".format)
def test_layer_norm_makes_shift_of_equal_numbers(student, make, d):
    """Rows of equal numbers give the shift, alone and among other rows."""
    # The mean of eight equal numbers is exact, in whatever order they are added up.
    x = torch.tensor([5.0, 0.0, -3.0, 0.5])[:, None].repeat(1, d)
    gain, shift = gain_and_shift(make, d)
    others = make.normal(tokens=2, d=d)
    for given in (x, torch.cat([x, others])):
        result = student.layer_norm(given, gain, shift)
        assert_agrees(result[:4], shift.repeat(4, 1), what="the result for rows of equal numbers")


@rung.stability("layer_norm", points=2, rules=("large",))
def test_layer_norm_takes_rows_around_a_thousand(student, reference, make):
    """Rows around 1000 and -1000 whose numbers differ by about 1 come out right."""
    x = make.normal(batch=2, tokens=6, d=24) + torch.tensor([1000.0, -1000.0])[:, None, None]
    given = x, *gain_and_shift(make, 24)
    assert_agrees(student.layer_norm(*given), reference.layer_norm(*given), within=LARGE_ROWS)


@rung.property("layer_norm", rules=("dtype",))
def test_layer_norm_keeps_float64(student, reference, make):
    """Rows in float64 give rows in float64, to full precision."""
    # Numbers so large that eps has no effect, wherever it is added.
    x = make.normal(1e6, tokens=20, d=7, dtype=torch.float64)
    given = x, *gain_and_shift(make, 7, torch.float64)
    assert_agrees_to_float64(
        student.layer_norm(*given), reference.layer_norm(*given), within=ALL_DIGITS
    )


@rung.property("layer_norm", rules=("unchanged",))
def test_layer_norm_leaves_its_inputs_alone(student, make):
    """Rows, gain and shift stay as they were."""
    given = make.normal(batch=2, tokens=3, d=5), *gain_and_shift(make, 5)
    assert_input_unchanged(student.layer_norm, *given)


@rung.gradient("layer_norm", points=2, rules=("gradients",))
def test_layer_norm_has_the_right_gradients(student, reference, make):
    """Gradients reach x, gain and shift, through mean and variance too."""
    given = make.normal(3.0, batch=2, tokens=3, d=5), *gain_and_shift(make, 5)
    assert_gradients_agree(student.layer_norm, reference.layer_norm, *given, make=make)


# --- rms_norm ------------------------------------------------------------------------------------


@rung.shape("rms_norm")
@pytest.mark.parametrize("sizes", quoting_leading(SIZES))
def test_rms_norm_keeps_the_shape(student, make, sizes):
    """The result has the shape and dtype of x."""
    student.rms_norm(make.normal(**sizes), gain_and_shift(make, sizes["d"])[0])


@rung.value("rms_norm", points=8)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_rms_norm_agrees_with_the_reference(student, reference, make, sizes):
    """Each row is divided by its own root mean square, and stretched."""
    given = rows_of_their_own(make, **sizes), gain_and_shift(make, sizes["d"])[0]
    assert_agrees(student.rms_norm(*given), reference.rms_norm(*given), within=REORDERED)


@rung.property("rms_norm", points=2, rules=("eps",))
@pytest.mark.parametrize("eps", [(0.5,), (1e-3,), ()], ids=["0.5", "0.001", "none given"])
def test_rms_norm_adds_eps_to_the_mean_square(student, reference, make, eps):
    """In rows of small numbers, eps matters: its default, and another value."""
    size = (eps[0] if eps else 1e-6) ** 0.5
    given = make.normal(size, batch=3, tokens=4, d=6), gain_and_shift(make, 6)[0], *eps
    assert_agrees(student.rms_norm(*given), reference.rms_norm(*given), within=REORDERED)


@rung.property("rms_norm", rules=("zeros",))
def test_rms_norm_makes_zeros_of_zeros(student, make):
    """Rows of zeros stay zeros, alone and among other rows."""
    zeros, others = torch.zeros(3, 5), make.normal(tokens=2, d=5)
    gain, _ = gain_and_shift(make, 5)
    for given in (zeros, torch.cat([zeros, others])):
        result = student.rms_norm(given, gain)
        assert_agrees(result[:3], zeros, what="the result for rows of zeros")


@rung.property("rms_norm", rules=("dtype",))
def test_rms_norm_keeps_float64(student, reference, make):
    """Rows in float64 give rows in float64, to full precision."""
    x = make.normal(1e6, tokens=20, d=7, dtype=torch.float64)
    given = x, gain_and_shift(make, 7, torch.float64)[0]
    assert_agrees_to_float64(
        student.rms_norm(*given), reference.rms_norm(*given), within=ALL_DIGITS
    )


@rung.property("rms_norm", rules=("unchanged",))
def test_rms_norm_leaves_its_inputs_alone(student, make):
    """Rows and gain stay as they were."""
    given = make.normal(batch=2, tokens=3, d=5), gain_and_shift(make, 5)[0]
    assert_input_unchanged(student.rms_norm, *given)


@rung.gradient("rms_norm", points=2, rules=("gradients",))
def test_rms_norm_has_the_right_gradients(student, reference, make):
    """Gradients reach x and gain, through the root mean square too."""
    given = make.normal(3.0, batch=2, tokens=3, d=5), gain_and_shift(make, 5)[0]
    assert_gradients_agree(student.rms_norm, reference.rms_norm, *given, make=make)


# --- gelu ----------------------------------------------------------------------------------------
#
# Many people know only the tanh approximation of the GELU. Its error is 1e-6 within ±0.25 and at
# most 1e-8 beyond ±6. One test looks where the error is large.

NUMBERS = {**SIZES, "a single number, no leading dimensions": {}}


@rung.shape("gelu")
@pytest.mark.parametrize("sizes", quoting_leading(NUMBERS))
def test_gelu_keeps_the_shape(student, make, sizes):
    """The result has the shape and dtype of x."""
    student.gelu(make.normal(**sizes))


@rung.value("gelu", points=10)
@pytest.mark.parametrize("sizes", NUMBERS.values(), ids=NUMBERS.keys())
def test_gelu_agrees_with_the_reference(student, reference, make, sizes):
    """Numbers from -0.25 to 0.25 come out right, and numbers from -6 to 6 right to 0.0016."""
    near, wide = make.uniform(-0.25, 0.25, **sizes), make.uniform(-6.0, 6.0, **sizes)
    assert_agrees(student.gelu(near), reference.gelu(near), what="the GELU of numbers near 0")
    assert_agrees(student.gelu(wide), reference.gelu(wide), within=ROUGHLY_GELU)


@rung.property("gelu", points=2, rules=("gelu",))
def test_gelu_is_the_exact_one(student, reference):
    """From ±1 to ±6, where the approximation by tanh is worst, the numbers come out right."""
    x = torch.linspace(1.0, 6.0, 51)
    x = torch.stack([x, -x])
    assert_agrees(student.gelu(x), reference.gelu(x), what="the GELU of numbers from ±1 to ±6")


@rung.property("gelu", rules=("dtype",))
def test_gelu_keeps_float64(student, reference, make):
    """Numbers in float64 give numbers in float64, to full precision."""
    x = make.uniform(2e-4, 5e-4, rows=5, columns=8, dtype=torch.float64)
    theirs, ours = (lambda x, gelu=who.gelu: 4e8 * gelu(x) for who in (student, reference))
    assert_curves_in_float64(theirs, ours, x)


@rung.property("gelu", rules=("unchanged",))
def test_gelu_leaves_its_input_alone(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.gelu, make.normal(batch=2, tokens=3, d=5))


@rung.stability("gelu", points=2, rules=("large",))
def test_gelu_takes_numbers_of_a_thousand(student, reference):
    """Large numbers stay as they are, and very negative numbers become 0."""
    x = torch.tensor([1000.0, -1000.0, 400.0, -400.0, 90.0, -90.0, 13.0, -13.0])
    assert_agrees(student.gelu(x), reference.gelu(x))


@rung.gradient("gelu", rules=("gradients",))
def test_gelu_has_the_right_gradients(student, reference, make):
    """Gradients reach x, through both factors."""
    x = make.uniform(-0.05, 0.05, batch=2, tokens=3, d=5)
    assert_gradients_agree(student.gelu, reference.gelu, x, make=make)


# --- FeedForward ---------------------------------------------------------------------------------

# batch, tokens, d_model, d_hidden
WIDTHS = [(2, 7, 5, 12), (3, 4, 6, 11), (2, 3, 7, 4), (3, 5, 4, 1), (1, 1, 6, 9)]


def keep_hidden_within(bound, layer, x):
    """Scale a layer so that no output for `x` is larger than `bound`.

    For such inputs, the GELU's tanh form, which has its own test, is off by 1e-6, ReLU by 0.1.
    """
    with torch.no_grad():
        largest = (x @ layer.weight.T + layer.bias).abs().max()
        layer.weight *= bound / largest
        layer.bias *= bound / largest


@rung.shape("FeedForward")
@pytest.mark.parametrize(("batch", "tokens", "d_model", "d_hidden"), WIDTHS)
def test_feed_forward_has_the_shape_of_its_input(student, make, batch, tokens, d_model, d_hidden):
    """One vector of size d_model comes back for each token, however wide the hidden layer is."""
    layer = student.FeedForward(d_model, d_hidden)
    layer(make.normal(batch=batch, tokens=tokens, d_model=d_model))


@rung.value("FeedForward", points=10)
@pytest.mark.parametrize(("batch", "tokens", "d_model", "d_hidden"), WIDTHS)
def test_feed_forward_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_model, d_hidden
):
    """With the same weights, the result is that of the reference."""
    theirs, ours = student.FeedForward(d_model, d_hidden), reference.FeedForward(d_model, d_hidden)
    x = make.normal(batch=batch, tokens=tokens, d_model=d_model)
    keep_hidden_within(0.25, ours.up, x)
    adopt(theirs, ours)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("FeedForward", points=2, rules=("gelu",))
def test_feed_forward_has_the_exact_gelu(student, reference, make):
    """With large numbers between the layers, the result is that of the exact GELU."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    adopt(theirs, ours)
    x = make.normal(1.5, batch=2, tokens=20, d_model=5)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for large numbers")


@rung.property("FeedForward", points=2, rules=("bias",))
def test_feed_forward_has_two_biases(student, reference):
    """Both layers have a bias, and there are no extra parameters."""
    theirs = student.FeedForward(5, 12)
    adoption = adopt(theirs, reference.FeedForward(5, 12))
    lacking = " and ".join(role.removesuffix(".bias") for role in adoption.missing)
    assert_that(not lacking, f"both layers have a bias, and none could be found for {lacking}")
    assert_learns_no_more(theirs, "there is one bias for each of the two layers")


@rung.property("FeedForward", rules=("dtype",))
def test_feed_forward_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    x = make.normal(batch=2, tokens=6, d_model=5, dtype=torch.float64)
    with torch.no_grad():  # without biases, x and -x give numbers of one size
        ours.up.bias.zero_()
        ours.down.bias.zero_()
        ours.down.weight *= 1e9
    keep_hidden_within(5e-4, ours.up, x.float())
    adopt(theirs, ours)
    assert_curves_in_float64(theirs.double(), ours.double(), x)


@rung.property("FeedForward", rules=("unchanged",))
def test_feed_forward_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.FeedForward(5, 12)
    adopt(theirs, reference.FeedForward(5, 12))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=6, d_model=5))


@rung.gradient("FeedForward", points=2, rules=("gradients",))
def test_feed_forward_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and both layers."""
    theirs, ours = student.FeedForward(5, 12), reference.FeedForward(5, 12)
    x = make.normal(batch=2, tokens=6, d_model=5)
    keep_hidden_within(0.05, ours.up, x)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, x, make=make)


# --- SwiGLU --------------------------------------------------------------------------------------


@rung.shape("SwiGLU")
@pytest.mark.parametrize(("batch", "tokens", "d_model", "d_hidden"), WIDTHS)
def test_swiglu_has_the_shape_of_its_input(student, make, batch, tokens, d_model, d_hidden):
    """One vector of size d_model comes back for each token, however wide the hidden layer is."""
    layer = student.SwiGLU(d_model, d_hidden)
    layer(make.normal(batch=batch, tokens=tokens, d_model=d_model))


@rung.value("SwiGLU", points=10)
@pytest.mark.parametrize(("batch", "tokens", "d_model", "d_hidden"), WIDTHS)
def test_swiglu_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_model, d_hidden
):
    """With the same weights, the result is that of the reference."""
    theirs, ours = student.SwiGLU(d_model, d_hidden), reference.SwiGLU(d_model, d_hidden)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_model=d_model)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("SwiGLU", points=2, rules=("bias",))
def test_swiglu_has_no_bias(student, reference):
    """No layer has a bias, and there are no extra parameters."""
    theirs = student.SwiGLU(7, 10)
    adopt(theirs, reference.SwiGLU(7, 10))
    assert_learns_no_more(theirs, "W_gate, W_up and W_down have no bias here")


@rung.property("SwiGLU", rules=("dtype",))
def test_swiglu_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_model=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SwiGLU", rules=("unchanged",))
def test_swiglu_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.SwiGLU(5, 12)
    adopt(theirs, reference.SwiGLU(5, 12))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=6, d_model=5))


@rung.stability("SwiGLU", rules=("large",))
def test_swiglu_takes_gates_of_hundreds(student, reference, make):
    """A gate of ±1000 is open or shut, and gives no NaN."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    x = make.normal(batch=2, tokens=6, d_model=5)
    with torch.no_grad():
        ours.W_gate.weight *= 1000.0 / (x @ ours.W_gate.weight.T).abs().max()
    adopt(theirs, ours)
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what="the result for large gates")


@rung.gradient("SwiGLU", points=2, rules=("gradients",))
def test_swiglu_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all three layers."""
    theirs, ours = student.SwiGLU(5, 12), reference.SwiGLU(5, 12)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=6, d_model=5), make=make)


# --- TransformerBlock ----------------------------------------------------------------------------

# batch, tokens, d_model, num_heads, d_hidden; head_dim is 4, 5 and 3
BLOCKS = [(2, 6, 12, 3, 20), (3, 12, 10, 2, 9), (4, 8, 15, 5, 32)]
# Inputs of the GELU stay within ±0.25, where its tanh form agrees.
GENTLE = 0.02


def blocks(student, reference, *made_with, gentle=GENTLE):
    """The student's block with the weights of the reference, and the reference.

    The inputs of the GELU are multiplied by `gentle`.
    """
    theirs, ours = student.TransformerBlock(*made_with), reference.TransformerBlock(*made_with)
    with torch.no_grad():
        for weight in ours.feed_forward.up.parameters():
            weight *= gentle
    adopt(theirs, ours)
    return theirs, ours


@rung.shape("TransformerBlock")
@pytest.mark.parametrize(("batch", "tokens", "d_model", "num_heads", "d_hidden"), BLOCKS)
def test_transformer_block_keeps_the_shape(
    student, make, batch, tokens, d_model, num_heads, d_hidden
):
    """One vector of size d_model comes back for each token, however wide the hidden layer is."""
    block = student.TransformerBlock(d_model, num_heads, d_hidden, tokens, 0.0)
    block(make.normal(60.0, batch=batch, tokens=tokens, d_model=d_model))


@rung.value("TransformerBlock", points=11)
@pytest.mark.parametrize(("batch", "tokens", "d_model", "num_heads", "d_hidden"), BLOCKS)
def test_transformer_block_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_model, num_heads, d_hidden
):
    """With the same weights, the result is that of the reference."""
    theirs, ours = blocks(student, reference, d_model, num_heads, d_hidden, tokens, 0.0)
    x = make.normal(60.0, batch=batch, tokens=tokens, d_model=d_model)
    assert_agrees(theirs(x), ours(x), within=REORDERED)


@rung.property("TransformerBlock", rules=("shorter",))
def test_transformer_block_takes_inputs_shorter_than_the_context(student, reference, make):
    """Inputs shorter than context_length work, one after another, in any order."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 9, 0.0)
    for tokens in (6, 2, 1, 8):
        x = make.normal(60.0, batch=2, tokens=tokens, d_model=12)
        what = f"the result for {tokens} of 9 tokens"
        assert_agrees(theirs(x), ours(x), within=REORDERED, what=what)


@rung.property("TransformerBlock", rules=("norms",))
def test_transformer_block_has_norms_with_gain_and_shift(student, reference):
    """Each of the two norms has a gain and a shift of its own."""
    theirs, ours = (who.TransformerBlock(12, 3, 20, 6, 0.0) for who in (student, reference))
    found = adopt(theirs, ours).missing
    missing = [
        f"a {what} for the {which} norm"
        for role, which in (("norm1", "first"), ("norm2", "second"))
        for own, what in ((role, "gain"), (f"{role}.bias", "shift"))
        if own in found
    ]
    assert_that(
        not missing,
        f"the block lacks {' and '.join(missing)}: each norm learns a gain, which it multiplies "
        "by, and a shift, which it adds",
    )


@rung.property("TransformerBlock", rules=("bias",))
def test_transformer_block_has_the_biases_of_the_statement(student, reference):
    """Queries, keys and values have no bias; the output layer, up and down have a bias."""
    theirs, ours = (who.TransformerBlock(12, 3, 20, 6, 0.0) for who in (student, reference))
    adoption = adopt(theirs, ours)
    assert_learns_no_more(theirs, "queries, keys and values have no bias here")
    names = ("attention.out_proj", "feed_forward.up", "feed_forward.down")
    missing = [name for name in names if f"{name}.bias" in adoption.missing]
    assert_that(not missing, f"no bias could be found that belongs to {', '.join(missing)}")


@rung.stability("TransformerBlock", rules=("eps",))
def test_transformer_block_adds_eps_to_small_variances(student, reference, make):
    """Where the features of a token are nearly equal, the norms depend on the eps of 1e-5."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 7, 0.0)
    with torch.no_grad():  # attention adds so little that both norms have nearly the same input
        for weight in ours.attention.out_proj.parameters():
            weight *= 1e-3
    adopt(theirs, ours)
    x = make.normal(3e-3, batch=2, tokens=7, d_model=12)
    assert_agrees(theirs(x), ours(x), within=REORDERED, what="the result for small numbers")


@rung.property("TransformerBlock", rules=("gelu",))
def test_transformer_block_uses_the_exact_gelu(student, reference, make):
    """For large numbers too, the GELU is the exact function, and not its tanh form."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 7, 0.0, gentle=1.0)
    x = make.normal(60.0, batch=2, tokens=7, d_model=12)
    what = "what the block adds, with large weights,"
    assert_agrees(theirs(x) - x, ours(x) - x, within=REORDERED, what=what)


SENTENCES, P_DROP = 2400, 0.2


@rung.property("TransformerBlock", points=1.5, rules=("dropout",))
def test_transformer_block_drops_weights_in_training(student, reference, make):
    """In training, a head whose only weight is dropped adds nothing to its token."""
    theirs, ours = blocks(student, reference, 16, 2, 20, 3, P_DROP)
    # Attention finds so much that the shortcut does not count, whatever else is dropped; the
    # feed-forward network adds nothing. The first token has one weight in each head: it is 1.
    with torch.no_grad():
        ours.attention.W_value.weight.copy_(1000.0 * torch.eye(16))
        ours.attention.out_proj.weight.copy_(torch.eye(16))
        for weight in ours.feed_forward.down.parameters():
            weight.zero_()
    adopt(theirs, ours)
    x = make.normal(12.0, batch=1, tokens=3, d_model=16).expand(SENTENCES, 3, 16)
    expected = ours.eval()(x[:1])[:, 0].detach().view(1, 2, 8).double()
    found = theirs.train()(x)[:, 0].detach().view(SENTENCES, 2, 8).double()
    assert_drops_only_weights(found, expected[0], P_DROP)
    mean = ((found * expected).sum() / (SENTENCES * expected.square().sum())).item()
    assert_that(
        abs(mean - 1.0) < 0.1,
        f"on the average, dropout should change nothing: the mean is {mean:.2f} times what it "
        "is without",
    )


@rung.property("TransformerBlock", points=0.5, rules=("eval",))
def test_transformer_block_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), two calls agree with each other and with the reference."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 7, 0.5)
    x = make.normal(60.0, batch=2, tokens=7, d_model=12)
    calm, calmer = theirs.eval().each([(x,), (x,)])
    assert_agrees(calm, calmer, what="a second call in evaluation mode")
    expected = ours.eval()(x).detach()
    assert_agrees(calm, expected, within=REORDERED, what="the result in evaluation mode")


@rung.property("TransformerBlock", points=0.5, rules=("device",))
def test_transformer_block_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(
        student.TransformerBlock(12, 3, 20, 6, 0.0),
        make.normal(60.0, batch=2, tokens=6, d_model=12),
    )


@rung.property("TransformerBlock", points=0.5, rules=("dtype",))
def test_transformer_block_works_in_float64(student, reference, make):
    """A block in float64 takes and gives float64, to full precision."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 6, 0.0)
    x = make.normal(batch=2, tokens=6, d_model=12, dtype=torch.float64)
    assert_rises_in_float64(theirs.double(), ours.double(), x)


@rung.property("TransformerBlock", points=0.5, rules=("unchanged",))
def test_transformer_block_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs, _ = blocks(student, reference, 12, 3, 20, 6, 0.0)
    assert_input_unchanged(theirs, make.normal(60.0, batch=2, tokens=6, d_model=12))


@rung.gradient("TransformerBlock", rules=("gradients",))
def test_transformer_block_has_the_right_gradients(student, reference, make):
    """Gradients reach the input, both norms, the attention and the feed-forward network."""
    theirs, ours = blocks(student, reference, 12, 3, 20, 6, 0.0, gentle=5e-3)
    with torch.no_grad():  # a gradient is as large as the weights that it passes
        for weight in ours.parameters():
            weight *= 0.5
    adopt(theirs, ours)
    x = make.normal(40.0, batch=2, tokens=6, d_model=12)
    assert_gradients_agree(theirs, ours, x, make=make)
