"""Results as Markdown, for systems that show it to students.

Text from a submission goes into indented blocks, where neither Markdown nor HTML applies.
"""

from __future__ import annotations

import re
import textwrap

from grader.feedback import terminal
from grader.feedback.pictures.text import drawn
from grader.feedback.verdict import Finding

WIDTH = 72  # characters of a picture
FOLLOWING = (
    "This follows from a mistake in `{}`. Fix that first: if this test then passes, nothing else "
    "is wrong here."
)


def explained(finding: Finding) -> str:
    """What a finding says, with its picture if that is the exercise's best."""
    mistake, picture = finding.mistake, finding.picture if finding.is_best_picture else None
    return paragraphs(
        f"**{plain(mistake.heading)}**" if mistake else "",
        f"*{plain(mistake.hint)}*" if mistake and mistake.hint else "",
        finding.wording.sentence,
        block(finding.message),
        block(drawn(picture, width=WIDTH) or "") if picture else "",
        FOLLOWING.format(mistake.follows) if mistake and mistake.follows else "",
    )


def paragraphs(*parts: str) -> str:
    """The parts that are not empty, with an empty line between them."""
    return "\n\n".join(part for part in parts if part)


def block(text: str) -> str:
    """Text as an indented block.

    Text in a fenced block could close the fence. Text in an indented block cannot end the block.
    """
    return textwrap.indent(terminal.safe(text).strip("\n").rstrip(), "    ", lambda _: True)


def plain(text: str) -> str:
    """A text by the course's author, with all Markdown escaped except code between backticks."""
    one_line = " ".join(text.split())
    return re.sub(r"(`[^`]*`)|([\\*_\[\]<>#|~&])", lambda m: m[1] or f"\\{m[2]}", one_line)
