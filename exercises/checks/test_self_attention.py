"""Public checks of unit 4, queries, keys and values."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    PRINTED,
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
    assert_that,
)

# --- linear_by_hand ------------------------------------------------------------------------------


@rung.shape("linear_by_hand")
def test_linear_by_hand_changes_the_last_dimension_only(student, make):
    """(batch, tokens, d_in) becomes (batch, tokens, d_out)."""
    x = make.normal(batch=2, tokens=4, d_in=3)
    student.linear_by_hand(x, make.normal(d_out=5, d_in=3), make.normal(d_out=5))


@rung.value("linear_by_hand")
def test_linear_by_hand_does_the_example(student):
    """Two features become three: the first, the second and their sum, plus 10, 20 and 30."""
    x, bias = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0, 30.0])
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert_agrees(student.linear_by_hand(x, weight, bias), torch.tensor([11.0, 22.0, 33.0]))


@rung.value("linear_by_hand", rules=("bias", "computes"))
def test_linear_by_hand_works_without_a_bias(student):
    """With a bias of None, the example gives the two features and their sum."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert_agrees(
        student.linear_by_hand(x, weight, None),
        torch.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 7.0]]),
        what="the result without a bias",
    )


@rung.value("linear_by_hand", rules=("leading", "computes"))
def test_linear_by_hand_takes_a_batch(student, reference, make):
    """A batch of sentences gives the same numbers as the reference."""
    x, weight = make.normal(batch=2, tokens=4, d_in=3), make.normal(d_out=5, d_in=3)
    bias = make.normal(d_out=5)
    assert_agrees(
        student.linear_by_hand(x, weight, bias), reference.linear_by_hand(x, weight, bias)
    )


@rung.property("linear_by_hand", rules=("dtype",))
def test_linear_by_hand_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    x = make.normal(tokens=9, d_in=16, dtype=torch.float64)
    weight = make.normal(d_out=5, d_in=16, dtype=torch.float64)
    bias = make.normal(d_out=5, dtype=torch.float64)
    theirs, ours = (kit.linear_by_hand(x, weight, bias) for kit in (student, reference))
    assert_agrees_to_float64(theirs, ours, within=DIGITS)


@rung.property("linear_by_hand", rules=("unchanged",))
def test_linear_by_hand_leaves_its_inputs_alone(student, make):
    """Neither x, nor the weight, nor the bias is changed in place."""
    x, weight = make.normal(tokens=4, d_in=3), make.normal(d_out=5, d_in=3)
    assert_input_unchanged(student.linear_by_hand, x, weight, make.normal(d_out=5))


@rung.gradient("linear_by_hand", rules=("gradients",))
def test_linear_by_hand_has_gradients(student, reference, make):
    """Gradients reach x, the weight and the bias."""
    arguments = make.normal(tokens=4, d_in=3), make.normal(d_out=5, d_in=3), make.normal(d_out=5)
    assert_gradients_agree(student.linear_by_hand, reference.linear_by_hand, *arguments, make=make)


# --- project_qkv ---------------------------------------------------------------------------------


@rung.shape("project_qkv")
def test_project_qkv_gives_queries_keys_and_values(student, make):
    """Three tensors of shape (tokens, d_out) come back."""
    matrices = [make.normal(d_in=3, d_out=2) for _ in range(3)]
    student.project_qkv(make.normal(tokens=4, d_in=3), *matrices)


@rung.value("project_qkv")
def test_project_qkv_does_the_example(student):
    """Queries swap the features, keys double them, values add them up."""
    inputs = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    double = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    add = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    queries, keys, values = student.project_qkv(inputs, swap, double, add)
    assert_agrees(
        queries, torch.tensor([[2.0, 1.0], [4.0, 3.0]]), what="queries, the first of the three"
    )
    assert_agrees(
        keys, torch.tensor([[2.0, 4.0], [6.0, 8.0]]), what="keys, the second of the three"
    )
    assert_agrees(
        values, torch.tensor([[3.0, 0.0], [7.0, 0.0]]), what="values, the third of the three"
    )


@rung.value("project_qkv", rules=("leading", "computes"))
def test_project_qkv_takes_a_batch(student, reference, make):
    """A batch of sentences gives the same numbers as the reference."""
    inputs = make.normal(batch=2, tokens=4, d_in=3)
    matrices = [make.normal(d_in=3, d_out=5) for _ in range(3)]
    assert_agrees(student.project_qkv(inputs, *matrices), reference.project_qkv(inputs, *matrices))


@rung.property("project_qkv", rules=("dtype",))
def test_project_qkv_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    inputs = make.normal(tokens=4, d_in=3, dtype=torch.float64)
    matrices = [make.normal(d_in=3, d_out=2, dtype=torch.float64) for _ in range(3)]
    assert_agrees_to_float64(
        student.project_qkv(inputs, *matrices),
        reference.project_qkv(inputs, *matrices),
        within=DIGITS,
    )


@rung.property("project_qkv", rules=("unchanged",))
def test_project_qkv_leaves_its_inputs_alone(student, make):
    """Neither the inputs nor the three matrices are changed in place."""
    matrices = [make.normal(d_in=3, d_out=2) for _ in range(3)]
    assert_input_unchanged(student.project_qkv, make.normal(tokens=4, d_in=3), *matrices)


@rung.gradient("project_qkv", rules=("gradients",))
def test_project_qkv_has_gradients(student, reference, make):
    """Gradients reach the inputs and all three matrices."""
    inputs, matrices = make.normal(tokens=4, d_in=3), [make.normal(d_in=3, d_out=2) for _ in "qkv"]
    assert_gradients_agree(student.project_qkv, reference.project_qkv, inputs, *matrices, make=make)


# --- scaled_scores -------------------------------------------------------------------------------


@rung.shape("scaled_scores")
def test_scaled_scores_have_a_row_for_each_query(student, make):
    """Three queries and five keys give three rows of five scores."""
    student.scaled_scores(make.normal(queries=3, d_k=4), make.normal(keys=5, d_k=4))


@rung.value("scaled_scores")
def test_scaled_scores_do_the_example(student):
    """Dot products of 4 and 2, divided by the root of d_k = 4, are 2 and 1."""
    queries = torch.tensor([[1.0, 1.0, 1.0, 1.0]])
    keys = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.0]])
    assert_agrees(student.scaled_scores(queries, keys), torch.tensor([[2.0, 1.0]]))


@rung.value("scaled_scores", rules=("computes", "leading"))
def test_scaled_scores_agree_with_the_reference(student, reference, make):
    """A batch with more keys than queries gives the same scores as the reference."""
    queries, keys = make.normal(batch=2, queries=3, d_k=6), make.normal(batch=2, keys=5, d_k=6)
    assert_agrees(student.scaled_scores(queries, keys), reference.scaled_scores(queries, keys))


@rung.property("scaled_scores")
@pytest.mark.parametrize(("d_k", "tokens"), [(16, 150), (10_000, 40)])
def test_scaled_scores_stay_near_variance_one(student, make, d_k, tokens):
    """Random queries and keys of variance 1 give scores of variance 1, for small and large d_k."""
    queries, keys = make.normal(queries=tokens, d_k=d_k), make.normal(keys=tokens, d_k=d_k)
    variance = student.scaled_scores(queries, keys).var().item()
    assert_that(
        abs(variance - 1) < 0.4,
        f"for d_k = {d_k} the variance of the scores is {variance:.3g}: it should stay near 1, so "
        "what must a sum of d_k terms be divided by?",
    )


@rung.property("scaled_scores", rules=("dtype",))
def test_scaled_scores_keep_float64(student, reference, make):
    """Queries and keys in float64 give scores in float64, to full precision."""
    queries = make.normal(queries=3, d_k=4, dtype=torch.float64)
    keys = make.normal(keys=5, d_k=4, dtype=torch.float64)
    assert_agrees_to_float64(
        student.scaled_scores(queries, keys), reference.scaled_scores(queries, keys), within=DIGITS
    )


@rung.property("scaled_scores", rules=("unchanged",))
def test_scaled_scores_leave_queries_and_keys_alone(student, make):
    """Neither queries nor keys are changed in place."""
    queries, keys = make.normal(queries=3, d_k=4), make.normal(keys=5, d_k=4)
    assert_input_unchanged(student.scaled_scores, queries, keys)


@rung.gradient("scaled_scores", rules=("gradients",))
def test_scaled_scores_have_gradients(student, reference, make):
    """Gradients reach the queries and the keys."""
    queries, keys = make.normal(queries=3, d_k=4), make.normal(keys=5, d_k=4)
    assert_gradients_agree(student.scaled_scores, reference.scaled_scores, queries, keys, make=make)


# --- scaled_dot_product_attention ----------------------------------------------------------------


@rung.shape("scaled_dot_product_attention")
def test_scaled_attention_gives_one_mix_of_values_per_query(student, make):
    """Three queries, five keys and values of length 2 give a (3, 2) result."""
    student.scaled_dot_product_attention(
        make.normal(queries=3, d_k=4), make.normal(keys=5, d_k=4), make.normal(keys=5, d_v=2)
    )


@rung.value("scaled_dot_product_attention")
def test_scaled_attention_does_the_example(student):
    """Queries of zero give equal weights to all keys that they may see."""
    queries = torch.zeros(2, 4)
    keys = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    values = torch.tensor([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]])
    mask = torch.tensor([[False, True], [False, False]])
    assert_agrees(
        student.scaled_dot_product_attention(queries, keys, values, mask),
        torch.tensor([[10.0, 0.0, 0.0], [5.0, 5.0, 0.0]]),
    )
    assert_agrees(
        student.scaled_dot_product_attention(queries, keys, values),
        torch.tensor([[5.0, 5.0, 0.0], [5.0, 5.0, 0.0]]),
        what="the result without a mask",
    )


@rung.value("scaled_dot_product_attention", rules=("computes", "leading"))
def test_scaled_attention_agrees_with_the_reference(student, reference, make):
    """A batch gives the same numbers as the reference, with a mask and without."""
    inputs = (
        make.normal(1.5, batch=2, queries=3, d_k=6),
        make.normal(1.5, batch=2, keys=4, d_k=6),
        make.normal(batch=2, keys=4, d_v=5),
    )
    mask = torch.tensor([[False, True, True, False], [False] * 4, [True, True, False, True]])
    mask = mask.repeat(2, 1, 1)
    assert_agrees(
        student.scaled_dot_product_attention(*inputs),
        reference.scaled_dot_product_attention(*inputs),
        what="the result without a mask",
    )
    assert_agrees(
        student.scaled_dot_product_attention(*inputs, mask),
        reference.scaled_dot_product_attention(*inputs, mask),
        what="the result with a mask",
    )


@rung.property("scaled_dot_product_attention", rules=("hidden",))
def test_scaled_attention_ignores_what_is_hidden(student, make):
    """Changing a hidden key and its value changes no result, even if all scores are low."""
    queries, keys = 5.0 + make.uniform(queries=3, d_k=4), -6.0 + make.uniform(keys=5, d_k=4)
    values = make.normal(keys=5, d_v=2)
    mask = torch.tensor([False, False, True, False, False]).repeat(3, 1)
    before = student.scaled_dot_product_attention(queries, keys, values, mask)
    keys[2], values[2] = -6.5, 10_000.0
    after = student.scaled_dot_product_attention(queries, keys, values, mask)
    assert_that(
        agree(before, after, within=UNMOVED),
        "key 2 is hidden from every query (True = may NOT look), but the result changes with it. "
        "All visible scores here lie near -60. Which score must a hidden key get, so that its "
        "weight is exactly 0 even then?",
    )


@rung.property("scaled_dot_product_attention", rules=("batch",))
def test_scaled_attention_keeps_batch_rows_apart(student, make):
    """Queries of one batch row never change the result of another row."""
    queries, keys = make.normal(batch=2, queries=3, d_k=4), make.normal(batch=2, keys=5, d_k=4)
    values, attend = make.normal(batch=2, keys=5, d_v=2), student.scaled_dot_product_attention
    assert_batch_rows_do_not_mix(lambda changed: attend(changed, keys, values), queries)


@rung.property("scaled_dot_product_attention", rules=("broadcast",))
def test_scaled_attention_takes_one_mask_for_the_whole_batch(student, reference, make):
    """A mask of shape (queries, keys) applies to every row of the batch."""
    inputs = (
        make.normal(batch=2, queries=2, d_k=4),
        make.normal(batch=2, keys=3, d_k=4),
        make.normal(batch=2, keys=3, d_v=5),
    )
    mask = torch.tensor([[False, True, False], [True, False, False]])
    assert_agrees(
        student.scaled_dot_product_attention(*inputs, mask),
        reference.scaled_dot_product_attention(*inputs, mask),
        what="the result with one mask for the whole batch",
    )


@rung.property("scaled_dot_product_attention", rules=("dtype",))
def test_scaled_attention_keeps_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    inputs = (
        make.normal(queries=3, d_k=4, dtype=torch.float64),
        make.normal(keys=5, d_k=4, dtype=torch.float64),
        make.normal(keys=5, d_v=2, dtype=torch.float64),
    )
    assert_agrees_to_float64(
        student.scaled_dot_product_attention(*inputs),
        reference.scaled_dot_product_attention(*inputs),
        within=DIGITS,
    )


@rung.property("scaled_dot_product_attention", rules=("unchanged",))
def test_scaled_attention_leaves_its_inputs_alone(student, make):
    """Neither queries, keys and values nor the mask are changed in place."""
    mask = torch.tensor([[False, True, False], [True, False, False]])
    assert_input_unchanged(
        student.scaled_dot_product_attention,
        make.normal(queries=2, d_k=4),
        make.normal(keys=3, d_k=4),
        make.normal(keys=3, d_v=5),
        mask,
    )


@rung.gradient("scaled_dot_product_attention", rules=("gradients",))
def test_scaled_attention_has_gradients(student, reference, make):
    """Gradients reach queries, keys and values."""
    inputs = make.normal(queries=3, d_k=4), make.normal(keys=5, d_k=4), make.normal(keys=5, d_v=2)
    theirs, ours = student.scaled_dot_product_attention, reference.scaled_dot_product_attention
    assert_gradients_agree(theirs, ours, *inputs, make=make)


# --- SelfAttention_v1 ----------------------------------------------------------------------------

TOKENS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
CONTEXT = torch.tensor([[1.4359, 1.4320], [1.0000, 1.9426], [1.8765, 1.9732]])


def with_identities(module):
    """Make every weight matrix the identity."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(torch.eye(*weight.shape))
    return module


@rung.shape("SelfAttention_v1")
def test_self_attention_v1_gives_one_vector_per_token(student, make):
    """(tokens, d_in) becomes (tokens, d_out)."""
    student.SelfAttention_v1(3, 2)(make.normal(tokens=4, d_in=3))


@rung.value("SelfAttention_v1")
def test_self_attention_v1_does_the_example(student, reference):
    """With identity matrices as weights, the layer gives the answer of the example."""
    theirs = student.SelfAttention_v1(2, 2)
    adopt(theirs, with_identities(reference.SelfAttention_v1(2, 2)))
    assert_agrees(theirs(TOKENS), CONTEXT, within=PRINTED)


@rung.value("SelfAttention_v1")
def test_self_attention_v1_agrees_with_the_reference(student, reference, make):
    """With the same weights, the context vectors are those of the reference."""
    theirs, ours = student.SelfAttention_v1(3, 6), reference.SelfAttention_v1(3, 6)
    adopt(theirs, ours)
    x = make.normal(tokens=4, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.property("SelfAttention_v1")
def test_self_attention_v1_has_no_sense_of_order(student, reference, make):
    """Tokens in another order give the same context vectors in that order."""
    attention = student.SelfAttention_v1(3, 2)
    adopt(attention, reference.SelfAttention_v1(3, 2))
    x, order = make.normal(tokens=4, d_in=3), torch.tensor([2, 0, 3, 1])
    assert_that(
        agree(attention(x[order]), attention(x)[order]),
        "shuffle the tokens, and the outputs should be shuffled in the same way: every token looks "
        "at all tokens, and no score depends on their order",
    )


@rung.property("SelfAttention_v1", rules=("lengths",))
def test_self_attention_v1_takes_sentences_of_any_length(student, reference, make):
    """One layer takes sentences of several lengths, one after another, and a single token."""
    theirs, ours = student.SelfAttention_v1(3, 2), reference.SelfAttention_v1(3, 2)
    adopt(theirs, ours)
    for tokens in (4, 1, 7):
        x = make.normal(tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for tokens={tokens}")


@rung.property("SelfAttention_v1", rules=("bias",))
def test_self_attention_v1_has_no_biases(student, reference):
    """The three matrices are all that the layer learns: there are no biases."""
    theirs = student.SelfAttention_v1(3, 2)
    adopt(theirs, reference.SelfAttention_v1(3, 2))
    assert_learns_no_more(theirs, "v1 has three matrices and no bias")


@rung.property("SelfAttention_v1", rules=("dtype",))
def test_self_attention_v1_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.SelfAttention_v1(3, 4), reference.SelfAttention_v1(3, 4)
    adopt(theirs, ours)
    x = make.normal(tokens=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SelfAttention_v1", rules=("unchanged",))
def test_self_attention_v1_leaves_its_input_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.SelfAttention_v1(3, 2), make.normal(tokens=4, d_in=3))


@rung.gradient("SelfAttention_v1", rules=("gradients",))
def test_self_attention_v1_has_gradients(student, reference, make):
    """Gradients reach the input and all three matrices."""
    theirs, ours = student.SelfAttention_v1(3, 2), reference.SelfAttention_v1(3, 2)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(tokens=4, d_in=3), make=make)


# --- SelfAttention_v2 ----------------------------------------------------------------------------


@rung.shape("SelfAttention_v2")
def test_self_attention_v2_gives_one_vector_per_token(student, make):
    """(tokens, d_in) becomes (tokens, d_out), with biases and without."""
    x = make.normal(tokens=4, d_in=3)
    student.SelfAttention_v2(3, 2)(x)
    student.SelfAttention_v2(3, 2, True)(x)


@rung.value("SelfAttention_v2")
def test_self_attention_v2_does_the_example(student, reference):
    """With identity matrices and no bias, the layer gives the answer of v1's example."""
    theirs = student.SelfAttention_v2(2, 2)
    adopt(theirs, with_identities(reference.SelfAttention_v2(2, 2)))
    assert_agrees(theirs(TOKENS), CONTEXT, within=PRINTED)


@rung.value("SelfAttention_v2")
@pytest.mark.parametrize(
    "qkv_bias",
    [
        pytest.param(False, id="no bias"),
        pytest.param(True, id="bias", marks=rung.quotes("bias")),
    ],
)
def test_self_attention_v2_agrees_with_the_reference(student, reference, make, qkv_bias):
    """With the same weights, and biases if there are any, the context vectors are right."""
    theirs = student.SelfAttention_v2(3, 6, qkv_bias)
    ours = reference.SelfAttention_v2(3, 6, qkv_bias)
    adopt(theirs, ours)
    x = make.normal(tokens=4, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.property("SelfAttention_v2", rules=("lengths",))
def test_self_attention_v2_takes_sentences_of_any_length(student, reference, make):
    """One layer takes sentences of several lengths, one after another, and a single token."""
    theirs, ours = student.SelfAttention_v2(3, 2), reference.SelfAttention_v2(3, 2)
    adopt(theirs, ours)
    for tokens in (4, 1, 7):
        x = make.normal(tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for tokens={tokens}")


@rung.property("SelfAttention_v2", rules=("bias",))
def test_self_attention_v2_has_biases_only_when_asked(student, reference):
    """There are no biases by default, and three with qkv_bias=True."""
    asked = student.SelfAttention_v2(3, 2, True)
    for theirs in (student.SelfAttention_v2(3, 2, False), student.SelfAttention_v2(3, 2)):
        adopt(theirs, reference.SelfAttention_v2(3, 2))
        assert_learns_no_more(theirs, "qkv_bias is False by default")
    adoption = adopt(asked, reference.SelfAttention_v2(3, 2, True))
    assert_that(
        not adoption.missing,
        f"with qkv_bias=True there should be a {', '.join(adoption.missing)}: does the argument "
        "reach all three layers?",
    )


@rung.property("SelfAttention_v2", rules=("dtype",))
def test_self_attention_v2_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.SelfAttention_v2(3, 4), reference.SelfAttention_v2(3, 4)
    adopt(theirs, ours)
    x = make.normal(tokens=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SelfAttention_v2", rules=("unchanged",))
def test_self_attention_v2_leaves_its_input_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.SelfAttention_v2(3, 2), make.normal(tokens=4, d_in=3))


@rung.gradient("SelfAttention_v2", rules=("gradients",))
def test_self_attention_v2_has_gradients(student, reference, make):
    """Gradients reach the input and all three layers."""
    theirs, ours = student.SelfAttention_v2(3, 2), reference.SelfAttention_v2(3, 2)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(tokens=4, d_in=3), make=make)


# --- v1_weights_from_v2 --------------------------------------------------------------------------


@rung.shape("v1_weights_from_v2")
def test_v1_weights_are_a_dictionary(student, make):
    """A dictionary comes back."""
    names = ("W_query.weight", "W_key.weight", "W_value.weight")
    student.v1_weights_from_v2({name: make.normal(d_out=2, d_in=3) for name in names})


@rung.value("v1_weights_from_v2")
def test_v1_weights_do_the_example(student):
    """The names lose their ending, and (2, 3) matrices become (3, 2)."""
    weight = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    state = {"W_query.weight": weight, "W_key.weight": weight + 10, "W_value.weight": weight + 20}
    turned = torch.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
    expected = {"W_query": turned, "W_key": turned + 10, "W_value": turned + 20}
    assert_agrees(student.v1_weights_from_v2(state), expected)


@rung.value("v1_weights_from_v2")
def test_v1_weights_of_a_square_layer_are_turned_too(student, reference, make):
    """With d_in = d_out a matrix keeps its shape, but must still be transposed."""
    names = ("W_query.weight", "W_key.weight", "W_value.weight")
    state = {name: make.normal(d_out=3, d_in=3) for name in names}
    assert_agrees(student.v1_weights_from_v2(state), reference.v1_weights_from_v2(state))


@rung.property("v1_weights_from_v2", rules=("order",))
def test_v1_weights_are_found_by_their_names(student, reference, make):
    """The names say which matrix is which, in whatever order the entries come."""
    names = ("W_value.weight", "W_query.weight", "W_key.weight")
    state = {name: make.normal(d_out=2, d_in=3) for name in names}
    assert_agrees(
        student.v1_weights_from_v2(state),
        reference.v1_weights_from_v2(state),
        what="the result for a state dict that begins with W_value",
    )


@rung.property("v1_weights_from_v2", rules=("dtype",))
def test_v1_weights_keep_float64(student, reference, make):
    """Weights in float64 stay in float64."""
    names = ("W_query.weight", "W_key.weight", "W_value.weight")
    state = {name: make.normal(d_out=2, d_in=3, dtype=torch.float64) for name in names}
    assert_agrees(student.v1_weights_from_v2(state), reference.v1_weights_from_v2(state))


@rung.property("v1_weights_from_v2", rules=("unchanged",))
def test_v1_weights_leave_the_state_alone(student, make):
    """The matrices in v2's state dict stay as they were."""
    names = ("W_query.weight", "W_key.weight", "W_value.weight")
    state = {name: make.normal(d_out=2, d_in=3) for name in names}
    changed = student.v1_weights_from_v2.observe(state).changed
    found = ", ".join(name for number, name in enumerate(names) if number in changed)
    assert_that(not found, f"{found} changed in place: make a new matrix")


# --- CausalHead ----------------------------------------------------------------------------------


@rung.shape("CausalHead")
def test_causal_head_gives_one_vector_per_token(student, make):
    """(batch, time, d_in) becomes (batch, time, head_size)."""
    student.CausalHead(3, 2)(make.normal(batch=2, time=5, d_in=3))


@rung.value("CausalHead")
def test_causal_head_does_the_example(student, reference):
    """With identity matrices as weights, the first output is the first token itself."""
    theirs = student.CausalHead(2, 2)
    adopt(theirs, with_identities(reference.CausalHead(2, 2)))
    expected = torch.tensor([[[1.0000, 0.0000], [0.0558, 1.8884], [1.8765, 1.9732]]])
    assert_agrees(theirs(TOKENS[None]), expected, within=PRINTED)


@rung.value("CausalHead")
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "not scaled"])
def test_causal_head_agrees_with_the_reference(student, reference, make, scaled):
    """With the same weights, the output is that of the reference, scaled or not."""
    theirs, ours = student.CausalHead(3, 6, scaled), reference.CausalHead(3, 6, scaled)
    adopt(theirs, ours)
    x = make.normal(batch=2, time=4, d_in=3)
    assert_agrees(theirs(x), ours(x))


@rung.property("CausalHead")
def test_causal_head_never_sees_the_future(student, reference, make):
    """Changing later tokens changes no earlier output, even if all scores are low."""
    assert_causal(student.CausalHead(3, 6), make.normal(batch=2, time=5, d_in=3))
    theirs, ours = student.CausalHead(4, 5), reference.CausalHead(4, 5)
    with torch.no_grad():  # every score is about -60
        ours.query.weight.copy_(torch.eye(5, 4))
        ours.key.weight.copy_(-torch.eye(5, 4))
    adopt(theirs, ours)
    x = 5.6 + 0.5 * make.uniform(batch=2, time=4, d_in=4)
    what = "the result where all visible scores lie near -60"
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what=what)


@rung.property("CausalHead", rules=("batch",))
def test_causal_head_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of a batch leaves the outputs of the others as they were."""
    theirs = student.CausalHead(3, 6)
    adopt(theirs, reference.CausalHead(3, 6))
    assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, time=5, d_in=3))


@rung.property("CausalHead", rules=("lengths",))
def test_causal_head_takes_sentences_of_any_length(student, reference, make):
    """One head takes sentences of several lengths, one after another, and a single token."""
    theirs, ours = student.CausalHead(3, 2), reference.CausalHead(3, 2)
    adopt(theirs, ours)
    for time in (4, 1, 7):
        x = make.normal(batch=2, time=time, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for time={time}")


@rung.property("CausalHead", rules=("bias",))
def test_causal_head_has_no_biases(student, reference):
    """Keys, queries and values have no bias."""
    theirs = student.CausalHead(3, 2)
    adopt(theirs, reference.CausalHead(3, 2))
    assert_learns_no_more(theirs, "the three layers have no bias")


@rung.property("CausalHead", rules=("dtype",))
def test_causal_head_works_in_float64(student, reference, make):
    """A head in float64 takes and gives float64, to full precision."""
    theirs, ours = student.CausalHead(3, 4), reference.CausalHead(3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, time=4, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("CausalHead", rules=("unchanged",))
def test_causal_head_leaves_its_input_alone(student, make):
    """The tokens passed in are not changed in place."""
    assert_input_unchanged(student.CausalHead(3, 2), make.normal(batch=2, time=4, d_in=3))


@rung.gradient("CausalHead", rules=("gradients",))
def test_causal_head_has_gradients(student, reference, make):
    """Gradients reach the input and all three layers."""
    theirs, ours = student.CausalHead(3, 2), reference.CausalHead(3, 2)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(batch=2, time=4, d_in=3), make=make)
