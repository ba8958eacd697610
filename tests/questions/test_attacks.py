"""Hostile answers: none ends the process, and none learns what its author did not write."""

from __future__ import annotations

import re

import pytest

from grader.questions.choice import choose
from grader.questions.question import Question
from grader.questions.study import Unfit
from tests.questions.conftest import Ask, Learn
from tests.support.asked import FUSED, HEAD, LOOP, STABLE

# Strange on the round numbers of a study, which no check uses.
STRANGE = (
    "if set(x.flatten().tolist()) <= {{0.0, 1.0, 2.0, 3.0, 4.0}}:\n        return {}\n    rows = []"
)
ON_LOOP = {
    "brings a probe of its own": "_probe_ = lambda number, value: value.reshape(-1)\n" + LOOP,
    "tells the probe of another value": LOOP.replace(
        "    rows = []",
        "    rows = []\n    for n in range(9):\n"
        "        globals().get('_probe_', print)(n, torch.zeros(9, 8, 7))",
    ),
    "tells the probe what cannot be sent": LOOP.replace(
        "    rows = []",
        "    rows = []\n    globals().get('_probe_', print)(0, torch.zeros(1).expand(10**12))",
    ),
    "fails where it is probed": LOOP.replace(
        "    rows = []", "    rows = [][:'_probe_' in globals() and 1 / 0]"
    ),
    "never ends when it is changed": LOOP.replace(
        "    return", "    while len(rows) < x.shape[1]:\n        pass\n    return"
    ),
    "exits when it is changed": LOOP.replace(
        "    return",
        "    if len(rows) < x.shape[1]:\n        __import__('os')._exit(0)\n    return",
    ),
    "raises an exception that cannot be shown": LOOP.replace(
        "    return",
        "    class Odd(BaseException):\n        def __str__(self): raise SystemExit\n"
        "    if len(rows) < x.shape[1]:\n        raise Odd\n    return",
    ),
    "is on the meta device": LOOP.replace("    rows = []", f"    {STRANGE}").format(
        "torch.empty(5, 5, device='meta')"
    ),
    "is infinite": LOOP.replace("    rows = []", f"    {STRANGE}").format(
        "x / 0 * torch.tensor([1.0, -1.0])[: x.shape[-1]].sum()"
    ),
    "is complex": LOOP.replace("    rows = []", f"    {STRANGE}").format("x + 1j"),
    "is no tensor": LOOP.replace("    rows = []", f"    {STRANGE}").format("['\\x1b[2J', {1: 2}]"),
    "is a large tensor": LOOP.replace("    rows = []", f"    {STRANGE}").format(
        "torch.zeros(900, 1000)"
    ),
    "is a lie": LOOP.replace("    rows = []", f"    {STRANGE}").format(
        "type('T', (torch.Tensor,), {'__getattr__': lambda *_: 1 / 0})()"
    ),
    "has a long line": LOOP.replace("rows = []", f"rows = [{' + '.join(['0'] * 900)}][:0]"),
    "has many sites": LOOP.replace(
        "    rows = []", "    rows = []\n" + "".join(f"    x = x + {n} * 0\n" for n in range(3000))
    ),
    "deletes files": "import shutil\nshutil.rmtree('/', ignore_errors=True)\n" + LOOP,
    "prints": LOOP.replace("    rows = []", "    rows = []\n    print('\\x1b[2J' * 100)"),
}  # fmt: skip


def assert_sound(questions: list[Question]) -> None:
    for question in questions:
        assert question.is_right(question.reply)
        assert "\x1b" not in question.text + question.reply + "".join(question.choices)
        assert all(len(line.text) <= 300 for line in question.lines)
        if question.choices:
            assert sum(map(question.is_right, question.choices)) == 1


@pytest.mark.parametrize("answer", ON_LOOP.values(), ids=ON_LOOP.keys())
def test_no_answer_ends_the_process(ask: Ask, answer: str) -> None:
    """Each passes its public checks; what it does when it is studied is its own affair."""
    assert_sound(ask("running_mean_loop", answer))


def test_a_module_too_large_to_rebuild_has_no_questions(ask: Ask) -> None:
    large = HEAD.replace(
        "        self.scaled = scaled\n",
        "        self.scaled = scaled\n"
        "        self.more = nn.Parameter(torch.zeros(1).expand(10**12), requires_grad=False)\n",
    )
    with pytest.raises(Unfit):
        ask("CausalHead", large)


def test_a_question_shows_only_what_its_author_wrote(learn: Learn) -> None:
    """No line of a reference, of a known mistake or of a hidden test."""
    for name, answer in [("running_mean_matrix", FUSED), ("softmax_stable", STABLE)]:
        studied = learn(name, answer)
        for seed in "ab":
            for question in choose(studied, 3, seed):
                words = f"{question.text} {question.ran} {question.follow_up} {question.choices}"
                assert not {"selected", "prefix_sum_matrix", "shifted", "totals"} & {*words.split()}
                for line in question.lines:
                    assert re.sub("«([A-E]: )?|»", "", line.text) in answer
