"""How a check ended, as text and as HTML that stands on light and on dark pages.

Nothing in it comes from outside the page, and nothing in it runs.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from html import escape

from rich.console import Console

from grader.feedback import terminal
from grader.feedback.pictures.svg import picture_svg
from grader.records.grade import ExerciseResult, Picture, TestResult
from grader.records.wording import mistake_of

WIDTH = 88  # characters of a line of text
# They stand on light and on dark pages: text keeps the page's colour, and only signs have their
# own ground.
GROUNDS = {"✓": "#1a7f37", "✗": "#b3261e", "!": "#8e24aa"}
OTHER_GROUND = "#5f6368"
BOX = "margin: 0.3em 0 0.6em; padding: 0.2em 0.9em; border-left: 4px solid {ground}"
SIGN = "padding: 0 0.45em; border-radius: 0.4em; color: #fff; background: {ground}"
LIST = "list-style: none; margin: 0.3em 0; padding: 0"
CODE = (
    "white-space: pre-wrap; margin: 0.2em 0 0.6em 1.9em; padding: 0.4em 0.7em; "
    "color: inherit; background: rgba(128, 128, 128, 0.14)"
)


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
            file=page, width=WIDTH, color_system=None, force_terminal=True, force_jupyter=False,
            highlight=False,
        )  # fmt: skip
        for result in self.results:
            terminal.verdict(console, result, result.untouched, result.name in self.solved_before)
        lines = [line.rstrip() for line in page.getvalue().splitlines()]
        return "\n".join([*lines, *filter(None, [self._summary])])

    def _repr_html_(self) -> str:
        parts = [_exercise_html(result, self.solved_before) for result in self.results]
        summary = f"<p>{text(self._summary)}</p>" if self._summary else ""
        return f"<div>{''.join(parts)}{summary}</div>"

    @property
    def _summary(self) -> str:
        solved = sum(result.solved for result in self.results)
        counted = f"{solved} of {len(self.results)} pass the public checks"
        return "\n".join(filter(None, (counted if len(self.results) != 1 else "", self.note)))


def _exercise_html(result: ExerciseResult, solved_before: frozenset[str]) -> str:
    if result.solved:
        sign, verdict = "✓", "solved"
    elif result.untouched:
        sign, verdict = "·", "not written yet"
    else:
        sign, verdict = "✗", "not yet right"
    again = not result.solved and result.name in solved_before
    head = (
        f"<p>{_sign(sign, verdict)} <strong>{text(result.name)}</strong>: {verdict}"
        f"{' <em>(it was solved before)</em>' if again else ''}</p>"
    )
    ground = GROUNDS.get(sign, OTHER_GROUND)
    return f'<div style="{BOX.format(ground=ground)}">{head}{_details(result)}</div>'


def _details(result: ExerciseResult) -> str:
    """The mistake's name on top, then test by test."""
    if result.untouched:
        return f"<p>{text(result.tests[0].message or '')}</p>"
    tests = "".join(map(_test_html, result.tests))
    listed = f'<ul style="{LIST}">{tests}</ul>'
    if result.solved:
        count = f"{len(result.tests)} checks passed"
        return f"<details><summary>{count}</summary>{listed}</details>"
    named = next((test for test in result.tests if test.mistake), None)
    if named is None:
        return listed
    hint = f"<br><em>{text(named.hint)}</em>" if named.hint else ""
    return f"<p><strong>{text(mistake_of(named) or '')}</strong>{hint}</p>{listed}"


def _test_html(test: TestResult) -> str:
    sign = terminal.SIGNS.get(test.status, ("✗", ""))[0]
    plain = test.status in ("passed", "failed", "error")
    status = "" if plain else f" ({test.status.replace('_', ' ')})"
    shown = test.status not in ("passed", "skipped")
    message = f'<pre style="{CODE}">{text(test.message)}</pre>' if test.message and shown else ""
    picture = _picture_html(test.picture) if test.picture is not None else ""
    return f"<li>{_sign(sign, test.status)} {text(test.title)}{status}{message}{picture}</li>"


def _sign(sign: str, meaning: str) -> str:
    style = SIGN.format(ground=GROUNDS.get(sign, OTHER_GROUND))
    return f'<span role="img" aria-label="{text(meaning)}" style="{style}">{text(sign)}</span>'


def _picture_html(picture: Picture) -> str:
    return f'<div style="margin: 0.2em 0 0.8em 1.9em">{picture_svg(picture)}</div>'


def text(raw: str) -> str:
    """Plain text as HTML that says just that."""
    return escape(terminal.safe(raw))
