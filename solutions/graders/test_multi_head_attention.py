"""Hidden graders of unit 6, multi-head attention."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    adopt,
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_drops_weights,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_refuses,
    assert_that,
)

# --- split_heads ---------------------------------------------------------------------------------


def why_not(d_out, num_heads):
    """The message if a width that does not divide was accepted."""
    return (
        f"{d_out} features cannot be cut into {num_heads} heads of equal width: this should "
        "raise an exception, and it went on as if nothing had happened"
    )


SPLITS = [(2, 5, 12, 3), (4, 3, 10, 2), (3, 4, 35, 5)]  # batch, tokens, d_out, num_heads


@rung.shape("split_heads")
@pytest.mark.parametrize(("batch", "tokens", "d_out", "num_heads"), SPLITS)
def test_split_heads_puts_heads_before_tokens(student, make, batch, tokens, d_out, num_heads):
    """Heads come before tokens, and every head is head_dim wide."""
    student.split_heads(make.normal(batch=batch, tokens=tokens, d_out=d_out), num_heads)


@rung.value("split_heads", points=4)
@pytest.mark.parametrize(("batch", "tokens", "d_out", "num_heads"), SPLITS)
def test_split_heads_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_out, num_heads
):
    """Every head gets its own neighbouring features of every token."""
    x = make.normal(batch=batch, tokens=tokens, d_out=d_out)
    assert_agrees(student.split_heads(x, num_heads), reference.split_heads(x, num_heads))


@rung.value("split_heads")
@pytest.mark.parametrize("num_heads", [1, 6])
def test_split_heads_takes_one_head_or_one_feature_a_head(student, reference, make, num_heads):
    """One head that is as wide as the token, and heads of one feature, are fine too."""
    x = make.normal(batch=2, tokens=5, d_out=6)
    assert_agrees(student.split_heads(x, num_heads), reference.split_heads(x, num_heads))


@rung.property("split_heads", points=2, rules=("divides",))
@pytest.mark.parametrize(("d_out", "num_heads"), [(10, 4), (12, 5), (9, 2), (3, 4)])
def test_split_heads_refuses_a_width_that_does_not_divide(student, make, d_out, num_heads):
    """A num_heads that does not divide d_out raises an exception."""
    x = make.normal(batch=2, tokens=5, d_out=d_out)
    assert_refuses(student.split_heads, x, num_heads, why=why_not(d_out, num_heads))


@rung.property("split_heads", rules=("dtype",))
def test_split_heads_keeps_float64(student, reference, make):
    """Float64 stays float64, to the last digit."""
    x = make.normal(batch=2, tokens=5, d_out=12, dtype=torch.float64) / 3  # float32 would round
    assert_agrees_to_float64(
        student.split_heads(x, 3), reference.split_heads(x, 3), within=ALL_DIGITS
    )


@rung.property("split_heads", rules=("unchanged",))
def test_split_heads_leaves_its_input_alone(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.split_heads, make.normal(batch=2, tokens=5, d_out=12), 3)


@rung.gradient("split_heads", rules=("gradients",))
def test_split_heads_has_the_right_gradient(student, reference, make):
    """Gradients find their way back to the features that they belong to."""
    assert_gradients_agree(
        lambda x: student.split_heads(x, 3),
        lambda x: reference.split_heads(x, 3),
        make.normal(batch=2, tokens=5, d_out=12),
        make=make,
    )


# --- merge_heads ---------------------------------------------------------------------------------

MERGES = [(2, 3, 5, 4), (4, 2, 3, 5), (3, 5, 4, 7)]  # batch, num_heads, tokens, head_dim


@rung.shape("merge_heads")
@pytest.mark.parametrize(("batch", "num_heads", "tokens", "head_dim"), MERGES)
def test_merge_heads_gives_one_row_per_token(student, make, batch, num_heads, tokens, head_dim):
    """Each token has the features of all heads in a row, num_heads * head_dim of them."""
    x = make.normal(batch=batch, num_heads=num_heads, tokens=tokens, head_dim=head_dim)
    student.merge_heads(x)


@rung.value("merge_heads", points=4)
@pytest.mark.parametrize(("batch", "num_heads", "tokens", "head_dim"), MERGES)
def test_merge_heads_agrees_with_the_reference(
    student, reference, make, batch, num_heads, tokens, head_dim
):
    """Every token gets its own features back, head 0 first."""
    x = make.normal(batch=batch, num_heads=num_heads, tokens=tokens, head_dim=head_dim)
    assert_agrees(student.merge_heads(x), reference.merge_heads(x))


@rung.value("merge_heads")
@pytest.mark.parametrize(("num_heads", "head_dim"), [(1, 6), (6, 1)])
def test_merge_heads_takes_one_head_or_one_feature_a_head(
    student, reference, make, num_heads, head_dim
):
    """A single head, and heads of a single feature, are fine too."""
    x = make.normal(batch=2, num_heads=num_heads, tokens=5, head_dim=head_dim)
    assert_agrees(student.merge_heads(x), reference.merge_heads(x))


@rung.property("merge_heads", rules=("dtype",))
def test_merge_heads_keeps_float64(student, reference, make):
    """Float64 stays float64, to the last digit."""
    x = make.normal(batch=2, num_heads=3, tokens=5, head_dim=4, dtype=torch.float64) / 3
    assert_agrees_to_float64(student.merge_heads(x), reference.merge_heads(x), within=ALL_DIGITS)


@rung.property("merge_heads", rules=("unchanged",))
def test_merge_heads_leaves_its_input_alone(student, make):
    """The tensor that was passed in stays as it was."""
    x = make.normal(batch=2, num_heads=3, tokens=5, head_dim=4)
    assert_input_unchanged(student.merge_heads, x)


@rung.gradient("merge_heads", rules=("gradients",))
def test_merge_heads_has_the_right_gradient(student, reference, make):
    """Gradients find their way back to the head and the token that they belong to."""
    x = make.normal(batch=2, num_heads=3, tokens=5, head_dim=4)
    assert_gradients_agree(student.merge_heads, reference.merge_heads, x, make=make)


# --- both modules --------------------------------------------------------------------------------


def assert_biases_only_when_asked(make_theirs, make_ours, x):
    """Fail unless qkv_bias alone decides on the biases of queries, keys and values.

    `make_theirs` and `make_ours` make a module, without arguments or with a value for qkv_bias.
    """
    for qkv_bias in ((False,), ()):
        theirs = make_theirs(*qkv_bias)
        adopt(theirs, make_ours())
        assert_learns_no_more(theirs, "qkv_bias is False unless someone asks")
    theirs, ours = make_theirs(True), make_ours(True)
    missing = [role for role in adopt(theirs, ours).missing if role != "out_proj.bias"]
    assert_that(
        not missing, f"qkv_bias=True should make biases: {', '.join(missing)} could not be found"
    )
    assert_agrees(theirs(x), ours(x), what="the result with qkv_bias=True")


P_DROP = 0.3


def assert_drops_weights_in_every_head(theirs, ours, x, added=0.0):
    """Fail unless every head drops its weights in training.

    For each head, the output holds its weights twice, side by side, plus the bias `added`.
    """
    once, again = theirs.train().each([(x,), (x,)])
    expected = ours.eval()(x).detach()
    dropped, weights = ((y - added).unflatten(-1, (-1, 2, x.shape[1])) for y in (once, expected))
    for head in range(dropped.shape[2]):
        assert_drops_weights(
            dropped[:, :, head, 0], dropped[:, :, head, 1], weights[:, :, head, 0], P_DROP
        )
    assert_that(
        not torch.equal(dropped[:, :, 0] == 0, dropped[:, :, 1] == 0),
        "two heads lost exactly the same weights: each head has weights, and dropout, of its own",
    )
    assert_that(not torch.equal(once, again), "in training, two calls should drop differently")


def assert_drops_nothing_in_evaluation(theirs, ours, x):
    """Fail unless two calls after ``.eval()`` agree with each other and with the reference."""
    calm, calmer = theirs.eval().each([(x,), (x,)])
    assert_agrees(calm, calmer, what="a second call in evaluation mode")
    assert_agrees(calm, ours.eval()(x).detach(), what="the result in evaluation mode")


# --- MultiHeadAttentionWrapper -------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads
WRAPPERS = [(2, 6, 5, 4, 3), (3, 7, 4, 5, 2)]


@rung.shape("MultiHeadAttentionWrapper", rules=("parameters",))
def test_wrapper_shows_the_parameters_of_every_head(student):
    """An optimiser finds the parameters of all heads."""
    parameters = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3).parameters()
    count = sum(parameter.numel() for parameter in parameters.values())
    assert_that(
        count >= 180,
        "three heads with three projections of 5 * 4 weights have 180 weights together, and "
        f".parameters() shows {count}: where does torch look for the parts of a module?",
    )


@rung.shape("MultiHeadAttentionWrapper")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), WRAPPERS)
def test_wrapper_has_the_promised_shape(student, make, batch, tokens, d_in, d_out, num_heads):
    """Each token comes back with num_heads * d_out features."""
    attention = student.MultiHeadAttentionWrapper(d_in, d_out, tokens, 0.0, num_heads)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


@rung.value("MultiHeadAttentionWrapper", points=5)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), WRAPPERS)
def test_wrapper_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """With the same weights, the heads answer as in the reference, head 0 first."""
    theirs = student.MultiHeadAttentionWrapper(d_in, d_out, tokens, 0.0, num_heads)
    ours = reference.MultiHeadAttentionWrapper(d_in, d_out, tokens, 0.0, num_heads)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.value("MultiHeadAttentionWrapper", points=3, rules=("shorter", "computes"))
def test_wrapper_takes_inputs_shorter_than_the_context(student, reference, make):
    """Inputs shorter than context_length work, one after another, in any order."""
    theirs = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    ours = reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    adopt(theirs, ours)
    for tokens in (6, 2, 1, 8):
        x = make.normal(batch=2, tokens=tokens, d_in=5)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} of 9 tokens")


@rung.property("MultiHeadAttentionWrapper", rules=("batch",))
def test_wrapper_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    adopt(theirs, reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3))
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, tokens=6, d_in=5))


@rung.property("MultiHeadAttentionWrapper", rules=("bias",))
def test_wrapper_has_biases_only_when_asked(student, reference, make):
    """No head has a bias by default; with qkv_bias=True all of them have."""
    assert_biases_only_when_asked(
        lambda *bias: student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3, *bias),
        lambda *bias: reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3, *bias),
        make.normal(batch=2, tokens=6, d_in=5),
    )


def dropping_wrapper(student, reference, make):
    """Modules with dropout, and sentences for which each head's output shows its weights twice."""
    tokens, num_heads = 16, 2
    theirs = student.MultiHeadAttentionWrapper(tokens, 2 * tokens, tokens, P_DROP, num_heads)
    ours = reference.MultiHeadAttentionWrapper(tokens, 2 * tokens, tokens, P_DROP, num_heads)
    # Scores are so small that no weight is tiny. Each value is a one-hot vector, twice.
    with torch.no_grad():
        for head in ours.heads:
            head.W_query.weight.copy_(make.normal(0.7, rows=2 * tokens, d_in=tokens))
            head.W_key.weight.copy_(make.normal(0.7, rows=2 * tokens, d_in=tokens))
            head.W_value.weight.copy_(torch.eye(tokens).repeat(2, 1))
    adopt(theirs, ours)
    return theirs, ours, torch.eye(tokens).expand(16, tokens, tokens)


@rung.property("MultiHeadAttentionWrapper", points=1.5, rules=("dropout",))
def test_wrapper_drops_weights_in_training(student, reference, make):
    """In training, every head drops weights of its own."""
    assert_drops_weights_in_every_head(*dropping_wrapper(student, reference, make))


@rung.property("MultiHeadAttentionWrapper", points=0.5, rules=("eval",))
def test_wrapper_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), two calls agree, and nothing is dropped."""
    assert_drops_nothing_in_evaluation(*dropping_wrapper(student, reference, make))


@rung.property("MultiHeadAttentionWrapper", rules=("device",))
def test_wrapper_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(
        student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3), make.normal(batch=2, tokens=6, d_in=5)
    )


@rung.property("MultiHeadAttentionWrapper", rules=("dtype",))
def test_wrapper_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    ours = reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("MultiHeadAttentionWrapper", points=0.5, rules=("unchanged",))
def test_wrapper_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3)
    adopt(theirs, reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=6, d_in=5))


@rung.gradient("MultiHeadAttentionWrapper", rules=("gradients",))
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_wrapper_has_the_right_gradients(student, reference, make, qkv_bias):
    """Gradients reach the input and the weights of every head."""
    theirs = student.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3, qkv_bias)
    ours = reference.MultiHeadAttentionWrapper(5, 4, 9, 0.0, 3, qkv_bias)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=6, d_in=5), make=make)


# --- MultiHeadAttention --------------------------------------------------------------------------

# batch, tokens, d_in, d_out, num_heads; head_dim is 4, 5 and 3
LAYERS = [(2, 6, 5, 12, 3), (3, 7, 4, 10, 2), (4, 8, 7, 15, 5)]


@rung.shape("MultiHeadAttention")
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), LAYERS)
def test_multi_head_attention_has_the_promised_shape(
    student, make, batch, tokens, d_in, d_out, num_heads
):
    """One vector of size d_out comes back for each token, however many heads there are."""
    attention = student.MultiHeadAttention(d_in, d_out, tokens, 0.0, num_heads)
    attention(make.normal(batch=batch, tokens=tokens, d_in=d_in))


@rung.value("MultiHeadAttention", points=7)
@pytest.mark.parametrize(("batch", "tokens", "d_in", "d_out", "num_heads"), LAYERS)
def test_multi_head_attention_agrees_with_the_reference(
    student, reference, make, batch, tokens, d_in, d_out, num_heads
):
    """With the same weights, the result is that of the reference."""
    theirs = student.MultiHeadAttention(d_in, d_out, tokens, 0.0, num_heads)
    ours = reference.MultiHeadAttention(d_in, d_out, tokens, 0.0, num_heads)
    adopt(theirs, ours)
    x = make.normal(batch=batch, tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.value("MultiHeadAttention", points=3, rules=("shorter", "computes"))
def test_multi_head_attention_takes_inputs_shorter_than_the_context(student, reference, make):
    """Inputs shorter than context_length work, one after another, in any order."""
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3)
    ours = reference.MultiHeadAttention(5, 12, 9, 0.0, 3)
    adopt(theirs, ours)
    for tokens in (6, 2, 1, 8):
        x = make.normal(batch=2, tokens=tokens, d_in=5)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} of 9 tokens")


@rung.property("MultiHeadAttention", rules=("batch",))
def test_multi_head_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3)
    adopt(theirs, reference.MultiHeadAttention(5, 12, 9, 0.0, 3))
    assert_batch_rows_do_not_mix(theirs, make.normal(0.5, batch=2, tokens=6, d_in=5))


@rung.property("MultiHeadAttention", rules=("heads",))
def test_multi_head_attention_keeps_its_heads_apart(student, reference, make):
    """Before the output layer, a head's features do not depend on another head's weights."""
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3)
    ours = reference.MultiHeadAttention(5, 12, 9, 0.0, 3)
    with torch.no_grad():
        ours.out_proj.weight.copy_(torch.eye(12))
        ours.out_proj.bias.zero_()
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=5)
    x[..., 0] = 1.0
    before = theirs(x)
    with torch.no_grad():
        for projection in (ours.W_query, ours.W_key, ours.W_value):
            projection.weight[4:8] = make.normal(0.1, rows=4, d_in=5)
        # All scores of head 1 become about 800. With one maximum for all heads, others would get 0.
        ours.W_query.weight[4:8, 0] = ours.W_key.weight[4:8, 0] = 20.0
    adopt(theirs, ours)
    after = theirs(x)
    assert_that(
        not agree(before[..., 4:8], after[..., 4:8]),
        "head 1 got other weights, and its features did not change",
    )
    for kept in (slice(0, 4), slice(8, 12)):
        assert_agrees(after[..., kept], before[..., kept], what="a head whose weights were kept")


@rung.property("MultiHeadAttention", rules=("bias",))
def test_multi_head_attention_has_biases_only_when_asked(student, reference, make):
    """Queries, keys and values have no bias by default, and a bias with qkv_bias=True."""
    assert_biases_only_when_asked(
        lambda *bias: student.MultiHeadAttention(5, 12, 9, 0.0, 3, *bias),
        lambda *bias: reference.MultiHeadAttention(5, 12, 9, 0.0, 3, *bias),
        make.normal(batch=2, tokens=6, d_in=5),
    )


@rung.property("MultiHeadAttention", rules=("bias",))
def test_multi_head_attention_ends_with_a_bias(student, reference):
    """The output layer has a bias, with qkv_bias and without."""
    # Both modules are made before the first check, so that the diagnosis sees both.
    missing = []
    for arguments in ((5, 12, 9, 0.0, 3), (5, 12, 9, 0.0, 3, True)):
        theirs = student.MultiHeadAttention(*arguments)
        ours = reference.MultiHeadAttention(*arguments)
        missing.append("out_proj.bias" in adopt(theirs, ours).missing)
    for is_missing, when in zip(missing, ("by default", "with qkv_bias=True"), strict=True):
        assert_that(
            not is_missing,
            f"{when}, the output layer has no bias that could be found: qkv_bias speaks of "
            "queries, keys and values, and the last layer has a bias in any case",
        )


def dropping_layer(student, reference, make):
    """Modules with dropout, sentences whose output shows each head's weights twice, and the bias.

    Dropout after the output layer would also drop this bias.
    """
    tokens, num_heads = 16, 2
    d_out = num_heads * 2 * tokens
    theirs = student.MultiHeadAttention(tokens, d_out, tokens, P_DROP, num_heads)
    ours = reference.MultiHeadAttention(tokens, d_out, tokens, P_DROP, num_heads)
    # Scores are so small that no weight is tiny. Each value is one-hot, twice in each head. The
    # output layer is the identity plus a bias.
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.7, rows=d_out, d_in=tokens))
        ours.W_key.weight.copy_(make.normal(0.7, rows=d_out, d_in=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(2 * num_heads, 1))
        ours.out_proj.weight.copy_(torch.eye(d_out))
        ours.out_proj.bias.fill_(0.125)
    adopt(theirs, ours)  # without a bias of theirs, there is none in ours either
    x = torch.eye(tokens).expand(16, tokens, tokens)
    return theirs, ours, x, ours.out_proj.bias.detach()


@rung.property("MultiHeadAttention", points=1.5, rules=("dropout",))
def test_multi_head_attention_drops_weights_in_training(student, reference, make):
    """In training, every head drops weights of its own."""
    assert_drops_weights_in_every_head(*dropping_layer(student, reference, make))


@rung.property("MultiHeadAttention", points=0.5, rules=("eval",))
def test_multi_head_attention_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), two calls agree, and nothing is dropped."""
    theirs, ours, x, _ = dropping_layer(student, reference, make)
    assert_drops_nothing_in_evaluation(theirs, ours, x)


@rung.property("MultiHeadAttention", rules=("divides",))
@pytest.mark.parametrize(("d_out", "num_heads"), [(10, 4), (12, 5), (9, 2)])
def test_multi_head_attention_refuses_a_width_that_does_not_divide(student, d_out, num_heads):
    """Construction with a num_heads that does not divide d_out raises an exception."""
    assert_refuses(
        student.MultiHeadAttention, 5, d_out, 8, 0.0, num_heads, why=why_not(d_out, num_heads)
    )


@rung.property("MultiHeadAttention", rules=("device",))
def test_multi_head_attention_moves_as_a_whole(student, make):
    """After a move to another device, the module takes inputs from that device."""
    assert_moves(
        student.MultiHeadAttention(5, 12, 9, 0.0, 3), make.normal(batch=2, tokens=6, d_in=5)
    )


@rung.property("MultiHeadAttention", points=0.5, rules=("dtype",))
def test_multi_head_attention_works_in_float64(student, reference, make):
    """A module in float64 takes and gives float64, to full precision."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3)
    ours = reference.MultiHeadAttention(5, 12, 9, 0.0, 3)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=6, d_in=5, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("MultiHeadAttention", points=0.5, rules=("unchanged",))
def test_multi_head_attention_leaves_its_input_alone(student, reference, make):
    """The tensor that was passed in stays as it was."""
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3)
    adopt(theirs, reference.MultiHeadAttention(5, 12, 9, 0.0, 3))
    assert_input_unchanged(theirs, make.normal(batch=2, tokens=6, d_in=5))


@rung.gradient("MultiHeadAttention", rules=("gradients",))
@pytest.mark.parametrize("qkv_bias", [False, True])
def test_multi_head_attention_has_the_right_gradients(student, reference, make, qkv_bias):
    """Gradients reach the input, all three projections and the output layer."""
    theirs = student.MultiHeadAttention(5, 12, 9, 0.0, 3, qkv_bias)
    ours = reference.MultiHeadAttention(5, 12, 9, 0.0, 3, qkv_bias)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=6, d_in=5), make=make)
