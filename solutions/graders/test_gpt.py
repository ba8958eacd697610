"""Hidden graders of unit 12, gpt."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from grader.course.collection import rung
from grader.testing import (
    ALL_DIGITS,
    LARGE_SCORES,
    REORDERED,
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
    first_tokens,
    table_model,
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
    """Each token gets a vector of d numbers."""
    student.embed_tokens(*ids_and_tables(make, *sizes))


@rung.value("embed_tokens", points=4)
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_embed_tokens_agrees_with_the_reference(student, reference, make, sizes):
    """Each token gets the row of its id plus the row of its position."""
    given = ids_and_tables(make, *sizes)
    assert_agrees(student.embed_tokens(*given), reference.embed_tokens(*given))


@rung.property("embed_tokens", rules=("dtype",))
def test_embed_tokens_keeps_float64(student, reference, make):
    """Tables in float64 give vectors in float64, to full precision."""
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
    """Gradients reach both tables, in rows used often, once and never."""
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
    # Probabilities are so large that adding 1e-8 to avoid log(0) changes nothing that shows.
    logits = make.normal(dtype=dtype, batch=batch, tokens=tokens, vocab=vocab)
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
    """The loss is one number, in a tensor without dimensions."""
    student.next_token_loss(*logits_and_ids(make, *sizes))


@rung.value("next_token_loss", points=6)
@pytest.mark.parametrize("sizes", TEXTS.values(), ids=TEXTS.keys())
def test_next_token_loss_agrees_with_the_reference(student, reference, make, sizes):
    """The loss is the mean of -log p(next id) over all targets."""
    given = logits_and_ids(make, *sizes)
    assert_agrees(student.next_token_loss(*given), reference.next_token_loss(*given))


@rung.value("next_token_loss", points=4, rules=("ignored", "computes"))
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
    """Logits in float64 give a loss in float64, to full precision, with and without a mask."""
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


LARGE = {  # additions to the logits of four ids, at even and at odd positions
    "all around 1000": [[995.0] * 4, [995.0] * 4],
    "all around -1000": [[-995.0] * 4, [-995.0] * 4],
    "positions far apart": [[995.0] * 4, [-995.0] * 4],
    "ids far apart": [[-995.0, 995.0] * 2, [995.0, -995.0] * 2],
    "sure of one id": [[995.0, -995.0, -995.0, -995.0], [-995.0, 995.0, -995.0, -995.0]],
}


@rung.stability("next_token_loss", points=2, rules=("large",))
@pytest.mark.parametrize("added", LARGE.values(), ids=LARGE.keys())
def test_next_token_loss_takes_logits_of_a_thousand(student, reference, make, added):
    """Logits of ±1000 give a right loss: all of them large, or far apart."""
    logits, ids = logits_and_ids(make, 2, 6, 4)
    ids[0, 1] = 0  # of which the position before it may be sure: its loss is 0, and counts
    given = logits.clamp(-5.0, 5.0) + torch.tensor(added).repeat(3, 1), ids
    assert_agrees(
        student.next_token_loss(*given), reference.next_token_loss(*given), within=LARGE_SCORES
    )


@rung.gradient("next_token_loss", rules=("gradients",))
@pytest.mark.parametrize("rows", [None, "a row without targets", "here and there"])
def test_next_token_loss_has_the_right_gradients(student, reference, make, rows):
    """Gradients reach the logits of all targets that count, and no others."""
    given = logits_and_ids(make, 3, 6, 5) + ((mask_of(IGNORED[rows]),) if rows else ())
    assert_gradients_agree(student.next_token_loss, reference.next_token_loss, *given, make=make)


# --- both models ---------------------------------------------------------------------------------

# vocab_size, d_model, num_heads, num_layers, d_hidden, context_length. These sizes, the batch, the
# tokens and the width of a head all differ, and d_hidden is no multiple of d_model.
MODEL = (7, 10, 2, 3, 16, 19)
OTHER_MODEL = (9, 12, 3, 2, 20, 26)
TEXTS = [(MODEL, 4, 6), (OTHER_MODEL, 5, 8)]  # each with batch and tokens


def both(student, reference, name, sizes=MODEL, dropout=0.0, loud=0.04, size=2.0**12):
    """A student's model and the reference, with the same weights.

    `loud` scales the inputs of the GELUs. With small inputs, the exact GELU and its tanh form
    agree. `size` scales the inputs of the norms, and changes no logit: only the eps of the norms,
    which has its own test, counts for less.
    """
    theirs = getattr(student, name)(*sizes, dropout)
    ours = getattr(reference, name)(*sizes, dropout)
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


def texts(make, sizes=MODEL, batch=4, tokens=6, name=None):
    """Ids of the vocabulary."""
    return make.integers(0, sizes[0], batch=batch, tokens=tokens, name=name)


# `make trained` writes the weights of a model of two layers that learned to add two numbers below
# 100, and lines that were left out of its training. A line is ``07+05=210``: the answer's ones come
# first. Here, too, inputs of the GELUs are small.
TRAINED = Path(__file__).parents[1] / "trained" / "addition.safetensors"
OF_TRAINED = (12, 64, 4, 2, 256, 9)
PROMPT = 6


def trained(student, reference, name):
    """A student's model and the reference, with trained weights; and the lines held out."""
    kept = load_file(TRAINED)
    lines = kept.pop("held_out").long()
    theirs = getattr(student, name)(*OF_TRAINED, 0.0)
    ours = getattr(reference, name)(*OF_TRAINED, 0.0)
    ours.load_state_dict({path: value.float() for path, value in kept.items()}, strict=False)
    adopt(theirs, ours)
    return theirs, ours, lines


def assert_same_digits(theirs, ours, how=""):
    """Fail unless at least 99 of 100 likeliest tokens are those of the reference."""
    share = (theirs.argmax(dim=-1) == ours.argmax(dim=-1)).double().mean().item()
    assert_that(
        share >= 0.99,
        f"with weights that have learned to add{how}, {share:.1%} of the digits are those of the "
        "reference, and 99 % should be",
    )


# --- GPT -----------------------------------------------------------------------------------------


@rung.shape("GPT")
@pytest.mark.parametrize(("sizes", "batch", "tokens"), TEXTS)
def test_gpt_scores_every_token_at_every_position(student, make, sizes, batch, tokens):
    """Each position of each text gets logits for the whole vocabulary."""
    student.GPT(*sizes, 0.0)(texts(make, sizes, batch, tokens))


@rung.value("GPT", points=10, rules=("computes", "causal"))
@pytest.mark.parametrize(("sizes", "batch", "tokens"), TEXTS)
def test_gpt_agrees_with_the_reference(student, reference, make, sizes, batch, tokens):
    """With the same weights, the logits are those of the reference."""
    theirs, ours = both(student, reference, "GPT", sizes)
    ids = texts(make, sizes, batch, tokens)
    assert_agrees(theirs(ids), ours(ids), within=REORDERED, what="the logits")


@rung.value("GPT", points=2, rules=("shorter", "computes", "causal"))
def test_gpt_takes_texts_up_to_its_context(student, reference, make):
    """Texts of any length up to `context_length` work, one after another, in any order."""
    theirs, ours = both(student, reference, "GPT")
    for tokens in (3, 1, 19, 5):
        ids = texts(make, batch=2, tokens=tokens)
        assert_agrees(
            theirs(ids), ours(ids), within=REORDERED, what=f"the logits of {tokens} of 19 tokens"
        )


@rung.value("GPT", points=3, rules=("computes", "causal"))
def test_gpt_adds_with_trained_weights(student, reference):
    """With weights that have learned to add two numbers, the model writes their sums' digits."""
    theirs, ours, lines = trained(student, reference, "GPT")
    asked = lines[:, :-1]
    with torch.no_grad():
        answers = [model(asked)[:, PROMPT - 1 :] for model in (theirs, ours)]
    assert_same_digits(*answers)


@rung.property("GPT", points=3, rules=("tied",))
def test_gpt_reads_and_writes_with_one_table(student, reference):
    """One table looks up tokens and makes the logits, and no bias is added."""
    theirs, _ours = both(student, reference, "GPT")
    assert_has_one_table(theirs, "token_table", MODEL[0])


@rung.property("GPT", points=2, rules=("causal",))
def test_gpt_does_not_see_the_future(student, reference, make):
    """Changing later tokens leaves the logits before them as they were."""
    theirs, _ours = both(student, reference, "GPT")
    theirs.eval()
    ids = texts(make, tokens=9)
    changed = [ids.clone() for _ in range(3)]
    for cut, other in zip((1, 4, 8), changed, strict=True):
        other[:, cut:] = (other[:, cut:] + 5) % MODEL[0]
    before, *after = theirs.each([(ids,), *((other,) for other in changed)])
    for cut, logits in zip((1, 4, 8), after, strict=True):
        assert_unmoved(
            before[:, :cut],
            logits[:, :cut],
            f"logits of {first_tokens(cut)} changed when only later tokens did: they see the "
            "future",
            lambda cut=cut: theirs(ids)[:, :cut],
        )


@rung.property("GPT", rules=("context",))
def test_gpt_refuses_more_tokens_than_its_context(student, reference, make):
    """One token more than `context_length` raises an exception, and so do many more."""
    theirs, _ours = both(student, reference, "GPT")
    for tokens in (20, 27):
        assert_refuses(theirs, texts(make, tokens=tokens), why=too_long(tokens))


def too_long(tokens, seen=0):
    """The message if a text that is too long was accepted."""
    after = f" after {seen}" if seen else ""
    return (
        f"{tokens} tokens{after} are more than the context of 19: this should raise an exception, "
        "and it went on as if nothing had happened"
    )


@rung.property("GPT", rules=("bias",))
def test_gpt_learns_what_the_statement_names(student, reference):
    """Queries, keys and values have no bias; all parameters of the statement are there."""
    assert_learns_what_is_named(*both(student, reference, "GPT"))


def assert_learns_what_is_named(theirs, ours):
    """Fail unless a model has all parameters of the reference, and no others."""
    missing = [role for role, _ in ours.named_parameters() if lacks(theirs, role)]
    assert_that(
        not missing,
        f"no parameter could be found for {', '.join(missing[:3])}: linear layers have a bias "
        "(queries, keys and values do not), and norms have a gain and a shift",
    )
    assert_learns_no_more(theirs, "queries, keys and values have no bias here", but=MODEL[0])


def lacks(theirs, path):
    """Whether a student's model has no place for a parameter of the reference."""
    return path.removesuffix(".weight") in theirs.adoption.missing


SENTENCES, P_DROP = 2400, 0.2


@rung.property("GPT", rules=("dropout",))
def test_gpt_drops_weights_in_training(student, reference):
    """In training, a head whose only weight is dropped adds nothing to its token."""
    heads, width = 2, 8
    d_model = heads * width
    sizes = (d_model + 3, d_model, heads, 2, 20, 7)
    theirs, ours = student.GPT(*sizes, P_DROP), reference.GPT(*sizes, P_DROP)
    # The logits of the first ids are the token's features. All tokens have another id, whose
    # features are small, except the last one of each head: no norm sees small numbers only, so eps
    # has no effect. Only the first block's attention makes the others large: it multiplies the
    # shift of its norm, and dropout elsewhere has hardly any effect. In each head, the first token
    # has a single weight, which is 1.
    with torch.no_grad():
        ours.token_table[:d_model] = torch.eye(d_model)
        ours.token_table[d_model:] *= 1e-5
        ours.token_table[d_model, width - 1], ours.token_table[d_model, -1] = 1000.0, -1000.0
        ours.position_table.zero_()
        ours.blocks[0].norm1.weight.zero_()
        ours.final_norm.weight.fill_(1.0)
        ours.final_norm.bias.zero_()
        for block, times in zip(ours.blocks, (1000.0, 0.0), strict=True):
            block.attention.W_value.weight.copy_(times * torch.eye(d_model))
            block.attention.out_proj.weight.copy_(torch.eye(d_model))
            block.attention.out_proj.bias.zero_()
            for weight in block.feed_forward.down.parameters():
                weight.zero_()
    adopt(theirs, ours)
    ids = torch.full((1, 3), d_model)
    calm = ours.eval()(ids)[0, 0, :d_model].view(heads, width)
    found = theirs.train()(ids.expand(SENTENCES, 3))[:, 0, :d_model]
    found = found.view(SENTENCES, heads, width)
    assert_drops_only_weights(found[..., :-1], calm[..., :-1], P_DROP)


@rung.stability("GPT", rules=("eps",))
def test_gpt_adds_eps_to_small_variances(student, reference, make):
    """Where the features of a token are nearly equal, all norms depend on the eps of 1e-5."""
    theirs, ours = both(student, reference, "GPT", size=2.0**-8)
    ids = texts(make)
    assert_agrees(theirs(ids), ours(ids), within=REORDERED, what="the logits of small numbers")


@rung.property("GPT", rules=("eval",))
def test_gpt_drops_nothing_in_evaluation(student, reference, make):
    """After .eval(), two calls agree, and nothing is dropped."""
    theirs, ours = both(student, reference, "GPT", dropout=P_DROP)
    ids = texts(make, tokens=1)  # a single token has no future to hide
    calm, calmer = theirs.eval().each([(ids,), (ids,)])
    assert_agrees(calm, calmer, what="a second call in evaluation mode")
    assert_agrees(calm, ours.eval()(ids), within=REORDERED, what="the logits in evaluation mode")


@rung.property("GPT", rules=("device",))
def test_gpt_moves_as_a_whole(student, make):
    """After a move to another device, the model takes ids from that device."""
    assert_moves(student.GPT(*MODEL, 0.0), texts(make))


@rung.property("GPT", rules=("dtype",))
def test_gpt_works_in_float64(student, reference, make):
    """A model in float64 gives float64, to full precision."""
    # A head of 5 features: a root in float32 costs digits, so the width of a head is 4 here.
    sizes = (7, 8, 2, 3, 18, 11)
    theirs, ours = both(student, reference, "GPT", sizes, loud=0.004)
    ids = texts(make, sizes)
    assert_agrees_to_float64(theirs.double()(ids), ours.double()(ids), within=ALL_DIGITS)


@rung.property("GPT", points=0.5, rules=("unchanged",))
def test_gpt_leaves_the_ids_alone(student, reference, make):
    """The ids that were passed in stay as they were."""
    theirs, _ours = both(student, reference, "GPT")
    assert_input_unchanged(theirs, texts(make))


@rung.gradient("GPT", points=2, rules=("gradients",))
def test_gpt_has_the_right_gradients(student, reference, make):
    """In training, gradients reach every parameter, and the token table from both of its uses."""
    theirs, ours = both(student, reference, "GPT", loud=0.015, size=2.0**4)
    ids = texts(make)
    assert_gradients_agree(
        theirs, ours, ids, make=make, of=lambda logits: reference.next_token_loss(logits, ids)
    )


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
    """A parameter, its gradient, and the running means of the gradient and of its square."""
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
            sizes, id=name, marks=rung.quotes("leading", "returns") if "dim" in name else ()
        )
        for name, sizes in PARAMETERS.items()
    ],
)
def test_adamw_step_has_the_shapes_of_the_statement(student, make, sizes):
    """Parameter, momentum and square come back, each in the shape of the parameter."""
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
    """The first step and later steps are right, with and without a decay."""
    given = *state_of(make, d_out=3, d_in=5), *settings
    assert_agrees(student.adamw_step(*given), reference.adamw_step(*given))


@rung.value("adamw_step", points=3)
def test_adamw_step_continues_from_its_own_results(student, reference, make):
    """Five steps in a row, each from the results of the last step, end at the right weights."""
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
    """Tensors in float64 give tensors in float64, to full precision."""
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


# --- generate ------------------------------------------------------------------------------------


@rung.shape("generate")
@pytest.mark.parametrize(("batch", "tokens", "new_tokens"), [(3, 5, 2), (1, 1, 1), (2, 1, 4)])
def test_generate_returns_as_many_ids_as_asked_for(student, make, batch, tokens, new_tokens):
    """The result is int64, and holds the prompt and the new ids."""
    model = table_model(make, vocab=13, context_length=9)
    student.generate(model, make.integers(0, 13, batch=batch, tokens=tokens), new_tokens, 9)


@rung.value("generate", points=3)
@pytest.mark.parametrize(("batch", "tokens", "new_tokens"), [(2, 3, 6), (4, 1, 7), (3, 7, 2)])
def test_generate_agrees_with_the_reference(student, reference, make, batch, tokens, new_tokens):
    """Each row continues with the likeliest id after all ids before it."""
    model = table_model(make, vocab=13, context_length=9)
    ids = make.integers(0, 13, batch=batch, tokens=tokens)
    ours = reference.generate(model, ids, new_tokens, 9)
    assert_agrees(student.generate(model, ids, new_tokens, 9), ours)


# tokens, new_tokens, context_length: the text is too long from the start, or grows out of it
BEYOND = [(10, 1, 4), (7, 3, 1), (5, 8, 4), (2, 9, 6)]


@rung.property("generate", points=2, rules=("context",))
@pytest.mark.parametrize(("tokens", "new_tokens", "context_length"), BEYOND)
def test_generate_moves_the_window_along(
    student, reference, make, tokens, new_tokens, context_length
):
    """Beyond the context length, the model sees the last ids only; the whole text is returned."""
    model = table_model(make, vocab=13, context_length=context_length)
    ids = make.integers(0, 13, batch=3, tokens=tokens)
    ours = reference.generate(model, ids, new_tokens, context_length)
    assert_agrees(student.generate(model, ids, new_tokens, context_length), ours)


@rung.property("generate", points=0.5, rules=("zero",))
def test_generate_writes_nothing_if_asked_for_nothing(student, make):
    """With no new ids to write, the prompt comes back."""
    model = table_model(make, vocab=13, context_length=6)
    ids = make.integers(0, 13, batch=3, tokens=5)
    assert_agrees(student.generate(model, ids, 0, 6), ids)


@rung.property("generate", points=0.5, rules=("unchanged",))
def test_generate_leaves_the_prompt_and_the_model_alone(student, make):
    """The ids and the weights of the model stay as they were."""
    model = table_model(make, vocab=13, context_length=5)
    assert_input_unchanged(student.generate, model, make.integers(0, 13, batch=2, tokens=5), 1, 5)


# --- sample_next ---------------------------------------------------------------------------------

# Every u and every top_p is 1e-3 or more away from where the answer changes, but for the two ends.

PROBABILITIES = [0.05, 0.21, 0.02, 0.30, 0.08, 0.17, 0.11, 0.06]
FINE = [round((2 * n + 1) / 58, 4) for n in range(29)]  # 29 draws across the line


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
    """Fail unless the student's id is ours for each u; all calls come before the first check."""
    theirs = [student.sample_next(logits, u, *settings) for u in draws]
    ours = [reference.sample_next(logits, u, *settings) for u in draws]
    for u, their_id, our_id in zip(draws, theirs, ours, strict=True):
        assert_that(their_id == our_id, f"for u = {u}, expected id {our_id}, got {their_id}")


@rung.shape("sample_next")
@pytest.mark.parametrize("logits", [eight(), five(), torch.tensor([3.0])], ids=len)
def test_sample_next_gives_one_int(student, logits):
    """The id is an int, or a tensor without dimensions."""
    student.sample_next(logits, 0.45, 0.9, None, 0.7)


@rung.value("sample_next", points=4)
@pytest.mark.parametrize("logits", [eight(), five(), nine(), torch.tensor([3.0])], ids=len)
def test_sample_next_hits_each_id_as_often_as_it_is_probable(student, reference, logits):
    """Without settings, each u gives the id whose interval contains u."""
    assert_chooses(student, reference, logits, FINE)


@rung.value("sample_next", points=2)
@pytest.mark.parametrize("temperature", [0.4, 0.65, 1.7, 5.0])
def test_sample_next_divides_by_the_temperature(student, reference, temperature):
    """Low temperatures make likely ids likelier, and high temperatures make all ids more alike."""
    assert_chooses(student, reference, nine(), FINE, temperature)


@rung.value("sample_next", points=2)
@pytest.mark.parametrize("top_k", [1, 2, 3, 5])
def test_sample_next_keeps_the_largest(student, reference, top_k):
    """Only the ids of the top_k largest logits are chosen, and they share the whole line."""
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
    """Temperature, top_k and top_p apply in this order, each to the result of the last."""
    assert_chooses(student, reference, eight(), FINE, temperature, top_k, top_p)


@rung.property("sample_next", points=2, rules=("greedy",))
@pytest.mark.parametrize("settings", [(), (3,), (None, 0.2), (2, 0.9)], ids=str)
def test_sample_next_is_greedy_at_temperature_zero(student, reference, settings):
    """A temperature of 0 gives the largest logit's id, whatever u, top_k and top_p are."""
    for logits in (eight(), nine(), torch.tensor([-900.0, 3.0, -1000.0])):
        assert_chooses(student, reference, logits, [0.0, 0.5, 0.99], 0.0, *settings)


@rung.property("sample_next", rules=("none",))
@pytest.mark.parametrize(
    "settings",
    [(1.0, None, None), (1.0, 8, None), (0.8, 9, 0.75), (1.0, 1000, None), (1.0, None, 1.0)],
    ids=str,
)
def test_sample_next_keeps_all_where_nothing_says_otherwise(student, reference, settings):
    """None for top_k or top_p keeps all ids, and so does a top_k of vocab or a top_p of 1."""
    assert_chooses(student, reference, eight(), FINE[::3], *settings)


# Draws between the ends are there as well: a few ids alone are soon the same by chance.
ENDS = [(1.0, 2, None), (1.0, None, 0.6), (0.7, 3, 0.9)]


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("settings", ENDS, ids=str)
def test_sample_next_begins_with_the_first_kept_id(student, reference, settings):
    """For u = 0, the result is the first of the kept ids."""
    assert_chooses(student, reference, eight(), [*FINE[::3], 0.0], *settings)


@rung.property("sample_next", rules=("ends",))
@pytest.mark.parametrize("settings", ENDS, ids=str)
def test_sample_next_ends_with_the_last_kept_id(student, reference, settings):
    """For u just below 1, the result is the last of the kept ids, despite rounding."""
    draws = [*FINE[::3], 1 - 2**-24, 1 - 2**-53]
    assert_chooses(student, reference, eight(), draws, *settings)


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
    """Large logits give the right ids, at low and at high temperatures."""
    logits = torch.tensor([998.6, -1000.0, 1000.0, 999.3, 0.0, 997.9])
    for shift in (0.0, -1998.0):
        for settings in ((), (1.4, 3), (1.0, None, 0.8)):
            assert_chooses(student, reference, logits + shift, FINE[::3], *settings)
    assert_chooses(student, reference, nine(), FINE[::3], 0.005, 4, 0.9)
    # So far apart that a softmax before the temperature leaves a single id.
    assert_chooses(student, reference, 250.0 * nine(), FINE[1::3], 200.0, 6, 0.8)


# --- CachedGPT -----------------------------------------------------------------------------------

FEEDS = [[1] * 9, [3, 1, 4], [1, 6, 1], [5, 2], [11, 7, 1]]  # lengths of the chunks


def fed(model, ids, lengths, cache=None):
    """The logits of `ids`, fed to a model in chunks of these lengths."""
    logits = []
    for chunk in ids.split(lengths, dim=1):
        of_chunk, cache = model(chunk) if cache is None else model(chunk, cache)
        logits.append(of_chunk)
    return torch.cat(logits, dim=1)


def cache_of(model, ids):
    """The cache that a model makes of `ids`, without a graph."""
    with torch.no_grad():
        return model(ids)[1]


@rung.shape("CachedGPT")
@pytest.mark.parametrize(("sizes", "batch", "tokens"), TEXTS)
def test_cached_gpt_has_the_shapes_of_the_contract(student, make, sizes, batch, tokens):
    """A call returns logits of the new tokens, and a cache for the next call."""
    model = student.CachedGPT(*sizes, 0.0)
    model(texts(make, sizes, batch, tokens))
    _logits, cache = model(texts(make, sizes, batch, 4))
    for more in (1, 3):
        _logits, cache = model(texts(make, sizes, batch, more), cache)


@rung.value("CachedGPT", points=3)
@pytest.mark.parametrize(("sizes", "batch", "tokens"), TEXTS)
def test_cached_gpt_agrees_with_the_reference_without_a_cache(
    student, reference, make, sizes, batch, tokens
):
    """For all tokens at once, without a cache, the logits are those of the reference."""
    theirs, ours = both(student, reference, "CachedGPT", sizes)
    ids = texts(make, sizes, batch, tokens)
    assert_agrees(theirs(ids)[0], ours(ids)[0], within=REORDERED, what="the logits")


@rung.value("CachedGPT", points=12)
@pytest.mark.parametrize("lengths", FEEDS, ids=lambda lengths: "+".join(map(str, lengths)))
def test_cached_gpt_gives_in_steps_what_it_gives_at_once(student, reference, make, lengths):
    """When tokens come one at a time or in chunks, the results equal those of all at once."""
    theirs, ours = both(student, reference, "CachedGPT")
    ids = texts(make, batch=2, tokens=sum(lengths))
    how = ", then ".join(map(str, lengths))
    found = fed(theirs, ids, lengths)
    assert_agrees(found, ours(ids)[0], within=REORDERED, what=f"the logits of {how} tokens")


@rung.value("CachedGPT", points=2)
def test_cached_gpt_adds_with_trained_weights(student, reference):
    """With weights that have learned to add, the digits are the same with and without a cache."""
    theirs, ours, lines = trained(student, reference, "CachedGPT")
    asked = lines[:200, :-1]
    with torch.no_grad():
        at_once = theirs(asked)[0][:, PROMPT - 1 :]
        in_steps = fed(theirs, asked, [PROMPT, 1, 1])[:, PROMPT - 1 :]
        expected = ours(asked)[0][:, PROMPT - 1 :]
    assert_same_digits(at_once, expected, " and no cache")
    assert_same_digits(in_steps, expected, " and a cache")


@rung.property("CachedGPT", points=2, rules=("state",))
def test_cached_gpt_goes_on_with_the_cache_it_is_given(student, reference, make):
    """For two texts in turn, and for two continuations of one text, only the cache counts."""
    theirs, ours = both(student, reference, "CachedGPT")
    one, other = texts(make, batch=2, tokens=7), texts(make, batch=2, tokens=8)
    cache_of_one, cache_of_other = cache_of(theirs, one[:, :4]), cache_of(theirs, other[:, :6])
    for what, text, seen, lengths, cache in (
        ("the first of two texts in turn", one, 4, [3], cache_of_one),
        ("the second of two texts in turn", other, 6, [1, 1], cache_of_other),
        ("a cache that is used a second time", one, 4, [1, 2], cache_of_one),
    ):
        found = fed(theirs, text[:, seen:], lengths, cache)
        assert_agrees(found, ours(text)[0][:, seen:], within=REORDERED, what=what)


@rung.property("CachedGPT", rules=("none",))
def test_cached_gpt_takes_none_for_no_cache(student, reference, make):
    """Passing None for the cache is the same as leaving it out."""
    theirs, ours = both(student, reference, "CachedGPT")
    ids = texts(make)
    assert_agrees(
        theirs(ids, None)[0], ours(ids)[0], within=REORDERED, what="the logits with cache=None"
    )


@rung.property("CachedGPT", points=2, rules=("context",))
def test_cached_gpt_refuses_more_tokens_than_its_context(student, reference, make):
    """More old and new tokens together than `context_length` raise an exception."""
    theirs, _ours = both(student, reference, "CachedGPT")
    assert_refuses(theirs, texts(make, tokens=20), why=too_long(20))
    for seen, more in ((19, 1), (16, 4), (8, 13)):
        cache = cache_of(theirs, texts(make, tokens=seen))
        assert_refuses(theirs, texts(make, tokens=more), cache, why=too_long(more, seen))


@rung.property("CachedGPT", rules=("tied",))
def test_cached_gpt_reads_and_writes_with_one_table(student, reference):
    """One table looks up tokens and makes the logits, and no bias is added."""
    theirs, _ours = both(student, reference, "CachedGPT")
    assert_has_one_table(theirs, "token_table", MODEL[0])


@rung.property("CachedGPT", rules=("bias",))
def test_cached_gpt_learns_what_the_statement_names(student, reference):
    """Queries, keys and values have no bias; all parameters of the statement are there."""
    assert_learns_what_is_named(*both(student, reference, "CachedGPT"))


@rung.stability("CachedGPT", rules=("eps",))
def test_cached_gpt_adds_eps_to_small_variances(student, reference, make):
    """Where the features of a token are nearly equal, all norms depend on the eps of 1e-5."""
    theirs, ours = both(student, reference, "CachedGPT", size=2.0**-8)
    ids = texts(make, tokens=7)
    found = fed(theirs, ids, [4, 3])
    assert_agrees(found, ours(ids)[0], within=REORDERED, what="the logits of small numbers")


@rung.property("CachedGPT", rules=("dropout",))
def test_cached_gpt_never_drops_anything(student, reference, make):
    """In training too, two calls agree, and nothing is dropped."""
    theirs, ours = both(student, reference, "CachedGPT", dropout=P_DROP)
    theirs.train()
    ids = texts(make, tokens=9)
    assert_agrees(
        fed(theirs, ids, [5, 4]), ours(ids)[0], within=REORDERED, what="the logits in training"
    )


@rung.property("CachedGPT", rules=("device",))
def test_cached_gpt_moves_as_a_whole(student, make):
    """After a move to another device, the model takes ids and a cache from that device."""
    model = student.CachedGPT(*MODEL, 0.0)
    assert_moves(model, texts(make))
    assert_moves(lambda ids: fed(model, ids, [4, 2]), texts(make))


@rung.property("CachedGPT", rules=("dtype",))
def test_cached_gpt_works_in_float64(student, reference, make):
    """In float64, the model gives float64 to full precision, with a cache too."""
    sizes = (7, 8, 2, 3, 18, 11)  # the root of 4 is exact
    theirs, ours = both(student, reference, "CachedGPT", sizes, loud=0.004)
    ids = texts(make, sizes, tokens=8)
    found = fed(theirs.double(), ids, [3, 1, 4])
    assert_agrees_to_float64(found, ours.double()(ids)[0], within=ALL_DIGITS)


@rung.property("CachedGPT", rules=("unchanged",))
def test_cached_gpt_leaves_what_it_is_given_alone(student, reference, make):
    """The ids and the cache that were passed in stay as they were."""
    theirs, _ours = both(student, reference, "CachedGPT")
    cache = cache_of(theirs, texts(make, tokens=4))
    assert_input_unchanged(theirs, texts(make, tokens=3), cache)


@rung.gradient("CachedGPT", rules=("gradients",))
def test_cached_gpt_has_the_right_gradients(student, reference, make):
    """In a step of training, gradients reach every parameter."""
    theirs, ours = both(student, reference, "CachedGPT", loud=0.015, size=2.0**4)
    ids = texts(make)
    assert_gradients_agree(
        theirs, ours, ids, make=make, of=lambda result: reference.next_token_loss(result[0], ids)
    )


@rung.efficiency("CachedGPT", points=4, rules=("cost",))
def test_cached_gpt_does_not_compute_the_past_again(student, reference, make):
    """A step after 64 tokens takes little more work than a step after 16."""
    # A token's way through a layer takes about four times the work of its meeting 64 others.
    model, _ours = both(student, reference, "CachedGPT", (29, 96, 4, 2, 250, 70))
    ids = texts(make, (29,), 1, 65)
    short, long = ((ids[:, seen : seen + 1], cache_of(model, ids[:, :seen])) for seen in (16, 64))
    assert_grows_at_most(model, short, long, work=2)
