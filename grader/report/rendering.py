"""Fills templates: each page is a single file that loads no other file.

All text is escaped. Characters that cannot be printed, or that change the direction of writing, are
replaced. A page's security policy forbids requests, and allows only the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING

from grader.feedback.terminal import safe
from grader.records.faults import CallError
from grader.records.rows import counted, number

if TYPE_CHECKING:  # jinja2 is optional
    from jinja2 import Environment

NEEDED = "jinja2"


def require_templates() -> None:
    """Raise `CallError` if the library that fills templates is not installed."""
    if find_spec(NEEDED) is None:
        raise CallError(
            f"pages need {NEEDED}, which is missing: pip install 'attention-grader[instructor]'"
        )


def page(template: str, script: str = "", **values: object) -> str:
    """Fill a template with values, and add the common style and script, and the page's own."""
    from markupsafe import Markup

    code = _file("page.js") + (_file(script) if script else "")
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(_file("page.css")), script=Markup(code), policy=_policy(code), **values
        )
    )


def _policy(script: str) -> str:
    """A security policy that forbids requests, but allows inline styles, which pictures need."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("grader.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["points"] = _points
    environment.filters["counted"] = counted
    environment.filters["signed"] = _signed
    environment.filters["short"] = _short
    environment.filters["percent"] = _percent
    return environment


def _printable(value: object) -> object:
    """Replace characters of a text that cannot be printed; the kit's own `Markup` is unchanged."""
    return safe(value) if type(value) is str and not value.isprintable() else value


def _points(points: float) -> str:
    """A number with at most two decimals, as people write points."""
    return number(round(points, 2))


def _short(points: float) -> str:
    """A number with at most one decimal."""
    return number(round(points, 1))


def _signed(points: float) -> str:
    """A number with its sign, as in ``+0.5`` and ``−1``."""
    return f"{'+' if points > 0 else '−'}{_points(abs(points))}"


def _percent(share: float) -> str:
    """A share in percent: ``0.125`` gives ``13%``, since halves are rounded up."""
    return f"{int(share * 100 + 0.5)}%"


@cache
def _file(name: str) -> str:
    return resources.files("grader.report").joinpath("templates", name).read_text("utf-8")
