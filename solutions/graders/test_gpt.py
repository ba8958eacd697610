"""Hidden graders of unit 12, gpt."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    LARGE_SCORES,
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    assert_that,
)

# --- embed_tokens --------------------------------------------------------------------------------

SIZES = {  # batch, tokens, vocab, context, d
    "short of the context": (3, 4, 9, 7, 5),
    "as long as the context": (2, 6, 11, 6, 3),
    "more positions than ids": (4, 3, 2, 8, 5),
    "one row of ids": (1, 5, 7, 9, 4),
    "one token": (3, 1, 5, 4, 2),
    "a single feature": (2, 4, 6, 5, 1),
}


def ids_and_tables(make, batch, tokens, vocab, context, d, dtype=torch.float32):
    """Ids, the first and the last among them, and a row for each id and for each position."""
    ids = make.integers(0, vocab, batch=batch, tokens=tokens)
    ids.view(-1)[0], ids.view(-1)[-1] = vocab - 1, 0
    tables = (
        make.normal(2.0, dtype=dtype, vocab=vocab, d=d),
        make.normal(2.0, dtype=dtype, context=context, d=d),
    )
    return ids, *tables


@rung.shape("embed_tokens")
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_embed_tokens_has_the_shape_of_the_statement(student, make, sizes):
    """A vector of d numbers for each token."""
    student.embed_tokens(*ids_and_tables(make, *sizes))


@rung.value("embed_tokens", points=4)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_embed_tokens_agrees_with_the_reference(student, reference, make, sizes):
    """Each token gets the row of its id plus the row of its position."""
    given = ids_and_tables(make, *sizes)
    assert_agrees(student.embed_tokens(*given), reference.embed_tokens(*given))


@rung.property("embed_tokens", rules=("dtype",))
def test_embed_tokens_keeps_float64(student, reference, make):
    """Tables in float64 give vectors in float64, to their precision."""
    given = ids_and_tables(make, 3, 5, 9, 7, 4, dtype=torch.float64)
    assert_agrees_to_float64(
        student.embed_tokens(*given), reference.embed_tokens(*given), within=ALL_DIGITS
    )


@rung.property("embed_tokens", rules=("unchanged",))
def test_embed_tokens_leaves_its_inputs_alone(student, make):
    """Ids and tables stay as they were."""
    assert_input_unchanged(student.embed_tokens, *ids_and_tables(make, 3, 5, 9, 7, 4))


@rung.gradient("embed_tokens", rules=("gradients",))
def test_embed_tokens_has_the_right_gradients(student, reference, make):
    """Gradients reach both tables: of rows used often, once and never."""
    ids, *tables = ids_and_tables(make, 2, 5, 6, 8, 4)
    ids[0] = torch.tensor([0, 0, 5, 0, 3])
    ids[1] = torch.tensor([5, 2, 0, 5, 5])
    assert_gradients_agree(student.embed_tokens, reference.embed_tokens, ids, *tables, make=make)


# --- next_token_loss -----------------------------------------------------------------------------

TEXTS = {  # batch, tokens, vocab
    "a few rows": (3, 5, 7),
    "two ids each": (4, 2, 3),
    "one row": (1, 6, 4),
    "one row of two ids": (1, 2, 5),
    "more ids than tokens": (2, 3, 11),
    "as many ids as tokens": (3, 4, 4),
}


def logits_and_ids(make, batch, tokens, vocab, dtype=torch.float32):
    """Scores for every id at each position, and a text with the first and the last id in it."""
    logits = make.normal(2.0, dtype=dtype, batch=batch, tokens=tokens, vocab=vocab)
    ids = make.integers(0, vocab, batch=batch, tokens=tokens)
    ids[0, 0], ids[-1, -1] = vocab - 1, 0
    return logits, ids


IGNORED = {  # for three rows of six ids
    "padding at the end": ["......", "....##", "..####"],
    "the question at the beginning": ["###...", "##....", "####.."],
    "here and there": [".#..#.", "..#.#.", ".....#"],
    "the first ids alone": ["#.....", "......", "#....."],
    "a row without targets": ["......", ".#####", "######"],
    "a single target": ["######", "#.####", "######"],
    "the last target alone": ["######", "######", "#####."],
}


def mask_of(rows):
    """True where there is a #."""
    return torch.tensor([[mark == "#" for mark in row] for row in rows])


@rung.shape("next_token_loss")
@pytest.mark.parametrize("sizes", TEXTS.values(), ids=TEXTS.keys())
def test_next_token_loss_has_the_shape_of_the_statement(student, make, sizes):
    """One number, in a tensor without dimensions."""
    student.next_token_loss(*logits_and_ids(make, *sizes))


@rung.value("next_token_loss", points=6)
@pytest.mark.parametrize("sizes", TEXTS.values(), ids=TEXTS.keys())
def test_next_token_loss_agrees_with_the_reference(student, reference, make, sizes):
    """The mean of -log p(next id) over all targets."""
    given = logits_and_ids(make, *sizes)
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.value("next_token_loss", points=4, rules=("computes", "ignored"))
@pytest.mark.parametrize("rows", IGNORED.values(), ids=IGNORED.keys())
def test_next_token_loss_counts_only_what_is_not_ignored(student, reference, make, rows):
    """Targets that are ignored are left out of the sum and of the count."""
    given = *logits_and_ids(make, 3, 6, 5), mask_of(rows)
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.property("next_token_loss", rules=("none",))
def test_next_token_loss_counts_all_targets_for_none(student, reference, make):
    """None in place of a mask means that every target counts."""
    given = *logits_and_ids(make, 3, 5, 7), None
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.property("next_token_loss", rules=("dtype",))
def test_next_token_loss_keeps_float64(student, reference, make):
    """Logits in float64 give a loss in float64, to its precision, with and without a mask."""
    logits, ids = logits_and_ids(make, 3, 6, 7, dtype=torch.float64)
    logits = logits + 300.0  # where float32 has few digits left
    for ignore in ((), (mask_of(IGNORED["here and there"]),)):
        given = logits, ids, *ignore
        assert_agrees_to_float64(
            student.next_token_loss(*given), reference.next_token_loss(*given), within=ALL_DIGITS
        )


@rung.property("next_token_loss", rules=("unchanged",))
def test_next_token_loss_leaves_its_inputs_alone(student, make):
    """Logits, ids and `ignore` stay as they were."""
    given = *logits_and_ids(make, 3, 6, 5), mask_of(IGNORED["here and there"])
    assert_input_unchanged(student.next_token_loss, *given)


LARGE = {  # what is added to logits at even and odd positions, of even and odd ids
    "all around 1000": [[1000.0, 1000.0], [1000.0, 1000.0]],
    "all around -1000": [[-1000.0, -1000.0], [-1000.0, -1000.0]],
    "positions far apart": [[995.0, 995.0], [-995.0, -995.0]],
    "ids far apart": [[-995.0, 995.0], [995.0, -995.0]],
}


@rung.stability("next_token_loss", points=2, rules=("large",))
@pytest.mark.parametrize("added", LARGE.values(), ids=LARGE.keys())
def test_next_token_loss_takes_logits_of_a_thousand(student, reference, make, added):
    """Logits of ±1000 give a right loss: all of them large, or far apart."""
    logits, ids = logits_and_ids(make, 2, 6, 4)
    given = logits.clamp(-5.0, 5.0) + torch.tensor(added).repeat(3, 2), ids
    assert_agrees(
        student.next_token_loss(*given), reference.next_token_loss(*given), within=LARGE_SCORES
    )


@rung.gradient("next_token_loss", rules=("gradients",))
@pytest.mark.parametrize("rows", [None, "a row without targets", "here and there"])
def test_next_token_loss_has_the_right_gradients(student, reference, make, rows):
    """Gradients reach the logits of all targets that count, and no others."""
    given = logits_and_ids(make, 3, 6, 5) + ((mask_of(IGNORED[rows]),) if rows else ())
    assert_gradients_agree(student.next_token_loss, reference.next_token_loss, *given, make=make)


# --- adamw_step ----------------------------------------------------------------------------------

# With a usual rate and epsilon, most mistakes would be lost in the rounding.
LR, BETAS, EPS = 0.3, (0.7, 0.9), 0.05

PARAMETERS = {
    "a vector": {"n": 7},
    "a matrix": {"d_out": 3, "d_in": 5},
    "a single number in no dimensions": {},
    "four dimensions": {"a": 2, "b": 3, "c": 1, "d": 4},
}


def state_of(make, dtype=torch.float32, **sizes):
    """A parameter, its gradient, and both running means."""
    return (
        make.normal(2.0, dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.normal(dtype=dtype, **sizes),
        make.uniform(0.1, 2.0, dtype=dtype, **sizes),
    )


@rung.shape("adamw_step")
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(
            sizes, id=name, marks=rung.quotes("returns", "leading") if "dim" in name else ()
        )
        for name, sizes in PARAMETERS.items()
    ],
)
def test_adamw_step_has_the_shapes_of_the_statement(student, make, sizes):
    """Parameter, momentum and square, in the shape of the parameter."""
    student.adamw_step(*state_of(make, **sizes), 2, LR, BETAS, EPS, 0.1)


STEPS = {  # step, lr, betas, eps, weight_decay
    "the first, without a decay": (1, LR, BETAS, EPS, 0.0),
    "the first": (1, LR, BETAS, EPS, 0.4),
    "the second": (2, LR, BETAS, EPS, 0.15),
    "the third, without a decay": (3, LR, BETAS, EPS, 0.0),
    "the fortieth": (40, LR, BETAS, EPS, 0.4),
    "a lower rate": (4, 0.05, BETAS, 0.3, 0.5),
    "a small beta for the squares": (2, 1.0, (0.9, 0.6), 0.02, 0.1),
    "no memory of gradients": (5, 0.4, (0.0, 0.5), 0.2, 0.25),
    "no memory of squares": (2, 0.4, (0.5, 0.0), 0.2, 0.25),
}


@rung.value("adamw_step", points=6)
@pytest.mark.parametrize("settings", STEPS.values(), ids=STEPS.keys())
def test_adamw_step_agrees_with_the_reference(student, reference, make, settings):
    """One step is right: the first and later ones, with and without a decay."""
    given = *state_of(make, d_out=3, d_in=5), *settings
    assert_agrees(student.adamw_step(*given), reference.adamw_step(*given))


@rung.value("adamw_step", points=3)
def test_adamw_step_continues_from_its_own_results(student, reference, make):
    """Five steps in a row, each from what the last one returned, end at the right weights."""
    start = make.normal(2.0, d_out=4, d_in=3)
    theirs = ours = (start, torch.zeros_like(start), torch.zeros_like(start))
    for step in range(1, 6):
        gradient = make.normal(d_out=4, d_in=3)
        rest = step, LR, BETAS, EPS, 0.2
        theirs = student.adamw_step(theirs[0], gradient, *theirs[1:], *rest)
        ours = reference.adamw_step(ours[0], gradient, *ours[1:], *rest)
        assert_agrees(theirs, ours, what=f"after step {step}, result")


@rung.property("adamw_step", rules=("dtype",))
def test_adamw_step_keeps_float64(student, reference, make):
    """Tensors in float64 give tensors in float64, to their precision."""
    given = *state_of(make, dtype=torch.float64, d_out=4, d_in=6), 3, LR, BETAS, EPS, 0.1
    assert_agrees_to_float64(
        student.adamw_step(*given), reference.adamw_step(*given), within=ALL_DIGITS
    )


@rung.property("adamw_step", points=2, rules=("unchanged",))
def test_adamw_step_leaves_its_inputs_alone(student, make):
    """Parameter, gradient, momentum and square stay as they were."""
    assert_input_unchanged(
        student.adamw_step, *state_of(make, d_out=4, d_in=6), 3, LR, BETAS, EPS, 0.1
    )


# --- sample_next ---------------------------------------------------------------------------------

# Every u and every top_p is 1e-3 or more away from where the answer changes, but for the two ends.

PROBABILITIES = [0.05, 0.21, 0.02, 0.30, 0.08, 0.17, 0.11, 0.06]
FINE = [(2 * n + 1) / 58 for n in range(29)]  # 29 draws across the line


def eight():
    """Logits of eight ids, the likely and the unlikely ones mixed; their exponentials sum to 1."""
    return torch.tensor(PROBABILITIES).log()


def five():
    """Logits of five ids, the most probable in the middle."""
    return torch.tensor([-1.3, 0.4, 2.1, 0.9, -0.2])


def nine():
    """Logits of nine ids, the most probable at the end and at the beginning."""
    return torch.tensor([1.9, -0.4, 0.3, -1.5, 0.9, 0.1, -2.2, 1.2, 2.4])


def assert_chooses(student, reference, logits, draws, *settings):
    """Fail unless the student's id is ours for each u: all are asked for before one is judged."""
    theirs = [student.sample_next(logits, u, *settings) for u in draws]
    ours = [reference.sample_next(logits, u, *settings) for u in draws]
    for u, their_id, our_id in zip(draws, theirs, ours, strict=True):
        assert_that(their_id == our_id, f"for u = {u:.4g}, expected id {our_id}, got {their_id}")


@rung.shape("sample_next")
@pytest.mark.parametrize("logits", [eight(), five(), torch.tensor([3.0])], ids=len)
def test_sample_next_gives_one_int(student, logits):
    """The id is an int, or in a tensor without dimensions."""
    student.sample_next(logits, 0.45, 0.9, None, 0.7)


@rung.value("sample_next", points=4)
@pytest.mark.parametrize("logits", [eight(), five(), nine(), torch.tensor([3.0])], ids=len)
def test_sample_next_hits_each_id_as_often_as_it_is_probable(student, reference, logits):
    """Without settings, each u hits the id whose piece of the line it lies in."""
    assert_chooses(student, reference, logits, FINE)


@rung.value("sample_next", points=2)
@pytest.mark.parametrize("temperature", [0.4, 0.65, 1.7, 5.0])
def test_sample_next_divides_by_the_temperature(student, reference, temperature):
    """Low temperatures make likely ids likelier, high ones make all alike."""
    assert_chooses(student, reference, nine(), FINE, temperature)


@rung.value("sample_next", points=2)
@pytest.mark.parametrize("top_k", [1, 2, 3, 5])
def test_sample_next_keeps_the_largest(student, reference, top_k):
    """Only the top_k largest are hit, and they share the whole line."""
    assert_chooses(student, reference, eight(), FINE, 1.0, top_k)


@rung.value("sample_next", points=3)
@pytest.mark.parametrize("top_p", [0.1, 0.4, 0.6, 0.75, 0.9])
def test_sample_next_keeps_the_fewest_that_reach_top_p(student, reference, top_p):
    """The most probable ids are kept up to the one that reaches top_p, and share the whole line."""
    assert_chooses(student, reference, eight(), FINE, 1.0, None, top_p)


@rung.value("sample_next", points=3)
@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 4, 0.6), (1.0, 5, 0.7), (0.5, 6, 0.8), (0.9, 3, 0.5), (0.6, None, 0.7), (0.3, 6, 0.95)],
)
def test_sample_next_does_the_steps_in_order(student, reference, temperature, top_k, top_p):
    """Each step works on what the one before has left."""
    assert_chooses(student, reference, eight(), FINE, temperature, top_k, top_p)


@rung.property("sample_next", points=2, rules=("greedy",))
@pytest.mark.parametrize("settings", [(), (3,), (None, 0.2), (2, 0.9)], ids=str)
def test_sample_next_is_greedy_at_temperature_zero(student, reference, settings):
    """A temperature of 0 gives the largest logit's id, whatever u, top_k and top_p are."""
    for logits in (eight(), nine(), torch.tensor([-900.0, 3.0, -1000.0])):
        assert_chooses(student, reference, logits, [0.0, 0.5, 0.99], 0.0, *settings)


@rung.property("sample_next", rules=("none",))
@pytest.mark.parametrize(
    "settings", [(1.0, None, None), (1.0, 8, None), (0.8, 9, 0.75), (1.0, 1000, None)], ids=str
)
def test_sample_next_keeps_all_where_nothing_says_otherwise(student, reference, settings):
    """None keeps all ids, and so does a top_k of vocab or more."""
    assert_chooses(student, reference, eight(), FINE[::3], *settings)


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("settings", [(1.0, 2, None), (1.0, None, 0.6), (0.7, 3, 0.9)], ids=str)
def test_sample_next_begins_with_the_first_kept_id(student, reference, settings):
    """For u = 0 it is the first id that is kept, and none that is not."""
    assert_chooses(student, reference, eight(), [0.0], *settings)


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("settings", [(1.0, 2, None), (1.0, None, 0.6), (0.7, 3, 0.9)], ids=str)
def test_sample_next_ends_with_the_last_kept_id(student, reference, settings):
    """For u just below 1 it is the last id that is kept, whatever was rounded."""
    assert_chooses(student, reference, eight(), [1 - 2**-24, 1 - 2**-53], *settings)


@rung.property("sample_next", rules=("dtype",))
def test_sample_next_takes_logits_in_float64(student, reference):
    """Logits in float64 give ids as well."""
    logits = nine().to(torch.float64)
    for settings in ((), (0.8, 4), (1.0, None, 0.8), (1.2, 6, 0.7)):
        assert_chooses(student, reference, logits, FINE[::4], *settings)


@rung.property("sample_next", rules=("unchanged",))
def test_sample_next_leaves_the_caller_s_logits(student):
    """The logits stay as they were."""
    assert_input_unchanged(student.sample_next, eight(), 0.45, 0.8, 5, 0.8)


@rung.stability("sample_next", rules=("large",))
def test_sample_next_takes_logits_of_a_thousand(student, reference):
    """Large logits and low temperatures give the right ids."""
    logits = torch.tensor([998.6, -1000.0, 1000.0, 999.3, 0.0, 997.9])
    for shift in (0.0, -1998.0):
        for settings in ((), (1.4, 3), (1.0, None, 0.8)):
            assert_chooses(student, reference, logits + shift, FINE[::3], *settings)
    assert_chooses(student, reference, nine(), FINE[::3], 0.005, 4, 0.9)
