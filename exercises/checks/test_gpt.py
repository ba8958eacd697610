"""Public checks of unit 12, a language model of your own."""

import pytest
import torch
from torch import nn

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    TableModel,
    adopt,
    assert_agrees,
    assert_agrees_to_float64,
    assert_drops_only_weights,
    assert_gradients_agree,
    assert_grows_at_most,
    assert_has_one_table,
    assert_input_unchanged,
    assert_learns_no_more,
    assert_moves,
    assert_refuses,
    assert_that,
    assert_unmoved,
    table_model,
)

# --- embed_tokens --------------------------------------------------------------------------------


def ids_and_tables(make, batch, tokens, vocab, context, d, dtype=torch.float32):
    """Ids, a row for each id, and a row for each position."""
    return (
        make.integers(0, vocab, batch=batch, tokens=tokens),
        make.normal(2.0, dtype=dtype, vocab=vocab, d=d),
        make.normal(2.0, dtype=dtype, context=context, d=d),
    )


@rung.shape("embed_tokens")
def test_embed_tokens_gives_a_vector_per_token(student, make):
    """Each id becomes a vector of d numbers."""
    student.embed_tokens(*ids_and_tables(make, 2, 5, 11, 8, 3))


@rung.value("embed_tokens")
def test_embed_tokens_gives_the_vectors_of_the_example(student):
    """Ids 2, 0, 2 get the vectors of the example: the two vectors of id 2 differ."""
    tables = (
        torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]]),
        torch.tensor([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0], [0.4, 0.0]]),
    )
    expected = torch.tensor([[[5.1, 5.0], [1.2, 0.0], [5.3, 5.0]]])
    assert_agrees(
        student.embed_tokens(torch.tensor([[2, 0, 2]]), *tables),
        expected,
        what="the vectors of the example",
    )


@rung.value("embed_tokens")
def test_embed_tokens_takes_other_ids_and_tables(student, reference, make):
    """The vectors are right for several rows of ids, and for tables of other sizes."""
    given = ids_and_tables(make, 3, 4, 7, 6, 5)
    assert_agrees(student.embed_tokens(*given), reference.embed_tokens(*given))


@rung.property("embed_tokens", rules=("dtype",))
def test_embed_tokens_gives_float64_for_float64(student, reference, make):
    """Tables in float64 give vectors in float64, with all digits."""
    given = ids_and_tables(make, 2, 5, 7, 6, 3, dtype=torch.float64)
    assert_agrees_to_float64(
        student.embed_tokens(*given), reference.embed_tokens(*given), within=ALL_DIGITS
    )


@rung.property("embed_tokens", rules=("unchanged",))
def test_embed_tokens_leaves_the_tables_as_they_were(student, make):
    """Ids and tables stay as they were."""
    assert_input_unchanged(student.embed_tokens, *ids_and_tables(make, 2, 4, 7, 6, 3))


@rung.gradient("embed_tokens", rules=("gradients",))
def test_embed_tokens_lets_both_tables_learn(student, reference, make):
    """Gradients come back to both tables."""
    given = ids_and_tables(make, 2, 5, 7, 6, 3)
    assert_gradients_agree(student.embed_tokens, reference.embed_tokens, *given, make=make)


# --- next_token_loss -----------------------------------------------------------------------------


def logits_and_ids(make, batch, tokens, vocab, dtype=torch.float32):
    """Scores for every id at each position, and a text."""
    return (
        make.normal(dtype=dtype, batch=batch, tokens=tokens, vocab=vocab),
        make.integers(0, vocab, batch=batch, tokens=tokens),
    )


def some_ignored():
    """A mask of three rows with four, two and no targets that count."""
    return torch.tensor([[1, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 1, 1, 1, 1]], dtype=torch.bool)


@rung.shape("next_token_loss")
def test_next_token_loss_is_a_single_number(student, make):
    """The loss is one number, a tensor without dimensions."""
    student.next_token_loss(*logits_and_ids(make, 3, 5, 7))


@rung.value("next_token_loss")
def test_next_token_loss_gives_the_loss_of_the_example(student):
    """The losses 1.0986 and 0.2877 of the example have a mean of 0.6931."""
    logits = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 0.0, 1.7918], [5.0, 0.0, 0.0]]])
    loss = student.next_token_loss(logits, torch.tensor([[0, 1, 2]]))
    assert_agrees(loss, torch.tensor(0.6931), within=PRINTED, what="the loss of the example")


@rung.value("next_token_loss")
def test_next_token_loss_takes_other_texts(student, reference, make):
    """The loss is right for several rows, and for another vocabulary."""
    given = logits_and_ids(make, 4, 6, 5)
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.value("next_token_loss", rules=("ignored", "computes"))
def test_next_token_loss_leaves_ignored_targets_out(student, reference, make):
    """Targets where `ignore` is True are left out, of the sum and of the count."""
    given = *logits_and_ids(make, 3, 5, 7), some_ignored()
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.property("next_token_loss", rules=("none",))
def test_next_token_loss_takes_none(student, reference, make):
    """With None in place of a mask, every target counts."""
    given = *logits_and_ids(make, 2, 4, 5), None
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.property("next_token_loss", rules=("dtype",))
def test_next_token_loss_computes_in_float64(student, reference, make):
    """Logits in float64 give a loss in float64, with all digits."""
    logits, ids = logits_and_ids(make, 3, 5, 7, dtype=torch.float64)
    given = logits + 300.0, ids  # near 300, float32 has few digits after the point
    assert_agrees_to_float64(
        student.next_token_loss(*given), reference.next_token_loss(*given), within=ALL_DIGITS
    )


@rung.property("next_token_loss", rules=("unchanged",))
def test_next_token_loss_leaves_what_it_was_given(student, make):
    """Logits, ids and `ignore` stay as they were."""
    given = *logits_and_ids(make, 3, 5, 7), some_ignored()
    assert_input_unchanged(student.next_token_loss, *given)


@rung.stability("next_token_loss", rules=("large",))
@pytest.mark.parametrize(
    "added", [[995.0, 995.0], [-995.0, 995.0]], ids=["all around 1000", "far apart"]
)
def test_next_token_loss_survives_large_logits(student, reference, make, added):
    """Logits of ±1000 give a number, not NaN and not infinity."""
    logits, ids = logits_and_ids(make, 2, 5, 4)
    given = logits.clamp(-5.0, 5.0) + torch.tensor(added).repeat(2), ids
    assert_agrees(
        student.next_token_loss(*given), reference.next_token_loss(*given), within=LARGE_SCORES
    )


@rung.gradient("next_token_loss", rules=("gradients",))
def test_next_token_loss_can_be_learned_from(student, reference, make):
    """Gradients come back to the logits."""
    given = *logits_and_ids(make, 3, 5, 7), some_ignored()
    assert_gradients_agree(student.next_token_loss, reference.next_token_loss, *given, make=make)


# --- both models ---------------------------------------------------------------------------------

# vocab_size, d_model, num_heads, num_layers, d_hidden, context_length
SMALL = (11, 8, 2, 3, 14, 7)


def with_one_set_of_weights(theirs, ours, loud=0.04, size=2.0**12):
    """Give both models the weights of the reference, and return them.

    `loud` scales the inputs of the GELUs. With small inputs, the exact GELU and its tanh form
    agree. `size` scales the inputs of the norms, and changes no logit: only the eps of the norms,
    which has its own check, counts for less.
    """
    with torch.no_grad():
        for path, parameter in ours.named_parameters():
            if ".feed_forward.up." in path:
                parameter *= loud
            elif path.startswith("final_norm."):
                parameter /= size
            elif "_table" in path or ".out_proj." in path or ".feed_forward.down." in path:
                parameter *= size
    adopt(theirs, ours)
    return theirs, ours


def with_weights_of_the_example(theirs, ours):
    """Give both models identity matrices, and vectors of 0.1."""
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.constant_(weight, 0.1)
    adopt(theirs, ours)
    return theirs, ours


EXAMPLE = (5, 4, 2, 2, 7, 4)
FIRST_LOGITS = torch.tensor(
    [[[0.2732, 0.0423, 0.0423, 0.0423, 0.0], [0.0213, 0.1990, 0.1990, -0.0192, 0.0]]]
)
LAST_LOGITS = torch.tensor([[[0.0132, 0.1996, 0.1996, -0.0124, 0.0]]])


def small_texts(make, batch=2, tokens=6):
    """Ids for the small model."""
    return make.integers(0, 11, batch=batch, tokens=tokens)


def loss_of(logits, ids):
    """The mean cross-entropy of the next tokens."""
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


# --- GPT -----------------------------------------------------------------------------------------


@rung.shape("GPT")
def test_gpt_gives_logits_at_every_position(student, make):
    """Each position of each text gets logits for the whole vocabulary."""
    student.GPT(*SMALL, 0.0)(small_texts(make, batch=4, tokens=5))


@rung.value("GPT", rules=("computes", "causal", "bias"))
def test_gpt_with_the_weights_of_the_example(student, reference):
    """With identity matrices, the model gives the logits of the example."""
    theirs, _ = with_weights_of_the_example(
        student.GPT(*EXAMPLE, 0.0), reference.GPT(*EXAMPLE, 0.0)
    )
    logits = theirs(torch.tensor([[0, 2]]))
    assert_agrees(logits, FIRST_LOGITS, within=PRINTED, what="the logits of the example")


@rung.value("GPT", rules=("computes", "causal"))
def test_gpt_with_the_weights_of_the_reference(student, reference, make):
    """With the same weights, the logits are those of the reference."""
    theirs, ours = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    ids = small_texts(make, batch=5)
    assert_agrees(theirs(ids), ours(ids), within=REORDERED, what="the logits")


@rung.value("GPT", rules=("shorter", "computes", "causal"))
def test_gpt_takes_short_and_long_texts(student, reference, make):
    """The model takes a text as long as the context, then a single token, then a few."""
    theirs, ours = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    for tokens in (7, 1, 4):
        ids = small_texts(make, tokens=tokens)
        assert_agrees(
            theirs(ids), ours(ids), within=REORDERED, what=f"the logits of {tokens} of 7 tokens"
        )


@rung.property("GPT", rules=("tied",))
def test_gpt_has_one_table_for_tokens(student, reference):
    """One table looks up tokens and makes the logits, and no bias is added."""
    theirs, _ = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    assert_has_one_table(theirs, "token_table", SMALL[0])


@rung.property("GPT", rules=("causal",))
def test_gpt_hides_the_tokens_to_come(student, reference, make):
    """Changing the last token leaves the logits before it as they were."""
    theirs, _ = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    ids = small_texts(make, tokens=7)
    other = ids.clone()
    other[:, -1] = (other[:, -1] + 3) % 11
    before, after = theirs.eval().each([(ids,), (other,)])
    assert_unmoved(
        before[:, :-1],
        after[:, :-1],
        "logits changed when only a later token changed: they depend on the future",
        lambda: theirs(ids)[:, :-1],
    )


@rung.property("GPT", rules=("context",))
def test_gpt_refuses_a_text_that_is_too_long(student, reference, make):
    """Eight tokens raise an exception, since there are seven positions."""
    theirs, _ = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    assert_refuses(
        theirs,
        small_texts(make, tokens=8),
        why="8 tokens are more than the context of 7, but no exception was raised",
    )


@rung.property("GPT", rules=("bias",))
def test_gpt_has_no_bias_for_queries_keys_and_values(student, reference):
    """Queries, keys and values have no bias, and there are no extra parameters."""
    theirs, _ = with_one_set_of_weights(student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0))
    assert_learns_no_more(theirs, "queries, keys and values have no bias here", but=SMALL[0])


@rung.stability("GPT", rules=("eps",))
def test_gpt_norms_small_numbers(student, reference, make):
    """Where numbers are very small, the norms depend on eps."""
    theirs, ours = with_one_set_of_weights(
        student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0), size=2.0**-8
    )
    ids = small_texts(make)
    assert_agrees(theirs(ids), ours(ids), within=REORDERED, what="the logits of small numbers")


@rung.property("GPT", rules=("dropout",))
def test_gpt_drops_something_in_training(student, reference):
    """In training, a head whose only weight is dropped adds nothing to the first token."""
    sizes = (11, 8, 2, 2, 14, 7, 0.5)
    theirs, ours = student.GPT(*sizes), reference.GPT(*sizes)
    # The first block's attention multiplies the shift of its norm by a thousand, and all other
    # layers add nothing. The first eight logits are the token's features. Those of id 8 are small,
    # except the last one of each head: no norm sees small numbers only, so eps has no effect.
    with torch.no_grad():
        for path, weight in ours.named_parameters():
            if path == "token_table":
                weight[:8], weight[8:] = torch.eye(8), 1e-5 * weight[8:]
                weight[8, 3], weight[8, 7] = 1000.0, -1000.0
            elif path == "blocks.0.attention.W_value.weight":
                weight.copy_(1000.0 * torch.eye(8))
            elif path.endswith("out_proj.weight"):
                weight.copy_(torch.eye(8))
            elif path == "final_norm.weight":
                weight.fill_(1.0)
            elif path == "blocks.0.norm1.weight" or ".norm" not in path:
                weight.zero_()
    adopt(theirs, ours)
    ids = torch.full((1, 7), 8)
    calm = ours.eval()(ids)[0, 0, :8].view(2, 4)
    found = theirs.train()(ids.expand(400, 7))[:, 0, :8].detach().view(400, 2, 4)
    assert_drops_only_weights(found[..., :3], calm[..., :3], 0.5)


@rung.property("GPT", rules=("eval",))
def test_gpt_is_calm_in_evaluation(student, reference, make):
    """After .eval(), two calls give the same result."""
    theirs, _ = with_one_set_of_weights(student.GPT(*SMALL, 0.5), reference.GPT(*SMALL, 0.5))
    ids = small_texts(make, tokens=7)
    calm, calmer = theirs.eval().each([(ids,), (ids,)])
    assert_agrees(calm, calmer, what="a second call in evaluation mode")


@rung.property("GPT", rules=("device",))
def test_gpt_works_on_another_device(student, make):
    """After a move to another device, the model takes ids from that device."""
    assert_moves(student.GPT(*SMALL, 0.0), small_texts(make))


@rung.property("GPT", rules=("dtype",))
def test_gpt_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64."""
    theirs, ours = with_one_set_of_weights(
        student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0), loud=0.004
    )
    ids = small_texts(make)
    assert_agrees_to_float64(theirs.double()(ids), ours.double()(ids), within=ALL_DIGITS)


@rung.property("GPT", rules=("unchanged",))
def test_gpt_leaves_what_it_was_given(student, make):
    """The ids that were passed in stay as they were."""
    assert_input_unchanged(student.GPT(*SMALL, 0.0), small_texts(make))


@rung.gradient("GPT", rules=("gradients",))
def test_gpt_can_be_trained(student, reference, make):
    """Gradients reach every parameter."""
    theirs, ours = with_one_set_of_weights(
        student.GPT(*SMALL, 0.0), reference.GPT(*SMALL, 0.0), loud=0.015, size=2.0**4
    )
    ids = small_texts(make)
    assert_gradients_agree(theirs, ours, ids, make=make, of=lambda logits: loss_of(logits, ids))


# --- adamw_step ----------------------------------------------------------------------------------


def state_of(make, dtype=torch.float32, **sizes):
    """A parameter, its gradient, and both running means."""
    return (
        make.normal(2.0, dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.uniform(0.1, 2.0, dtype=dtype, **sizes),
    )


STRONG = 0.3, (0.7, 0.9), 0.05  # lr, betas and eps are so large that a mistake in any of them shows


@rung.shape("adamw_step", rules=("returns", "leading"))
@pytest.mark.parametrize("sizes", [{"n": 4}, {}, {"d_out": 3, "d_in": 5}], ids=len)
def test_adamw_step_gives_three_tensors(student, make, sizes):
    """Parameter, momentum and square come back, each in the shape of the parameter."""
    student.adamw_step(*state_of(make, **sizes), 3, *STRONG, 0.1)


@rung.value("adamw_step")
def test_adamw_step_gives_the_numbers_of_the_example(student):
    """The first step gives the parameter 0.6773, the momentum 0.6 and the square 0.4."""
    weight, zero = torch.tensor([1.0]), torch.tensor([0.0])
    result = student.adamw_step(weight, torch.tensor([2.0]), zero, zero, 1, *STRONG, 0.1)
    expected = torch.tensor([0.677317]), torch.tensor([0.6]), torch.tensor([0.4])
    for theirs, ours, name in zip(result, expected, ("p", "m", "v"), strict=True):
        assert_agrees(theirs, ours, what=f"{name} of the example")


@rung.value("adamw_step")
@pytest.mark.parametrize(("step", "decay"), [(1, 0.0), (2, 0.2), (7, 0.4)])
def test_adamw_step_takes_other_steps(student, reference, make, step, decay):
    """The results are right at steps 1, 2 and 7, for random tensors, with and without decay."""
    given = *state_of(make, d_out=3, d_in=4), step, *STRONG, decay
    assert_agrees(student.adamw_step(*given), reference.adamw_step(*given))


@rung.property("adamw_step", rules=("dtype",))
def test_adamw_step_computes_in_float64(student, reference, make):
    """Tensors in float64 give tensors in float64, with all digits."""
    given = *state_of(make, dtype=torch.float64, n=6), 4, *STRONG, 0.1
    assert_agrees_to_float64(
        student.adamw_step(*given), reference.adamw_step(*given), within=ALL_DIGITS
    )


@rung.property("adamw_step", rules=("unchanged",))
def test_adamw_step_builds_new_tensors(student, make):
    """The four tensors passed in stay as they were."""
    assert_input_unchanged(student.adamw_step, *state_of(make, n=6), 2, *STRONG, 0.1)


# --- generate ------------------------------------------------------------------------------------


@rung.shape("generate")
@pytest.mark.parametrize(("batch", "tokens"), [(2, 3), (1, 1)])
def test_generate_returns_the_prompt_and_the_new_ids(student, make, batch, tokens):
    """Each row is as long as the prompt and the new ids together."""
    model = table_model(make, vocab=11, context_length=8)
    student.generate(model, make.integers(0, 11, batch=batch, tokens=tokens), 4, 8)


def adds_up(context_length):
    """The example's model: the likeliest next id is the sum of all visible ids, modulo 10."""
    return TableModel(torch.eye(10), torch.arange(10).repeat(context_length, 1))


@rung.value("generate")
def test_generate_begins_as_in_the_example(student):
    """A model that adds up all visible ids continues 1 and 2 with 3 and 6."""
    written = student.generate(adds_up(4), torch.tensor([[1, 2]]), 2, 4)
    assert_agrees(written, torch.tensor([[1, 2, 3, 6]]), what="the ids of the example")


@rung.value("generate")
def test_generate_writes_what_the_model_finds_likeliest(student, reference, make):
    """Each row goes on with its own likeliest ids."""
    model = table_model(make, vocab=11, context_length=9)
    ids = make.integers(0, 11, batch=3, tokens=4)
    assert_agrees(student.generate(model, ids, 5, 9), reference.generate(model, ids, 5, 9))


@rung.property("generate", rules=("context",))
def test_generate_goes_on_as_in_the_example(student):
    """If the model sees only three ids, the text of the example goes on with 1 and 0."""
    written = student.generate(adds_up(3), torch.tensor([[1, 2]]), 4, 3)
    assert_agrees(written, torch.tensor([[1, 2, 3, 6, 1, 0]]), what="the ids of the example")


@rung.property("generate", rules=("context",))
@pytest.mark.parametrize("tokens", [7, 2])
def test_generate_shows_the_model_the_last_ids(student, reference, make, tokens):
    """Beyond the context length, the model sees the last ids and no others."""
    model = table_model(make, vocab=11, context_length=5)
    ids = make.integers(0, 11, batch=3, tokens=tokens)
    assert_agrees(student.generate(model, ids, 6, 5), reference.generate(model, ids, 6, 5))


@rung.property("generate", rules=("zero",))
def test_generate_may_write_nothing(student, make):
    """With no new ids to write, the prompt comes back."""
    ids = make.integers(0, 11, batch=2, tokens=3)
    model = table_model(make, vocab=11, context_length=5)
    assert_agrees(student.generate(model, ids, 0, 5), ids)


@rung.property("generate", rules=("unchanged",))
def test_generate_leaves_the_prompt_alone(student, make):
    """The ids and the model that were passed in stay as they were."""
    model = table_model(make, vocab=11, context_length=4)
    assert_input_unchanged(student.generate, model, make.integers(0, 11, batch=2, tokens=4), 1, 4)


# --- sample_next ---------------------------------------------------------------------------------


def assert_chooses(student, reference, logits, draws, *settings):
    """Fail unless the student chooses the token id of the reference for each random number."""
    theirs = [student.sample_next(logits, u, *settings) for u in draws]
    ours = [reference.sample_next(logits, u, *settings) for u in draws]
    for u, their_id, our_id in zip(draws, theirs, ours, strict=True):
        assert_that(their_id == our_id, f"for u = {u}, expected id {our_id}, got {their_id}")


def few_ids():
    """The logits of the example: probabilities 0.1, 0.4, 0.2 and 0.3."""
    return torch.tensor([0.1, 0.4, 0.2, 0.3]).log()


def more_ids():
    """Logits of seven ids, in mixed order."""
    return torch.tensor([0.4, 1.7, -0.9, 2.2, 0.8, -0.3, 1.1])


TENTHS = [0.04, 0.14, 0.24, 0.34, 0.44, 0.54, 0.64, 0.74, 0.84, 0.94]


@rung.shape("sample_next")
def test_sample_next_gives_an_int(student):
    """The id is an int, or a tensor without dimensions."""
    student.sample_next(few_ids(), 0.6)


@rung.value("sample_next")
def test_sample_next_gives_the_ids_of_the_example(student):
    """For u = 0.6, the result is id 2, and id 3 with top_k = 2 or top_p = 0.65."""
    for settings, expected in (((), 2), ((1.0, 2), 3), ((1.0, None, 0.65), 3)):
        chosen = student.sample_next(few_ids(), 0.6, *settings)
        given = ", ".join(map(str, (0.6, *settings)))
        assert_that(
            chosen == expected,
            f"sample_next(logits, {given}) should be {expected} in the example, got {chosen}",
        )


@rung.value("sample_next")
@pytest.mark.parametrize(
    "settings",
    [
        (1.0, None, None),
        (0.5, None, None),
        (1.0, 3, None),
        (1.0, None, 0.7),
        (2.5, None, 0.7),
        (1.3, 4, 0.8),
    ],
    ids=["plain", "temperature", "top_k", "top_p", "temperature and top_p", "all three"],
)
def test_sample_next_chooses_other_ids(student, reference, settings):
    """The id is right for other logits, for each setting alone and for some settings together."""
    assert_chooses(student, reference, more_ids(), TENTHS, *settings)


@rung.property("sample_next", rules=("greedy",))
def test_sample_next_takes_a_temperature_of_zero(student, reference):
    """A temperature of 0 gives the id of the largest logit, whatever u, top_k and top_p are."""
    assert_chooses(student, reference, few_ids(), [0.6], 0.0)
    assert_chooses(student, reference, 3.0 * more_ids(), [0.0, 0.95], 0.0, 3, 0.4)


@rung.property("sample_next", rules=("none",))
def test_sample_next_takes_a_large_top_k(student, reference):
    """None, a top_k beyond the vocabulary and a top_p of 1 keep all ids."""
    assert_chooses(student, reference, few_ids(), [0.05, 0.6], 1.0, 9, None)
    assert_chooses(student, reference, few_ids(), [0.05, 0.6], 1.0, None, None)
    assert_chooses(student, reference, few_ids(), [0.05, 0.6], 1.0, None, 1.0)
    below_one = torch.tensor([0.05, 0.21, 0.02, 0.3, 0.08, 0.17, 0.11, 0.06])  # by rounding
    assert_chooses(student, reference, below_one.log(), [0.05, 0.6], 1.0, None, 1.0)


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("u", [0.0, 1 - 2**-53], ids=["u = 0", "u just below 1"])
def test_sample_next_stays_among_the_kept_ids(student, reference, u):
    """For u = 0 and for u just below 1, the result is a kept id."""
    assert_chooses(student, reference, more_ids(), [*TENTHS, u], 1.0, 2)


@rung.property("sample_next", rules=("dtype",))
def test_sample_next_takes_float64(student, reference):
    """Logits may be float64."""
    assert_chooses(student, reference, more_ids().double(), TENTHS[::3], 0.8, 5, 0.8)


@rung.property("sample_next", rules=("unchanged",))
def test_sample_next_leaves_the_logits_alone(student):
    """The logits stay as they were."""
    assert_input_unchanged(student.sample_next, more_ids(), 0.4, 0.8, 5, 0.8)


@rung.stability("sample_next", rules=("large",))
def test_sample_next_survives_large_logits(student, reference):
    """Logits of ±1000 give an id, at a low and at a high temperature."""
    logits = torch.tensor([-1000.0, 999.0, 0.0, 1000.0, 998.2])
    assert_chooses(student, reference, logits, [0.1, 0.5, 0.9])
    assert_chooses(student, reference, more_ids(), [0.1, 0.5, 0.9], 0.01)
    assert_chooses(student, reference, 400.0 * more_ids(), [0.1, 0.5, 0.9], 300.0)


# --- CachedGPT -----------------------------------------------------------------------------------


def cached_models(student, reference, dropout=0.0, **scales):
    """Give both models the weights of the reference, and return them."""
    return with_one_set_of_weights(
        student.CachedGPT(*SMALL, dropout), reference.CachedGPT(*SMALL, dropout), **scales
    )


@rung.shape("CachedGPT")
def test_cached_gpt_gives_logits_and_a_cache(student, make):
    """A call returns logits of the new tokens, and a cache for the next call."""
    model = student.CachedGPT(*SMALL, 0.0)
    _logits, cache = model(small_texts(make, tokens=3))
    _logits, cache = model(small_texts(make, tokens=1), cache)
    model(small_texts(make, tokens=2), cache)


@rung.value("CachedGPT")
def test_cached_gpt_with_the_weights_of_the_example(student, reference):
    """With identity matrices, two tokens and then a third have the logits of the example."""
    theirs, _ = with_weights_of_the_example(
        student.CachedGPT(*EXAMPLE, 0.0), reference.CachedGPT(*EXAMPLE, 0.0)
    )
    logits, cache = theirs(torch.tensor([[0, 2]]))
    assert_agrees(logits, FIRST_LOGITS, within=PRINTED, what="the logits of the first two tokens")
    logits, _cache = theirs(torch.tensor([[1]]), cache)
    assert_agrees(logits, LAST_LOGITS, within=PRINTED, what="the logits of the third token")


@rung.value("CachedGPT")
def test_cached_gpt_without_a_cache(student, reference, make):
    """For all tokens at once, without a cache, the logits are those of the reference."""
    theirs, ours = cached_models(student, reference)
    ids = small_texts(make, batch=5)
    assert_agrees(theirs(ids)[0], ours(ids)[0], within=REORDERED, what="the logits")


@rung.value("CachedGPT")
def test_cached_gpt_in_three_chunks(student, reference, make):
    """For three tokens, then one, then three, the logits equal those of all seven at once."""
    theirs, ours = cached_models(student, reference)
    ids = small_texts(make, tokens=7)
    cache, found = None, []
    for chunk in ids.split([3, 1, 3], dim=1):
        logits, cache = theirs(chunk) if cache is None else theirs(chunk, cache)
        found.append(logits)
    assert_agrees(
        torch.cat(found, dim=1),
        ours(ids)[0],
        within=REORDERED,
        what="the logits of 3, then 1, then 3 tokens",
    )


@rung.property("CachedGPT", rules=("state",))
def test_cached_gpt_can_use_a_cache_twice(student, reference, make):
    """The same cache can be used twice, with another text in between."""
    theirs, ours = cached_models(student, reference)
    ids = small_texts(make)
    _logits, cache = theirs(ids[:, :4])
    theirs(small_texts(make, tokens=5))
    logits, _cache = theirs(ids[:, 4:], cache)
    expected = ours(ids)[0][:, 4:]
    assert_agrees(logits, expected, within=REORDERED, what="the logits after another text")


@rung.property("CachedGPT", rules=("none",))
def test_cached_gpt_understands_none(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = cached_models(student, reference)
    ids = small_texts(make)
    logits = theirs(ids, None)[0]
    assert_agrees(logits, ours(ids)[0], within=REORDERED, what="the logits with cache=None")


@rung.property("CachedGPT", rules=("context",))
def test_cached_gpt_refuses_a_text_that_is_too_long(student, reference, make):
    """Five tokens and three more raise an exception, since there are seven positions."""
    model, _ = cached_models(student, reference)
    _logits, cache = model(small_texts(make, tokens=5))
    assert_refuses(
        model,
        small_texts(make, tokens=3),
        cache,
        why="3 tokens after 5 are more than the context of 7, but no exception was raised",
    )


@rung.property("CachedGPT", rules=("tied",))
def test_cached_gpt_has_one_table_for_tokens(student, reference):
    """One table looks up tokens and makes the logits, and no bias is added."""
    theirs, _ = cached_models(student, reference)
    assert_has_one_table(theirs, "token_table", SMALL[0])


@rung.property("CachedGPT", rules=("bias",))
def test_cached_gpt_has_no_bias_for_queries_keys_and_values(student, reference):
    """Queries, keys and values have no bias, and there are no extra parameters."""
    theirs, _ = cached_models(student, reference)
    assert_learns_no_more(theirs, "queries, keys and values have no bias here", but=SMALL[0])


@rung.stability("CachedGPT", rules=("eps",))
def test_cached_gpt_norms_small_numbers(student, reference, make):
    """Where numbers are very small, the norms depend on eps."""
    theirs, ours = cached_models(student, reference, size=2.0**-8)
    ids = small_texts(make)
    what = "the logits of small numbers"
    assert_agrees(theirs(ids)[0], ours(ids)[0], within=REORDERED, what=what)


@rung.property("CachedGPT", rules=("dropout",))
def test_cached_gpt_drops_nothing(student, reference, make):
    """Even in training with dropout, the logits are those of the reference: nothing is dropped."""
    theirs, ours = cached_models(student, reference, dropout=0.5)
    ids = small_texts(make)
    logits = theirs.train()(ids)[0]
    assert_agrees(logits, ours(ids)[0], within=REORDERED, what="the logits in training")


@rung.property("CachedGPT", rules=("device",))
def test_cached_gpt_works_on_another_device(student, make):
    """After a move to another device, the model takes ids from that device."""
    assert_moves(student.CachedGPT(*SMALL, 0.0), small_texts(make))


@rung.property("CachedGPT", rules=("dtype",))
def test_cached_gpt_computes_in_float64(student, reference, make):
    """After `.double()`, everything is computed in float64, with a cache too."""
    theirs, ours = cached_models(student, reference, loud=0.004)
    ids = small_texts(make)
    theirs.double()
    first, cache = theirs(ids[:, :4])
    last, _cache = theirs(ids[:, 4:], cache)
    found = torch.cat([first, last], dim=1)
    assert_agrees_to_float64(found, ours.double()(ids)[0], within=ALL_DIGITS)


@rung.property("CachedGPT", rules=("unchanged",))
def test_cached_gpt_leaves_what_it_was_given(student, make):
    """The ids and the cache that were passed in stay as they were."""
    model = student.CachedGPT(*SMALL, 0.0)
    with torch.no_grad():
        _logits, cache = model(small_texts(make, tokens=3))
    assert_input_unchanged(model, small_texts(make, tokens=2), cache)


@rung.gradient("CachedGPT", rules=("gradients",))
def test_cached_gpt_can_be_trained(student, reference, make):
    """Gradients reach every parameter."""
    theirs, ours = cached_models(student, reference, loud=0.015, size=2.0**4)
    ids = small_texts(make)
    assert_gradients_agree(theirs, ours, ids, make=make, of=lambda result: loss_of(result[0], ids))


@rung.efficiency("CachedGPT", rules=("cost",))
def test_cached_gpt_reads_only_new_tokens(student, reference, make):
    """A new token after 64 others takes at most twice the work of a new token after 16."""
    sizes = (29, 96, 4, 2, 250, 70, 0.0)
    model, _ = with_one_set_of_weights(student.CachedGPT(*sizes), reference.CachedGPT(*sizes))
    ids = make.integers(0, 29, batch=1, tokens=65)
    with torch.no_grad():
        short, long = ((ids[:, seen : seen + 1], model(ids[:, :seen])[1]) for seen in (16, 64))
    assert_grows_at_most(model, short, long, work=2)
