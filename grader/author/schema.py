"""JSON schemas of the TOML files that authors write: with these, editors complete and explain keys.

An editor with support for TOML, such as one with Taplo, reads the schema that the file's first line
names: ``#:schema ./course.schema.json``. All descriptions are those of the structs.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from grader.author.findings import Excuses
from grader.course.file import CourseFile, Overlay

Schema = Literal["course", "audit"]
# The files of each schema: a ``course.toml`` may be a course, or a private course on top of one.
KINDS: dict[Schema, tuple[type, ...]] = {"course": (CourseFile, Overlay), "audit": (Excuses,)}


def schema(name: Schema) -> str:
    """The text of the JSON schema of ``course.toml`` or of ``audit.toml``."""
    kinds, parts = msgspec.json.schema_components(KINDS[name], ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{name}.toml",
        "anyOf": list(kinds),
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
