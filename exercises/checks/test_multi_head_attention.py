"""Public checks of unit 6, multi-head attention."""

import torch

from grader.course.collection import rung
from grader.testing import (
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_causal,
    assert_drops_weights,
    assert_refuses,
    assert_that,
    extra_biases,
)

# --- split_heads ---------------------------------------------------------------------------------


SEVEN = (
    "7 features cannot be cut into 2 heads of equal width: this should raise an exception, and it "
    "went on as if nothing had happened"
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
    """It is right for other numbers of sentences, tokens and heads."""
    x = make.normal(batch=2, tokens=5, d_out=12)
    assert_agrees(student.split_heads(x, 4), reference.split_heads(x, 4))


@rung.property("split_heads")
def test_split_heads_refuses_seven_features_for_two_heads(student, make):
    """Seven features cannot be shared out among two heads: an exception says so."""
    x = make.normal(batch=2, tokens=3, d_out=7)
    assert_refuses(student.split_heads, x, 2, why=SEVEN)


# --- merge_heads ---------------------------------------------------------------------------------


@rung.shape("merge_heads")
def test_merge_heads_gives_back_as_many_tokens(student, make):
    """The heads' features stand side by side, num_heads * head_dim in a row."""
    student.merge_heads(make.normal(batch=2, num_heads=3, tokens=5, head_dim=2))


@rung.value("merge_heads")
def test_merge_heads_joins_two_heads(student):
    """Each token gets its features back, those of head 0 first."""
    x = torch.tensor([[[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [6.0, 7.0]]]])
    expected = torch.tensor([[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]])
    assert_agrees(student.merge_heads(x), expected, what="two heads, merged")


@rung.value("merge_heads")
def test_merge_heads_works_for_other_sizes(student, reference, make):
    """It is right for other numbers of sentences, tokens and heads."""
    x = make.normal(batch=2, num_heads=4, tokens=5, head_dim=3)
    assert_agrees(student.merge_heads(x), reference.merge_heads(x))


@rung.property("merge_heads")
def test_merge_heads_gives_back_what_was_split(student, reference, make):
    """What was split and is merged again is what it was before, number by number."""
    x = make.normal(batch=2, tokens=5, d_out=12)
    merged = student.merge_heads(reference.split_heads(x, 4))
    assert_that(
        torch.equal(merged, x),
        "tokens were split into heads and merged by you, and came back with other features: "
        "which move of split_heads came last, and so has to be undone first?",
    )


# --- MultiHeadAttentionWrapper -------------------------------------------------------------------

THREE_TOKENS = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]]])


@rung.shape("MultiHeadAttentionWrapper")
def test_wrapper_puts_heads_side_by_side(student, make):
    """Each token comes back with num_heads * d_out features."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 6, 0.0, 2)
    attention(make.normal(batch=5, tokens=6, d_in=3))


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_shows_its_parameters(student):
    """The parameters of all heads can be found by an optimiser."""
    parameters = student.MultiHeadAttentionWrapper(3, 4, 8, 0.0, 2).parameters()
    count = sum(parameter.numel() for parameter in parameters.values())
    assert_that(
        count >= 72,
        "two heads with three projections of 3 * 4 weights have 72 weights together, and "
        f".parameters() shows {count}: a module finds its parts where torch looks for them, and "
        "torch does not look into plain lists",
    )


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_with_identity_weights_says_everything_twice(student, reference):
    """With every weight matrix the identity, both heads give the answer of the example."""
    theirs = student.MultiHeadAttentionWrapper(2, 2, 4, 0.0, 2)
    adopt_identity_weights(theirs, reference.MultiHeadAttentionWrapper(2, 2, 4, 0.0, 2))
    head = torch.tensor([[[1.0, 0.0], [0.0558, 1.8884], [1.8765, 1.9732]]])
    result = theirs(THREE_TOKENS)
    assert_agrees(result[..., :2], head, rtol=0, atol=1e-4, what="head 0 with identity weights")
    assert_agrees(result[..., 2:], head, rtol=0, atol=1e-4, what="head 1 with identity weights")


@rung.value("MultiHeadAttentionWrapper")
def test_wrapper_keeps_its_heads_in_order(student, reference, make):
    """With the same weights, the heads answer as in the reference, head 0 first."""
    theirs = student.MultiHeadAttentionWrapper(3, 4, 8, 0.0, 2)
    ours = reference.MultiHeadAttentionWrapper(3, 4, 8, 0.0, 2)
    adopt(theirs, ours)
    x = make.normal(batch=5, tokens=6, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.property("MultiHeadAttentionWrapper")
def test_wrapper_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.MultiHeadAttentionWrapper(3, 4, 8, 0.0, 2)
    assert_causal(attention, make.normal(batch=5, tokens=6, d_in=3))


# --- MultiHeadAttention --------------------------------------------------------------------------


@rung.shape("MultiHeadAttention")
def test_multi_head_attention_gives_one_vector_per_token(student, make):
    """One vector of size d_out comes back for each token, however many heads there are."""
    attention = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    attention(make.normal(batch=5, tokens=7, d_in=4))


@rung.value("MultiHeadAttention")
def test_multi_head_attention_with_identity_weights(student, reference):
    """With identity matrices and zero biases it gives the answer of the example."""
    theirs = student.MultiHeadAttention(4, 4, 4, 0.0, 2)
    adopt_identity_weights(theirs, reference.MultiHeadAttention(4, 4, 4, 0.0, 2))
    result = theirs(torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0, 2.0, 1.0, 1.0]]]))
    expected = torch.tensor([[[1.0, 0.0, 0.0, 1.0], [0.0558, 1.8884, 0.6698, 1.0]]])
    assert_agrees(result, expected, rtol=0, atol=1e-4, what="two heads with identity weights")


@rung.value("MultiHeadAttention")
def test_multi_head_attention_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the result is that of the reference."""
    theirs = student.MultiHeadAttention(4, 6, 8, 0.0, 2)
    ours = reference.MultiHeadAttention(4, 6, 8, 0.0, 2)
    adopt(theirs, ours)
    x = make.normal(batch=5, tokens=7, d_in=4)
    assert_agrees(theirs(x), ours(x))


@rung.property("MultiHeadAttention")
def test_multi_head_attention_is_causal(student, make):
    """Changing later tokens leaves the outputs of earlier ones as they were."""
    attention = student.MultiHeadAttention(4, 6, 8, 0.0, 2)
    assert_causal(attention, make.normal(batch=5, tokens=7, d_in=4))


@rung.property("MultiHeadAttention")
def test_multi_head_attention_refuses_seven_features_for_two_heads(student):
    """Two heads cannot share seven features: construction raises an exception."""
    assert_refuses(student.MultiHeadAttention, 4, 7, 8, 0.0, 2, why=SEVEN)


@rung.property("MultiHeadAttention")
def test_multi_head_attention_has_no_biases_unless_asked(student, reference):
    """Queries, keys and values have no bias unless asked; the last layer has one."""
    theirs = student.MultiHeadAttention(4, 6, 7, 0.0, 2)
    adoption = adopt(theirs, reference.MultiHeadAttention(4, 6, 7, 0.0, 2))
    biases = extra_biases(theirs)
    assert_that(
        not biases,
        f"nobody asked for a bias, and there is {', '.join(biases[:3])}: do queries, keys and "
        "values know of qkv_bias, and is it False to begin with?",
    )
    assert_that(
        "out_proj.bias" not in adoption.missing,
        "the bias of the last layer is nowhere to be found: does qkv_bias have a say in it?",
    )


@rung.property("MultiHeadAttention")
def test_multi_head_attention_drops_weights_and_nothing_else(student, reference, make):
    """Dropout falls on the attention weights of each head: not on scores, values or the result."""
    tokens, p = 10, 0.4
    theirs = student.MultiHeadAttention(tokens, 4 * tokens, tokens, p, 2)
    ours = reference.MultiHeadAttention(tokens, 4 * tokens, tokens, p, 2)
    # Every token is one-hot, and so is its value, twice in each of two heads: the result shows
    # each head's weights, twice, on top of the last layer's bias.
    with torch.no_grad():
        ours.W_query.weight.copy_(make.normal(0.6, rows=4 * tokens, columns=tokens))
        ours.W_key.weight.copy_(make.normal(0.6, rows=4 * tokens, columns=tokens))
        ours.W_value.weight.copy_(torch.eye(tokens).repeat(4, 1))
        ours.out_proj.weight.copy_(torch.eye(4 * tokens))
        ours.out_proj.bias.fill_(0.25)
    adopt(theirs, ours)
    bias = ours.out_proj.bias.detach()  # zero by now if theirs has none
    x = torch.eye(tokens).expand(18, tokens, tokens)
    weights = (ours.eval()(x).detach() - bias).chunk(4, dim=-1)
    dropped = (theirs.train()(x) - bias).chunk(4, dim=-1)
    for head in (0, 2):
        assert_drops_weights(dropped[head], dropped[head + 1], weights[head], p)
