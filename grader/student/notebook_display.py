"""The result of a check, as text and as HTML for light and dark pages.

The HTML loads no files and contains no scripts.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape

from rich.console import Console
from rich.text import Text

from grader.feedback import terminal
from grader.feedback.pictures.svg import picture_svg
from grader.feedback.pictures.text import drawn
from grader.feedback.verdict import Finding, Verdict, verdict_of
from grader.records.faults import CallError
from grader.records.grade import WRONG, ExerciseResult, Picture
from grader.records.rows import counted
from grader.student.lesson import Closing
from grader.student.reward import LOOK, Reward, in_lines

WIDTH = 88  # characters of a line of text
# For light and dark pages: text keeps the page's colour, and only signs have a background.
GROUNDS = {"green": "#1a7f37", "red": "#b3261e", "magenta": "#8e24aa"}
OTHER_GROUND = "#5f6368"
BOX = "margin: 0.3em 0 0.6em; padding: 0.2em 0.9em; border-left: 4px solid {ground}"
SIGN = "padding: 0 0.45em; border-radius: 0.4em; color: #fff; background: {ground}"
LIST = "list-style: none; margin: 0.3em 0; padding: 0"
# By its own style, JupyterLab would break lines of text within words.
WORDS = "white-space: pre-wrap; word-break: normal; overflow-wrap: break-word; color: inherit"
CODE = (
    f"{WORDS}; margin: 0.2em 0 0.6em 1.9em; padding: 0.4em 0.7em; "
    "background: rgba(128, 128, 128, 0.14)"
)

# See `with_text`: if Jupyter sanitizes the HTML, it drops `flow-root` and `calc`. Then the picture
# is hidden and the text is visible.
PICTURE = "display: none; display: flow-root"
IN_ITS_PLACE = (
    "white-space: pre; color: inherit; margin: 0; padding: 0; overflow: hidden; height: calc(0px)"
)


class _Brief(BaseException):
    """An exception that notebooks show without a traceback."""

    def _render_traceback_(self) -> list[str]:
        wrap = partial(textwrap.wrap, width=WIDTH, break_long_words=False)
        # A line that fits keeps its spaces, because a caret in it may mark a column.
        return [
            part
            for line in f"grader: {self}".splitlines()
            for part in ([line] if len(line) <= WIDTH else wrap(line))
        ]


class NotChecked(_Brief, CallError):
    """A call that cannot be carried out; the message says what to do."""


class CheckStopped(_Brief, KeyboardInterrupt):
    """The student interrupted the check."""


@dataclass(frozen=True, repr=False)
class Lines:
    """A result that consists of lines of plain text."""

    text: str

    def __repr__(self) -> str:
        return terminal.safe(self.text)

    def _repr_html_(self) -> str:
        return f'<pre style="{WORDS}">{text(self.text)}</pre>'


@dataclass(frozen=True, repr=False)
class Checked:
    """The verdicts of a check; notebooks show them with pictures."""

    results: tuple[ExerciseResult, ...]
    solved_before: frozenset[str]
    closing: Closing
    reward: Reward | None = None  # only after a check of a single exercise that is solved
    notes: tuple[str, ...] = ()

    @property
    def solved(self) -> bool:
        """Whether every check passed."""
        return all(result.solved for result in self.results)

    def __repr__(self) -> str:
        return on_page(self._print)

    def _print(self, console: Console) -> None:
        for verdict in self._verdicts:
            terminal.show_verdict(console, verdict, detail=verdict.state == "untouched")
        console.print()
        for line in filter(None, [self.closing.count, self.closing.hidden, *self.notes]):
            terminal.print_plain(console, line)
        if self.reward is not None:
            console.print()
            for told in in_lines(self.reward) if self._newly else [Text(self.reward.progress)]:
                console.print(told)
            console.print()
        terminal.print_plain(console, self.closing.next)

    def _repr_html_(self) -> str:
        parts = map(_exercise_html, self._verdicts)
        lines = filter(None, [self.closing.count, self.closing.hidden, *self.notes])
        summary = "<br>".join(map(text, lines))
        brought = _reward_html(self.reward, self._newly) if self.reward is not None else ""
        then = f"<p>{text(self.closing.next)}</p>" if self.closing.next else ""
        return f"<div>{''.join(parts)}<p>{summary}</p>{brought}{then}</div>"

    @property
    def _newly(self) -> bool:
        """Whether all checked exercises are solved, and at least one was not solved before."""
        return self.solved and not {r.name for r in self.results} <= self.solved_before

    @property
    def _verdicts(self) -> Sequence[Verdict]:
        return [verdict_of(result, result.name in self.solved_before) for result in self.results]


def on_page(show: Callable[[Console], object]) -> str:
    """Call `show` with a console, and return the lines that it prints."""
    page = io.StringIO()
    console = Console(
        file=page,
        width=WIDTH,
        color_system=None,
        force_terminal=True,
        force_jupyter=False,
        highlight=False,
    )
    show(console)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).rstrip()


def _reward_html(brought: Reward, newly: bool) -> str:
    """The progress line, and the texts to read, unfolded if the exercise is newly solved."""
    look = f"<p>{text(LOOK.format(brought.look))}</p>" if brought.look else ""
    sections = [f"<p><strong>{text(h)}.</strong> {text(t)}</p>" for h, t in brought.sections]
    heads = ", ".join(heading for heading, _ in brought.sections)
    folded = f"<summary>{text(heads)}</summary>{''.join(sections)}"
    read = f"<details{' open' if newly else ''}>{folded}</details>" if sections else ""
    return f"<p>{text(brought.progress)}</p>{read}{look}"


def _exercise_html(verdict: Verdict) -> str:
    head = (
        f"<p>{_sign(verdict.sign, verdict.color, verdict.phrase)} "
        f"<strong>{text(verdict.exercise)}</strong>: {verdict.phrase}"
        f"{' <em>(it was solved before)</em>' if verdict.lost else ''}</p>"
    )
    box = BOX.format(ground=GROUNDS.get(verdict.color, OTHER_GROUND))
    return f'<div style="{box}">{head}{_details(verdict)}</div>'


def _details(verdict: Verdict) -> str:
    """The name of the mistake, and then each check."""
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
    plain = finding.status in ("passed", *WRONG)
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
    shown = with_text(picture_svg(picture), drawn(picture, width=72) or "")
    return f'<div style="margin: 0.2em 0 0.8em 1.9em">{shown}</div>'


def with_text(svg: str, lines: str) -> str:
    """A picture, and the text that replaces it if Jupyter removes the picture.

    In a notebook that is not trusted, Jupyter removes pictures from HTML but keeps their text, and
    drops style declarations that it does not know. Dropping the declarations here hides the picture
    and its text, and shows `lines`. Therefore a reader sees either the picture or `lines`.
    """
    return (
        f'<div style="{PICTURE}">{svg}</div>'
        f'<pre aria-hidden="true" style="{IN_ITS_PLACE}">{text(lines)}</pre>'
    )


def text(raw: str) -> str:
    """Plain text, escaped as HTML."""
    return escape(terminal.safe(raw))
