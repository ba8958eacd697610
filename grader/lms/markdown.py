"""Results as Markdown, for systems that show it to students.

Text from a submission goes into indented blocks, where neither Markdown nor HTML applies.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from grader.feedback import terminal
from grader.feedback.pictures.text import drawn
from grader.feedback.verdict import Finding, Verdict
from grader.records.grade import scaled
from grader.records.rows import Line, Row

WIDTH = 72  # characters of a picture
FOLLOWING = (
    "This follows from a mistake in `{}`. Fix that first: if this test then passes, nothing else "
    "is wrong here."
)


def explained(finding: Finding) -> str:
    """What a finding says, with its picture if that is the exercise's best."""
    mistake, picture = finding.mistake, finding.picture if finding.is_best_picture else None
    return in_paragraphs(
        f"**{in_markdown(mistake.heading)}**" if mistake else "",
        f"*{in_markdown(mistake.hint)}*" if mistake and mistake.hint else "",
        finding.wording.sentence,
        block(finding.message),
        block(drawn(picture, width=WIDTH) or "") if picture else "",
        FOLLOWING.format(mistake.follows) if mistake and mistake.follows else "",
    )


def failures(verdict: Verdict) -> str:
    """What is wrong with an exercise; of several checks with the same text, only the first."""
    titles: dict[str, str] = {}
    for finding in verdict.wrong:
        titles.setdefault(explained(finding), f"{finding.title}{' (hidden test)' * finding.hidden}")
    checks = (f"### {in_markdown(title)}\n\n{text}" for text, title in titles.items())
    return in_paragraphs(f"## `{verdict.exercise}`", *checks)


def decided(row: Row, scale: float = 1.0) -> Iterator[str]:
    """What people decided about a grade: points and comments.

    The points that a late submission loses are among them. `scale` is the number of points in the
    other system for one point of the grade.
    """
    for line in row.lines:
        if line.kind != "computed":
            yield _said(line, scaled(line.points, scale), row)
    for text in row.limits:
        yield f"In points of the course: {in_markdown(text)}"
    for one in row.comments:
        yield in_paragraphs(f"A comment{f' on {one.part}' if one.part else ''}:", block(one.text))


def _said(line: Line, points: float, row: Row) -> str:
    if line.kind == "late":
        words = row.lateness.words if row.lateness else "late"
        return f"{in_markdown(words).capitalize()}: {points:+g}"
    correction = row.correction(line.part)
    doing = "Marked" if line.kind == "marked" else "Corrected"
    reason = block(correction.reason) if correction is not None else ""
    return in_paragraphs(f"{doing} by your instructor: {line.part} {points:+g}", reason)


def in_paragraphs(*parts: str) -> str:
    """The parts that are not empty, with an empty line between them."""
    return "\n\n".join(part for part in parts if part)


def block(text: str) -> str:
    """Text as an indented block.

    Text in a fenced block could close the fence. Text in an indented block cannot end the block.
    """
    return textwrap.indent(terminal.safe(text).strip("\n").rstrip(), "    ", lambda _: True)


def in_markdown(text: str) -> str:
    """A text by the course's author, with all Markdown escaped except code between backticks."""
    one_line = " ".join(text.split())
    return re.sub(r"(`[^`]*`)|([\\*_\[\]<>#|~&])", lambda m: m[1] or f"\\{m[2]}", one_line)
