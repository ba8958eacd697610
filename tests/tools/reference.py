"""Writes the reference of `grader.testing` for authors, from signatures and docstrings.

`tests.tools.readme` puts the result into ``docs/authors/testing.md``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator
from types import ModuleType
from typing import Any

import torch

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


def _entry(name: str, called: Callable[..., Any]) -> Iterator[str]:
    yield f"**`{name}{_signature(called)}`**"
    yield ""
    yield inspect.getdoc(called) or ""
    yield ""


def _signature(called: Callable[..., Any]) -> str:
    """The parameters without types and without ``self``; defaults only if they read well."""
    bare = []
    for name, parameter in inspect.signature(called).parameters.items():
        plain = parameter.replace(annotation=inspect.Parameter.empty)
        shown = isinstance(parameter.default, str | int | float | tuple | None | torch.dtype)
        if not shown and parameter.default is not inspect.Parameter.empty:
            plain = plain.replace(default=...)
        bare += [plain] if name != "self" else []
    return str(inspect.Signature(bare)).replace("Ellipsis", "…")
