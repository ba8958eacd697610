"""JSON schemas of the TOML files that authors write, and of a gradebook's ``results.jsonl``.

An editor with support for TOML, such as one with Taplo, reads the schema that the file's first line
names, ``#:schema ./course.schema.json``, and completes and explains keys. All descriptions are
those of the structs.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from grader.author.findings import Excuses
from grader.course.file import CourseFile, Overlay
from grader.records.grade import Grade

Schema = Literal["course", "audit", "results"]
FILES: dict[Schema, str] = {
    "course": "course.toml",
    "audit": "audit.toml",
    "results": "a line of results.jsonl",
}
# The content of each: a ``course.toml`` may be a course, or a private course on top of one.
KINDS: dict[Schema, tuple[type, ...]] = {
    "course": (CourseFile, Overlay),
    "audit": (Excuses,),
    "results": (Grade,),
}


def schema(name: Schema) -> str:
    """The text of the JSON schema of a file."""
    kinds, parts = msgspec.json.schema_components(KINDS[name], ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": FILES[name],
        "anyOf": list(kinds),
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
