"""What a person decides about a student: an entry of the gradebook's history.

A later decision of the same kind about the same part replaces an earlier one. Both stay in the
history, which only `grader forget` shortens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

# Parts of a grade beside exercises, units and questions.
TOTAL, LATE = "total", "late"

Kind = Literal["points", "comment", "extension", "excused", "assigned"]


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision about a student; which fields it uses depends on its kind.

    ``points``: points for a `part`, with a reason in `text`. ``comment``: a `text` about a `part`,
    or about all if it is "". The student reads both.

    ``extension``: the time `until` which the student may submit. ``excused``: the grade does not
    count. ``assigned``: the submission called `part` is the student's. Their reasons in `text` are
    private.
    """

    student: str
    kind: Kind
    part: str = ""
    points: float = 0.0  # to add
    sets: bool = False  # whether `points` replace the computed points instead
    until: str = ""  # ISO 8601, in UTC
    text: str = ""
    removed: bool = False  # whether this takes the earlier decision back
    when: str = ""  # ISO 8601, in UTC; "" if unknown
    by: str = ""  # the account that gave the command; "" if unknown

    @property
    def same(self) -> Decision:
        """The decision without its time and author, for comparison."""
        return msgspec.structs.replace(self, when="", by="")


Standing = Mapping[tuple[Kind, str], Decision]  # by kind and part


def standing(history: Iterable[Decision]) -> dict[str, dict[tuple[Kind, str], Decision]]:
    """The decisions that count now, by student; `history` begins with the oldest."""
    found: dict[str, dict[tuple[Kind, str], Decision]] = {}
    for one in history:
        own = found.setdefault(one.student, {})
        own.pop((one.kind, one.part), None)  # the order is that of the last change
        if not one.removed:
            own[one.kind, one.part] = one
    return found
