"""Gradescope: a folder per submission, and ``submission_metadata.yml`` that says whose it is.

One submission may have several submitters: they are a group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from grader.intake.downloads import HandIn, System
from grader.intake.files import Item
from grader.records.faults import CallError
from grader.records.rows import Person

METADATA = "submission_metadata.yml"


def made(names: Collection[str]) -> bool:
    """Whether Gradescope made this."""
    return METADATA in names


def hand_ins(items: Sequence[Item], _units: Collection[str]) -> list[HandIn]:
    """One for each submission."""
    (note,) = (item for item in items if item.parts == (METADATA,))
    with note.opened() as file:
        metadata = _parsed(file.read())
    found = []
    for folder, about in metadata.items():
        about = about if isinstance(about, Mapping) else {}
        people = tuple(map(_person, _field(about, "submitters") or [{}]))
        files = {
            "/".join(item.parts[1:]): item for item in items if item.parts[0] == folder
        }  # fmt: skip
        who = people[0].name or people[0].email if len(people) == 1 else ""
        number = people[0].id or people[0].email if len(people) == 1 else str(folder)
        created = _field(about, "created_at")
        moment = created.timestamp() if isinstance(created, datetime) else 0.0
        earlier = len(_field(about, "history") or [])
        found.append(
            HandIn(
                who or str(folder), number or str(folder), files, people,
                moment=(moment,), attempts=1 + earlier,
            )
        )  # fmt: skip
    return found


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        import yaml
    except ModuleNotFoundError:
        raise CallError(
            f"{METADATA} needs a library: pip install 'attention-grader[instructor]'"
        ) from None
    try:
        content = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise CallError(
            f"{METADATA} is not as Gradescope writes it: download the submissions again"
        )
    return content


def _field(holder: Any, name: str) -> Any:
    """A value under a key of Ruby's (``:name``), or of anyone's."""
    if not isinstance(holder, Mapping):
        return None
    return holder.get(f":{name}", holder.get(name))


def _person(submitter: Any) -> Person:
    name, number, email = (str(_field(submitter, key) or "") for key in ("name", "sid", "email"))
    return Person(number, name, email)


GRADESCOPE = System("Gradescope", made, hand_ins)
