"""The parts of a playing, on small models: what is left out, what is seen, when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from grader.playing import Exam, Game, Recipe, Scene
from grader.playing.attention import Head, heads_of, most_on
from grader.playing.learning import Choices, Learning, Mark, Sample
from grader.playing.removal import positions_of, without
from grader.playing.words import line_of, of_head
from grader.records.faults import CallError

WIDTH, HEADS, CONTEXT = 8, 2, 6
Attend = Callable[[Tensor, Tensor], Tensor]


class Model(nn.Module):
    """One layer of attention, whose weights come from a function of queries and keys."""

    def __init__(self, attend: Attend) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.tokens = nn.Embedding(4, WIDTH)
        self.places = nn.Parameter(torch.randn(CONTEXT, WIDTH))
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.attend = attend

    def forward(self, ids: Tensor) -> Tensor:
        batch, tokens = ids.shape
        x = self.tokens(ids) + self.places[:tokens]
        parts = self.qkv(x).view(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        queries, keys, values = parts
        if self.attend is WHOLE:
            mixed = nn.functional.scaled_dot_product_attention(
                queries, keys, values, is_causal=True
            )
        else:
            mixed = self.attend(queries, keys) @ values
        x = x + mixed.transpose(1, 2).reshape(batch, tokens, WIDTH)
        result: Tensor = x @ self.tokens.weight.T
        return result


def scores(queries: Tensor, keys: Tensor) -> Tensor:
    result: Tensor = queries @ keys.mT / queries.shape[-1] ** 0.5
    return result


def future(keys: Tensor) -> Tensor:
    return torch.ones(keys.shape[-2], keys.shape[-2], dtype=torch.bool).triu(diagonal=1)


def filled(queries: Tensor, keys: Tensor) -> Tensor:
    return scores(queries, keys).masked_fill(future(keys), -torch.inf).softmax(dim=-1)


def filled_in_place(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.softmax(scores(queries, keys).masked_fill_(future(keys), -1e9), dim=-1)


def chosen(queries: Tensor, keys: Tensor) -> Tensor:
    low = torch.tensor(-torch.inf)
    return torch.softmax(torch.where(future(keys), low, scores(queries, keys)), dim=-1)


def lower_triangle(queries: Tensor, keys: Tensor) -> Tensor:
    some = scores(queries, keys)
    seen = torch.tril(torch.ones(some.shape[-2:]))
    return nn.functional.softmax(some.masked_fill(seen == 0, float("-inf")), -1)


def added(queries: Tensor, keys: Tensor) -> Tensor:
    some = scores(queries, keys)
    some = some + torch.full(some.shape[-2:], -torch.inf).triu(1)
    powers = (some - some.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def subtracted(queries: Tensor, keys: Tensor) -> Tensor:
    some = scores(queries, keys)
    some -= 1e10 * future(keys).float()
    weights: Tensor = nn.Softmax(dim=-1)(some)
    return weights


def assigned(queries: Tensor, keys: Tensor) -> Tensor:
    some = scores(queries, keys)
    some[..., future(keys)] = -1e20
    return some.softmax(-1)


def renormalised(queries: Tensor, keys: Tensor) -> Tensor:
    weights = torch.tril(torch.softmax(scores(queries, keys), dim=-1))
    return weights / weights.sum(dim=-1, keepdim=True)


def WHOLE(queries: Tensor, keys: Tensor) -> Tensor:
    raise AssertionError("the model calls torch's own attention in its place")


def unmasked(queries: Tensor, keys: Tensor) -> Tensor:
    return scores(queries, keys).softmax(dim=-1)


WAYS = [
    *(filled, filled_in_place, chosen, lower_triangle, added, subtracted, assigned),
    *(renormalised, WHOLE),
]


def adam_like(p: Tensor, g: Tensor, m: Tensor, v: Tensor, step: int, lr: float, *_: Any) -> Any:
    return p - lr * g, m, v


def count_up(model: nn.Module, ids: Tensor, length: int, context: int) -> Tensor:
    """The right answers of the exam below, whatever the model says."""
    return torch.cat([ids, (ids[:, -1:] + torch.arange(1, length + 1)) % 4], dim=1)


def game(attend: Attend = filled) -> Game:
    """Letters that go on in order: abcd, bcda, …"""
    whole = ["abcdab", "bcdabc", "cdabcd", "dabcda"]
    return Game(
        title="letters",
        alphabet="abcd",
        context=CONTEXT,
        width=WIDTH,
        heads=HEADS,
        model=lambda _: Model(attend),
        loss=lambda logits, ids: nn.functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), ids[:, 1:]
        ),
        update=adam_like,
        generate=count_up,
        recipe=Recipe(steps=200, lr=0.01, warm_up=5, weight_decay=0.0),
        batch=lambda chance: chance.choices(whole, k=5),
        prompts=["ab", "bc"],
        length=2,
        read=str.strip,
        invitation="two letters",
        scene=Scene("abcda", [(4, 1), (4, 9)], "the second letter"),
        exam=Exam(
            ["ab", "bc", "cd", "da"],
            lambda asked: {"a": "bc", "b": "cd", "c": "da"}.get(asked[-1], "ab"),
        ),
    )


# --- left out ------------------------------------------------------------------------------------


def sees_the_last(model: nn.Module, ids: Tensor) -> bool:
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 4
    return not torch.equal(model(ids)[:, 0], model(changed)[:, 0])


@pytest.mark.parametrize("attend", WAYS)
def test_a_mask_is_taken_away_however_it_was_written(attend: Attend) -> None:
    ids = torch.tensor([[0, 1, 2, 3, 1]])
    model = Model(attend)
    altered = without(game(attend), model, ["mask"], HEADS)
    assert not sees_the_last(model, ids)
    assert sees_the_last(altered, ids)
    torch.testing.assert_close(altered(ids), Model(unmasked)(ids))


@pytest.mark.parametrize("attend", WAYS)
def test_a_scale_is_undone_however_the_softmax_was_written(attend: Attend) -> None:
    def unscaled(queries: Tensor, keys: Tensor) -> Tensor:
        return filled(queries * 2.0, keys)  # 2 is the root of head_dim

    ids = torch.tensor([[0, 1, 2, 3, 1]])
    altered = without(game(attend), Model(attend), ["scale"], HEADS)
    torch.testing.assert_close(altered(ids), Model(unscaled)(ids))


def test_gradients_flow_to_what_the_mask_would_have_hidden() -> None:
    model = Model(filled)
    altered = without(game(), model, ["mask"], HEADS)
    altered(torch.tensor([[0, 1, 2, 3]]))[:, 0].sum().backward()
    assert model.places.grad is not None
    assert model.places.grad[3].abs().sum() > 0


def test_nothing_is_claimed_where_nothing_was_found() -> None:
    with pytest.raises(CallError, match="no mask was found"):
        without(game(), Model(unmasked), ["mask"], HEADS)
    plain = nn.Embedding(4, 4)
    with pytest.raises(CallError, match="no scale was found"):
        without(game(), plain, ["scale"], HEADS)
    with pytest.raises(CallError, match=r"no positions were found .* \(6, 8\)"):
        positions_of(game(), plain)


def test_positions_stay_at_zero_while_all_else_learns() -> None:
    learning = Learning(game(), Choices(steps=3, without=("positions",)))
    model = learning.model
    assert isinstance(model, Model)
    before = model.tokens.weight.clone()
    for _ in learning.steps():
        assert not model.places.any()
    assert not torch.equal(model.tokens.weight, before)


# --- seen ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("attend", WAYS)
def test_the_weights_of_every_head_are_read_from_the_students_own_code(attend: Attend) -> None:
    found = heads_of(game(attend), Model(attend), HEADS, "abcda")
    expected = heads_of(game(), Model(filled), HEADS, "abcda")
    assert [head.name for head in found] == ["layer 1, head 1", "layer 1, head 2"]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(torch.tensor(ours.weights), torch.tensor(theirs.weights))


def test_the_head_that_is_shown_has_most_weight_in_focus() -> None:
    some = game()
    heads = heads_of(some, Model(filled), HEADS, "abcda")
    best = most_on(heads, some.scene)
    assert best is not None
    assert best.weights[4][1] == max(head.weights[4][1] for head in heads)
    assert most_on([], some.scene) is None


def head_with(weight: float, *, tokens: int = 9, causal: bool = True) -> Head:
    """A head with this weight on two tokens in row 6, and the rest spread over the others."""
    seen = 7 if causal else tokens
    row = (
        [weight / 2, weight / 2]
        + [(1 - weight) / (seen - 2)] * (seen - 2)
        + [0.0] * (tokens - seen)
    )
    first = [1.0] + [0.0] * (tokens - 1) if causal else [1 / tokens] * tokens
    return Head("layer 1, head 1", tuple(tuple(row if n == 6 else first) for n in range(tokens)))


TWO = [(6, 0), (6, 1)]


def test_chance_is_even_weight_on_all_that_a_row_may_see() -> None:
    assert head_with(0.5).chance(TWO) == pytest.approx(2 / 7)
    assert head_with(0.5, causal=False).chance(TWO) == pytest.approx(2 / 9)


@pytest.mark.parametrize(("weight", "telling"), [(0.22, False), (0.45, False), (0.8, True)])
def test_a_meaning_is_read_only_from_a_weight_far_above_chance(
    weight: float, telling: bool
) -> None:
    scene = Scene("abcdabcda", TWO, "the first two letters")
    learning = Learning(replace(game(), scene=scene), Choices())
    said = of_head(head_with(weight, causal=False), learning)
    assert ("has the most weight" in said) is telling
    assert "Even weights would give 22%" in said or "even weights would give 22%" in said


def test_of_a_model_that_fails_its_exam_no_meaning_is_read() -> None:
    scene = Scene("abcdabcda", TWO, "the first two letters")
    learning = Learning(replace(game(), scene=scene), Choices())
    learning.marks.append(Mark(1, 4, 0.5, 0.3))
    said = of_head(head_with(0.9), learning)
    assert "Only 30% of the model's answers are right" in said
    assert "the first two letters" not in said


def test_a_model_that_shows_no_weights_has_no_heads() -> None:
    assert heads_of(game(), nn.Embedding(4, 4), HEADS, "abcda") == []


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in a playing: more threads only wait for one another here."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# --- when it ends --------------------------------------------------------------------------------


def test_training_ends_once_enough_of_the_exam_is_right_twice() -> None:
    learning = Learning(game(), Choices())
    for _ in learning.steps():
        pass
    assert (learning.step, learning.learnt) == (20, True)
    assert [(mark.step, mark.exact) for mark in learning.marks] == [(1, 1.0), (20, 1.0)]


def test_a_model_that_knows_little_takes_all_steps() -> None:
    def stay(model: nn.Module, ids: Tensor, length: int, context: int) -> Tensor:
        return torch.cat([ids, ids[:, -1:].expand(-1, length)], dim=1)

    learning = Learning(replace(game(), generate=stay), Choices(steps=45))
    for _ in learning.steps():
        pass
    learning.finish()
    assert (learning.step, learning.learnt) == (45, False)
    assert learning.marks[-1].characters == 0.0


def test_a_model_writes_from_no_place_that_it_has_not_learnt_to_write_from() -> None:
    contexts = set()

    def watched(model: nn.Module, ids: Tensor, length: int, context: int) -> Tensor:
        contexts.add(context)
        return count_up(model, ids, length, context)

    learning = Learning(replace(game(), generate=watched), Choices(steps=1))
    learning.finish()
    assert contexts == {CONTEXT - 1}


def test_a_rate_rises_and_falls_to_nothing() -> None:
    recipe = Recipe(steps=600, lr=1.0, warm_up=50, weight_decay=0.0)
    rates = [recipe.rate(step, 600) for step in (1, 25, 50, 325, 600)]
    assert rates == pytest.approx([0.02, 0.5, 1.0, 0.5018, 0.0018], abs=1e-3)


# --- said ----------------------------------------------------------------------------------------


def test_what_is_wrong_in_an_answer_has_a_mark_beside_its_colour() -> None:
    assert line_of(Sample("57+68=", "521", "521"), backwards=True) == "57+68=125  ✓"
    assert line_of(Sample("57+68=", "531", "521"), backwards=True) == "57+68=1[3]5  ✗ 125"
    assert line_of(Sample("it is\n", "so", ""), backwards=False) == "it is / so"
