"""IPython's own syntax in a notebook's cell, rewritten as Python with the same names and lines.

IPython rewrites a cell before it runs it: it removes indentation and prompts, and replaces magics
such as ``%time`` and shell commands such as ``!pip``. This module rewrites the same places, found
as IPython finds them (IPython.core.inputtransformer2). A command that binds no name becomes
``pass``. A test compares the names that IPython binds with those that this module binds.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import PurePosixPath

# A cell with one of these magics in its first line runs as if that line were not there. A cell with
# another magic binds no name: it is in another language, or runs in a namespace of its own. The
# magics of the second line come with packages: they run the cell too.
RUNNING = frozenset(
    {"time", "capture", "prun", "debug",
     "wandb", "ipytest", "snakeviz", "memit", "pyinstrument", "scalene", "heat"}
)  # fmt: skip

CELL_MAGIC = re.compile(r"\s*%%(\w+)\b(?!\?)[^\n]*")  # the first line of a cell with a magic
COMMAND = re.compile(r"[ \t]*[%!?,;/]")  # the beginning of a line that is a command of IPython
ASSIGNED = re.compile(r"[ \t]*(?:!|%(?=[^\W\d]))")  # a command on the right of ``=``
OPTIONS = re.compile(r"(?:-(?:[DlsT]\s*\S+|\w+)\s+)*")  # of ``%prun``
TOKEN = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'(?:\\.|[^\\])*?(?:\'\'\'|\Z)'''
    r"""|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)"""
    r"|(?P<comment>#[^\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>\n)"
    r"|(?P<joined>\\\n)|(?P<assign>(?<![=!<>:+\-*/%&|^@])=(?!=))|(?P<other>[^\s])",
    re.DOTALL,
)
DOCTEST_FIRST, DOCTEST_MORE = re.compile(r"^\s*>>>[ \t]?"), re.compile(r"^\s*\.\.\.[ \t]?")
PROMPT = re.compile(r"^(?:(?:(?:\[nav\]|\[ins\])? )?In \[\d+\]: |\s*\.{3,}: ?)")


def magic_of(cell: str) -> str:
    """The magic in the first line of a cell that IPython does not run as Python; "" otherwise."""
    first = CELL_MAGIC.match(cell)
    return f"%%{first[1]}" if first and first[1] not in RUNNING else ""


def as_python(cell: str) -> str:
    """A cell as Python; line numbers stay the same.

    The result may still be invalid Python. It is empty, except for line breaks, if `magic_of` the
    cell is not "".
    """
    if magic_of(cell):
        return "\n" * cell.count("\n")
    cell = _without_prompts(textwrap.dedent(cell))
    if first := CELL_MAGIC.match(cell):
        return "\n" * first.group().count("\n") + as_python(cell[first.end() :])
    return without_commands(cell)


def without_commands(text: str) -> str:
    """A text in which shell commands and magics are replaced by Python."""
    return "".join(_rewritten(text))


def _without_prompts(cell: str) -> str:
    """A cell without the prompts of an interactive session that it was copied from."""
    lines = cell.split("\n")
    if any(map(DOCTEST_FIRST.match, lines)):
        without = (DOCTEST_MORE.sub("", DOCTEST_FIRST.sub("", line, 1), 1) for line in lines)
        lines = textwrap.dedent("\n".join(without)).split("\n")
    if has_prompts(cell):
        lines = [PROMPT.sub("", line, 1) for line in lines]
    return "\n".join(lines)


def has_prompts(cell: str) -> bool:
    """Whether a cell begins with IPython's prompt, or its second line with a continuation."""
    return any(map(PROMPT.match, cell.lstrip("\n").split("\n", 2)[:2]))


def _rewritten(cell: str) -> Iterator[str]:
    """The parts of a cell, in which commands are replaced by Python."""
    at = 0
    while at < len(cell):
        if COMMAND.match(cell, at):
            end = _end_of_command(cell, at)
            yield _indent(cell, at) + _command(cell[at:end]) + "\n" * cell.count("\n", at, end)
        else:
            end, command, asks = _statement(cell, at)
            if command:
                yield cell[at:command]
                end = _end_of_command(cell, command)
                yield f" {_value(cell[command:end])}" + "\n" * cell.count("\n", command, end)
            elif asks:  # help: ``name?``
                yield _indent(cell, at) + "pass" + "\n" * cell.count("\n", at, end)
            else:
                yield cell[at:end]
        at = end


def _indent(cell: str, at: int) -> str:
    end = at
    while cell[end : end + 1] in (" ", "\t"):
        end += 1
    return cell[at:end]


def _end_of_command(cell: str, at: int) -> int:
    """Where the line at this place ends, with the lines that backslashes join to it."""
    while (end := cell.find("\n", at)) > 0 and cell[end - 1] == "\\":
        at = end + 1
    return len(cell) if end < 0 else end + 1


def _statement(cell: str, at: int) -> tuple[int, int, bool]:
    """The end of the statement at this place, and what IPython finds in it.

    Returns the place of a command that is assigned, or 0; and whether the last token is ``?``.
    """
    depth, last, assigned = 0, "", False
    for token in TOKEN.finditer(cell, at):
        match token.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "assign" if depth == 0 and not assigned:
                assigned = True  # only after the first ``=``
                if ASSIGNED.match(cell, token.end()):
                    return token.end(), token.end(), False
            case "end" if depth == 0:
                return token.end(), 0, last == "?"
        if token.lastgroup not in ("end", "joined"):
            last = token.group()
    return len(cell), 0, last == "?"


def _joined(command: str) -> str:
    """A command's lines as one line, without backslashes."""
    return " ".join(line.removesuffix("\\").strip() for line in command.strip().split("\n"))


def _command(command: str) -> str:
    """A command as a statement: what ``%time``, ``%prun`` and ``%run`` run, or ``pass``."""
    name, _, rest = _joined(command).partition(" ")
    match name:
        case "%run":
            file = next((word for word in rest.split() if not word.startswith("-")), "")
            stem = re.sub(r"\W", "_", PurePosixPath(file.strip("'\"")).stem)
            statement = f"from {stem} import *"
        case "%time" | "%prun":
            statement = OPTIONS.sub("", rest, count=1)
        case _:
            return "pass"
    return statement if _parses(statement) else "pass"


def _value(command: str) -> str:
    """A command that is assigned, as an expression: what ``%time`` runs, or None."""
    name, _, rest = _joined(command).partition(" ")
    return rest if name == "%time" and _parses(f"({rest})") else "None"


def _parses(text: str) -> bool:
    try:
        return bool(ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
