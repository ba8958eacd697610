"""Files and notebooks of people who did not know the loader give what they give in Python.

`corpus` holds them, each with the number that Python or IPython gives, and the exceptions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_answers import Ask, Sit

CORPUS = Path(__file__).parent / "corpus"


EXCEPTIONS = {
    item: group["why"]
    for group in json.loads((CORPUS / "exceptions.json").read_text("utf-8")).values()
    for item in group["items"]
}


def items(name: str) -> list[Any]:
    held = json.loads((CORPUS / f"{name}.json").read_text("utf-8"))
    return [pytest.param(one, id=one["name"], marks=differs(one["name"])) for one in held]


def differs(item: str) -> list[pytest.MarkDecorator]:
    why = EXCEPTIONS.get(item)
    return [pytest.mark.xfail(reason=why, strict=True)] if why else []


@pytest.mark.parametrize("item", items("files"))
def test_a_file_gives_what_it_gives_in_python(sit: Sit, center: Ask, item: dict[str, Any]) -> None:
    assert center(sit({"basics.py": item["text"]})) == pytest.approx(item["gives"])


@pytest.mark.parametrize("item", items("notebooks"))
def test_a_notebook_gives_what_it_gives_in_ipython(
    sit: Sit, center: Ask, item: dict[str, Any]
) -> None:
    assert center(sit({"basics.ipynb": item["cells"]})) == pytest.approx(item["gives"])
