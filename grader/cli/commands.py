"""The table of commands, each with the module of this room that defines it.

A module is loaded when one of its commands runs, or when help lists all commands. A student's
bundle contains only the modules of commands for students, and offers only these commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec

ROOM = __package__
# In the order of the help, within each heading.
MODULE_OF = {
    "check": "student", "list": "student", "hint": "student", "ask": "student", "after": "student",
    "look": "student", "try": "student", "play": "play", "reset": "student", "run": "student",
    "pack": "student",
    "watch": "student", "mcp": "student", "init": "init",
    "grade": "grade",
    "explain": "conversation", "adjust": "decisions", "comment": "decisions",
    "extend": "decisions", "excuse": "decisions", "assign": "decisions",
    "history": "decisions",
    "forget": "conversation", "diff": "conversation",
    "report": "conversation", "export": "conversation", "canvas": "canvas", "term": "term",
    "viva": "viva",
    "release": "release",
    "audit": "audit", "schema": "author", "doctor": "doctor", "new": "author",
    "host": "host",
}  # fmt: skip


def offered() -> list[str]:
    """The names of the commands whose modules are installed."""
    here = {module for module in MODULE_OF.values() if find_spec(f"{ROOM}.{module}") is not None}
    return [name for name, module in MODULE_OF.items() if module in here]


def load(names: Iterable[str]) -> None:
    """Import the modules of these commands; each command adds itself to the program."""
    for module in dict.fromkeys(MODULE_OF[name] for name in names):
        import_module(f"{ROOM}.{module}")
