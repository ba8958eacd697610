"""`grader watch --plain`: lines of text and typed letters, for screen readers and pipes."""

from __future__ import annotations

import os
import queue
import sys
import textwrap
import threading
from collections.abc import Sequence
from functools import partial
from typing import TextIO

from grader.feedback.terminal import all_asked, safe
from grader.feedback.verdict import verdict_of
from grader.intake.own import own_folders
from grader.records.faults import CallError
from grader.student.reward import in_lines
from grader.student.showing import Showing
from grader.student.watch import editor, words
from grader.student.watch.lesson import Lesson, LessonRow
from grader.student.watch.threads import (
    CheckWorker,
    News,
    OpenChecks,
    Opened,
    Shown,
    ShowWorker,
    Watching,
)

WIDTH = 78
TYPE = "Type a letter and Enter: n next, h hint, q quit; ? tells all of them."


class Typed(str):
    """A line that the student typed."""


class FileSaved:
    """A file was saved."""


class NoMoreInput:
    """Nothing more will be typed."""


Event = News | Shown | Typed | FileSaved | NoMoreInput


class Plain:
    """A lesson that is told in lines."""

    def __init__(
        self,
        lesson: Lesson,
        checker: OpenChecks,
        *,
        poll: bool = False,
        typed: int | None = None,
        out: TextIO | None = None,
    ) -> None:
        self._lesson = lesson
        self._events: queue.Queue[Event] = queue.Queue()
        self._worker = CheckWorker(checker, self._events.put)
        self._watching = Watching(
            own_folders(lesson.course), lambda: self._events.put(FileSaved()), poll=poll
        )
        self._shows = ShowWorker(partial(Showing, lesson.course), self._events.put)
        self._typed = sys.stdin.fileno() if typed is None else typed
        self._out = out or sys.stdout  # now: a check puts another one there for a while
        self._may_read = threading.Semaphore(0)
        self._asked = False  # whether a reset waits for a yes
        self._listed: Sequence[LessonRow] = ()

    def run(self, patience: float | None = None) -> bool:
        """Tell and listen, until the student quits or nothing more will be typed.

        Tells whether all threads ended; while torch is being loaded, that is waited for no longer
        than `patience` seconds.
        """
        threading.Thread(target=self._read, name="typed", daemon=True).start()
        self._worker.start()
        self._watching.start()
        try:
            self._greet()
            self._arrive()
            self._may_read.release()
            while self._take(self._events.get()):
                pass
        except (KeyboardInterrupt, BrokenPipeError):
            pass  # both are ways to stop
        self._shows.close()
        self._watching.close()
        return self._worker.close(None if self._lesson.ready else patience)

    # --- what happens ----------------------------------------------------------------------------

    def _take(self, event: Event) -> bool:
        """Take in one event; tell whether to go on."""
        match event:
            case NoMoreInput():
                return False
            case FileSaved():
                self._worker.check(self._lesson.name)
                self._say(self._lesson.saved())
            case Shown():
                self._say(event.text if event.failed else words.SHOWN.format(event.name))
                self._lines("" if event.failed else event.text.strip("\n"))
            case Typed():
                if not self._do(event):
                    return False
                self._may_read.release()
            case _:
                self._hear(event)
        return True

    def _hear(self, news: News) -> None:
        told = self._lesson.hear(news)
        if isinstance(news, Opened):
            self._say(words.FIRST_CHECK)
            return
        if news.remaining is None:
            self._verdict()
        elif news.remaining:
            return  # of a check of all, only the end is told
        self._say(told)

    def _do(self, line: str) -> bool:
        """Do what was typed; tell whether to go on."""
        command, _, rest = line.strip().partition(" ")
        if self._asked:
            self._asked = False
            self._answer(command.lower() in ("y", "yes"))
            return True
        match command.lower():
            case "":
                self._say(TYPE)
            case "q":
                return False
            case "n" | "p":
                self._go_on(self._lesson.step(1 if command.lower() == "n" else -1))
            case "j":
                self._go_on(self._lesson.jump())
            case "h":
                self._hint()
            case "l":
                self._list(rest)
            case "s":
                self._say(words.SHOWING.format(self._lesson.name))
                self._shows.show(self._lesson.name)
            case "v":
                self._solution()
            case "r":
                self._asked = True
                self._say(words.ASK_RESET.format(self._lesson.name))
            case "u":
                self._say(self._lesson.undo())
                self._worker.check(self._lesson.name)
            case "o":
                self._open()
            case "a":
                names = self._lesson.begin_all()
                self._say(words.CHECKING_ALL.format(0, len(names)))
                self._worker.check_all(names)
            case "?":
                self._help()
            case number if number.isdecimal() and 0 < int(number) <= len(self._listed):
                self._lesson.go(self._listed[int(number) - 1].name)
                self._arrive()
            case _:
                self._say(f"There is no {line.strip()!r}. ? tells what there is.")
        return True

    def _go_on(self, told: str) -> None:
        """Tell where the student has gone, or why they could not."""
        if told:
            self._say(told)
        else:
            self._arrive()

    def _answer(self, yes: bool) -> None:
        self._say(self._lesson.reset() if yes else words.LEFT)
        if yes:
            self._worker.check(self._lesson.name)

    def _hint(self) -> None:
        before = len(self._lesson.hints)
        told = self._lesson.hint()
        hints = self._lesson.hints
        if len(hints) > before:
            title = words.HINT.format(len(hints), len(self._lesson.exercise.hints))
            self._say(f"{title}: {hints[-1]}")
        self._say(told)

    def _list(self, wanted: str) -> None:
        self._listed = self._lesson.rows(wanted)
        unit = ""
        for number, row in enumerate(self._listed, 1):
            if row.unit != unit:
                unit = row.unit
                self._say(f"Unit {unit}:")
            self._say(f"{number}. {_row_line(row)}")
        self._say("Type a number and Enter to go there." if self._listed else words.NO_MATCH)

    def _solution(self) -> None:
        try:
            code = self._lesson.solution()
        except CallError as error:
            self._say(str(error))
            return
        self._say(f"A solution of {self._lesson.name}:")
        self._lines(code)

    def _open(self) -> None:
        file = self._lesson.file
        line = editor.line_of(file, self._lesson.name)
        try:
            chosen = editor.editor_for(os.environ, file, line)
        except CallError as error:
            self._say(str(error))
            return
        self._say(words.EDITOR_OPENED.format(file.name, line))
        self._say(editor.start(chosen))

    def _help(self) -> None:
        for key in self._lesson.known_keys():
            if key.key != "d":  # here nothing is left out of a statement
                self._say(f"{key.key}: {key.told}")
        self._say("l and a word: list the exercises that match it")

    # --- telling ---------------------------------------------------------------------------------

    def _greet(self) -> None:
        lesson = self._lesson
        title = lesson.course.file.title
        if lesson.first_run:
            self._say(f"Welcome to {title}.")
            for line in words.WELCOME:
                self._say(line)
        else:
            self._say(f"{title}: {lesson.count} of {all_asked(lesson.course)} solved.")
        self._say(TYPE)

    def _arrive(self) -> None:
        """Tell another exercise, and check it."""
        lesson = self._lesson
        self._lines("")
        self._say(f"Exercise {lesson.name}: {words.file_line(lesson.course, lesson.name)}")
        found = lesson.statement()
        if isinstance(found, str):
            self._say(found)
        else:
            self._lines(found.signature)
            for part in filter(None, found.first_and_rest(lesson.unchecked)):
                self._lines(f"{words.prose(part, WIDTH)}\n")
            self._say(lesson.see_why())
        about = lesson.about_unit()
        if about:
            self._say("About this unit:")
            self._lines(f"{words.prose(about, WIDTH)}\n")
        if not lesson.ready:
            self._say(words.LOADING)
        self._worker.check(lesson.name)

    def _verdict(self) -> None:
        lesson = self._lesson
        if lesson.trouble:
            self._say(lesson.trouble)
        elif lesson.result is not None:
            verdict = verdict_of(lesson.result, lesson.solved_before)
            for line in words.verdict_lines(verdict, WIDTH):
                self._lines(line)
        self._say(lesson.next_step())
        if lesson.reward is not None:
            for part in in_lines(lesson.reward):
                self._say(part.plain)

    def _say(self, text: str) -> None:
        """Prose, in lines of a bearable length; nothing, if there is nothing to say."""
        for line in text.split("\n") if text else []:
            self._lines(textwrap.fill(line, WIDTH, break_on_hyphens=False))

    def _lines(self, text: str) -> None:
        """Text as it is."""
        encoding = self._out.encoding or "utf-8"
        shown = safe(text).encode(encoding, "replace").decode(encoding)
        self._out.write(f"{shown}\n")
        self._out.flush()

    # --- listening -------------------------------------------------------------------------------

    def _read(self) -> None:
        """Put typed lines into the queue, each when the one before is done with.

        Meanwhile, an editor may have the terminal for itself. Reads without a buffer: Python
        cannot end while a thread waits in a buffer's lock.
        """
        with open(self._typed, "rb", buffering=0, closefd=False) as source:
            while True:
                self._may_read.acquire()
                line = source.readline()
                if not line:
                    break
                self._events.put(Typed(line.decode("utf-8", "replace")))
        self._events.put(NoMoreInput())


def _row_line(row: LessonRow) -> str:
    notes = [
        note
        for note, holds in (
            ("solved", row.solved and not row.failing),
            ("solved before, fails now", row.failing),
            ("not asked", not row.asked),
            ("you are here", row.current),
        )
        if holds
    ]
    return f"{row.name}: {row.title}" + (f" ({', '.join(notes)})" if notes else "")
