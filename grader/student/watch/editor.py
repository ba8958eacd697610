"""The student's editor, opened at the line of an exercise."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.records.faults import CallError

PLUS_LINE = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro"})
GO_TO = frozenset({"code", "code-insiders", "codium"})  # editors that open their own window
BACK = "\nEnter goes back to the exercise. "
UNSET = "Which editor? Set VISUAL or EDITOR, for example: export EDITOR=nano"


@dataclass(frozen=True)
class Editor:
    """The command that opens a file in the student's editor."""

    command: tuple[str, ...]
    in_terminal: bool  # whether the editor takes over the terminal


def editor_for(environ: Mapping[str, str], file: Path, line: int) -> Editor:
    """The editor that VISUAL or EDITOR names; raises `CallError` if neither is set."""
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
    """Start an editor, and wait for its end if it runs in the terminal.

    Returns an empty text, or an error message if the editor cannot be started.
    """
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
            "Set VISUAL or EDITOR to an editor that is installed."
        )
    return ""


def line_of(file: Path, name: str) -> int:
    """The line where the definition of a name begins, even in a broken file; 1 if not found."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 1
    found = re.search(rf"^(def|class)\s+{re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def ask(course: Path, name: str) -> str:
    """Ask questions about an answer in the terminal, as ``grader ask`` does, and wait for the end.

    Returns an empty text, or an error message.
    """
    command = (sys.executable, "-I", "-m", "grader", "ask", name, "--course", str(course))
    try:
        subprocess.run(command, check=False)
        input(BACK)
    except (OSError, EOFError, KeyboardInterrupt) as error:
        return str(error)
    return ""
