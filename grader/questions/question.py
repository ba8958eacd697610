"""A question, and whether a reply is right."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from grader.wire import Place

Kind = Literal["shape", "leave out", "change", "line", "part"]
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

    def is_right(self, typed: str) -> bool:
        """Whether a typed reply is right: a letter or the text of a choice, or a shape."""
        typed = typed.strip()
        if self.choices:
            number = "abcdefgh".find(typed.lower().rstrip(").")) if typed else -1
            return typed == self.reply or (
                0 <= number < len(self.choices) and self.choices[number] == self.reply
            )
        return re.findall(r"\d+", typed) == re.findall(r"\d+", self.reply)
