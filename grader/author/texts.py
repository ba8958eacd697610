"""The templates of this room, from which files of a course are made."""

from __future__ import annotations

from importlib import resources
from string import Template


def template(name: str, **fields: str) -> str:
    """The text of a template, whose path is below ``templates/``, with these fields filled in."""
    text = (resources.files("grader.author") / "templates" / name).read_text("utf-8")
    return Template(text).substitute(fields)
