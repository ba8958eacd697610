"""Descriptions of the keys in the kit's files, for their JSON schemas."""

from __future__ import annotations

import msgspec


def about(text: str) -> msgspec.Meta:
    """The description of a key, which `grader schema` prints."""
    return msgspec.Meta(description=text)
