"""The questions that are chosen about an answer: of its own lines, clear, and of several kinds."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
import torch

from grader import wire
from grader.course.course import load_course
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.questions.changes import about_changes
from grader.questions.choice import choose
from grader.questions.outcomes import (
    BREAKS,
    NOTHING,
    NUMBERS,
    OVERFLOWS,
    RAISES,
    Outcome,
    Values,
    excludes,
    outcome_of,
    positions_in_words,
)
from grader.questions.question import Question
from grader.questions.shapes import about_shapes
from grader.questions.study import Unfit
from grader.questions.traces import about_parts
from grader.sandbox.jails import Warm
from grader.wire import payload
from tests.conftest import sharing
from tests.questions.conftest import EXERCISES, Ask, Learn
from tests.support.asked import FUSED, GENERATE, HEAD, LOOP, MERGE, STABLE
from tests.support.places import REAL

ANSWERS = {
    "running_mean_loop": LOOP,
    "running_mean_matrix": FUSED,
    "softmax_stable": STABLE,
    "CausalHead": HEAD,
}


def lines_of(questions: list[Question]) -> set[str]:
    """The student's lines in the questions, without the marks around a value."""
    texts = {line.text.strip() for question in questions for line in question.lines}
    return {re.sub("«([A-E]: )?|»", "", text) for text in texts}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_question_is_clear_and_the_set_is_mixed(learn: Learn, name: str) -> None:
    """Choices differ, one is right, and the limits on replies and kinds hold, for any seed."""
    studied = learn(name, ANSWERS[name])
    own = [line.strip() for line in ANSWERS[name].split("\n")]
    for seed in "abc":
        questions = choose(studied, 3, seed)
        assert len(questions) == 3
        assert len({question.kind for question in questions}) > 1
        assert sum(question.runnable for question in questions) <= 1
        replies = [question.reply for question in questions]
        assert replies.count(NOTHING) <= 1
        assert replies.count(RAISES) <= 1
        for question in questions:
            assert question.is_right(question.reply)
            if question.choices:
                assert len(question.choices) >= 3
                assert len({*question.choices}) == len(question.choices)
                assert sum(map(question.is_right, question.choices)) == 1
        assert all(any(one.startswith(line) for one in own) for line in lines_of(questions))


def test_a_seed_decides_the_questions(learn: Learn) -> None:
    studied = learn("CausalHead", HEAD)
    assert choose(studied, 3, "a") == choose(learn("CausalHead", HEAD), 3, "a")
    assert len({tuple(q.text for q in choose(studied, 3, seed)) for seed in "abcd"}) > 1


def test_helpers_belong_to_an_answer_and_other_exercises_do_not(learn: Learn) -> None:
    about = {site.place.text for site in learn("softmax_stable", STABLE).sites}
    assert any("scores.amax" in text for text in about)
    assert not any("foreign" in text for text in about)


def test_comments_are_not_shown(learn: Learn) -> None:
    """A comment often tells the reply."""
    studied = learn("running_mean_loop", LOOP)
    for seed in "abcd":
        questions = choose(studied, 3, seed)
        texts = [*lines_of(questions), *(line.text for one in questions for line in one.instead)]
        assert not any("#" in text for text in texts)


def test_a_value_in_a_loop_is_asked_the_first_time(learn: Learn) -> None:
    """`part` grows: (2, 1, 3), (2, 2, 3), …; its means have the shape (2, 3) each time."""
    studied = learn("running_mean_loop", LOOP)
    shapes = [
        question
        for seed in "abcdefghijkl"
        for question in choose(studied, 2, seed)
        if question.kind == "shape"
    ]
    assert shapes
    for question in shapes:
        assert "the first time that it runs" in question.text
        part = "«x[:, : t + 1]»" in question.lines[0].text
        assert question.reply == ("(2, 1, 3)" if part else "(2, 3)")


def test_parameters_have_the_names_of_the_answer(ask: Ask) -> None:
    texts = [one.text for one in ask("running_mean_matrix", FUSED.replace("time", "steps"))]
    assert any("`steps`" in text for text in texts)
    assert not any("`time`" in text for text in texts)


def test_parameters_may_have_another_order(ask: Ask) -> None:
    questions = ask(
        "CausalHead", HEAD.replace("d_in, head_size, scaled", "head_size, d_in, scaled")
    )
    assert len(questions) == 3


def test_a_small_result_is_asked_in_full(ask: Ask) -> None:
    """Where a mask is wrong, "other numbers" says little."""
    questions = ask("running_mean_matrix", FUSED)
    results = [one for one in questions if "what is the result then" in one.text]
    assert results
    assert all(choice.startswith("[[") for one in results for choice in one.choices)


def test_weights_that_are_drawn_differently_are_not_asked_about(learn: Learn) -> None:
    """The study gives modules weights of its own, so the initial weights show in no result."""
    drawn = HEAD.replace(
        "        self.scaled = scaled\n",
        "        self.scaled = scaled\n        nn.init.ones_(self.key.weight)\n",
    )
    studied = learn("CausalHead", drawn)
    about = [site for site in studied.sites if "nn.init" in site.text and site.new == "pass"]
    assert about
    assert not any(studied.outcome(site) for site in about)


def test_code_that_does_not_run_is_no_nothing(learn: Learn) -> None:
    """With other arguments, it could run."""
    idle = FUSED.replace("    return", "    if time > 900:\n        time = time + 1\n    return")
    studied = learn("running_mean_matrix", idle)
    (site,) = [one for one in studied.sites if one.new == "pass"]
    assert studied.outcome(site) is not None
    assert not studied.is_sure(site)


def test_what_matters_only_to_a_rare_input_of_the_checks_is_no_nothing(learn: Learn) -> None:
    """Only two empty states need the shift: without it, they give NaN."""
    studied = learn("merge_states", MERGE)
    (site,) = [one for one in studied.sites if "masked_fill" in one.text and one.new == "new"]
    assert not studied.is_sure(site)


def test_a_small_result_shows_what_the_change_does(learn: Learn) -> None:
    """An input on which the change has no effect is none to ask by."""
    studied = learn("softmax_stable", STABLE)
    tried = {site: studied.outcome(site) for site in studied.sites if site.kind != "value"}
    known = {site: outcome for site, outcome in tried.items() if outcome is not None}
    usual = [studied.result_of(one) for one in studied.readable]
    for site, question in about_changes(studied, known, random.Random(0)):
        if question.reply in usual:
            assert known[site].kind == "edge"


def test_what_an_infinite_number_breaks_may_be_broken_by_very_large_ones(learn: Learn) -> None:
    """So no question offers both."""
    studied = learn("softmax_stable", STABLE)
    tried = {site: studied.outcome(site) for site in studied.sites if site.kind != "value"}
    known = {site: outcome for site, outcome in tried.items() if outcome is not None}
    told = [outcome.told for outcome in known.values()]
    assert BREAKS in told
    assert OVERFLOWS in told
    for _, question in about_changes(studied, known, random.Random(0)):
        assert not {BREAKS, OVERFLOWS} <= {*question.choices}


def test_a_result_of_another_shape_has_changed_too(learn: Learn) -> None:
    """So a question on its shape does not offer that it changes."""
    stacked = "torch.stack([first[1] * one, second[1] * other]).sum(0)"
    studied = learn("merge_states", MERGE.replace("first[1] * one + second[1] * other", stacked))
    (site,) = [one for one in studied.sites if one.text == stacked and one.kind == "leave out"]
    outcome = studied.outcome(site)
    assert outcome is not None
    assert outcome.kind == "shape"
    changes = "Of the 3 results, only the second changes."
    assert not excludes(outcome, Outcome("numbers", changes))
    assert excludes(outcome, Outcome("numbers", NUMBERS))


def test_of_many_results_no_sentence_tells_which_of_them_change(learn: Learn) -> None:
    """Nor does one say that the result has other numbers, as if there were one result."""
    studied = learn("merge_states", MERGE)
    one = studied.inputs[:1]

    def told(results: int) -> str | None:
        def returned(number: float) -> Values:
            numbers = [torch.zeros(2)] * (results - 1) + [torch.full((2,), number)]
            return [wire.Returned(payload.pack(tuple(numbers)))]

        outcome = outcome_of(studied.contract, one, (returned(0.0), {}), (returned(1.0), {}))
        return outcome.told if outcome is not None else None

    assert told(4) == "Of the 4 results, only the fourth changes."
    assert told(5) is None


def test_a_change_without_effect_on_one_model_is_no_nothing(learn: Learn) -> None:
    """For another model it may have one, and a question tells nothing of the model."""
    studied = learn("generate", GENERATE)
    (site,) = [one for one in studied.sites if one.text == f"{one.new}.detach()"]
    assert studied.outcome(site) is None


def test_a_question_on_a_value_names_its_file(learn: Learn) -> None:
    """Helpers may be in another file, and lines have the same numbers there."""
    start, helper = STABLE.index("def _shifted"), STABLE.index("def softmax_stable")
    answer, helpers = (
        "from helpers import _shifted\n" + STABLE[:start] + STABLE[helper:],
        "import torch\n\n" + STABLE[start:helper],
    )
    studied = learn("softmax_stable", answer, helpers=helpers)
    for make in (about_shapes, about_parts):
        for question in make(studied, random.Random(0)):
            for line in question.lines:
                assert f" {line.file}" in question.text


def test_no_choice_is_wrong_each_time(learn: Learn) -> None:
    """Each is what a change of the answer does, or what changes of other answers often do."""
    for name in ("softmax_stable", "CausalHead"):
        studied = learn(name, ANSWERS[name])
        changes = [site for site in studied.sites if site.kind != "value"]
        tried = {site: outcome for site in changes if (outcome := studied.outcome(site))}
        often = {NOTHING, RAISES, *positions_in_words(studied.contract, studied.values[0])}
        offered, right = Counter[str](), Counter[str]()
        for seed in range(5):
            for _, question in about_changes(studied, tried, random.Random(seed)):
                offered.update(question.choices)
                right[question.reply] += 1
        assert len(right) > 3
        assert not [one for one in offered.keys() - often if offered[one] > 20 > 20 * right[one]]


def test_an_answer_that_draws_has_no_questions_whose_reply_changes(ask: Ask) -> None:
    noisy = FUSED.replace("return torch", "return torch.rand(time, time) * 1e-9 + torch")
    first, again = (ask("running_mean_matrix", noisy) for _ in range(2))
    assert first == again
    clock = noisy.replace("torch.rand(time, time)", "(clock.perf_counter_ns() % 1000)")
    assert len(ask("running_mean_matrix", f"import time as clock\n{clock}")) == 3


def test_a_wrong_answer_has_no_questions(ask: Ask) -> None:
    with pytest.raises(Unfit, match="does not pass its public checks"):
        ask("running_mean_matrix", FUSED.replace("dim=-1", "dim=-2"))


CELLS = [
    "%matplotlib inline\nimport torch\n!ls",
    "# a größer tensor\r\nclass CausalHead:\r\n    pass",
    "%time x = 3\n"
    + FUSED.replace("torch.ones(time, time).tril() /", "größe(time).tril() /", 1)
    + "\ndef größe(time):\n\tbreit = '→ ü'; one = torch.ones(\n\t\ttime,  # rows\n\t\ttime)\n"
    + "\treturn one\n",
]


def test_lines_of_a_notebook_are_those_of_the_cell(learn: Learn) -> None:
    cell = CELLS[2].split("\n")
    studied = learn("running_mean_matrix", CELLS)
    for seed in "abcd":
        for question in choose(studied, 3, seed):
            for line in question.lines:
                assert line.cell == 3
                assert cell[line.line - 1].startswith(re.sub("«([A-E]: )?|»", "", line.text))
                assert line.text.strip()


def test_hidden_tests_add_nothing(warm: Warm, learn: Learn, public_desk: Desk) -> None:
    """With hidden tests and the hidden seed at hand, the questions are the same."""
    course = load_course(REAL)
    files = {**course.tests_of()}
    order = Order(course, "another seed", files, EXERCISES, isolation="weak")
    with sharing(warm), order.desk() as desk:
        secret = choose(learn("softmax_stable", STABLE, desk), 3, "a")
    assert secret == choose(learn("softmax_stable", STABLE), 3, "a")
