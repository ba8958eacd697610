"""The dialogs of the full screen: pages to read, a question, and the list of exercises."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from grader.course.course import Course
from grader.student.listing import SIGNS, note_of
from grader.student.standing import Standing
from grader.student.watch import words


class Page(ModalScreen[None]):
    """A page with a text. Arrows scroll the text; Enter, Esc and some other keys close the page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, "close")
        for key in ("escape", "enter", "space", "q", "s", "v", "question_mark")
    ]

    def __init__(self, title: str, body: RenderableType) -> None:
        super().__init__()
        self._title = title
        self._body = body

    def compose(self) -> ComposeResult:
        """Create a box with a title, the text, and the key that closes it."""
        with Vertical(classes="box") as box:
            box.border_title = Text(self._title)
            with VerticalScroll():
                yield Static(self._body, markup=False)
            yield Static("Enter goes on", markup=False, classes="foot")

    def action_close(self) -> None:
        """Go back to the exercise."""
        self.dismiss(None)


class Question(ModalScreen[bool]):
    """A yes-or-no question; only the key y means yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)"),
        *(Binding(key, "answer(False)") for key in ("n", "escape", "enter", "q")),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """Create a box with the question."""
        with Vertical(classes="box small"):
            yield Static(self._text, markup=False)
            yield Static("y yes   n no", markup=False, classes="foot")

    def action_answer(self, yes: bool) -> None:
        """Close the question, and return the answer."""
        self.dismiss(yes)


class ExerciseList(ModalScreen[str | None]):
    """The list of exercises: letters filter the list; Enter goes to the highlighted exercise."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)"), Binding("down", "move(1)"),
        Binding("pageup", "move(-10)"), Binding("pagedown", "move(10)"),
        Binding("escape", "close"),
    ]  # fmt: skip

    def __init__(self, standing: Standing, current: str) -> None:
        super().__init__()
        self._standing = standing
        self._current = current

    def compose(self) -> ComposeResult:
        """Create a field for the filter, the exercises by unit, and the keys."""
        with Vertical(classes="box") as box:
            box.border_title = Text("Exercises")
            yield Input(placeholder="type to filter", compact=True)
            yield OptionList(markup=False, compact=True)
            yield Static(markup=False, classes="foot")

    def on_mount(self) -> None:
        """Show all exercises, with the current one highlighted."""
        self.query_one(OptionList).can_focus = False  # so letters go to the filter
        self._show("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the exercises that match the filter."""
        self._show(event.value)

    def on_input_submitted(self) -> None:
        """Go to the highlighted exercise."""
        chosen = self.query_one(OptionList).highlighted_option
        if chosen is not None:
            self.dismiss(chosen.id)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Name the exercise that Enter goes to."""
        self._foot(event.option_id)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go to the exercise that was clicked."""
        self.dismiss(event.option_id)

    def action_move(self, by: int) -> None:
        """Highlight another exercise; the heads of units are skipped."""
        options = self.query_one(OptionList)
        for _ in range(abs(by)):
            if by > 0:
                options.action_cursor_down()
            else:
                options.action_cursor_up()

    def action_close(self) -> None:
        """Close the list, and stay at the current exercise."""
        self.dismiss(None)

    def _foot(self, name: str | None) -> None:
        there = f"{words.GOES_TO.format(name)}   Up, Down: choose   " if name else ""
        self.query_one(".foot", Static).update(Text(f"{there}Esc: go back"))

    def _show(self, typed: str) -> None:
        course, options = self._standing.course, self.query_one(OptionList)
        found, best = search(course, typed)
        options.clear_options()
        marked = 0
        for unit in course.units:
            names = [exercise.name for exercise in unit.exercise if exercise.name in found]
            if names:
                head = Text(f"{unit.name}: {unit.title}", style="bold")
                options.add_option(Option(head, disabled=True))
            for name in names:
                if name == (best or self._current) or not marked:
                    marked = options.option_count
                options.add_option(Option(self._line(name), id=name))
        if found:
            options.highlighted = marked
        else:
            options.add_option(Option(words.NO_MATCH, disabled=True))
            self._foot(None)

    def _line(self, name: str) -> Text:
        course = self._standing.course
        sign = SIGNS[self._standing.state(name)]
        note = note_of(name, self._standing)
        title = f"{note}: {course.exercises[name].title}" if note else course.exercises[name].title
        title += "" if name in course.asked else "  (not asked)"
        here = ("> ", "bold") if name == self._current else "  "
        return Text.assemble(here, (f"{sign[0]} ", sign[1]), f"{name:30} {title}")


def search(course: Course, typed: str) -> tuple[Sequence[str], str]:
    """The exercises that match a search, and the best match.

    An exercise matches if each typed word is in its name, title or unit. If no exercise matches,
    exercises with similar names are returned.
    """
    if not typed.split():
        return list(course.exercises), ""
    typed_words = typed.casefold().split()
    wanted = "_".join(typed_words)
    by_name = {name.casefold(): name for name in course.exercises}
    texts = {
        name: f"{name} {course.exercises[name].title} {unit}".casefold()
        for name, unit in course.unit_of.items()
    }
    found = [name for name, text in texts.items() if all(word in text for word in typed_words)]
    if not found:
        near = [by_name[name] for name in get_close_matches(wanted, by_name)]
        return near, near[0] if near else ""
    return found, min(found, key=lambda name: _distance(name.casefold(), wanted))


def _distance(name: str, wanted: str) -> tuple[bool, bool, bool]:
    """A sort key: `wanted` itself, then names that begin with it, then names that contain it."""
    return name != wanted, not name.startswith(wanted), wanted not in name
