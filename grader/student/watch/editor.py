"""The student's editor, opened at the line of an exercise."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.records.faults import CallError

PLUS_LINE = frozenset({"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro"})
GO_TO = frozenset({"code", "code-insiders", "codium"})  # they open their own window
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
    """Run an editor, to its end if it needs the terminal; returns why that fails, or nothing."""
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
    """The line where a definition begins, in any text; 1 if there is none."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 1
    found = re.search(rf"^(def|class)\s+{re.escape(name)}\b", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 1
