"""The reference of `grader.testing` and `grader.mistakes`, from signatures and docstrings.

`tests.tools.pages` puts the parts into ``docs/reference/testing.md`` and ``mistakes.md``.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any

import torch

import grader.mistakes
import grader.testing
from grader.course import tolerances
from grader.course.tensors import Make
from grader.proxies import remote
from grader.testing import costs, dropout, gradients, models, properties, values, weights

GROUPS: tuple[ModuleType, ...] = (values, properties, gradients, weights, models, dropout, costs)


def assertions() -> str:
    """Each function of `grader.testing`, below the first sentence of its module."""
    lines: list[str] = []
    for module in GROUPS:
        names = [name for name in vars(module) if _is_own(module, name)]
        heading = (inspect.getdoc(module) or "").partition("\n")[0].rstrip(".")
        lines += [f"### {heading}", ""]
        for name in names:
            lines += _entry(name, getattr(module, name))
    return "\n".join(lines).rstrip() + "\n"


def examples_of_mistakes() -> str:
    """How a library of mistakes is written, with an example of each declaration."""
    return _markdown(grader.mistakes).partition("\n\n")[2]


def declarations() -> str:
    """The functions that declare known answers."""
    lines: list[str] = []
    for name in ("mistake", "accepted", "common_mistakes", "common"):
        lines += _entry(name, getattr(grader.mistakes, name), "###")
    return "\n".join(lines)


def draws() -> str:
    """The methods of `make`."""
    return _methods("make", Make)


def proxies() -> str:
    """The methods of a student's function and of a student's module."""
    own = {"remember", "remember_refusal", "remember_habit", "remember_make", "forget_make"}
    inner = own | {"try_all", "call_first", "habits", "is_lazy"}  # for `adopt` and the diagnosis
    return "\n".join(
        [
            "### A function: `student.f`, and what every proxy has",
            "",
            _methods("student.f", remote._RemoteCallable, leave=inner),
            "### A module: `layer = student.Layer(…)`",
            "",
            _methods("layer", remote.RemoteModule, leave=inner),
        ]
    )


def rungs() -> str:
    """The decorators of a test, in the ladder's order."""
    rows = ["| decorator | the subject of the test |", "|---|---|"]
    for name, kept in vars(grader.testing.rung).items():
        if isinstance(kept, staticmethod):
            called = getattr(grader.testing.rung, name)
            said = " ".join((inspect.getdoc(called) or "").split("\n\n")[0].split())
            rows.append(f"| `@rung.{name}{_signature(called)}` | {said} |")
    return "\n".join(rows) + "\n"


def widths() -> str:
    """The tolerances that a test may name, with the comment above each."""
    rows = ["| `within=` | rtol, atol | for |", "|---|---|---|"]
    source = inspect.getsource(tolerances)
    public = {name for name in grader.testing.__all__ if name.isupper()}
    found = re.finditer(r"((?:^#.*\n)+)((?:^[A-Z_0-9]+ = Tolerance\(.*\n)+)", source, re.M)
    for comment, block in (match.groups() for match in found):
        said = " ".join(comment.replace("#", " ").split()).removeprefix("For ")
        for name in re.findall(r"^([A-Z_0-9]+) =", block, re.M):
            if name in public:
                width = getattr(tolerances, name)
                rows.append(f"| `{name}` | {width.rtol:g}, {width.atol:g} | {said} |")
    return "\n".join(rows) + "\n"


def _is_own(module: ModuleType, name: str) -> bool:
    one = getattr(module, name)
    return name in grader.testing.__all__ and getattr(one, "__module__", "") == module.__name__


def _methods(owner: str, kind: type, leave: Collection[str] = ()) -> str:
    lines: list[str] = []
    for name, one in vars(kind).items():
        if name == "__call__":
            lines += _entry(owner, one)
        elif not name.startswith("_") and name not in leave and inspect.isfunction(one):
            lines += _entry(f"{owner}.{name}", one)
    return "\n".join(lines)


def _entry(name: str, called: Callable[..., Any], heading: str = "####") -> Iterator[str]:
    yield from (f"{heading} `{name}`", "")
    yield from ("```python", f"{name}{_signature(called)}", "```", "")
    yield from (_markdown(called), "")


def _markdown(described: object) -> str:
    """A docstring as Markdown, with its examples in fences."""
    text = f"{inspect.getdoc(described) or ''}\n"
    text = re.sub(r"^>>> (?:.+\n)+", r"```pycon\n\g<0>```\n", text, flags=re.MULTILINE)
    return re.sub(
        r"::\n\n((?:    .*\n|\n)+)",
        lambda found: f":\n\n```python\n{textwrap.dedent(found[1]).strip()}\n```\n\n",
        text,
    ).rstrip()


def _signature(called: Callable[..., Any]) -> str:
    """The parameters without types and without ``self``; defaults only if they read well."""
    bare = []
    for name, parameter in inspect.signature(called).parameters.items():
        plain = parameter.replace(annotation=inspect.Parameter.empty)
        shown = isinstance(parameter.default, str | int | float | tuple | None | torch.dtype)
        if not shown and parameter.default is not inspect.Parameter.empty:
            plain = plain.replace(default=...)
        bare += [plain] if name != "self" else []
    return str(inspect.Signature(bare)).replace("Ellipsis", "...")
