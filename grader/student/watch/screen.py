"""The full screen of `grader watch`: from top to bottom, statement, hints, verdict and keys."""

from __future__ import annotations

import ast
import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
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

from grader.course.file import Exercise
from grader.feedback.terminal import safe
from grader.intake.names import SKIPPED, SOURCES
from grader.intake.own import own_folders
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult
from grader.records.rows import listed
from grader.records.saves import saves, snapshot
from grader.student.answers import Digests
from grader.student.asking import exercise_to_ask
from grader.student.checking import Checks
from grader.student.lesson import Lesson
from grader.student.program import left_out
from grader.student.resetting import can_reset, can_undo, reset_exercises, undo
from grader.student.shapes import shapes
from grader.student.watch import drawing, editor, words
from grader.student.watch.dialogs import ExerciseList, Page, Question
from grader.student.watch.drawing import DARK, LIGHT, ON_DARK, ON_LIGHT, is_light

MARGIN = 4  # columns that a pane's border, padding and scroll bar take
PAGE = 100  # the most columns of a page
TALL = 36  # lines of a screen; from this height on, whole statements are shown

Found = tuple[list[ExerciseResult], Digests]


class Saved(Message):
    """The message that a file of the course was saved."""


class StatusLine(Static):
    """Text that is drawn only when it changes, to leave the processor to the checks."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(id=name, markup=False)
        self._shown: Text | None = None

    def on_mount(self) -> None:
        """Draw the text again whenever the theme changes, because each theme has its own shades."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self.update(self._shown or ""))

    def show(self, text: Text) -> None:
        """Replace the text."""
        if text != self._shown:
            self._shown = text
            self.update(text)


class Pane(VerticalScroll):
    """A part of the screen that has a title and scrolls."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._body = StatusLine()

    def compose(self) -> ComposeResult:
        """Create the pane's text."""
        yield self._body

    def show(self, title: str, body: Text) -> None:
        """Replace the title and the text of the pane."""
        self.border_title = Text(title)
        self._body.show(body)


class Board(Screen[None]):
    """The screen with the current exercise.

    Checks run one after another in a separate thread, so that they do not block the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "step(1)"), Binding("p", "step(-1)"), Binding("h", "hint"),
        Binding("l", "list"), Binding("d", "details"), Binding("s", "shapes"),
        Binding("v", "solution"), Binding("k", "know"), Binding("j", "jump"), Binding("r", "reset"),
        Binding("u", "undo"), Binding("o", "open"), Binding("a", "all"),
        Binding("question_mark", "help"), Binding("q", "quit"), Binding("t", "turn"),
        Binding("1", "look('statement')"), Binding("2", "look('verdict')"),
    ]  # fmt: skip

    def __init__(
        self,
        lesson: Lesson,
        name: str,
        checks: Checks,
        *,
        first_run: bool,
        poll: bool,
        clock: Callable[[], str],
    ) -> None:
        super().__init__()
        self.lesson = lesson
        self.current = name  # the exercise that is shown
        self._checks = checks
        self._first_run = first_run
        self._poll = poll
        self._clock = clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checks")
        self._next_check: Future[Found] = Future()
        self._no_more_saves = Event()
        self._seen = snapshot(own_folders(lesson.course), SOURCES, SKIPPED)
        self._note = ""
        self._trouble = ""  # why the current exercise could not be checked
        self._checked_at = ""
        self._checking = False
        self._elsewhere = ""  # the other exercise whose answer was saved last, if there is one
        self._left_out: dict[str, Sequence[str]] = {}  # lines below the verdict, by exercise
        self._whole: bool | None = None  # whether whole statements are shown; None: see TALL
        self._waited = 0  # seconds that loading torch has taken so far
        self._own_save = False  # whether a reset or undo makes the next save: keep the note then

    def compose(self) -> ComposeResult:
        """Create the title line, three panes, a line for notes, and the keys."""
        yield StatusLine("head")
        with Vertical(id="panes"):
            yield Pane("statement")
            yield Pane("hints")
            yield Pane("verdict")
        yield StatusLine("note")
        yield StatusLine("keys")

    def on_mount(self) -> None:
        """Show and check the first exercise; in the first run, show a welcome page."""
        # Read all statements now: in a clone, the student will edit the only copy of the stubs.
        for name in self.lesson.course.exercises:
            self.lesson.statement(name)
        self.run_worker(self._watch, thread=True)
        self._go(self.current)
        self._timer = self.set_interval(1, self._wait)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._show())
        if self._first_run:
            title = f"Welcome to {self.lesson.course.file.title}"
            self.app.push_screen(Page(title, Text("\n\n".join(words.WELCOME))))

    def on_unmount(self) -> None:
        """End the thread that watches for saves, because the program waits for that thread."""
        self._no_more_saves.set()

    def end(self, patience: float | None) -> bool:
        """End the checks, and return whether they ended within `patience` seconds (None: wait)."""
        self._next_check.cancel()
        last = self._thread.submit(self._checks.close)
        self._thread.shutdown(wait=False)
        return bool(wait([last], patience).done)

    def on_resize(self, _: Resize) -> None:
        """Draw all parts again for the new size."""
        self._show()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Give the focused pane more room."""
        panes, pane = self.query_one("#panes"), event.widget.id or ""
        if pane == "statement":  # only the keys d and 1 give the statement more room
            panes.remove_class("hints", "verdict")
        else:
            panes.set_classes(pane)

    # --- saves and checks ------------------------------------------------------------------------

    def _watch(self) -> None:
        folders = own_folders(self.lesson.course)
        for _ in saves(folders, SOURCES, SKIPPED, self._seen, self._no_more_saves, poll=self._poll):
            self.post_message(Saved())

    def on_saved(self) -> None:
        """Check the exercise again, and give the verdict pane its usual room."""
        if self.focused is self.query_one("#hints"):
            self.query_one("#statement", Pane).focus()
        self.query_one("#panes").remove_class("statement")
        self._check()  # first: the check runs while the screen is drawn
        changed = self.lesson.saved()
        if changed:
            self._elsewhere = "" if self.current in changed else changed[0]
        if not self._own_save:
            self._note = ""
            if changed and self._elsewhere:
                there = f"to {self._elsewhere}" if len(changed) > 1 else "there"
                self._note = words.ELSEWHERE.format(listed(changed, "and"), there)
        self._own_save = False
        self._show()

    def _check(self) -> None:
        """Start a check of the current exercise; it replaces a check that has not begun."""
        self._next_check.cancel()
        self._next_check = self._thread.submit(self._checks.check, [self.current])
        self._checking = True
        taking = self._take(self.current, self._next_check, named=True)
        # The result of an earlier check of this exercise is out of date.
        self.run_worker(taking, group=self.current, exclusive=True)

    async def _take(self, name: str, check: Future[Found], *, named: bool) -> str:
        """Wait for a check, and show the verdict; `named` is False in a check of all exercises.

        Returns an error message if there is no verdict, or else an empty text.
        """
        lesson, before = self.lesson, self.lesson.verdicts.get(name)
        known = name in lesson.standing.progress.solved and (before is None or before.solved)
        trouble = ""
        try:
            lesson.record(*await asyncio.wrap_future(check), named=named)
        except (CallError, HostFault) as error:
            trouble = str(error)
        if not self.is_attached:  # the student has quit
            return trouble
        if not trouble:
            self._left_out[name] = (*left_out(lesson.course, name),)
            self._note = lesson.unrecorded or self._note
        if name == self.current:
            self._trouble, self._checked_at, self._checking = trouble, self._clock(), False
            self.query_one("#verdict", Pane).scroll_home(animate=False)
            if not trouble and lesson.verdicts[name].solved and not known:  # show the reward
                self.action_look("verdict")
        self._show()
        return trouble

    async def _check_all(self) -> None:
        course, verdicts = self.lesson.course, self.lesson.verdicts
        faults = set[str]()
        for number, name in enumerate(course.asked):
            self._tell(words.CHECKING_ALL.format(number, len(course.asked)))
            # Queue one exercise at a time, so that a save is checked before the next exercise.
            check = self._thread.submit(self._checks.check, [name])
            if await self._take(name, check, named=False):
                faults.add(name)
            if not self._checks.ready:  # the next check would fail too
                self._tell(words.STOPPED_ALL)
                return
        solved = sum(verdicts[name].solved for name in course.asked if name not in faults)
        self._tell(words.all_checked(self.lesson.standing, solved, len(faults)))

    # --- keys ------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Go to the next exercise, or to the previous one if `by` is -1."""
        names = list(self.lesson.course.exercises)
        index = names.index(self.current) + by
        if 0 <= index < len(names):
            self._go(names[index])
        else:
            self._tell(words.LAST if by > 0 else words.FIRST)

    def action_hint(self) -> None:
        """Show one more hint."""
        read, exercise = len(self._hints), self._exercise
        if read == len(exercise.hints):
            self._tell(words.NO_MORE_HINTS if read else words.NO_HINTS)
        else:
            self.lesson.hint(exercise.name)
            self._tell(self.lesson.unrecorded)
        if self._hints:
            self.action_look("hints")
            self.query_one("#hints", Pane).scroll_end(animate=False)

    def action_list(self) -> None:
        """Show the list of exercises, and go to the exercise that the student chooses."""

        def go(name: str | None) -> None:
            if name is not None:
                self._go(name)

        self.app.push_screen(ExerciseList(self.lesson.standing, self.current), go)

    def action_solution(self) -> None:
        """Show a solution, if the student has solved the exercise."""
        try:
            code = self._solution()
        except CallError as error:
            self._tell(str(error))
            return
        body = drawing.code(code, "python", dark=self.app.current_theme.dark)
        self.app.push_screen(Page(f"A solution of {self.current}", body))

    def action_details(self) -> None:
        """Switch between the whole statement and its beginning."""
        self._whole = not self._is_whole
        self._show()
        if self._whole:
            self.action_look("statement")
        else:
            self.query_one("#panes").remove_class("statement")

    def action_shapes(self) -> None:
        """Run the student's answer in another process, and show the shapes line by line."""
        self._tell(words.SHOWING.format(self.current))
        self.run_worker(self._show_shapes(self.current), group="shapes", exclusive=True)

    async def _show_shapes(self, name: str) -> None:
        width = min(self.app.size.width, PAGE) - MARGIN - 2
        try:
            shown = await shapes(self.lesson.course, name, width=width)
        except CallError as error:
            self._tell(str(error))
            return
        self._tell("")
        if self.app.screen is self:  # otherwise a dialog is open by now
            title = words.SHOWN.format(name)
            self.app.push_screen(Page(title, Text.from_ansi(shown.strip("\n"))))

    def action_jump(self) -> None:
        """Go to the other exercise whose answer was saved."""
        if self._elsewhere:
            self._go(self._elsewhere)
        else:
            self._tell(words.NOTHING_ELSEWHERE)

    def action_turn(self) -> None:
        """Switch between dark text on light and light text on dark."""
        self.app.theme = LIGHT if self.app.current_theme.dark else DARK

    def action_reset(self) -> None:
        """Put the stub back, if the student confirms."""

        def answered(yes: bool | None) -> None:
            if not yes:
                self._tell(words.LEFT)
                return
            self._own_save = True
            try:
                kept = reset_exercises(self.lesson.course, self.current)
            except (CallError, HostFault) as error:
                self._tell(str(error))
            else:
                place = _relative(kept, self.lesson.course.folder)
                self._tell(words.WAS_RESET.format(self.current, place))

        self.app.push_screen(Question(words.ASK_RESET.format(self.current)), answered)

    def action_undo(self) -> None:
        """Undo the last reset of the exercise."""
        self._own_save = True
        try:
            file = undo(self.lesson.course, self.current)
        except (CallError, HostFault) as error:
            self._tell(str(error))
        else:
            self._tell(words.WAS_UNDONE.format(self.current) if file else words.NOTHING_KEPT)

    def action_open(self) -> None:
        """Open the exercise's file in the editor, at the line where the answer begins."""
        file = self.lesson.course.stub_file(self.lesson.course.unit_of[self.current])
        line = editor.line_of(file, self.current)
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
                note = editor.start(chosen)
        except SuspendNotSupported:
            note = words.NO_SUSPEND.format(file.name, line)
        self._tell(note)

    def action_know(self) -> None:
        """Leave the screen for a while, and ask questions about the current answer."""
        try:
            name = exercise_to_ask(self.lesson.standing, self.current)
        except CallError as error:
            self._tell(str(error))
            return
        try:
            with self.app.suspend():
                note = editor.ask(self.lesson.course.folder, name)
        except SuspendNotSupported:
            note = words.NO_QUESTIONS.format(name)
        self.lesson.refresh()
        self._tell(note)

    def action_all(self) -> None:
        """Check all exercises one after another."""
        self.run_worker(self._check_all(), group="all", exclusive=True)

    def action_help(self) -> None:
        """Show all keys."""
        table = Table.grid(padding=(0, 2))
        for key in words.KEYS:
            if key.key != "v" or self.lesson.course.has_solutions:
                table.add_row(Text(key.key, style="bold"), key.sentence)
        for name, sentence in words.SCREEN_KEYS:
            table.add_row(Text(name, style="bold"), sentence)
        self.app.push_screen(Page("Keys", table))

    def action_quit(self) -> None:
        """End the program."""
        self.app.exit()

    def action_look(self, pane: str) -> None:
        """Give a pane the focus and more room."""
        self.query_one("#panes").set_classes(pane)
        self.query_one(f"#{pane}", Pane).focus()

    # --- drawing ---------------------------------------------------------------------------------

    @property
    def _exercise(self) -> Exercise:
        return self.lesson.course.exercises[self.current]

    @property
    def _hints(self) -> Sequence[str]:
        """The hints of the current exercise that were read."""
        read = self.lesson.standing.progress.hints.get(self.current, 0)
        return self._exercise.hints[:read]

    @property
    def _is_whole(self) -> bool:
        return self.app.size.height >= TALL if self._whole is None else self._whole

    def _keys(self) -> Sequence[words.Shortcut]:
        """The keys that have an effect now."""
        course, names = self.lesson.course, list(self.lesson.course.exercises)
        works = {
            "n": self.current != names[-1],
            "p": self.current != names[0],
            "h": bool(self._exercise.hints),
            "v": course.has_solutions and self.current in self.lesson.standing.progress.solved,
            "j": bool(self._elsewhere),
            "r": can_reset(course, self.current),
            "u": can_undo(course, self.current),
        }
        return [key for key in words.KEYS if works.get(key.key, True)]

    def _solution(self) -> str:
        """The text of a solution; raises `CallError` if it is missing or may not be shown yet."""
        course, name = self.lesson.course, self.current
        if not course.has_solutions:
            raise CallError(words.NO_SOLUTIONS)
        if name not in self.lesson.standing.progress.solved:
            raise CallError(words.NOT_YET)
        path = course.reference_file(course.unit_of[name])
        try:
            text = path.read_text(encoding="utf-8")
            body = ast.parse(text).body
        except (OSError, SyntaxError, ValueError) as error:
            raise CallError(f"{path.name} cannot be read: {error}") from None
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                first = min([node.lineno, *(part.lineno for part in node.decorator_list)])
                return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
        raise CallError(f"{path.name} has no solution of {name}")

    def _wait(self) -> None:
        """Count the seconds while torch is being loaded, and show them."""
        self._waited += 1
        if self._checks.ready:
            self._timer.stop()
        self._show()

    def _go(self, name: str) -> None:
        """Go to an exercise: show its statement from the beginning, and check the answer."""
        self.current = name
        self._trouble = self._checked_at = self._elsewhere = self._note = ""
        self.workers.cancel_group(self, "shapes")
        pane = self.query_one("#statement", Pane)
        pane.scroll_home(animate=False)
        pane.focus()
        self.query_one("#panes").set_classes("")
        self._check()
        self._show()

    def _tell(self, note: str) -> None:
        self._note = note
        self._show()

    def _show(self) -> None:
        lesson, name, width = self.lesson, self.current, self.app.size.width
        room, dark = width - MARGIN, self.app.current_theme.dark
        self.query_one("#head", StatusLine).show(drawing.head_line(lesson.standing, width))
        statement = drawing.statement_text(lesson, name, room, whole=self._is_whole, dark=dark)
        self.query_one("#statement", Pane).show(words.heading(lesson.course, name), statement)
        hints = self.query_one("#hints", Pane)
        hints.set_class(not self._hints, "empty")
        title = f"Hints: {len(self._hints)} of {len(self._exercise.hints)}"
        hints.show(title, drawing.hints_text(self._hints))
        title = f"Verdict of {self._checked_at}" if self._checked_at else "Verdict"
        title += ", checking again" if self._checking and self._checked_at else ""
        self.query_one("#verdict", Pane).show(title, self._verdict(room))
        note = self.query_one("#note", StatusLine)
        note.display = bool(self._note)
        note.show(Text(safe(self._note)))
        self.query_one("#keys", StatusLine).show(drawing.key_lines(self._keys(), width))

    def _verdict(self, width: int) -> Text:
        """The last verdict; before the first verdict, the state of the first check."""
        verdict = self.lesson.verdicts.get(self.current)
        if self._trouble:
            return Text.assemble((" ! ", "magenta"), safe(self._trouble))
        if verdict is not None:
            below = self._left_out.get(self.current, ())
            return drawing.verdict_text(self.lesson, verdict, below, width)
        if self._checks.ready:
            return Text(words.CHECKING if self.lesson.verdicts else words.FIRST_CHECK)
        so_far = f" {words.SO_FAR.format(self._waited)}" if self._waited else ""
        return Text(f"{words.LOADING}{so_far}")


def _relative(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _now() -> str:
    return time.strftime("%H:%M:%S")


class WatchApp(App[None]):
    """The application of the full screen; call `close` after `run`."""

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
    ModalScreen { align: center middle; background: $background; }
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
        self,
        lesson: Lesson,
        name: str,
        checks: Checks,
        *,
        first_run: bool = False,
        poll: bool = False,
        clock: Callable[[], str] = _now,
    ) -> None:
        super().__init__()
        self.ansi_theme_dark, self.ansi_theme_light = ON_DARK, ON_LIGHT
        if is_light(os.environ):
            self.theme = LIGHT
        self.board = Board(lesson, name, checks, first_run=first_run, poll=poll, clock=clock)

    def get_default_screen(self) -> Screen[None]:
        """The screen with the current exercise."""
        return self.board

    def close(self, patience: float | None = None) -> bool:
        """End the checks, and return whether they ended within `patience` seconds (None: wait)."""
        return self.board.end(patience)
