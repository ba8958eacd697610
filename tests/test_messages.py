"""The messages of the commands are in one file, so that a change of words is seen in review."""

from __future__ import annotations

from tests.tools.messages import MESSAGES, messages


def test_the_file_of_messages_is_up_to_date() -> None:
    same = MESSAGES.read_text("utf-8") == messages()
    assert same, "the words of the commands changed: run `python -m tests.tools.messages`"
