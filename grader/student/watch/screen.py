"""`grader watch` on a full screen: statement above, hints, verdict below, keys at the bottom."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import DescendantFocus, Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from grader.course.course import Course
from grader.feedback.terminal import safe
from grader.intake.own import own_folders
from grader.records.faults import CallError
from grader.student.checking import open_checker
from grader.student.showing import Showing
from grader.student.watch import drawing, editor, words
from grader.student.watch.colours import DARK, LIGHT, ON_DARK, ON_LIGHT, is_light
from grader.student.watch.dialogs import ExerciseList, Page, Question
from grader.student.watch.lesson import Lesson
from grader.student.watch.threads import (
    CheckWorker,
    LinesAtWork,
    News,
    OpenChecks,
    Opened,
    Shown,
    ShowWorker,
    Watching,
)

MARGIN = 4  # columns that a pane's border, padding and scroll bar take
PAGE = 100  # columns of a page at most
TALL = 36  # lines of a screen that has room for a whole statement


class WorkerNews(Message):
    """The worker has news."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class ShownLines(Message):
    """An answer was shown at work."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self.shown = shown


class Saved(Message):
    """A file of the course was saved."""


class StatusLine(Static):
    """Text that is drawn only when it has changed: a check has the processor meanwhile."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name, markup=False)
        self._shown: Text | None = None

    def on_mount(self) -> None:
        """Draw the same text anew where its colours mean others."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self.update(self._shown or ""))

    def show(self, text: Text) -> None:
        """Replace the text."""
        if text != self._shown:
            self._shown = text
            self.update(text)


class Pane(VerticalScroll):
    """A part of the screen with a title, that scrolls."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._body = StatusLine()

    def compose(self) -> ComposeResult:
        """Its text."""
        yield self._body

    def show(self, title: str, body: Text) -> None:
        """Replace title and text."""
        self.border_title = Text(title)
        self._body.show(body)


class Board(Screen[None]):
    """The current exercise."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "step(1)"), Binding("p", "step(-1)"), Binding("h", "hint"),
        Binding("l", "list"), Binding("d", "details"), Binding("s", "shapes"),
        Binding("v", "solution"), Binding("j", "jump"), Binding("r", "reset"),
        Binding("u", "undo"), Binding("o", "open"), Binding("a", "all"),
        Binding("question_mark", "help"), Binding("q", "quit"), Binding("t", "turn"),
        Binding("1", "look('statement')"), Binding("2", "look('verdict')"),
    ]  # fmt: skip

    def __init__(self, lesson: Lesson, worker: CheckWorker, shows: ShowWorker) -> None:
        super().__init__()
        self._lesson = lesson
        self._worker = worker
        self._shows = shows
        self._note = ""
        self._whole: bool | None = None  # what of a statement was asked for; None: what fits
        self._waited = 0  # seconds until torch is loaded
        self._own_save = False  # whether the next save is ours, of which a note tells
        self._checking = False

    def compose(self) -> ComposeResult:
        """A head, three panes, a line for what is told in passing, and the keys."""
        yield StatusLine("head")
        with Vertical(id="panes"):
            yield Pane("statement")
            yield Pane("hints")
            yield Pane("verdict")
        yield StatusLine("note")
        yield StatusLine("keys")

    def on_mount(self) -> None:
        """Begin with the current exercise; to a newcomer, say how this works."""
        self._arrive()
        self._clock = self.set_interval(1, self._wait)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._show())
        if self._lesson.first_run:
            title = f"Welcome to {self._lesson.course.file.title}"
            self.app.push_screen(Page(title, Text("\n\n".join(words.WELCOME))))

    def on_resize(self, _: Resize) -> None:
        """Fit everything to the new size."""
        self._show()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Give the pane that is read more room."""
        panes, pane = self.query_one("#panes"), event.widget.id or ""
        if pane == "statement":  # which only has more where that was asked for
            panes.remove_class("hints", "verdict")
        else:
            panes.set_classes(pane)

    # --- what happens ----------------------------------------------------------------------------

    def saved(self) -> None:
        """Check again, and give the verdict its room back."""
        if self.focused is self.query_one("#hints"):
            self.query_one("#statement", Pane).focus()
        self.query_one("#panes").remove_class("statement")
        self._check()  # first: it goes on while we draw
        told = self._lesson.saved()
        self._tell(self._note if self._own_save else told)
        self._own_save = False

    def hear(self, news: News) -> None:
        """Show what the worker found."""
        if not isinstance(news, Opened):
            self._checking = False
        lesson = self._lesson
        known = lesson.solved_before and (lesson.result is None or lesson.result.solved)
        self._tell(lesson.hear(news) or self._note)
        self.query_one("#verdict", Pane).scroll_home(animate=False)
        if lesson.reward is not None and not known:  # there is something to read
            self.action_look("verdict")

    def shown(self, shown: Shown) -> None:
        """Show an answer's lines at work, unless the student looks at something else by now."""
        if shown.failed:
            self._tell(shown.text)
            return
        self._tell("")
        if self.app.screen is self:
            title = words.SHOWN.format(shown.name)
            self.app.push_screen(Page(title, Text.from_ansi(shown.text.strip("\n"))))

    # --- keys ------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Go to the next exercise, or back."""
        self._go_on(self._lesson.step(by))

    def action_hint(self) -> None:
        """Show one more hint."""
        self._tell(self._lesson.hint())
        hints = self.query_one("#hints", Pane)
        if self._lesson.hints:
            hints.focus()
            hints.scroll_end(animate=False)

    def action_list(self) -> None:
        """Show the list, and go where it says."""

        def go(name: str | None) -> None:
            if name is not None:
                self._lesson.go(name)
                self._arrive()

        titles = {unit.name: unit.title for unit in self._lesson.course.units}
        self.app.push_screen(ExerciseList(self._lesson.rows, titles), go)

    def action_solution(self) -> None:
        """Show the solution of what is solved."""
        try:
            code = self._lesson.solution()
        except CallError as error:
            self._tell(str(error))
            return
        body = drawing.code(code, "python", dark=self.app.current_theme.dark)
        self.app.push_screen(Page(f"A solution of {self._lesson.name}", body))

    def action_details(self) -> None:
        """Show all of the statement, or only what comes first."""
        self._whole = not self._is_whole
        self._show()
        if self._whole:
            self.action_look("statement")
        else:
            self.query_one("#panes").remove_class("statement")

    def action_shapes(self) -> None:
        """Have the student's lines run elsewhere, and show what happens in them."""
        self._tell(words.SHOWING.format(self._lesson.name))
        self._shows.show(self._lesson.name)

    def action_jump(self) -> None:
        """Go to the other exercise whose answer was saved."""
        self._go_on(self._lesson.jump())

    def action_turn(self) -> None:
        """Dark on light, or light on dark."""
        self.app.theme = LIGHT if self.app.current_theme.dark else DARK

    def action_reset(self) -> None:
        """Ask, and put the stub back."""

        def answered(yes: bool | None) -> None:
            if yes:
                self._own_save = True
            self._tell(self._lesson.reset() if yes else words.LEFT)

        self.app.push_screen(Question(words.ASK_RESET.format(self._lesson.name)), answered)

    def action_undo(self) -> None:
        """Take a reset back."""
        self._own_save = True
        self._tell(self._lesson.undo())

    def action_open(self) -> None:
        """Open the exercise's file where the exercise begins."""
        file = self._lesson.file
        line = editor.line_of(file, self._lesson.name)
        try:
            chosen = editor.editor_for(os.environ, file, line)
        except CallError as error:
            self._tell(str(error))
            return
        if not chosen.in_terminal:
            self._tell(editor.start(chosen) or words.EDITOR_OPENED.format(file.name, line))
            return
        try:
            with self.app.suspend():
                told = editor.start(chosen)
        except SuspendNotSupported:
            told = words.NO_SUSPEND.format(file.name, line)
        self._tell(told)

    def action_all(self) -> None:
        """Check all exercises."""
        names = self._lesson.begin_all()
        self._tell(words.CHECKING_ALL.format(0, len(names)))
        self._worker.check_all(names)

    def action_help(self) -> None:
        """Show all keys."""
        table = Table.grid(padding=(0, 2))
        for key in self._lesson.known_keys():
            table.add_row(Text(key.key, style="bold"), key.told)
        for name, told in words.SCREEN_KEYS:
            table.add_row(Text(name, style="bold"), told)
        self.app.push_screen(Page("Keys", table))

    def action_quit(self) -> None:
        """Stop."""
        self.app.exit()

    def action_look(self, pane: str) -> None:
        """Give a pane the arrows, and more room."""
        self.query_one(f"#{pane}", Pane).focus()
        self.query_one("#panes").set_classes(pane)

    # --- drawing ---------------------------------------------------------------------------------

    @property
    def _is_whole(self) -> bool:
        return self.app.size.height >= TALL if self._whole is None else self._whole

    def _wait(self) -> None:
        """A sign of life each second, while torch is loaded."""
        self._waited += 1
        if self._lesson.ready:
            self._clock.stop()
        else:
            self._show()

    def _go_on(self, told: str) -> None:
        """Show where the student has gone, or why they could not."""
        if told:
            self._tell(told)
        else:
            self._arrive()

    def _arrive(self) -> None:
        """Show another exercise from its beginning, and check it."""
        self._shows.close()
        self._tell("")
        pane = self.query_one("#statement", Pane)
        pane.scroll_home(animate=False)
        pane.focus()
        self.query_one("#panes").set_classes("")
        self._check()

    def _check(self) -> None:
        self._checking = True
        self._worker.check(self._lesson.name)

    def _tell(self, note: str) -> None:
        self._note = note
        self._show()

    def _show(self) -> None:
        lesson, width = self._lesson, self.app.size.width
        room, dark = width - MARGIN, self.app.current_theme.dark
        self.query_one("#head", StatusLine).show(drawing.head_line(lesson, width))
        statement = drawing.statement_text(lesson, room, whole=self._is_whole, dark=dark)
        title = words.heading(lesson.course, lesson.name)
        self.query_one("#statement", Pane).show(title, statement)
        hints = self.query_one("#hints", Pane)
        hints.set_class(not lesson.hints, "empty")
        title = f"Hints: {len(lesson.hints)} of {len(lesson.exercise.hints)}"
        hints.show(title, drawing.hints_text(lesson))
        title = f"Verdict of {lesson.checked_at}" if lesson.checked_at else "Verdict"
        title += ", checking again" if self._checking and lesson.checked_at else ""
        verdict = drawing.verdict_text(lesson, room, self._waited)
        self.query_one("#verdict", Pane).show(title, verdict)
        note = self.query_one("#note", StatusLine)
        note.display = bool(self._note)
        note.show(Text(safe(self._note)))
        self.query_one("#keys", StatusLine).show(drawing.key_lines(lesson.offered(), width))


class WatchApp(App[None]):
    """The terminal of one student; `close` it when it has run."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True)]
    CSS = """
    #head { height: 1; padding: 0 1; }
    #panes { height: 1fr; overflow: hidden; }
    Pane, .box, Input, OptionList, VerticalScroll {
        scrollbar-color: $foreground 60%; scrollbar-color-hover: $foreground;
        scrollbar-color-active: $foreground; scrollbar-background: $background;
        scrollbar-background-hover: $background; scrollbar-background-active: $background;
        border-title-color: $foreground; border-title-style: bold;
    }
    Pane { height: auto; border-top: solid $foreground 60%; padding: 0 1; }
    Pane:focus { border-top: heavy $foreground; }
    #statement { height: 1fr; min-height: 3; }
    #hints { max-height: 25%; }
    #verdict { max-height: 65%; min-height: 3; }
    .empty { display: none; }
    #panes.hints #hints { max-height: 50%; }
    #panes.hints #verdict { max-height: 35%; }
    #panes.statement #hints { display: none; }
    #panes.statement #verdict { max-height: 35%; }
    #panes.verdict #hints { display: none; }
    #panes.verdict #verdict { max-height: 85%; }
    #note { padding: 0 1; max-height: 4; text-style: bold; border-top: dashed $foreground 60%; }
    #keys { height: auto; }
    ModalScreen { align: center middle; }
    .box { width: 100%; max-width: 100; height: 90%; border: solid $foreground; padding: 0 1;
           background: $surface; }
    .small { height: auto; }
    .foot { margin-top: 1; text-style: bold; }
    OptionList > .option-list--option-disabled { color: $foreground; }
    OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    OptionList > .option-list--option-highlighted { text-style: bold reverse; }
    Page VerticalScroll { height: 1fr; }
    """

    def __init__(
        self, lesson: Lesson, checker: OpenChecks | None = None, *, poll: bool = False
    ) -> None:
        super().__init__()
        self.ansi_theme_dark, self.ansi_theme_light = ON_DARK, ON_LIGHT
        if is_light(os.environ):
            self.theme = LIGHT
        opened = checker or (lambda: open_checker(lesson.course))
        self._worker = CheckWorker(opened, self._heard)
        self._watching = Watching(own_folders(lesson.course), self._saved, poll=poll)
        self._shows = ShowWorker(partial(self._showing, lesson.course), self._shown)
        self._board = Board(lesson, self._worker, self._shows)

    def get_default_screen(self) -> Screen[None]:
        """The exercise."""
        return self._board

    def on_mount(self) -> None:
        """Start both threads."""
        self._worker.start()
        self._watching.start()

    def close(self, patience: float | None = None) -> bool:
        """End all threads; tell whether they ended within so many seconds."""
        self._shows.close()
        self._watching.close()
        return self._worker.close(patience)

    def _heard(self, news: News) -> None:
        with suppress(RuntimeError):  # the loop has just ended
            self.post_message(WorkerNews(news))

    def _showing(self, course: Course, name: str) -> LinesAtWork:
        return Showing(course, name, width=min(self.size.width, PAGE) - MARGIN - 2)

    def _shown(self, shown: Shown) -> None:
        with suppress(RuntimeError):
            self.post_message(ShownLines(shown))

    def _saved(self) -> None:
        with suppress(RuntimeError):
            self.post_message(Saved())

    def on_worker_news(self, message: WorkerNews) -> None:
        """The worker has news."""
        self._board.hear(message.news)

    def on_shown_lines(self, message: ShownLines) -> None:
        """An answer was shown at work."""
        self._board.shown(message.shown)

    def on_saved(self) -> None:
        """A file was saved."""
        self._board.saved()
