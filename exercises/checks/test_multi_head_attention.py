"""Public checks of unit 6, multi-head attention."""

import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    DIGITS,
    PRINTED,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_drops_weights,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_refuses,
    assert_that,
)

# --- split_heads ---------------------------------------------------------------------------------


SEVEN = (
    "7 features cannot be cut into 2 heads of equal width: this should raise an exception, but no "
    "exception was raised"
)


@rung.shape("split_heads")
def test_split_heads_gives_every_head_its_tokens(student, make):
    """Heads come before tokens, and every head is head_dim wide."""
    student.split_heads(make.normal(batch=2, tokens=5, d_out=12), 3)


@rung.value("split_heads")
def test_split_heads_cuts_two_tokens_into_halves(student):
    """Head 0 gets the left half of both tokens, head 1 the right half."""
    x = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
    expected = torch.tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
    assert_agrees(student.split_heads(x, 2), expected, what="two tokens, cut for two heads")


@rung.value("split_heads")
def test_split_heads_works_for_other_sizes(student, reference, make):
    """The result is right for other numbers of sentences, tokens and heads."""
    x = make.normal(batch=2, tokens=5, d_out=12)
    assert_agrees(student.split_heads(x, 4), reference.split_heads(x, 4))


@rung.property("split_heads", rules=("divides",))
def test_split_heads_refuses_seven_features_for_two_heads(student, make):
    """Seven features cannot be shared out among two heads: an exception says so."""
    x = make.normal(batch=2, tokens=3, d_out=7)
    assert_refuses(student.split_heads, x, 2, why=SEVEN)


@rung.property("split_heads", rules=("dtype",))
def test_split_heads_keeps_float64(student, reference, make):
    """Float64 stays float64, with all digits."""
    x = make.normal(batch=2, tokens=3, d_out=6, dtype=torch.float64) / 3  # float32 rounds thirds
    assert_agrees_to_float64(
        student.split_heads(x, 2), reference.split_heads(x, 2), within=ALL_DIGITS
    )


@rung.property("split_heads", rules=("unchanged",))
def test_split_heads_keeps_its_input(student, make):
    """The tensor that was passed in stays as it was."""
    assert_input_unchanged(student.split_heads, make.normal(batch=2, tokens=3, d_out=6), 2)


@rung.gradient("split_heads", rules=("gradients",))
def test_split_heads_lets_gradients_through(student, reference, make):
    """Gradients flow back to the features that they belong to."""
    assert_gradients_agree(
        lambda x: student.split_heads(x, 2),
        lambda x: reference.split_heads(x, 2),
        make.normal(batch=2, tokens=3, d_out=6),
        make=make,
    )


# --- merge_heads ---------------------------------------------------------------------------------


@rung.shape("merge_heads")
def test_merge_heads_gives_back_as_many_tokens(student, make):
    """Each token has the features of all heads in a row, num_heads * head_dim of them."""
    student.merge_heads(make.normal(batch=2, num_heads=3, tokens=5, head_dim=2))


@rung.value("merge_heads")
def test_merge_heads_joins_two_heads(student):
    """Each token gets its features back, those of head 0 first."""
    x = torch.tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
    expected = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
    assert_agrees(student.merge_heads(x), expected, what="two heads, merged")


@rung.value("merge_heads")
def test_merge_heads_works_for_other_sizes(student, reference, make):
    """The result is right for other numbers of sentences, tokens and heads."""
    x = make.normal(batch=2, num_heads=4, tokens=5, head_dim=3)
    assert_agrees(student.merge_heads(x), reference.merge_heads(x))


@rung.value("merge_heads")
def test_merge_heads_gives_back_what_was_split(student, reference, make):
    """Splitting and then merging puts every number back in its place."""
    x = make.normal(batch=2, tokens=5, d_out=12)
    merged = student.merge_heads(reference.split_heads(x, 4))
    assert_that(
        torch.equal(merged, x),
        "tokens were split into heads and merged by you, and came back with other features: "
        "which move of split_heads came last, and so has to be undone first?",
    )


@rung.property("merge_heads", rules=("dtype",))
def test_merge_heads_keeps_float64(student, reference, make):
    """Float64 stays float64, with all digits."""
    x = make.normal(batch=2, num_heads=2, tokens=3, head_dim=4, dtype=torch.float64) / 3
    assert_agrees_to_float64(student.merge_heads(x), reference.merge_heads(x), within=ALL_DIGITS)


@rung.property("merge_heads", rules=("unchanged",))
def test_merge_heads_keeps_its_input(student, make):
    """The tensor that was passed in stays as it was."""
    x = make.normal(batch=2, num_heads=2, tokens=3, head_dim=4)
    assert_input_unchanged(student.merge_heads, x)


@rung.gradient("merge_heads", rules=("gradients",))
def test_merge_heads_lets_gradients_through(student, reference, make):
    """Gradients flow back to the head and the token that they belong to."""
    x = make.normal(batch=2, num_heads=2, tokens=3, head_dim=4)
    assert_gradients_agree(student.merge_heads, reference.merge_heads, x, make=make)


# --- both modules --------------------------------------------------------------------------------

P_DROP = 0.4


def assert_follows_qkv_bias(theirs, ours, biased, ours_biased):
    """Fail unless the first pair has no biases, and the second pair, made with qkv_bias, has."""
    adoption = adopt(theirs, ours)
    assert_learns_no_more(theirs, "qkv_bias is False by default")
    last = "out_proj.bias"
    missing = adopt(biased, ours_biased).missing
    for found, when in ((adoption.missing, "by default"), (missing, "with qkv_bias=True")):
        assert_that(
            last not in found,
            f"{when}, the bias of the last layer could not be found: qkv_bias concerns queries, "
            "keys and values, but the last layer always has a bias",
        )
    unmade = [role for role in missing if role != last]
    assert_that(
        not unmade,
        f"qkv_bias=True asks for biases, but {', '.join(unmade[:3])} could not be found: which "
        "of your layers gets qkv_bias?",
    )


# --- MultiHeadAttentionWrapper -------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])


def small_wrapper(student, reference, context_length=6):
    """The student's module and the reference, with the same weights."""
    theirs = student.MultiHeadAttentionWrapper(3, 4, context_length, 0.0, 2)
    ours = reference.MultiHeadAttentionWrapper(3, 4, context_length, 0.0, 2)
    adopt(theirs, ours)
    return theirs, ours


def dropping_wrapper(student, reference, make):
    """Modules with dropout, and sentences for which each head's output shows its weights twice."""
    tokens = 10
    theirs = student.MultiHeadAttentionWrapper(tokens, 2 * tokens, tokens, P_DROP, 2)
    ours = reference.MultiHeadAttentionWrapper(tokens, 2 * tokens, tokens, P_DROP, 2)
    # Tokens are one-hot, and a value holds its token twice.
    with torch.no_grad():
        for head in (ours.get_submodule("heads.0"), ours.get_submodule("heads.1")):
            head.W_query.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
            head.W_key.weight.copy_(make.normal(0.6, rows=2 * tokens, columns=tokens))
            head.W_value.weight.copy_(torch.eye(tokens).repeat(2, 1))
    adopt(theirs, ours)
    return theirs, ours, torch.eye(tokens).expand(18, tokens, tokens)


@rung.shape("MultiHeadAttentionWrapper", rules=("parameters",))
def test_wrapper_shows_its_parameters(student):
    """An optimiser finds the parameters of all heads."""
    parameters = student.MultiHeadAttentionWrapper(3, 4, 8, 0.0, 2).parameters()
    count = sum(parameter.numel() for parameter in parameters.values())
    assert_that(
        count >= 72,
        "two heads with three projections of 3 * 4 weights have 72 weights together, but "
        f".parameters() shows {count}: torch does not find modules in plain lists",
    )


@rung.shape("MultiHeadAttentionWrapper")
def test_wrapper_puts_heads_side_by_side(student, make):
    """Each token comes back with num_heads * d_out features."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2)
    attention(make.normal(batch=5, tokens=6, d_in=3))


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_with_identity_weights_says_everything_twice(student, reference):
    """With identity matrices as weights, both heads give the answer of the example."""
    theirs = student.MultiHeadAttentionWrapper(2, 2, 3, 0.0, 2)
    adopt_identity_weights(theirs, reference.MultiHeadAttentionWrapper(2, 2, 3, 0.0, 2))
    head = torch.tensor([[[1.0, 0.0], [0.055807, 1.888386], [1.876494, 1.973228]]])
    result = theirs(THREE_TOKENS)
    assert_agrees(result[..., :2], head, within=PRINTED, what="head 0 with identity weights")
    assert_agrees(result[..., 2:], head, within=PRINTED, what="head 1 with identity weights")


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_keeps_its_heads_in_order(student, reference, make):
    """With the same weights, the heads answer as in the reference, head 0 first."""
    theirs, ours = small_wrapper(student, reference)
    x = make.normal(batch=5, tokens=6, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2)
    assert_causal(attention, make.normal(batch=5, tokens=6, d_in=3))


@rung.value("MultiHeadAttentionWrapper", rules=("shorter", "computes"))
def test_wrapper_takes_shorter_sentences(student, reference, make):
    """Sentences may be shorter than context_length; each call may have another length."""
    theirs, ours = small_wrapper(student, reference, context_length=8)
    for tokens in (3, 5):
        x = make.normal(batch=7, tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} tokens of at most 8")


@rung.property("MultiHeadAttentionWrapper", rules=("batch",))
def test_wrapper_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs, _ = small_wrapper(student, reference)
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=3, tokens=6, d_in=3))


@rung.property("MultiHeadAttentionWrapper", rules=("bias",))
def test_wrapper_has_biases_only_when_asked(student, reference):
    """Queries, keys and values have a bias with qkv_bias=True, and none by default."""
    assert_follows_qkv_bias(
        student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2),
        reference.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2),
        student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2, True),
        reference.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2, True),
    )


@rung.property("MultiHeadAttentionWrapper", rules=("dropout",))
def test_wrapper_drops_weights_and_nothing_else(student, reference, make):
    """Dropout acts on the attention weights of each head: not on scores, values or the result."""
    theirs, ours, x = dropping_wrapper(student, reference, make)
    weights = ours.eval()(x).detach().chunk(4, dim=-1)
    dropped = theirs.train()(x).chunk(4, dim=-1)
    for head in (0, 2):
        assert_drops_weights(dropped[head], dropped[head + 1], weights[head], P_DROP)


@rung.property("MultiHeadAttentionWrapper", rules=("eval",))
def test_wrapper_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), nothing is dropped."""
    theirs, ours, x = dropping_wrapper(student, reference, make)
    what = "the result after .eval(), where dropout is off,"
    assert_agrees(theirs.eval()(x), ours.eval()(x), what=what)


@rung.property("MultiHeadAttentionWrapper", rules=("device",))
def test_wrapper_moves_to_another_device(student, make):
    """After a move to another device, the module takes inputs from that device."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2)
    assert_moves(attention, make.normal(batch=2, tokens=6, d_in=3))


@rung.property("MultiHeadAttentionWrapper", rules=("dtype",))
def test_wrapper_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    theirs, ours = small_wrapper(student, reference)
    x = make.normal(batch=2, tokens=6, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("MultiHeadAttentionWrapper", rules=("unchanged",))
def test_wrapper_keeps_its_input(student, make):
    """The tensor that was passed in stays as it was."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2)
    assert_input_unchanged(attention, make.normal(batch=2, tokens=6, d_in=3))


@rung.gradient("MultiHeadAttentionWrapper", rules=("gradients",))
def test_wrapper_lets_gradients_through(student, reference, make):
    """Gradients reach the input and the weights of every head."""
    theirs, ours = small_wrapper(student, reference)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=6, d_in=3), make=make)


# --- MultiHeadAttention --------------------------------------------------------------------------


def small_layer(student, reference, context_length=7):
    """The student's module and the reference, with the same weights."""
    theirs = student.MultiHeadAttention(4, 6, context_length, 0.0, 2)
    ours = reference.MultiHeadAttention(4, 6, context_length, 0.0, 2)
    adopt(theirs, ours)
    return theirs, ours


def dropping_layer(student, reference, make):
    """Modules with dropout, sentences whose output shows each head's weights twice, and the bias.

    Tokens are one-hot, and a value holds its token twice in each of two heads. The output layer
    has the identity matrix, so it only adds its bias.
    """
    tokens = 10
    theirs = student.MultiHeadAttention(tokens, 4 * tokens, tokens, P_DROP, 2)
    ours = reference.MultiHeadAttention(tokens, 4 * tokens, tokens, P_DROP, 2)
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.6, rows=4 * tokens, columns=tokens))
        ours.W_key.weight.copy_(make.normal(0.6, rows=4 * tokens, columns=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(4, 1))
        ours.out_proj.weight.copy_(torch.eye(4 * tokens))
        ours.out_proj.bias.fill_(0.25)
    adopt(theirs, ours)
    bias = ours.out_proj.bias.detach()  # `adopt` makes it zero if theirs has no bias
    return theirs, ours, torch.eye(tokens).expand(18, tokens, tokens), bias


@rung.shape("MultiHeadAttention")
def test_multi_head_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token, however many heads there are."""
    attention = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    attention(make.normal(batch=5, tokens=7, d_in=4))


@rung.value("MultiHeadAttention")
def test_multi_head_attention_with_identity_weights(student, reference):
    """With identity matrices and zero biases, the module gives the answer of the example."""
    theirs = student.MultiHeadAttention(4, 4, 3, 0.0, 2)
    adopt_identity_weights(theirs, reference.MultiHeadAttention(4, 4, 3, 0.0, 2))
    # A third token fills the context: neither of the first two tokens may see it.
    x = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]])
    result = theirs(x)[:, :2]
    expected = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.055807, 1.888386, 0.669761, 1.0]]])
    assert_agrees(result, expected, within=PRINTED, what="two heads with identity weights")


@rung.value("MultiHeadAttention")
def test_multi_head_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs, ours = small_layer(student, reference)
    x = make.normal(batch=5, tokens=7, d_in=4)
    assert_agrees(theirs(x), ours(x))


@rung.value("MultiHeadAttention")
def test_multi_head_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    assert_causal(attention, make.normal(batch=5, tokens=7, d_in=4))


@rung.value("MultiHeadAttention", rules=("shorter", "computes"))
def test_multi_head_attention_takes_shorter_sentences(student, reference, make):
    """Sentences may be shorter than context_length; each call may have another length."""
    theirs, ours = small_layer(student, reference, context_length=9)
    for tokens in (3, 5):
        x = make.normal(batch=8, tokens=tokens, d_in=4)
        assert_agrees(theirs(x), ours(x), what=f"the result for {tokens} tokens of at most 9")


@rung.property("MultiHeadAttention", rules=("divides",))
def test_multi_head_attention_refuses_seven_features_for_two_heads(student):
    """Two heads cannot share seven features: construction raises an exception."""
    assert_refuses(student.MultiHeadAttention, 4, 7, 8, 0.0, 2, why=SEVEN)


@rung.property("MultiHeadAttention", rules=("batch",))
def test_multi_head_attention_keeps_sentences_apart(student, reference, make):
    """Changing one sentence leaves the outputs of the others as they were."""
    theirs, _ = small_layer(student, reference)
    assert_batch_rows_do_not_mix(theirs, make.normal(0.5, batch=3, tokens=7, d_in=4))


@rung.property("MultiHeadAttention", rules=("heads",))
def test_multi_head_attention_keeps_its_heads_apart(student, reference, make):
    """Large scores in head 1 leave the features of head 0 as they were."""
    theirs, ours = small_layer(student, reference)
    with torch.no_grad():
        ours.out_proj.weight.copy_(torch.eye(6))
        ours.out_proj.bias.zero_()
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_in=4)
    x[..., 0] = 1.0
    before = theirs(x)
    loud = reference.MultiHeadAttention(4, 6, 7, 0.0, 2)
    loud.load_state_dict(ours.state_dict())
    with torch.no_grad():  # all scores of head 1 become about 700
        for projection in (loud.W_query, loud.W_key, loud.W_value):
            projection.weight[3:] = make.normal(0.1, rows=3, d_in=4)
        loud.W_query.weight[3:, 0] = loud.W_key.weight[3:, 0] = 20.0
    adopt(theirs, loud)
    what = "head 0, after the scores of head 1 became large,"
    assert_agrees(theirs(x)[..., :3], before[..., :3], what=what)


@rung.property("MultiHeadAttention", rules=("bias",))
def test_multi_head_attention_has_biases_only_when_asked(student, reference):
    """Queries, keys and values have no bias by default; the last layer always has a bias."""
    assert_follows_qkv_bias(
        student.MultiHeadAttention(4, 6, 7, 0.0, 2),
        reference.MultiHeadAttention(4, 6, 7, 0.0, 2),
        student.MultiHeadAttention(4, 6, 7, 0.0, 2, True),
        reference.MultiHeadAttention(4, 6, 7, 0.0, 2, True),
    )


@rung.property("MultiHeadAttention", rules=("dropout",))
def test_multi_head_attention_drops_weights_and_nothing_else(student, reference, make):
    """Dropout acts on the attention weights of each head: not on scores, values or the result."""
    theirs, ours, x, bias = dropping_layer(student, reference, make)
    weights = (ours.eval()(x).detach() - bias).chunk(4, dim=-1)
    dropped = (theirs.train()(x) - bias).chunk(4, dim=-1)
    for head in (0, 2):
        assert_drops_weights(dropped[head], dropped[head + 1], weights[head], P_DROP)


@rung.property("MultiHeadAttention", rules=("eval",))
def test_multi_head_attention_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), nothing is dropped."""
    theirs, ours, x, _ = dropping_layer(student, reference, make)
    what = "the result after .eval(), where dropout is off,"
    assert_agrees(theirs.eval()(x), ours.eval()(x), what=what)


@rung.property("MultiHeadAttention", rules=("device",))
def test_multi_head_attention_moves_to_another_device(student, make):
    """After a move to another device, the module takes inputs there: its mask has moved too."""
    attention = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    assert_moves(attention, make.normal(batch=2, tokens=7, d_in=4))


@rung.property("MultiHeadAttention", rules=("dtype",))
def test_multi_head_attention_computes_in_float64(student, reference, make):
    """After .double(), the module takes and gives float64, with all digits."""
    # The root of 4 is exact, so a scale that is kept in float32 loses no digits.
    theirs = student.MultiHeadAttention(4, 8, 7, 0.0, 2)
    ours = reference.MultiHeadAttention(4, 8, 7, 0.0, 2)
    adopt(theirs, ours)
    x = make.normal(batch=2, tokens=7, d_in=4, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("MultiHeadAttention", rules=("unchanged",))
def test_multi_head_attention_keeps_its_input(student, make):
    """The tensor that was passed in stays as it was."""
    attention = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    assert_input_unchanged(attention, make.normal(batch=2, tokens=7, d_in=4))


@rung.gradient("MultiHeadAttention", rules=("gradients",))
def test_multi_head_attention_lets_gradients_through(student, reference, make):
    """Gradients reach the input, all three projections and the output layer."""
    theirs, ours = small_layer(student, reference)
    assert_gradients_agree(theirs, ours, make.normal(0.5, batch=2, tokens=7, d_in=4), make=make)
