"""Hidden graders of unit 4, queries, keys and values."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    DIGITS,
    LARGE_SCORES,
    adopt,
    assert_agrees,
    assert_agrees_to_float64,
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_that,
)

# In float64 tests, the root of d_k is exact, because a root in float32 is allowed.
# Shape tests of functions begin with equal sizes, where only the numbers show a mistake.

# --- linear_by_hand ------------------------------------------------------------------------------

LEADING = {
    "a sentence": {"tokens": 4},
    "a vector": {},
    "a batch of sentences": {"batch": 2, "tokens": 4},
    "a batch with heads": {"batch": 2, "heads": 3, "tokens": 4},
}


def of_sizes(sizes, leading, *rules):
    """Parameters by name; those in `leading` quote the rule `leading` as well as `rules`."""
    quoted = rung.quotes("leading", *rules)
    return [
        pytest.param(size, id=name, marks=quoted if name in leading else ())
        for name, size in sizes.items()
    ]


NOT_A_SENTENCE = ("a vector", "a batch of sentences", "a batch with heads")


@rung.shape("linear_by_hand")
@pytest.mark.parametrize("leading", LEADING.values(), ids=LEADING.keys())
def test_linear_by_hand_turns_d_in_into_d_out(student, make, leading):
    """The last dimension becomes d_out, and those in front stay."""
    square = make.normal(tokens=4, d_in=4), make.normal(d_out=4, d_in=4), make.normal(d_out=4)
    student.linear_by_hand(*square)
    x = make.normal(**leading, d_in=5)
    student.linear_by_hand(x, make.normal(d_out=6, d_in=5), make.normal(d_out=6))


@rung.value("linear_by_hand", points=3)
@pytest.mark.parametrize("leading", of_sizes(LEADING, NOT_A_SENTENCE))
def test_linear_by_hand_agrees_with_the_reference(student, reference, make, leading):
    """With a bias, every output feature is right, for any leading dimensions."""
    x, weight = make.normal(**leading, d_in=5), make.normal(d_out=3, d_in=5)
    bias = make.normal(2.0, d_out=3)
    assert_agrees(
        student.linear_by_hand(x, weight, bias), reference.linear_by_hand(x, weight, bias)
    )


@rung.value("linear_by_hand", points=2, rules=("bias", "computes"))
@pytest.mark.parametrize("leading", of_sizes(LEADING, NOT_A_SENTENCE, "bias", "computes"))
def test_linear_by_hand_works_without_a_bias(student, reference, make, leading):
    """A bias of None means that nothing is added."""
    x, weight = make.normal(**leading, d_in=6), make.normal(d_out=7, d_in=6)
    assert_agrees(
        student.linear_by_hand(x, weight, None), reference.linear_by_hand(x, weight, None)
    )


@rung.property("linear_by_hand", rules=("dtype",))
def test_linear_by_hand_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    x = make.normal(tokens=4, d_in=5, dtype=torch.float64)
    weight = make.normal(d_out=3, d_in=5, dtype=torch.float64)
    for bias in (make.normal(d_out=3, dtype=torch.float64), None):
        assert_agrees_to_float64(
            student.linear_by_hand(x, weight, bias),
            reference.linear_by_hand(x, weight, bias),
            within=DIGITS,
        )


@rung.property("linear_by_hand", rules=("unchanged",))
def test_linear_by_hand_leaves_its_inputs_alone(student, make):
    """Neither x, nor the weight, nor the bias is changed in place."""
    x, weight, bias = make.normal(tokens=4, d_in=5), make.normal(d_out=3, d_in=5), make.normal(d=3)
    assert_input_unchanged(student.linear_by_hand, x, weight, bias)
    assert_input_unchanged(student.linear_by_hand, x, weight, None)


@rung.gradient("linear_by_hand", points=2, rules=("gradients",))
def test_linear_by_hand_has_the_right_gradients(student, reference, make):
    """Gradients reach x, the weight and the bias, and x and the weight without a bias."""
    x = make.normal(batch=2, tokens=4, d_in=5)
    weight, bias = make.normal(d_out=3, d_in=5), make.normal(d_out=3)
    theirs, ours = student.linear_by_hand, reference.linear_by_hand
    assert_gradients_agree(theirs, ours, x, weight, bias, make=make)
    assert_gradients_agree(theirs, ours, x, weight, None, make=make)


# --- project_qkv ---------------------------------------------------------------------------------


def three_matrices(make, d_in, d_out, dtype=torch.float32):
    """One (d_in, d_out) matrix each for queries, keys and values."""
    return [make.normal(d_in=d_in, d_out=d_out, dtype=dtype) for _ in range(3)]


@rung.shape("project_qkv")
def test_project_qkv_gives_three_tensors(student, make):
    """Three tensors come back, each with d_out features for every token."""
    student.project_qkv(make.normal(tokens=4, d_in=4), *three_matrices(make, 4, 4))
    student.project_qkv(make.normal(batch=2, tokens=5, d_in=3), *three_matrices(make, 3, 4))


@rung.value("project_qkv", points=3)
@pytest.mark.parametrize(
    ("tokens", "d_in", "d_out"),
    [(5, 3, 4), (4, 6, 2), (3, 5, 5)],
    ids=["wider", "narrower", "same"],
)
def test_project_qkv_agrees_with_the_reference(student, reference, make, tokens, d_in, d_out):
    """Queries, keys and values of one sentence are right, and come in that order."""
    inputs, matrices = make.normal(tokens=tokens, d_in=d_in), three_matrices(make, d_in, d_out)
    assert_agrees(student.project_qkv(inputs, *matrices), reference.project_qkv(inputs, *matrices))


@rung.value("project_qkv", rules=("leading", "computes"))
@pytest.mark.parametrize(
    "leading", [{"batch": 2}, {"batch": 2, "heads": 3}], ids=["batch", "heads"]
)
def test_project_qkv_takes_leading_dimensions(student, reference, make, leading):
    """A batch of sentences is projected like each sentence alone."""
    inputs, matrices = make.normal(**leading, tokens=5, d_in=4), three_matrices(make, 4, 6)
    assert_agrees(student.project_qkv(inputs, *matrices), reference.project_qkv(inputs, *matrices))


@rung.property("project_qkv", rules=("dtype",))
def test_project_qkv_keeps_float64(student, reference, make):
    """Numbers in float64 stay in float64, to full precision."""
    inputs = make.normal(tokens=5, d_in=3, dtype=torch.float64)
    matrices = three_matrices(make, 3, 4, torch.float64)
    assert_agrees_to_float64(
        student.project_qkv(inputs, *matrices),
        reference.project_qkv(inputs, *matrices),
        within=DIGITS,
    )


@rung.property("project_qkv", rules=("unchanged",))
def test_project_qkv_leaves_its_inputs_alone(student, make):
    """Neither the inputs nor the three matrices are changed in place."""
    inputs = make.normal(tokens=5, d_in=3)
    assert_input_unchanged(student.project_qkv, inputs, *three_matrices(make, 3, 4))


@rung.gradient("project_qkv", points=2, rules=("gradients",))
def test_project_qkv_has_the_right_gradients(student, reference, make):
    """Gradients reach the inputs and all three matrices."""
    inputs, matrices = make.normal(batch=2, tokens=5, d_in=3), three_matrices(make, 3, 4)
    assert_gradients_agree(student.project_qkv, reference.project_qkv, inputs, *matrices, make=make)


# --- scaled_scores -------------------------------------------------------------------------------

SCORE_SIZES = {
    "more keys than queries": {"queries": 4, "keys": 6, "d_k": 10},
    "more queries than keys": {"queries": 7, "keys": 3, "d_k": 2},
    "a batch with heads": {"batch": 2, "heads": 3, "queries": 4, "keys": 5, "d_k": 6},
    "a batch": {"batch": 2, "queries": 5, "keys": 4, "d_k": 7},
}
BATCHES = ("a batch with heads", "a batch")


def queries_and_keys(make, *, queries, keys, d_k, dtype=torch.float32, **leading):
    """Queries and keys, large enough that a scale is seen."""
    return (
        make.normal(1.5, **leading, queries=queries, d_k=d_k, dtype=dtype),
        make.normal(1.5, **leading, keys=keys, d_k=d_k, dtype=dtype),
    )


@rung.shape("scaled_scores")
def test_scaled_scores_give_a_score_for_every_pair(student, make):
    """There is a row for each query, with a score for each key."""
    student.scaled_scores(*queries_and_keys(make, batch=4, queries=4, keys=4, d_k=4))
    student.scaled_scores(*queries_and_keys(make, batch=2, queries=4, keys=6, d_k=5))


@rung.value("scaled_scores", points=5)
@pytest.mark.parametrize("sizes", of_sizes(SCORE_SIZES, BATCHES))
def test_scaled_scores_agree_with_the_reference(student, reference, make, sizes):
    """Every score is the dot product over the root of d_k, for any leading dimensions."""
    queries, keys = queries_and_keys(make, **sizes)
    assert_agrees(student.scaled_scores(queries, keys), reference.scaled_scores(queries, keys))


@rung.property("scaled_scores")
@pytest.mark.parametrize(("d_k", "tokens"), [(8, 150), (200, 150), (10_000, 40)])
def test_scaled_scores_have_variance_one(student, make, d_k, tokens):
    """Queries and keys of variance 1 give scores of variance 1, however long they are."""
    # The variance varies by about 0.06, and 0.4 is six times that. Few tokens: loops are allowed.
    queries, keys = make.normal(queries=tokens, d_k=d_k), make.normal(keys=tokens, d_k=d_k)
    variance = student.scaled_scores(queries, keys).var().item()
    assert_that(
        abs(variance - 1) < 0.4,
        f"for d_k = {d_k} the variance of the scores is {variance:.3g}: it should stay near 1, "
        "whatever d_k is",
    )


@rung.property("scaled_scores", rules=("dtype",))
def test_scaled_scores_keep_float64(student, reference, make):
    """Queries and keys in float64 give scores in float64, to full precision."""
    queries, keys = queries_and_keys(make, queries=4, keys=6, d_k=4, dtype=torch.float64)
    assert_agrees_to_float64(
        student.scaled_scores(queries, keys), reference.scaled_scores(queries, keys), within=DIGITS
    )


@rung.property("scaled_scores", rules=("unchanged",))
def test_scaled_scores_leave_queries_and_keys_alone(student, make):
    """Neither queries nor keys are changed in place."""
    assert_input_unchanged(
        student.scaled_scores, *queries_and_keys(make, batch=2, queries=4, keys=6, d_k=5)
    )


@rung.gradient("scaled_scores", rules=("gradients",))
def test_scaled_scores_have_the_right_gradients(student, reference, make):
    """Gradients reach the queries and the keys."""
    queries, keys = queries_and_keys(make, batch=2, queries=4, keys=6, d_k=5)
    assert_gradients_agree(student.scaled_scores, reference.scaled_scores, queries, keys, make=make)


# --- scaled_dot_product_attention ----------------------------------------------------------------

ATTENTION_SIZES = {
    "one sentence": {"queries": 4, "keys": 6, "d_k": 5, "d_v": 3},
    "more queries than keys": {"queries": 7, "keys": 4, "d_k": 3, "d_v": 5},
    "a batch with heads": {"batch": 2, "heads": 3, "queries": 4, "keys": 5, "d_k": 6, "d_v": 7},
    "a batch": {"batch": 2, "queries": 5, "keys": 4, "d_k": 3, "d_v": 6},
}


def attention_inputs(make, *, queries, keys, d_k, d_v, dtype=torch.float32, **leading):
    """Queries, keys and values."""
    return (
        make.normal(1.5, **leading, queries=queries, d_k=d_k, dtype=dtype),
        make.normal(1.5, **leading, keys=keys, d_k=d_k, dtype=dtype),
        make.normal(2.0, **leading, keys=keys, d_v=d_v, dtype=dtype),
    )


def some_mask(make, *, queries, keys, d_k=0, d_v=0, **leading):  # noqa: ARG001
    """Hide about half of the keys from each query: at least one key, and never all."""
    mask = make.booleans(0.5, **leading, queries=queries, keys=keys)
    for query in range(queries):
        mask[..., query, query % keys] = False
        mask[..., query, (query + 1) % keys] = True
    return mask


@rung.shape("scaled_dot_product_attention")
@pytest.mark.parametrize("sizes", ATTENTION_SIZES.values(), ids=ATTENTION_SIZES.keys())
def test_scaled_attention_gives_a_mix_of_values_per_query(student, make, sizes):
    """Each query gets one vector, as long as a value."""
    student.scaled_dot_product_attention(*attention_inputs(make, **sizes))


@rung.value("scaled_dot_product_attention", points=4)
@pytest.mark.parametrize("sizes", of_sizes(ATTENTION_SIZES, BATCHES))
def test_scaled_attention_agrees_with_the_reference(student, reference, make, sizes):
    """Without a mask, each query mixes the values as in the reference."""
    inputs = attention_inputs(make, **sizes)
    assert_agrees(
        student.scaled_dot_product_attention(*inputs),
        reference.scaled_dot_product_attention(*inputs),
    )


@rung.value("scaled_dot_product_attention", points=4)
@pytest.mark.parametrize("sizes", of_sizes(ATTENTION_SIZES, BATCHES))
def test_scaled_attention_hides_what_the_mask_hides(student, reference, make, sizes):
    """With a mask, only the keys that a query may see share its weight."""
    inputs, mask = attention_inputs(make, **sizes), some_mask(make, **sizes)
    assert_agrees(
        student.scaled_dot_product_attention(*inputs, mask),
        reference.scaled_dot_product_attention(*inputs, mask),
    )


@rung.property("scaled_dot_product_attention", rules=("broadcast",))
def test_scaled_attention_takes_one_mask_for_the_whole_batch(student, reference, make):
    """A mask of shape (queries, keys) applies to every row of the batch."""
    inputs = attention_inputs(make, batch=2, heads=3, queries=4, keys=5, d_k=6, d_v=7)
    mask = some_mask(make, queries=4, keys=5)
    assert_agrees(
        student.scaled_dot_product_attention(*inputs, mask),
        reference.scaled_dot_product_attention(*inputs, mask),
    )


@rung.property("scaled_dot_product_attention")
def test_scaled_attention_takes_none_for_no_mask(student, reference, make):
    """A mask of None hides nothing, and neither does a mask that is False everywhere."""
    inputs = attention_inputs(make, batch=2, queries=4, keys=6, d_k=5, d_v=3)
    expected = reference.scaled_dot_product_attention(*inputs)
    nothing = torch.zeros(2, 4, 6, dtype=torch.bool)
    for mask, what in ((None, "with None"), (nothing, "with a mask that hides nothing")):
        assert_agrees(student.scaled_dot_product_attention(*inputs, mask), expected, what=what)


@rung.property("scaled_dot_product_attention", rules=("hidden",))
def test_scaled_attention_gives_hidden_keys_no_weight_at_all(student, reference, make):
    """A hidden key gets no weight, even where all visible keys have low scores."""
    # All scores are below -1100. Values of hidden keys are huge, so that any weight shows.
    queries = 25.0 + 0.2 * make.uniform(queries=4, d_k=4)
    keys = -24.0 + 0.2 * make.uniform(keys=6, d_k=4)
    values = make.normal(keys=6, d_v=3)
    values[[1, 4]] = 1e30
    mask = torch.tensor([False, True, False, False, True, False]).repeat(4, 1)
    assert_agrees(
        student.scaled_dot_product_attention(queries, keys, values, mask),
        reference.scaled_dot_product_attention(queries, keys, values, mask),
        within=LARGE_SCORES,
    )


@rung.property("scaled_dot_product_attention", rules=("batch",))
def test_scaled_attention_keeps_batch_rows_apart(student, make):
    """Queries, keys and values of one batch row never change the result of another row."""
    queries, keys, values = attention_inputs(make, batch=3, queries=4, keys=6, d_k=5, d_v=2)
    attend = student.scaled_dot_product_attention
    assert_batch_rows_do_not_mix(lambda changed: attend(changed, keys, values), queries)
    assert_batch_rows_do_not_mix(lambda changed: attend(queries, changed, values), keys)
    assert_batch_rows_do_not_mix(lambda changed: attend(queries, keys, changed), values)


@rung.property("scaled_dot_product_attention", rules=("dtype",))
def test_scaled_attention_keeps_float64(student, reference, make):
    """Inputs in float64 give a result in float64, to full precision."""
    sizes = {"batch": 2, "queries": 4, "keys": 6, "d_k": 4, "d_v": 3}
    inputs = attention_inputs(make, **sizes, dtype=torch.float64)
    for mask in ((), (some_mask(make, **sizes),)):
        assert_agrees_to_float64(
            student.scaled_dot_product_attention(*inputs, *mask),
            reference.scaled_dot_product_attention(*inputs, *mask),
            within=DIGITS,
        )


@rung.property("scaled_dot_product_attention", rules=("unchanged",))
def test_scaled_attention_leaves_its_inputs_alone(student, make):
    """Neither queries, keys and values nor the mask are changed in place."""
    sizes = {"batch": 2, "queries": 4, "keys": 6, "d_k": 5, "d_v": 3}
    inputs = attention_inputs(make, **sizes)
    assert_input_unchanged(student.scaled_dot_product_attention, *inputs)
    assert_input_unchanged(student.scaled_dot_product_attention, *inputs, some_mask(make, **sizes))


@rung.gradient("scaled_dot_product_attention", points=2, rules=("gradients",))
def test_scaled_attention_has_the_right_gradients(student, reference, make):
    """Gradients reach queries, keys and values, with a mask and without."""
    sizes = {"batch": 2, "queries": 4, "keys": 6, "d_k": 5, "d_v": 3}
    inputs = attention_inputs(make, **sizes)
    theirs, ours = student.scaled_dot_product_attention, reference.scaled_dot_product_attention
    assert_gradients_agree(theirs, ours, *inputs, make=make)
    assert_gradients_agree(theirs, ours, *inputs, some_mask(make, **sizes), make=make)


# --- SelfAttention_v1 ----------------------------------------------------------------------------

# d_in, d_out, tokens. Never d_in = d_out: the layout of a square matrix is ambiguous.
SIZES = [(3, 8, 5), (7, 4, 6), (5, 2, 3)]


def filled(theirs, make):
    """The student's module with random weights, equal in parameters of equal shape."""
    weights = {path: w for path, w in theirs.parameters().items() if w.is_floating_point()}
    theirs.assign({path: make.normal_like(w, name="weights") for path, w in weights.items()})
    return theirs


@rung.shape("SelfAttention_v1")
@pytest.mark.parametrize(("d_in", "d_out", "tokens"), SIZES)
def test_self_attention_v1_has_the_shape_of_the_contract(student, make, d_in, d_out, tokens):
    """One context vector of size d_out comes back for each token."""
    filled(student.SelfAttention_v1(d_in, d_out), make)(make.normal(tokens=tokens, d_in=d_in))


@rung.value("SelfAttention_v1", points=7)
@pytest.mark.parametrize(("d_in", "d_out", "tokens"), SIZES)
def test_self_attention_v1_agrees_with_the_reference(student, reference, make, d_in, d_out, tokens):
    """With the same weights, the context vectors are those of the reference."""
    theirs, ours = student.SelfAttention_v1(d_in, d_out), reference.SelfAttention_v1(d_in, d_out)
    adopt(theirs, ours)
    x = make.normal(tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.property("SelfAttention_v1", rules=("lengths",))
def test_self_attention_v1_takes_sentences_of_any_length(student, reference, make):
    """Long and short sentences work, one after another, and so does a single token."""
    theirs, ours = student.SelfAttention_v1(3, 4), reference.SelfAttention_v1(3, 4)
    adopt(theirs, ours)
    for tokens in (6, 2, 1, 9):
        x = make.normal(tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for tokens={tokens}")


@rung.property("SelfAttention_v1")
def test_self_attention_v1_does_not_know_the_order_of_tokens(student, reference, make):
    """Shuffled tokens give the same context vectors, shuffled in the same way."""
    attention = student.SelfAttention_v1(3, 4)
    adopt(attention, reference.SelfAttention_v1(3, 4))
    x, order = make.normal(tokens=5, d_in=3), torch.tensor([3, 0, 4, 1, 2])
    assert_agrees(attention(x[order]), attention(x)[order], what="the result for shuffled tokens")


@rung.property("SelfAttention_v1", rules=("bias",))
def test_self_attention_v1_learns_three_matrices_and_no_biases(student, reference):
    """There are three matrices to train, and no biases."""
    theirs = student.SelfAttention_v1(3, 4)
    adopt(theirs, reference.SelfAttention_v1(3, 4))
    assert_learns_no_more(theirs, "v1 has three matrices and no bias")


@rung.property("SelfAttention_v1", rules=("dtype",))
def test_self_attention_v1_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.SelfAttention_v1(3, 4), reference.SelfAttention_v1(3, 4)
    adopt(theirs, ours)
    x = make.normal(tokens=5, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SelfAttention_v1", rules=("unchanged",))
def test_self_attention_v1_leaves_its_input_alone(student, reference, make):
    """The tokens passed in are not changed in place."""
    theirs = student.SelfAttention_v1(3, 4)
    adopt(theirs, reference.SelfAttention_v1(3, 4))
    assert_input_unchanged(theirs, make.normal(tokens=5, d_in=3))


@rung.gradient("SelfAttention_v1", points=2, rules=("gradients",))
def test_self_attention_v1_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all three matrices."""
    theirs, ours = student.SelfAttention_v1(3, 4), reference.SelfAttention_v1(3, 4)
    adopt(theirs, ours)
    assert_gradients_agree(theirs, ours, make.normal(tokens=5, d_in=3), make=make)


# --- SelfAttention_v2 ----------------------------------------------------------------------------


@rung.shape("SelfAttention_v2")
@pytest.mark.parametrize(("d_in", "d_out", "tokens"), SIZES)
def test_self_attention_v2_has_the_shape_of_the_contract(student, make, d_in, d_out, tokens):
    """One context vector of size d_out comes back for each token."""
    # With equal sizes, only the numbers show that a matrix is transposed.
    filled(student.SelfAttention_v2(4, 4), make)(make.normal(tokens=4, d_in=4))
    filled(student.SelfAttention_v2(d_in, d_out), make)(make.normal(tokens=tokens, d_in=d_in))


@rung.value("SelfAttention_v2", points=6)
@pytest.mark.parametrize(("d_in", "d_out", "tokens"), SIZES)
def test_self_attention_v2_agrees_with_the_reference(student, reference, make, d_in, d_out, tokens):
    """With the same weights, the context vectors are those of the reference."""
    theirs, ours = student.SelfAttention_v2(d_in, d_out), reference.SelfAttention_v2(d_in, d_out)
    adopt(theirs, ours)
    x = make.normal(tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.value("SelfAttention_v2", points=3, rules=("bias", "computes"))
@pytest.mark.parametrize(("d_in", "d_out", "tokens"), [(3, 4, 5), (7, 4, 6)])
def test_self_attention_v2_uses_its_biases(student, reference, make, d_in, d_out, tokens):
    """With qkv_bias=True and the same biases, the context vectors are right as well."""
    theirs = student.SelfAttention_v2(d_in, d_out, True)
    ours = reference.SelfAttention_v2(d_in, d_out, True)
    adopt(theirs, ours)
    x = make.normal(tokens=tokens, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.property("SelfAttention_v2", rules=("lengths",))
def test_self_attention_v2_takes_sentences_of_any_length(student, reference, make):
    """One layer takes sentences of several lengths, one after another, and a single token."""
    theirs, ours = student.SelfAttention_v2(3, 4, False), reference.SelfAttention_v2(3, 4, False)
    adopt(theirs, ours)
    for tokens in (6, 2, 1, 9):
        x = make.normal(tokens=tokens, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for tokens={tokens}")


@rung.property("SelfAttention_v2", points=2, rules=("bias",))
def test_self_attention_v2_has_no_biases_unless_asked(student, reference):
    """Queries, keys and values have no bias by default, nor with qkv_bias=False."""
    for arguments in ((3, 4, False), (3, 4)):
        theirs = student.SelfAttention_v2(*arguments)
        adopt(theirs, reference.SelfAttention_v2(*arguments))
        assert_learns_no_more(theirs, "qkv_bias is False unless someone asks")


@rung.property("SelfAttention_v2", points=2, rules=("bias",))
def test_self_attention_v2_has_three_biases_when_asked(student, reference):
    """With qkv_bias=True, queries, keys and values have a bias each."""
    adoption = adopt(student.SelfAttention_v2(3, 4, True), reference.SelfAttention_v2(3, 4, True))
    missing = ", ".join(adoption.missing)
    assert_that(not missing, f"with qkv_bias=True there should be a {missing}")


@rung.property("SelfAttention_v2", rules=("dtype",))
def test_self_attention_v2_works_in_float64(student, reference, make):
    """A layer in float64 takes and gives float64, to full precision."""
    theirs, ours = student.SelfAttention_v2(3, 4), reference.SelfAttention_v2(3, 4)
    adopt(theirs, ours)
    x = make.normal(tokens=5, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("SelfAttention_v2", rules=("unchanged",))
def test_self_attention_v2_leaves_its_input_alone(student, reference, make):
    """The tokens passed in are not changed in place."""
    theirs = student.SelfAttention_v2(3, 4)
    adopt(theirs, reference.SelfAttention_v2(3, 4))
    assert_input_unchanged(theirs, make.normal(tokens=5, d_in=3))


@rung.gradient("SelfAttention_v2", points=2, rules=("gradients",))
def test_self_attention_v2_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all three layers, biases included."""
    x = make.normal(tokens=5, d_in=3)
    for arguments in ((3, 4), (3, 4, True)):
        theirs, ours = student.SelfAttention_v2(*arguments), reference.SelfAttention_v2(*arguments)
        adopt(theirs, ours)
        assert_gradients_agree(theirs, ours, x, make=make)


# --- v1_weights_from_v2 --------------------------------------------------------------------------

NAMES = ("W_query", "W_key", "W_value")


def v2_state(make, d_in, d_out, *, names=NAMES, dtype=torch.float32):
    """What the state dict of a v2 holds: three matrices of shape (d_out, d_in)."""
    return {f"{name}.weight": make.normal(d_out=d_out, d_in=d_in, dtype=dtype) for name in names}


@rung.shape("v1_weights_from_v2")
def test_v1_weights_come_as_a_dictionary(student, make):
    """A dictionary comes back."""
    student.v1_weights_from_v2(v2_state(make, 3, 4))


@rung.value("v1_weights_from_v2", points=3)
@pytest.mark.parametrize(("d_in", "d_out"), [(3, 4), (6, 2), (5, 7), (4, 4)])
def test_v1_weights_agree_with_the_reference(student, reference, make, d_in, d_out):
    """Each matrix has v1's name and v1's layout."""
    state = v2_state(make, d_in, d_out)
    assert_agrees(student.v1_weights_from_v2(state), reference.v1_weights_from_v2(state))


@rung.property("v1_weights_from_v2", rules=("order",))
def test_v1_weights_are_found_by_their_names(student, reference, make):
    """The names say which matrix is which, in whatever order the entries come."""
    state = v2_state(make, 3, 4, names=("W_value", "W_query", "W_key"))
    assert_agrees(student.v1_weights_from_v2(state), reference.v1_weights_from_v2(state))


@rung.property("v1_weights_from_v2", rules=("dtype",))
def test_v1_weights_keep_float64(student, reference, make):
    """Weights in float64 stay in float64."""
    state = v2_state(make, 3, 4, dtype=torch.float64)
    assert_agrees(student.v1_weights_from_v2(state), reference.v1_weights_from_v2(state))


@rung.property("v1_weights_from_v2", rules=("unchanged",))
def test_v1_weights_leave_the_state_alone(student, make):
    """The matrices in v2's state dict stay as they were."""
    state = v2_state(make, 3, 4)
    changed = student.v1_weights_from_v2.observe(state).changed
    names = [name for number, name in enumerate(state) if number in changed]
    assert_that(not names, f"{', '.join(names)} changed in place: make a new matrix")


# --- CausalHead ----------------------------------------------------------------------------------

HEAD_SIZES = [(3, 8, 5), (7, 4, 6), (5, 2, 3)]  # d_in, head_size, time


@rung.shape("CausalHead")
@pytest.mark.parametrize(("d_in", "head_size", "time"), HEAD_SIZES)
def test_causal_head_has_the_shape_of_the_contract(student, make, d_in, head_size, time):
    """One vector of size head_size comes back for each token."""
    filled(student.CausalHead(d_in, head_size), make)(make.normal(batch=2, time=time, d_in=d_in))


@rung.value("CausalHead", points=6)
@pytest.mark.parametrize(("d_in", "head_size", "time"), HEAD_SIZES)
def test_causal_head_agrees_with_the_reference(student, reference, make, d_in, head_size, time):
    """With the same weights, the output of a scaled head is that of the reference."""
    theirs, ours = student.CausalHead(d_in, head_size), reference.CausalHead(d_in, head_size)
    adopt(theirs, ours)
    x = make.normal(batch=2, time=time, d_in=d_in)
    assert_agrees(theirs(x), ours(x))


@rung.value("CausalHead", points=2)
def test_causal_head_scales_when_asked(student, reference, make):
    """The third argument says whether scores are divided by the root of head_size."""
    x = make.normal(batch=3, time=5, d_in=6)
    results = []
    for arguments in ((6, 4, False), (6, 4, True), (6, 4)):
        theirs, ours = student.CausalHead(*arguments), reference.CausalHead(*arguments)
        adopt(theirs, ours)
        results.append((theirs(x), ours(x), f"the result for {arguments}"))
    for their_result, our_result, what in results:
        assert_agrees(their_result, our_result, what=what)


@rung.property("CausalHead", rules=("lengths",))
def test_causal_head_takes_sentences_of_any_length(student, reference, make):
    """Long and short sentences work, one after another, and so does a single token."""
    theirs, ours = student.CausalHead(3, 4), reference.CausalHead(3, 4)
    adopt(theirs, ours)
    for time in (6, 2, 1, 100, 9):
        x = make.normal(batch=2, time=time, d_in=3)
        assert_agrees(theirs(x), ours(x), what=f"the result for time={time}")


@rung.property("CausalHead")
@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "not scaled"])
def test_causal_head_never_sees_the_future(student, reference, make, scaled):
    """A later token gets no weight at all, even where all visible scores are low."""
    theirs, ours = student.CausalHead(4, 5, scaled), reference.CausalHead(4, 5, scaled)
    with torch.no_grad():  # every score is about -60, so a mask of -50 would hide nothing
        ours.query.weight.copy_(torch.eye(5, 4) / (1 if scaled else 5**0.5))
        ours.key.weight.copy_(-torch.eye(5, 4))
    adopt(theirs, ours)
    x = 5.6 + 0.5 * make.uniform(batch=2, time=6, d_in=4)
    # Large scores round to 1e-5 or so, and a leak moves the result by 1e-2 and more.
    what = "the result where all scores lie near -60"
    assert_agrees(theirs(x), ours(x), within=LARGE_SCORES, what=what)
    assert_causal(theirs, make.normal(batch=2, time=6, d_in=4))


@rung.property("CausalHead", rules=("batch",))
def test_causal_head_keeps_sentences_apart(student, reference, make):
    """Changing one sentence of a batch leaves the outputs of the others as they were."""
    for scaled in (True, False):
        theirs = student.CausalHead(3, 4, scaled)
        adopt(theirs, reference.CausalHead(3, 4, scaled))
        assert_batch_rows_do_not_mix(theirs, make.normal(batch=2, time=6, d_in=3))


@rung.property("CausalHead", rules=("bias",))
def test_causal_head_has_no_biases(student, reference):
    """Keys, queries and values have no bias."""
    for arguments in ((3, 4), (3, 4, False)):
        theirs = student.CausalHead(*arguments)
        adopt(theirs, reference.CausalHead(*arguments))
        assert_learns_no_more(theirs, "the three layers have no bias")


@rung.property("CausalHead", rules=("dtype",))
def test_causal_head_works_in_float64(student, reference, make):
    """A head in float64 takes and gives float64, to full precision."""
    theirs, ours = student.CausalHead(3, 4), reference.CausalHead(3, 4)
    adopt(theirs, ours)
    x = make.normal(batch=2, time=5, d_in=3, dtype=torch.float64)
    assert_agrees_to_float64(theirs.double()(x), ours.double()(x), within=DIGITS)


@rung.property("CausalHead", rules=("unchanged",))
def test_causal_head_leaves_its_input_alone(student, reference, make):
    """The tokens passed in are not changed in place."""
    theirs = student.CausalHead(3, 4)
    adopt(theirs, reference.CausalHead(3, 4))
    assert_input_unchanged(theirs, make.normal(batch=2, time=5, d_in=3))


@rung.gradient("CausalHead", points=2, rules=("gradients",))
def test_causal_head_has_the_right_gradients(student, reference, make):
    """Gradients reach the input and all three layers, scaled or not."""
    x = make.normal(batch=2, time=5, d_in=3)
    for scaled in (True, False):
        theirs, ours = student.CausalHead(3, 4, scaled), reference.CausalHead(3, 4, scaled)
        adopt(theirs, ours)
        assert_gradients_agree(theirs, ours, x, make=make)
