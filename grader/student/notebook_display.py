"""How a check ended, as text and as HTML that stands on light and on dark pages.

Nothing in it comes from outside the page, and nothing in it runs.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.console import Console

from grader.feedback import terminal
from grader.feedback.pictures.svg import picture_svg
from grader.feedback.verdict import Finding, Verdict, verdict_of
from grader.records.faults import CallError
from grader.records.grade import ExerciseResult, Picture
from grader.records.rows import counted

WIDTH = 88  # characters of a line of text
# They stand on light and on dark pages: text keeps the page's colour, and only signs have their
# own ground.
GROUNDS = {"green": "#1a7f37", "red": "#b3261e", "magenta": "#8e24aa"}
OTHER_GROUND = "#5f6368"
BOX = "margin: 0.3em 0 0.6em; padding: 0.2em 0.9em; border-left: 4px solid {ground}"
SIGN = "padding: 0 0.45em; border-radius: 0.4em; color: #fff; background: {ground}"
LIST = "list-style: none; margin: 0.3em 0; padding: 0"
CODE = (
    "white-space: pre-wrap; margin: 0.2em 0 0.6em 1.9em; padding: 0.4em 0.7em; "
    "color: inherit; background: rgba(128, 128, 128, 0.14)"
)


class _Brief(BaseException):
    """Notebooks ask an exception how it is to be shown."""

    def _render_traceback_(self) -> list[str]:
        return [f"grader: {self}"]


class NotChecked(_Brief, CallError):
    """The call was not right; the text says what to do."""


class CheckStopped(_Brief, KeyboardInterrupt):
    """The check was interrupted; the text says where the student's code was."""


@dataclass(frozen=True, repr=False)
class Told:
    """Lines of text, as they are."""

    lines: str

    def __repr__(self) -> str:
        return terminal.safe(self.lines)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; color: inherit">{text(self.lines)}</pre>'


@dataclass(frozen=True, repr=False)
class Checked:
    """How the checks of some exercises ended; notebooks show it with pictures."""

    results: tuple[ExerciseResult, ...]
    solved_before: frozenset[str] = frozenset()
    note: str = ""

    @property
    def solved(self) -> bool:
        """Whether every check passed."""
        return all(result.solved for result in self.results)

    def __repr__(self) -> str:
        page = io.StringIO()
        console = Console(
            file=page,
            width=WIDTH,
            color_system=None,
            force_terminal=True,
            force_jupyter=False,
            highlight=False,
        )
        for verdict in self._verdicts:
            terminal.show_verdict(console, verdict, detail=verdict.state == "untouched")
        lines = [line.rstrip() for line in page.getvalue().splitlines()]
        return "\n".join([*lines, *filter(None, [self._summary])])

    def _repr_html_(self) -> str:
        parts = map(_exercise_html, self._verdicts)
        summary = f"<p>{text(self._summary)}</p>" if self._summary else ""
        return f"<div>{''.join(parts)}{summary}</div>"

    @property
    def _verdicts(self) -> Sequence[Verdict]:
        return [verdict_of(result, result.name in self.solved_before) for result in self.results]

    @property
    def _summary(self) -> str:
        solved = sum(result.solved for result in self.results)
        counted = f"{solved} of {len(self.results)} pass the public checks"
        return "\n".join(filter(None, (counted if len(self.results) != 1 else "", self.note)))


def _exercise_html(verdict: Verdict) -> str:
    head = (
        f"<p>{_sign(verdict.sign, verdict.color, verdict.phrase)} "
        f"<strong>{text(verdict.exercise)}</strong>: {verdict.phrase}"
        f"{' <em>(it was solved before)</em>' if verdict.lost else ''}</p>"
    )
    box = BOX.format(ground=GROUNDS.get(verdict.color, OTHER_GROUND))
    return f'<div style="{box}">{head}{_details(verdict)}</div>'


def _details(verdict: Verdict) -> str:
    """The mistake's name on top, then test by test."""
    if verdict.state == "untouched":
        return f"<p>{text(verdict.findings[0].message)}</p>"
    tests = "".join(map(_finding_html, verdict.findings))
    listed = f'<ul style="{LIST}">{tests}</ul>'
    if verdict.solved:
        count = f"{counted(len(verdict.findings), 'check')} passed"
        left = verdict.left_unchecked
        note = f'<p style="white-space: pre-line">{text(left)}</p>' if left else ""
        return f"{note}<details><summary>{count}</summary>{listed}</details>"
    mistake = verdict.mistake
    if mistake is None:
        return listed
    hint = f"<br><em>{text(mistake.hint)}</em>" if mistake.hint else ""
    return f"<p><strong>{text(mistake.heading)}</strong>{hint}</p>{listed}"


def _finding_html(finding: Finding) -> str:
    plain = finding.status in ("passed", "failed", "error")
    status = "" if plain else f" ({finding.status.replace('_', ' ')})"
    shown = finding.message and not finding.quiet
    message = f'<pre style="{CODE}">{text(finding.message)}</pre>' if shown else ""
    picture = _picture_html(finding.picture) if finding.picture is not None else ""
    sign = _sign(finding.wording.sign, finding.wording.color, finding.status)
    return f"<li>{sign} {text(finding.title)}{status}{message}{picture}</li>"


def _sign(sign: str, color: str, meaning: str) -> str:
    style = SIGN.format(ground=GROUNDS.get(color, OTHER_GROUND))
    return f'<span role="img" aria-label="{text(meaning)}" style="{style}">{sign}</span>'


def _picture_html(picture: Picture) -> str:
    return f'<div style="margin: 0.2em 0 0.8em 1.9em">{picture_svg(picture)}</div>'


def text(raw: str) -> str:
    """Plain text as HTML that says just that."""
    return escape(terminal.safe(raw))
