"""`grader watch` on a full screen: statement above, hints, verdict below, keys at the bottom."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import DescendantFocus, Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from grader.feedback.terminal import all_asked, safe, show_verdict
from grader.feedback.verdict import verdict_of
from grader.records.faults import CallError
from grader.student.checking import open_checker
from grader.student.watch import editor, words
from grader.student.watch.dialogs import ExerciseList, Page, Question
from grader.student.watch.lesson import Lesson
from grader.student.watch.threads import CheckWorker, News, OpenChecks, Opened, Watching

BAR = 20  # characters
MARGIN = 4  # columns that a pane's border, padding and scroll bar take


class WorkerNews(Message):
    """The worker has news."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class Saved(Message):
    """A file of the course was saved."""


class StatusLine(Static):
    """Text that is drawn only when it has changed: a check has the processor meanwhile."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name, markup=False)
        self._shown: Text | None = None

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
        Binding("l", "list"), Binding("s", "solution"), Binding("r", "reset"),
        Binding("u", "undo"), Binding("o", "open"), Binding("a", "all"),
        Binding("question_mark", "help"), Binding("q", "quit"),
        Binding("1", "look('statement')"), Binding("2", "look('verdict')"),
    ]  # fmt: skip

    def __init__(self, lesson: Lesson, worker: CheckWorker) -> None:
        super().__init__()
        self._lesson = lesson
        self._worker = worker
        self._note = ""
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
        if self._lesson.first_run:
            title = f"Welcome to {self._lesson.course.file.title}"
            self.app.push_screen(Page(title, Text("\n\n".join(words.WELCOME))))

    def on_resize(self, _: Resize) -> None:
        """Fit everything to the new size."""
        self._show()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Give the pane that is read more room."""
        self.query_one("#panes").set_classes(event.widget.id or "")

    # --- what happens ----------------------------------------------------------------------------

    def saved(self) -> None:
        """Check again, and give the verdict its room back."""
        if self.focused is self.query_one("#hints"):
            self.action_look("statement")
        self._check()  # first: it goes on while we draw
        self._tell(self._note if self._own_save else "")
        self._own_save = False

    def hear(self, news: News) -> None:
        """Show what the worker found."""
        if not isinstance(news, Opened):
            self._checking = False
        self._tell(self._lesson.hear(news) or self._note)
        self.query_one("#verdict", Pane).scroll_home(animate=False)

    # --- keys ------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Go to the next exercise, or back."""
        told = self._lesson.step(by)
        if told:
            self._tell(told)
        else:
            self._arrive()

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
        body = Syntax(code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        self.app.push_screen(Page(f"A solution of {self._lesson.name}", body))

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
        lines = [f"{key.key:>9}  {key.told}" for key in self._lesson.known_keys()]
        lines += [f"{key:>9}  {told}" for key, told in words.SCROLLING]
        self.app.push_screen(Page("Keys", Text("\n".join(lines))))

    def action_quit(self) -> None:
        """Stop."""
        self.app.exit()

    def action_look(self, pane: str) -> None:
        """Give a pane the arrows, and more room."""
        self.query_one(f"#{pane}", Pane).focus()

    # --- drawing ---------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """Show another exercise from its beginning, and check it."""
        self._tell("")
        pane = self.query_one("#statement", Pane)
        pane.scroll_home(animate=False)
        pane.focus()
        self._check()

    def _check(self) -> None:
        self._checking = True
        self._worker.check(self._lesson.name)

    def _tell(self, note: str) -> None:
        self._note = note
        self._show()

    def _show(self) -> None:
        lesson, width = self._lesson, self.app.size.width
        self.query_one("#head", StatusLine).show(self._head(width))
        self.query_one("#statement", Pane).show(lesson.name, self._statement())
        hints = self.query_one("#hints", Pane)
        hints.set_class(not lesson.hints, "empty")
        hints.show(f"Hints: {len(lesson.hints)} of {len(lesson.exercise.hints)}", self._hints())
        title = f"Verdict of {lesson.checked_at}" if lesson.checked_at else "Verdict"
        title += ", checking again" if self._checking and lesson.checked_at else ""
        self.query_one("#verdict", Pane).show(title, self._verdict(width))
        note = self.query_one("#note", StatusLine)
        note.display = bool(self._note)
        note.show(Text(safe(self._note)))
        self.query_one("#keys", StatusLine).show(_keys(lesson.offered(), width))

    def _head(self, width: int) -> Text:
        """The course's title, and a bar of what is solved."""
        count, course = self._lesson.count, self._lesson.course
        full = BAR * count // len(course.asked)
        told = f" {count} of {all_asked(course)} solved"
        title = Text(course.file.title, style="bold", no_wrap=True)
        title.truncate(max(width - BAR - len(told) - 3, 0), overflow="ellipsis", pad=True)
        return Text.assemble(title, " ", ("█" * full, "green"), "░" * (BAR - full), told)

    def _statement(self) -> Text:
        lesson = self._lesson
        text = Text(words.file_line(lesson.course, lesson.name), style="italic")
        text = Text.assemble(text, "\n\n")
        found = lesson.statement()
        if isinstance(found, str):
            return text.append(safe(found))
        text.append(found.signature, style="bold")
        for part in words.paragraphs(found.marked(lesson.unchecked)):
            text.append("\n\n")
            text.append(safe(part.text), style="cyan" if part.example else "")
        about = lesson.about_unit()
        if about:
            text.append("\n\nAbout this unit", style="bold")
        for part in words.paragraphs(about):
            text.append(f"\n\n{safe(part.text)}")
        return text

    def _hints(self) -> Text:
        return Text("\n").join(
            Text.assemble((f"{number}. ", "bold"), safe(hint))
            for number, hint in enumerate(self._lesson.hints, 1)
        )

    def _verdict(self, width: int) -> Text:
        lesson = self._lesson
        if lesson.trouble:
            return Text.assemble((" ! ", "magenta"), safe(lesson.trouble))
        if lesson.result is None:
            return Text(words.CHECKING if lesson.ready else words.LOADING)
        verdict = verdict_of(lesson.result, lesson.solved_before)
        console = Console(
            file=io.StringIO(),
            width=max(width - MARGIN, 20),
            force_terminal=True,
            color_system="standard",
            legacy_windows=False,
            highlight=False,
        )
        with console.capture() as captured:
            show_verdict(console, verdict, detail=verdict.state == "untouched")
        text = Text.from_ansi(captured.get().rstrip("\n"))
        step = lesson.next_step()
        return Text.assemble(text, "\n", (f"   {step}", "bold")) if step else text


def _keys(keys: Sequence[words.Shortcut], width: int) -> Text:
    """The keys on as many lines as they need; a key is never parted from its word."""
    lines: list[list[words.Shortcut]] = [[]]
    room = width
    for key in keys:
        size = len(f"{key.key} {key.word}  ")
        if size - 2 > room and lines[-1]:
            lines.append([])
            room = width
        lines[-1].append(key)
        room -= size
    return Text("\n").join(
        Text("  ").join(Text.assemble((key.key, "bold reverse"), f" {key.word}") for key in line)
        for line in lines
    )


class WatchApp(App[None]):
    """The terminal of one student; `close` it when it has run."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True)]
    CSS = """
    #head { height: 1; padding: 0 1; }
    #panes { height: 1fr; overflow: hidden; }
    Pane { height: auto; border-top: solid $foreground 40%; padding: 0 1; }
    Pane:focus { border-top: heavy $foreground; }
    #statement { height: 1fr; min-height: 3; }
    #hints { max-height: 25%; }
    #verdict { max-height: 65%; min-height: 3; }
    .empty { display: none; }
    #panes.hints #hints { max-height: 50%; }
    #panes.hints #verdict { max-height: 35%; }
    #panes.verdict #hints { display: none; }
    #panes.verdict #verdict { max-height: 85%; }
    #note { padding: 0 1; max-height: 4; text-style: bold; border-top: dashed $foreground 40%; }
    #keys { height: auto; }
    ModalScreen { align: center middle; }
    .box { width: 100%; max-width: 100; height: 90%; border: solid $foreground; padding: 0 1;
           background: $surface; }
    .small { height: auto; }
    .foot { margin-top: 1; text-style: bold; }
    OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    OptionList > .option-list--option-highlighted { text-style: bold reverse; }
    Page VerticalScroll { height: 1fr; }
    """

    def __init__(
        self, lesson: Lesson, checker: OpenChecks | None = None, *, poll: bool = False
    ) -> None:
        super().__init__()
        opened = checker or (lambda: open_checker(lesson.course))
        self._worker = CheckWorker(opened, self._heard)
        self._watching = Watching(lesson.course.folder, self._saved, poll=poll)
        self._board = Board(lesson, self._worker)

    def get_default_screen(self) -> Screen[None]:
        """The exercise."""
        return self._board

    def on_mount(self) -> None:
        """Start both threads."""
        self._worker.start()
        self._watching.start()

    def close(self, patience: float | None = None) -> bool:
        """End both threads; tell whether they ended within so many seconds."""
        self._watching.close()
        return self._worker.close(patience)

    def _heard(self, news: News) -> None:
        with suppress(RuntimeError):  # the loop has just ended
            self.post_message(WorkerNews(news))

    def _saved(self) -> None:
        with suppress(RuntimeError):
            self.post_message(Saved())

    def on_worker_news(self, message: WorkerNews) -> None:
        """The worker has news."""
        self._board.hear(message.news)

    def on_saved(self) -> None:
        """A file was saved."""
        self._board.saved()
