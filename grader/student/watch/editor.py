"""How the student's editor is called at the line of an exercise, and how saves are waited for."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.records.faults import CallError
from grader.records.saves import Snapshot, saves, snapshot

PLUS_LINE = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro"})
GO_TO = frozenset({"code", "code-insiders", "codium"})  # these open a window of their own
UNSET = "Which editor? Set VISUAL or EDITOR, for example: export EDITOR=nano"


@dataclass(frozen=True)
class Editor:
    """A command that opens a file."""

    command: tuple[str, ...]
    in_terminal: bool  # it needs the terminal for itself


def editor_for(environ: Mapping[str, str], file: Path, line: int) -> Editor:
    """The editor that VISUAL or EDITOR names; raise `CallError` if neither does."""
    chosen = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    try:
        parts = shlex.split(chosen, posix=os.name != "nt")
    except ValueError:  # a quote that is never closed
        parts = [chosen]
    if not parts:
        raise CallError(UNSET)
    name = Path(parts[0]).stem.lower()
    if name in PLUS_LINE:
        return Editor((*parts, f"+{line}", str(file)), in_terminal=True)
    if name in GO_TO:
        return Editor((*parts, "-g", f"{file}:{line}"), in_terminal=False)
    return Editor((*parts, str(file)), in_terminal=True)


def start(editor: Editor) -> str:
    """Run it: to its end, if it needs the terminal. Says so if it cannot be run."""
    try:
        if editor.in_terminal:
            subprocess.run(editor.command, check=False)
        else:
            subprocess.Popen(
                editor.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    except OSError as error:
        return (
            f"{editor.command[0]} cannot be started ({error.strerror}). "
            "Set VISUAL or EDITOR to an editor that is there."
        )
    return ""


def line_of(file: Path, name: str) -> int:
    """The line where a definition begins, in a file that need not be valid Python; 1 if nowhere."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 1
    found = re.search(rf"^(def|class)\s+{re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


# --- watching ------------------------------------------------------------------------------------
#
# The thread that notices when a file of answers is saved.


SOURCES = (".py", ".ipynb")


class Watching:
    """Calls `changed`, from within its thread, after files under a folder were saved."""

    def __init__(self, folder: Path, changed: Callable[[], None], *, poll: bool = False) -> None:
        self._folder = folder
        self._changed = changed
        self._poll = poll
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watching", daemon=True)
        self._seen: Snapshot = {}

    def start(self) -> None:
        """Begin to watch; what is saved from now on is noticed."""
        self._seen = snapshot(self._folder, SOURCES)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        for _ in saves(self._folder, SOURCES, self._seen, self._stop, poll=self._poll):
            self._changed()
