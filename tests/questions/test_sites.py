"""The sites of an answer: its values, and small changes of its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from grader import wire
from grader.course.tensors import Make
from grader.questions.texts import spliced, without_comments
from grader.wire import SourceText
from tests.support.tiny_answers import Sit


def sites_of(sit: Sit, text: str | Sequence[str], name: str = "center") -> list[wire.Site]:
    """The sites of an answer that the guest lists."""
    seat = sit({"ada.py" if isinstance(text, str) else "ada.ipynb": text})
    seat.session.begin_case(0)
    (located,) = seat.session.run(wire.Locate(name))
    assert isinstance(located, wire.Located)
    return located.sites


def changes(sit: Sit, line: str) -> set[str]:
    """What the last line of an answer can become."""
    source = (SourceText("ada.py", (f"import torch\ndef center(x, y=1):\n    {line}\n",)),)
    found = set()
    for site in sites_of(sit, source[0].cells[0]):
        if site.kind != "value":
            changed = spliced(source, site, site.new)
            assert changed is not None
            found.add(changed[0].cells[0].split("\n")[-2].strip())
    return found


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return (x - y) / 2", {"return x - y", "return (x) / 2", "return (x + y) / 2"}),
        ("return x.sum( -1 , keepdim = True )", {"return x.sum( -1)", "return x"}),
        ("x = x.mean(0)", {"pass"}),
        ("x.mul_(2)", {"pass"}),
        ("return x.sum(dim=-1, keepdim=True).max(keepdim=True)", {
            "return x.sum(dim=-1).max(keepdim=True)", "return x.sum(dim=-1, keepdim=True).max()",
        }),
        ("return torch.where(x > 0, (x), -x)", {
            "return torch.where(x >= 0, (x), -x)", "return torch.where(x < 0, (x), -x)",
            "return torch.where(x > 0, (-x), x)",
        }),
        ("return 'é' and x.T @ x", {"return 'é' and x @ x", "return 'é' and x @ x.T"}),
        ("return helper(x) + len(x)", {"return x + len(x)", "return helper(x) - len(x)"}),
    ],
)  # fmt: skip
def test_changes_are_those_a_person_would_write(sit: Sit, line: str, expected: set[str]) -> None:
    assert expected <= changes(sit, line)


@pytest.mark.parametrize(
    "line",
    [
        "assert x.shape[0] > 1 - 5",
        "print(x + 1)",
        "return x  # 1 + 1",
        "return f'{x + 1}'",
        "a, b = helper(x)",
        "rows.append(x)",
    ],
)
def test_what_asks_for_no_thought_is_left_alone(sit: Sit, line: str) -> None:
    assert not {one for one in changes(sit, line) if "print" in line or one != line}


@pytest.mark.parametrize(
    ("line", "dull"),
    [
        ("return 1 - x", {"return 0 - x", "return 2 - x", "return 1"}),
        ("return x / 2", {"return x * 2"}),
        ("return x / x.sum()", {"return x / x"}),
        ("return x - x.mean()", {"return x - x"}),
        ("return x.exp().to(x.device)", {"return x.exp()"}),
        ("return x.reshape(1)", {"return x.reshape(0)", "return x.reshape(2)"}),
        ("return torch.ones(x)", {"return torch.zeros(x)", "return torch.eye(x)"}),
    ],
)
def test_a_change_asks_for_more_than_arithmetic_and_for_nothing_that_the_machine_decides(
    sit: Sit, line: str, dull: set[str]
) -> None:
    assert changes(sit, line).isdisjoint(dull)


def test_a_refusal_of_bad_input_is_left_alone(sit: Sit) -> None:
    """No input of a question is bad, so nothing would change."""
    text = (
        "def center(x):\n    if x.dim() % 2 != 0:\n        raise ValueError(1 + 1)\n    return x\n"
    )
    assert not [site for site in sites_of(sit, text) if site.kind != "value"]


def test_an_operator_in_a_comment_is_not_changed(sit: Sit) -> None:
    text = "def center(x):\n    return (x  # a - b\n        - x.mean())\n"
    changed = [site for site in sites_of(sit, text) if site.kind == "change"]
    assert not [site for site in changed if "#" in site.text]


def test_a_thousand_sites_are_cut(sit: Sit) -> None:
    many = "".join(f"    x = x + {n}\n" for n in range(3000))
    assert 0 < len(sites_of(sit, f"def center(x):\n{many}    return x\n")) <= 400


def test_columns_count_characters(sit: Sit) -> None:
    r"""After letters of several bytes, tabs, and in lines that end in \r\n."""
    text = "def center(x):\r\n\tgrößer = '→ü'; né = x.mean()\r\n\treturn x - né\r\n"
    source = (SourceText("ada.py", (text,)),)
    sites = sites_of(sit, text)
    assert {site.text for site in sites} >= {"x.mean()", "x - né"}
    assert all(spliced(source, site, site.text) is not None for site in sites)


def test_the_text_of_a_grading_has_no_probe(sit: Sit) -> None:
    seat = sit({"ada.py": "def center(x):\n    return x * 0 + ('_probe_' in globals())\n"})
    student: Any = seat.begin(Make("seed", "center", "test"))
    assert torch.equal(student.center(torch.ones(2)), torch.zeros(2))


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("x = 1  # one", "x = 1"),
        ("x = '# no'  # yes", "x = '# no'"),
        ("x = f(  # a\n    y,  # b", "x = f(\n    y,"),
        ("    )  # end", "    )"),
    ],
)
def test_lines_are_shown_without_comments(code: str, shown: str) -> None:
    assert without_comments(code) == shown
