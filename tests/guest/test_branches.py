"""A definition below an ``if`` counts if Python runs it: plain Python decides, not the text."""
# ruff: noqa: E501 (each text on one line)

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import torch

from grader.grading.desk import Desk
from tests.support.tiny_answers import Ask, Sit, complaint

# Texts with the marks DEF n: a definition of `center` that gives the number n.
TEXTS = {
    "flag": "FLAG = True\nif FLAG:\n    DEF 1\nelse:\n    DEF 2",
    "flag that is off": "FLAG = not 1\nif FLAG:\n    DEF 1\nelse:\n    DEF 2",
    "if False after": "DEF 1\nif False:\n    DEF 2",
    "if False before": "if False:\n    DEF 2\nDEF 1",
    "if 0 else": "if 0:\n    DEF 1\nelse:\n    DEF 2",
    "elif": "N = 2\nif N == 1:\n    DEF 1\nelif N == 2:\n    DEF 2\nelse:\n    DEF 3",
    "elif, the last": "N = 3\nif N == 1:\n    DEF 1\nelif N == 2:\n    DEF 2\nelse:\n    DEF 3",
    "elif, none": "N = 9\nDEF 5\nif N == 1:\n    DEF 1\nelif N == 2:\n    DEF 2",
    "nested": "A, B = 1, 0\nif A:\n    if B:\n        DEF 1\n    else:\n        DEF 2\nelse:\n    DEF 3",
    "nested in a dead branch": "A = 0\nDEF 7\nif A:\n    if undefined:\n        DEF 1",
    "type checking": "from typing import TYPE_CHECKING\nDEF 1\nif TYPE_CHECKING:\n    DEF 2",
    "typing.TYPE_CHECKING": "import typing\nif not typing.TYPE_CHECKING:\n    DEF 1\nelse:\n    DEF 2",
    "cuda": "import torch\nDEF 1\nif torch.cuda.is_available() and False:\n    DEF 2",
    "while False": "DEF 1\nwhile False:\n    DEF 2",
    "while, else": "while 0:\n    DEF 1\nelse:\n    DEF 2",
    "while True, once": "DEF 1\nwhile True:\n    DEF 2\n    break",
    "for over nothing": "DEF 1\nfor _ in []:\n    DEF 2",
    "for": "DEF 1\nfor _ in 'ab':\n    DEF 2",
    "try": "DEF 1\ntry:\n    import not_there\n    DEF 2\nexcept ImportError:\n    pass",
    "except": "try:\n    import not_there\n    DEF 1\nexcept ImportError:\n    DEF 2",
    "match": "DEF 1\nmatch 3:\n    case 4:\n        DEF 2",
    "main": "DEF 1\nif __name__ == '__main__':\n    DEF 2",
    "not main": "if __name__ != '__main__':\n    DEF 1\nelse:\n    DEF 2",
    "main or": "DEF 1\nif __name__ == '__main__' or False:\n    DEF 2",
    "a helper in a branch": "F = False\ndef n():\n    return 1\nif F:\n    def n():\n        return 2\nDEF n()",
    "a helper in both": "F = 1\nif F:\n    def n(): return 1\nelse:\n    def n(): return 2\nDEF n()",
    "an assignment in a dead branch": "n = 1\nif False:\n    n = 2\nDEF n",
    "an assignment below a flag": "F = []\nn = 1\nif F:\n    n = 2\nDEF n",
    "an assignment in a loop": "n = 1\nfor n in []:\n    pass\nDEF n",
    "a change in a dead branch": "n = [1]\nif False:\n    def unused(): pass\n    n[0] = 2\nDEF n[0]",
    "walrus": "if (n := 3) > 2:\n    DEF n\nelse:\n    DEF 9",
    "a condition on a helper": "def on(): return False\nif on():\n    DEF 1\nelse:\n    DEF 2",
    "wrapped": "DEF 1\nif True:\n    inner = center\n    def center(x):\n        return inner(x) + 10",
    "an import in a branch": "F = False\nif F:\n    from math import pi as n\n    def g(): pass\nelse:\n    n = 4\nDEF n",
    "a lambda": "F = 0\nif F:\n    def g(): pass\n    center = lambda x: x * 0 + 1\nelse:\n    center = lambda x: x * 0 + 2",
    "a flag for the main module": "MAIN = __name__ == '__main__'\nif MAIN:\n    DEF 1\nelse:\n    DEF 2",
    "chosen by the main module": "def f(x): return x * 0 + 1\ndef g(x): return x * 0 + 2\ncenter = f if __name__ == '__main__' else g",
    "the name again, later": "F = 0\nDEF 1\nif F:\n    DEF 2\nDEF 3",
    "with": "import contextlib\nDEF 1\nwith contextlib.suppress(ValueError):\n    DEF 2",
}  # fmt: skip


def source(text: str) -> str:
    """The text with each ``DEF n`` written out."""
    lines = []
    for line in text.split("\n"):
        before, mark, value = line.partition("DEF ")
        written = f"def center(x):\n    return x * 0 + {value}\n" if mark else line
        lines.append(textwrap.indent(written, before) if mark else line)
    return "\n".join(lines)


def in_python(text: str, name: str) -> float:
    """The number that Python gives when it runs the text in a module of this name."""
    namespace: dict[str, Any] = {"__name__": name}
    exec(compile(text, "<text>", "exec"), namespace)
    return float(namespace["center"](torch.ones(2))[0])


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_file_the_definition_that_python_leaves_counts(
    sit: Sit, center: Ask, text: str
) -> None:
    assert center(sit({"basics.py": source(text)})) == in_python(source(text), "basics")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_in_a_notebook_the_definition_that_python_leaves_counts(
    sit: Sit, center: Ask, text: str
) -> None:
    assert center(sit({"basics.ipynb": [source(text)]})) == in_python(source(text), "__main__")


def test_a_helper_that_another_file_imports_is_the_one_that_python_leaves(
    sit: Sit, center: Ask
) -> None:
    helpers = "F = False\ndef n():\n    return 1\nif F:\n    def n():\n        return 2\n"
    answer = "from helpers import n\ndef center(x):\n    return x * 0 + n()\n"
    assert center(sit({"helpers.py": helpers, "basics.py": answer})) == 1


NEVER = {
    "if False:\n    DEF 1": "the condition `False` (basics.py line 1) is False",
    "F = 0\nif F:\n    DEF 1": "the condition `F` (basics.py line 2) is False",
    "if __name__ == '__main__':\n    DEF 1": "is False, because a grader imports the file",
    "for _ in []:\n    DEF 1": "basics.py binds no such name",
}


@pytest.mark.parametrize("text", NEVER)
def test_a_definition_that_python_never_runs_is_explained(sit: Sit, desk: Desk, text: str) -> None:
    said = complaint(sit({"basics.py": source(text)}), desk).text
    assert "Python does not define center here: " in said
    assert NEVER[text] in said


def test_a_condition_that_raises_is_the_error_of_what_it_decides_and_of_nothing_else(
    sit: Sit, center: Ask, desk: Desk
) -> None:
    condition = "if settings['fast']:\n    DEF 1\nelse:\n    DEF 2\n"
    raised = complaint(sit({"basics.py": source(condition)}), desk)
    assert (raised.kind, raised.place and raised.place.line) == ("NameError", 1)
    other = source(condition).replace("center", "other") + source("DEF 3")
    assert center(sit({"basics.py": other})) == 3


def test_a_condition_runs_when_it_is_needed_and_only_once(sit: Sit, center: Ask) -> None:
    text = (
        "asked = []\ndef ask():\n    asked.append(1)\n    return True\nif ask():\n"
        "    def center(x):\n        return x * 0 + len(asked)\n"
    )
    seat = sit({"basics.py": text})
    assert [center(seat), center(seat)] == [1, 1]


@pytest.mark.parametrize(
    "block",
    ["with torch.no_grad():", "for _ in 'a':", "try:"],
)
def test_a_block_that_fails_after_a_definition_keeps_it(sit: Sit, center: Ask, block: str) -> None:
    end = "finally:\n    pass\n" if block == "try:" else ""
    text = f"import torch\n{block}\n    DEF 3\n    import not_there\n{end}"
    assert center(sit({"hw.ipynb": [source(text)]})) == 3


@pytest.mark.parametrize(
    "long", ["x = " + "+".join(["'a'"] * 1500), "if 0: pass\n" + "elif 0: pass\n" * 1500]
)
def test_a_very_long_statement_elsewhere_costs_no_answer(sit: Sit, center: Ask, long: str) -> None:
    assert center(sit({"data.py": long, "basics.py": source("DEF 3")})) == 3
