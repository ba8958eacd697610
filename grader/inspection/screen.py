"""Prints traced cases in a terminal.

Names, messages, source lines, values and prints come from student code. They are printed as plain
text: markup and control characters have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from grader.feedback.terminal import indented, safe, show_picture, signed
from grader.feedback.verdict import WORDINGS
from grader.inspection.cases import CallTrace, CaseTrace, NamedValue, Step

SOURCE_WIDTH = 48  # columns for a source line; the values that the line assigned follow
MAX_SOURCE = 100  # characters of a source line


def show_cases(cases: Iterable[CaseTrace], console: Console) -> bool:
    """Print each case as soon as it has run; return whether all cases passed."""
    well = True
    for one in cases:
        well = well and one.status == "passed"
        label = f"  [{one.case}]" if one.case else ""
        _print(console, 0, Text.assemble("\n", (safe(one.title), "bold"), (safe(label), "dim")))
        half = (len(one.calls) + 1) // 2
        for index, call in enumerate(one.calls):
            if one.calls_left_out and index == half:
                _print(console, 2, Text(f"… {one.calls_left_out} more calls", style="dim"))
            for indent, line in _call(call):
                _print(console, indent, line)
        message = (one.message or one.status).strip()
        body = Text.assemble(signed(WORDINGS[one.status]), safe(message.expandtabs()))
        indented(console, body, 2)
        if one.picture is not None:
            show_picture(console, one.picture, 4, 76)
    return well


def _call(call: CallTrace) -> Iterator[tuple[int, Text]]:
    names = ", ".join(value.name for value in call.inputs)
    yield 2, Text(safe(f"{call.name}({names})"), style="bold")
    for value in call.inputs:
        yield from _value(value)
    file, width = "", min(SOURCE_WIDTH, max((len(_source(s)) for s in call.steps), default=0))
    for step in call.steps:
        if step.file != file:
            file = step.file
            yield 4, Text(safe(file), style="dim")
        yield 4, _step(step, width)
    if call.steps_left_out:
        yield 4, Text(f"      … {call.steps_left_out} more lines", style="dim")
    for value in call.result:
        yield from _value(value)
    if call.raised:
        yield 4, Text(safe(call.raised), style="red")
    if call.prints.strip():
        yield 4, Text("your code printed:", style="dim")
        yield 6, Text(safe(call.prints.rstrip().expandtabs()))


def _value(value: NamedValue) -> Iterator[tuple[int, Text]]:
    first = Text.assemble((safe(value.name), "cyan"), "  ", (safe(value.what), "green"))
    if value.values and "\n" not in value.values:
        first.append(f"  {safe(value.values)}")
        yield 4, first
        return
    yield 4, first
    if value.values:
        yield 6, Text(safe(value.values))


def _source(step: Step) -> str:
    source = "  " * step.depth + safe(step.text.expandtabs())
    return source if len(source) <= MAX_SOURCE else source[: MAX_SOURCE - 1] + "…"


def _step(step: Step, width: int) -> Text:
    line = Text.assemble((f"{step.line:>5} ", "dim"), f"{_source(step):<{width}}")
    for value in step.bound:
        line.append(f"  {safe(value.name)} ", style="cyan")
        line.append(safe(value.what), style="green")
    if step.times > 1:
        line.append(f"  ×{step.times}", style="dim")
    line.rstrip()
    return line


def _print(console: Console, indent: int, text: Text) -> None:
    for line in text.split("\n", allow_blank=True):
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)
