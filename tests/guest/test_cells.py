"""What IPython runs in a cell counts, and binds the names that IPython binds."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from grader.grading.desk import Desk
from grader.wire import SourceText
from grader.wire.ipython import as_python
from grader.wire.source import read_file
from tests.support.tiny_answers import Ask, Sit, center_that_gives, found

# Cells in IPython's syntax. A test adds the line ``last = 1``, which must bind `last`.
CELLS = [
    "!true",
    "!!true",
    "!echo one \\\n    two",
    '!echo "it\'s ("',
    "!echo 'a'  # a comment",
    "if True:\n    !true",
    "if True:\n    !echo a \\\n  b\n    inside = 1",
    "for _ in 'ab':\n    %time 1\n    inside = 2",
    "def f():\n    !true\n    return 1",
    "def f():\n    here = !echo x\n    return here",
    "class A:\n    %time b = 3",
    "try:\n    %pwd\nexcept NameError:\n    pass",
    "files = !ls",
    "files=!ls",
    "a = [0]\na[0] = !ls",
    "class A: pass\na = A()\na.files = !ls",
    "files : list = !ls",
    "files = !echo a \\\n  b",
    "(a, b) = %time (1, 2)",
    "where = %pwd",
    "x = %time 3 + 4",
    "x = %time len([1, 2,\\\n 3])",
    "%time y = 5",
    "%time import math",
    "%time a = 1; b = 2",
    "%prun -q z = 1",
    "%timeit -n1 -r1 q = 1",
    "%precision 3",
    "%pprint",
    "len?",
    "len??",
    "?len",
    "??len",
    "str.*find*?",
    "if True:\n    len?\n    inside = 1",
    "x = len?",
    "x = 17 \\\n % 10",
    "x = (17\n % 10)\n!true",
    "x = (17\n    % 10\n    )\n%time y = 3",
    "x = (1\n!= 2)\n!true",
    "x = '''\n!not a command\n%nor this\nthis neither?\n'''\n!true",
    'x = """\n%time y = 3\n"""\n%time z = 1',
    "x = 'a\\\n!b'\n!true",
    "x = {'a': '!b', 'c?': 3}  # really?\n!true",
    "# is it so?\n!true",
    "x = 1 # %time\n%time y = 1",
    "def f(a=1, *, b='?'):\n    return a\n!true",
    "x = f'{3}?'\n!true",
    "x = r'\\n'\n!true",
    "    a = 1\n    b = 2",
    "\ta = 1\n\tb = 2",
    "\n\n    a = 1\n    !true",
    "    def f():\n        return 1\n\n    a = f()",
    ">>> a = 1\n>>> b = 2",
    ">>> def f():\n...     return 1\n...\n>>> b = f()",
    "In [3]: a = 1",
    "In [3]: def f():\n   ...:     return 1\n   ...: ",
    "In [12]: a = 1\n\nIn [13]: b = 2",
    "%%time\na = 1\nb = 2",
    "%%time\n\n!true\na = 1",
    "\n%%time\na = 1",
    "%%capture\na = 1",
    "%%capture out\na = 1",
    "%%prun -q\na = 1",
    "%%time\n%%capture\na = 1",
    "%%timeit -n1 -r1\na = 1",
    "%%bash\na=1",
    "%%script true\na = 1",
    "%%writefile {file}\na = 1",
    "%%sx\necho a",
]
# How cells begin in which such a line would be a part of something else.
ALONE = ("%%", ">>>", "In [", "    ", "\t", "\n\n    ", "\n%%")
# `%%capture out` binds `out` as well: an answer does not use it.
EXCEPTIONS = {"%%capture out\na = 1": {"out"}}


def in_ipython(shell: InteractiveShell, cell: str) -> set[str]:
    """The names that IPython binds when it runs the cell in an empty namespace."""
    before = set(shell.user_ns)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result = shell.run_cell(cell)
    assert result.success, (cell, result.error_in_exec or result.error_before_exec)
    return {name for name in set(shell.user_ns) - before if not name.startswith("_")}


def in_the_loader(cell: str) -> set[str]:
    """The names that the statements bind which the loader reads in the cell, when all run."""
    namespace: dict[str, Any] = {}
    file = read_file(SourceText("hw.ipynb", ("first = 1", cell)))
    assert not [broken for broken in file.broken if "not valid Python" in broken[2]]
    for statement in file.statements[1:]:
        exec(statement.code, namespace)
    return {name for name in namespace if not name.startswith("_")}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_binds_what_it_binds_in_ipython(
    shell: InteractiveShell, tmp_path: Path, cell: str
) -> None:
    cell = cell.replace("{file}", str(tmp_path / "written.py"))
    if not cell.startswith(ALONE):
        cell += "\nlast = 1"
    assert in_the_loader(cell) == in_ipython(shell, cell) - EXCEPTIONS.get(cell, set())


@given(st.lists(st.sampled_from(sorted({*"".join(CELLS)})), max_size=60).map("".join))
def test_any_cell_keeps_its_lines(cell: str) -> None:
    assert as_python(cell).count("\n") == cell.count("\n")


@pytest.mark.parametrize("magic", ["%%writefile center.py", "%%timeit", "%%bash", "%%script cat"])
def test_an_answer_in_a_cell_that_does_not_run_is_explained(sit: Sit, magic: str) -> None:
    entry = found(sit({"hw.ipynb": ["x = 1", f"\n{magic}\n{center_that_gives(3)}"]}))
    assert entry.status == "broken"
    assert entry.message.startswith(f"makes this a {magic.split()[0]} cell")
    assert entry.place is not None
    assert (entry.place.cell, entry.place.line) == (2, 2)


@pytest.mark.parametrize("magic", ["%%wandb", "%%ipytest -q", "%%memit"])
def test_a_magic_of_a_package_that_runs_its_cell_costs_its_line_alone(
    sit: Sit, center: Ask, magic: str
) -> None:
    cell = f"{magic}\ndef center(x):\n    return x * 0 + 4\n"
    assert center(sit({"basics.ipynb": [cell]})) == 4


def test_run_brings_the_names_of_a_submitted_file(sit: Sit, center: Ask) -> None:
    answer = "%run helpers.py\ndef center(x):\n    return x * 0 + n()\n"
    assert center(sit({"helpers.py": "def n():\n    return 4\n", "hw.ipynb": [answer]})) == 4


@pytest.mark.parametrize("line", ["files = !ls", "len?", "%time x = 1"])
def test_any_command_in_a_file_costs_its_line_alone(sit: Sit, center: Ask, line: str) -> None:
    assert center(sit({"basics.py": f"{line}\n{center_that_gives(3)}"})) == 3


def test_a_command_in_a_file_costs_its_line_alone(sit: Sit, center: Ask, desk: Desk) -> None:
    text = f"!pip install torch \\\n  numpy\n%matplotlib inline\n{center_that_gives(3)}"
    assert center(sit({"basics.py": text})) == 3
