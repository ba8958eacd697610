"""A question, and whether a reply is right."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from grader.wire import Place

Kind = Literal["shape", "leave out", "change", "line", "part"]
LETTERS = "abcdefgh"  # of choices
RUNNABLE = ("shape", "part")  # running the unchanged answer shows the reply


class Question(msgspec.Struct, frozen=True):
    """A question about an answer; the reply is a choice, or is typed."""

    kind: Kind
    exercise: str
    text: str
    lines: list[Place]  # the student's lines that it is about
    reply: str
    ran: str  # what was run, and seen
    follow_up: str  # what an examiner may ask next
    choices: list[str] = []  # empty: the reply is typed
    instead: list[Place] = []  # the changed lines

    @property
    def runnable(self) -> bool:
        """Whether running the unchanged answer shows the reply."""
        return self.kind in RUNNABLE

    def is_reply(self, typed: str) -> bool:
        """Whether a typed text is a reply: a letter or the text of a choice, or a shape."""
        return bool(self._chosen(typed) if self.choices else _sizes(typed))

    def is_right(self, typed: str) -> bool:
        """Whether a typed reply is right."""
        if self.choices:
            return self._chosen(typed) == self.reply
        return _sizes(typed) == _sizes(self.reply)

    def _chosen(self, typed: str) -> str:
        """The choice that was typed; "" if it is none."""
        typed = typed.strip()
        lettered = dict(zip(LETTERS, self.choices, strict=False))
        return typed if typed in self.choices else lettered.get(typed.lower().rstrip(")."), "")


def _sizes(typed: str) -> list[str]:
    return re.findall(r"\d+", typed)
