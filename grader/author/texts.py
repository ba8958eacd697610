"""The templates of this room, from which files of a course are made."""

from __future__ import annotations

from importlib import resources
from string import Template


def template(path: str, /, **fields: str) -> str:
    """The text of a template, at this path below ``templates/``, with these fields filled in."""
    text = (resources.files("grader.author") / "templates" / path).read_text("utf-8")
    return Template(text).substitute(fields)
