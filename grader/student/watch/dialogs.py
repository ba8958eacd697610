"""What lies over the exercise for a while: pages to read, a question, and the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from grader.student.watch import words
from grader.student.watch.lesson import LessonRow

SIGN = {"solved": ("✓", "green"), "failing": ("✗", "red"), "open": ("·", "dim")}


class Page(ModalScreen[None]):
    """Something to read. Arrows scroll it, and most other keys close it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "close")
        for key in ("escape", "enter", "space", "q", "s", "v", "question_mark")
    ]

    def __init__(self, title: str, body: RenderableType) -> None:
        super().__init__()
        self._title = title
        self._body = body

    def compose(self) -> ComposeResult:
        """A box with a title, the text, and how to leave."""
        with Vertical(classes="box") as box:
            box.border_title = Text(self._title)
            with VerticalScroll():
                yield Static(self._body, markup=False)
            yield Static("Enter goes on", markup=False, classes="foot")

    def action_close(self) -> None:
        """Go back to the exercise."""
        self.dismiss(None)


class Question(ModalScreen[bool]):
    """Asks for a yes; whatever is not a yes is a no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)"),
        *(Binding(key, "answer(False)") for key in ("n", "escape", "enter", "q")),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """A box with the question."""
        with Vertical(classes="box small"):
            yield Static(self._text, markup=False)
            yield Static("y yes   n no", markup=False, classes="foot")

    def action_answer(self, yes: bool) -> None:
        """Go back with the answer."""
        self.dismiss(yes)


class ExerciseList(ModalScreen[str | None]):
    """All exercises. What is typed filters them, and Enter goes to the one that is marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)"), Binding("down", "move(1)"),
        Binding("pageup", "move(-10)"), Binding("pagedown", "move(10)"),
        Binding("escape", "close"),
    ]  # fmt: skip

    def __init__(self, rows: Callable[[str], Sequence[LessonRow]], titles: dict[str, str]) -> None:
        super().__init__()
        self._rows = rows
        self._titles = titles

    def compose(self) -> ComposeResult:
        """A line to type into, the exercises by unit, and the keys."""
        with Vertical(classes="box") as box:
            box.border_title = Text("Exercises")
            yield Input(placeholder="type to filter", compact=True)
            yield OptionList(markup=False, compact=True)
            yield Static(markup=False, classes="foot")

    def on_mount(self) -> None:
        """Show all of them, the current one marked."""
        self.query_one(OptionList).can_focus = False  # letters are for the filter
        self._show(self._rows(""))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what matches."""
        self._show(self._rows(event.value))

    def on_input_submitted(self) -> None:
        """Go to the marked one."""
        chosen = self.query_one(OptionList).highlighted_option
        if chosen is not None:
            self.dismiss(chosen.id)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Say where Enter goes."""
        self._foot(event.option_id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go to the one that was clicked."""
        self.dismiss(event.option_id)

    def action_move(self, by: int) -> None:
        """Mark another one; the heads of units are passed over."""
        options = self.query_one(OptionList)
        for _ in range(abs(by)):
            if by > 0:
                options.action_cursor_down()
            else:
                options.action_cursor_up()

    def action_close(self) -> None:
        """Stay where the student was."""
        self.dismiss(None)

    def _foot(self, name: str | None) -> None:
        there = f"{words.GOES_TO.format(name)}   Up, Down: choose   " if name else ""
        self.query_one(".foot", Static).update(Text(f"{there}Esc: go back"))

    def _show(self, rows: Sequence[LessonRow]) -> None:
        options = self.query_one(OptionList)
        options.clear_options()
        unit, marked = "", 0
        for row in rows:
            if row.unit != unit:
                unit = row.unit
                head = Text(f"{unit}: {self._titles[unit]}", style="bold")
                options.add_option(Option(head, disabled=True))
            if row.best or not marked:
                marked = options.option_count
            options.add_option(Option(_line(row), id=row.name))
        if rows:
            options.highlighted = marked
        else:
            options.add_option(Option(words.NO_MATCH, disabled=True))
            self._foot(None)


def _line(row: LessonRow) -> Text:
    sign, style = SIGN["failing" if row.failing else "solved" if row.solved else "open"]
    here = ("> ", "bold") if row.current else "  "
    title = f"fails now: {row.title}" if row.failing else row.title
    title += "" if row.asked else "  (not asked)"
    return Text.assemble(here, (f"{sign} ", style), f"{row.name:30} {title}")
