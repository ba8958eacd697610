"""Public checks of unit 12, a language model of your own."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    LARGE_SCORES,
    PRINTED,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_that,
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
    """Ids 2, 0, 2 get the vectors of the example: id 2 has another one at each place."""
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
    """It is right for several rows of ids, and for tables of other sizes."""
    given = ids_and_tables(make, 3, 4, 7, 6, 5)
    assert_agrees(student.embed_tokens(*given), reference.embed_tokens(*given))


@rung.property("embed_tokens", rules=("dtype",))
def test_embed_tokens_gives_float64_for_float64(student, reference, make):
    """Tables in float64 give vectors in float64, with all of their digits."""
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
        make.normal(2.0, dtype=dtype, batch=batch, tokens=tokens, vocab=vocab),
        make.integers(0, vocab, batch=batch, tokens=tokens),
    )


def some_ignored():
    """Rows of five ids with four, two and no targets that count, and True in the first column."""
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
    """It is right for several rows, and for another vocabulary."""
    given = logits_and_ids(make, 4, 6, 5)
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.value("next_token_loss", rules=("computes", "ignored"))
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
    """Logits in float64 give a loss in float64, with all of its digits."""
    logits, ids = logits_and_ids(make, 3, 5, 7, dtype=torch.float64)
    given = logits + 300.0, ids  # where float32 has few digits left
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


# --- adamw_step ----------------------------------------------------------------------------------


def state_of(make, dtype=torch.float32, **sizes):
    """A parameter, its gradient, and both running means."""
    return (
        make.normal(2.0, dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.uniform(0.1, 2.0, dtype=dtype, **sizes),
    )


STRONG = 0.3, (0.7, 0.9), 0.05  # lr, betas and eps so large that each of them shows


@rung.shape("adamw_step", rules=("returns", "leading"))
@pytest.mark.parametrize("sizes", [{"n": 4}, {}, {"d_out": 3, "d_in": 5}], ids=len)
def test_adamw_step_gives_three_tensors(student, make, sizes):
    """Parameter, momentum and square come back, each in the shape of the parameter."""
    student.adamw_step(*state_of(make, **sizes), 3, *STRONG, 0.1)


@rung.value("adamw_step")
def test_adamw_step_gives_the_numbers_of_the_example(student):
    """The first step leads from 1 to 0.6773, and leaves 0.6 and 0.4."""
    weight, zero = torch.tensor([1.0]), torch.tensor([0.0])
    result = student.adamw_step(weight, torch.tensor([2.0]), zero, zero, 1, *STRONG, 0.1)
    expected = torch.tensor([0.677317]), torch.tensor([0.6]), torch.tensor([0.4])
    for theirs, ours, name in zip(result, expected, ("p", "m", "v"), strict=True):
        assert_agrees(theirs, ours, what=f"{name} of the example")


@rung.value("adamw_step")
@pytest.mark.parametrize(("step", "decay"), [(1, 0.0), (2, 0.2), (7, 0.4)])
def test_adamw_step_takes_other_steps(student, reference, make, step, decay):
    """It is right for later steps, other gradients, and with and without a decay."""
    given = *state_of(make, d_out=3, d_in=4), step, *STRONG, decay
    assert_agrees(student.adamw_step(*given), reference.adamw_step(*given))


@rung.property("adamw_step", rules=("dtype",))
def test_adamw_step_computes_in_float64(student, reference, make):
    """Tensors in float64 give tensors in float64, with all of their digits."""
    given = *state_of(make, dtype=torch.float64, n=6), 4, *STRONG, 0.1
    assert_agrees_to_float64(
        student.adamw_step(*given), reference.adamw_step(*given), within=ALL_DIGITS
    )


@rung.property("adamw_step", rules=("unchanged",))
def test_adamw_step_builds_new_tensors(student, make):
    """The four tensors that come in stay as they were."""
    assert_input_unchanged(student.adamw_step, *state_of(make, n=6), 2, *STRONG, 0.1)


# --- sample_next ---------------------------------------------------------------------------------


def assert_chooses(student, reference, logits, draws, *settings):
    """Fail unless the student's id is ours for each u."""
    theirs = [student.sample_next(logits, u, *settings) for u in draws]
    ours = [reference.sample_next(logits, u, *settings) for u in draws]
    for u, their_id, our_id in zip(draws, theirs, ours, strict=True):
        assert_that(their_id == our_id, f"for u = {u}, expected id {our_id}, got {their_id}")


def few_ids():
    """Probabilities 0.1, 0.4, 0.2 and 0.3: those of the example."""
    return torch.tensor([0.1, 0.4, 0.2, 0.3]).log()


def more_ids():
    """Seven ids, the likely and the unlikely ones mixed."""
    return torch.tensor([0.4, 1.7, -0.9, 2.2, 0.8, -0.3, 1.1])


TENTHS = [0.04, 0.14, 0.24, 0.34, 0.44, 0.54, 0.64, 0.74, 0.84, 0.94]


@rung.shape("sample_next")
def test_sample_next_gives_an_int(student):
    """The id comes back as an int, or in a tensor without dimensions."""
    student.sample_next(few_ids(), 0.6)


@rung.value("sample_next")
def test_sample_next_gives_the_ids_of_the_example(student):
    """For u = 0.6 it is id 2, and id 3 with top_k = 2 or top_p = 0.65."""
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
    [(1.0, None, None), (0.5, None, None), (1.0, 3, None), (1.0, None, 0.7), (1.3, 4, 0.8)],
    ids=["plain", "temperature", "top_k", "top_p", "all three"],
)
def test_sample_next_chooses_other_ids(student, reference, settings):
    """It is right for other logits, for each setting alone, and for all three together."""
    assert_chooses(student, reference, more_ids(), TENTHS, *settings)


@rung.property("sample_next", rules=("greedy",))
def test_sample_next_takes_a_temperature_of_zero(student, reference):
    """A temperature of 0 gives the id of the largest logit, whatever u, top_k and top_p are."""
    assert_chooses(student, reference, few_ids(), [0.6], 0.0)
    assert_chooses(student, reference, 3.0 * more_ids(), [0.0, 0.95], 0.0, 3, 0.4)


@rung.property("sample_next", rules=("none",))
def test_sample_next_takes_a_large_top_k(student, reference):
    """None and a top_k beyond the vocabulary keep all ids."""
    assert_chooses(student, reference, few_ids(), [0.05, 0.6], 1.0, 9, None)
    assert_chooses(student, reference, few_ids(), [0.05, 0.6], 1.0, None, None)


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("u", [0.0, 1 - 2**-53], ids=["u = 0", "u just below 1"])
def test_sample_next_stays_among_the_kept_ids(student, reference, u):
    """At both ends of the line there is an id that was kept."""
    assert_chooses(student, reference, more_ids(), [u], 1.0, 2)


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
    """Logits of ±1000 and a low temperature give an id."""
    logits = torch.tensor([-1000.0, 999.0, 0.0, 1000.0, 998.2])
    assert_chooses(student, reference, logits, [0.1, 0.5, 0.9])
    assert_chooses(student, reference, more_ids(), [0.1, 0.5, 0.9], 0.01)
