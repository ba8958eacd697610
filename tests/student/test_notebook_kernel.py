"""`grader` in a real kernel: what a student does to it, and what it says then."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

from grader.course.course import NAMED, load_course
from grader.release.notebooks import cells_of as notebook_cells
from grader.student.progress import FILE
from tests.support.places import REAL, ROOT

IMPORTS = """\
import os, signal, sys, time
from os import _exit
import grader
import torch
from torch import nn
"""
RIGHT = "def softmax_naive(scores):\n    e = torch.exp(scores)\n    return e / e.sum()\n"
CHECK = 'grader.check("softmax_naive")'


Save = Callable[..., None]  # cells, each with its text and its number


class Kernel:
    """A kernel with a course; each cell's outputs as what a page would show."""

    def __init__(self, client: NotebookClient, folder: Path) -> None:
        self._client = client
        self.folder = folder
        self.run(IMPORTS)
        self.pid = int(self.said("print(os.getpid())"))

    def run(self, text: str) -> list[Any]:
        """Run a cell, and return its outputs."""
        cell = nbformat.v4.new_code_cell(text)  # type: ignore[no-untyped-call]
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return list(cell.outputs)

    def end(self, how: str) -> None:
        """Let the kernel be restarted as a page does, or killed as by the system."""
        if how == "killed":
            os.kill(self.pid, signal.SIGKILL)
        else:
            manager: Any = self._client.km
            run_sync(manager.restart_kernel)()

    def said(self, text: str) -> str:
        """What a cell puts out as text."""
        return "\n".join(map(text_of, self.run(text)))


def text_of(output: Any) -> str:
    match output.output_type:
        case "stream":
            return str(output.text)
        case "error":
            return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
    return str(output.data["text/plain"])


def page_of(output: Any) -> str:
    """The HTML of an output."""
    return str(output.data["text/html"])


def words(text: str) -> str:
    return " ".join(text.split())


MakeKernel = Callable[[], AbstractContextManager[Kernel]]


@pytest.fixture(scope="module")
def make_kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeKernel]:
    """Start a kernel in a folder with a course."""
    root = tmp_path_factory.mktemp("kernel")
    folder = root / "exercises"
    shutil.copytree(REAL, folder)
    shutil.copytree(ROOT / "solutions", root / "solutions")
    (folder / FILE).unlink(missing_ok=True)
    course = folder / "course.toml"
    seconds = "test_seconds = 3.0"
    text = course.read_text("utf-8")
    assert seconds in text
    course.write_text(text.replace(seconds, "test_seconds = 0.5"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NAMED, str(folder))
        patch.setenv("IPYTHONDIR", str(root / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(root / "runtime"))

        @contextmanager
        def make() -> Iterator[Kernel]:
            client = NotebookClient(
                nbformat.v4.new_notebook(),  # type: ignore[no-untyped-call]
                timeout=120,
                kernel_name="python3",
                allow_errors=True,
                resources={"metadata": {"path": str(folder)}},
            )
            with client.setup_kernel():
                yield Kernel(client, folder)

        yield make


@pytest.fixture(scope="module")
def kernel(make_kernel: MakeKernel) -> Iterator[Kernel]:
    """One kernel for nearly all tests here: each loads torch, and opens the course."""
    with make_kernel() as running:
        yield running


@pytest.fixture(autouse=True)
def unsolved(kernel: Kernel) -> Iterator[None]:
    """Each test begins with nothing solved."""
    yield
    (kernel.folder / FILE).unlink(missing_ok=True)


def still_checks(kernel: Kernel) -> bool:
    """Whether the kernel is the same, and checks a right answer."""
    return "✓ softmax_naive" in kernel.said(f"{RIGHT}assert torch\n{CHECK}")


# --- an answer that does not end, or ends its process --------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("while True: pass", "timeout", "it took too long: does a loop never end?"),
        ("_exit(1)", "crashed", "the code ended its own process"),
    ],
)
def test_an_answer_that_ends_badly_leaves_the_kernel(
    kernel: Kernel, body: str, status: str, said: str
) -> None:
    told = words(kernel.said(f"def softmax_naive(scores):\n    {body}\n\n{CHECK}"))
    assert f"({status})" in told
    assert said in told
    assert still_checks(kernel)


def test_an_answer_that_exits_leaves_the_kernel(kernel: Kernel) -> None:
    told = words(kernel.said(f"def softmax_naive(scores):\n    exit()\n\n{CHECK}"))
    assert "line 2 raised SystemExit" in told
    assert still_checks(kernel)


# The answer itself presses the stop button, a moment after it has begun.
ENDLESS = """\
def softmax_naive(scores):
    import os, signal, threading
    threading.Timer(0.2, os.kill, (os.{}(), signal.SIGINT)).start()
    while True:
        scores = scores + 1
"""


def test_a_check_can_be_interrupted(kernel: Kernel) -> None:
    assert kernel.said(ENDLESS.format("getppid") + CHECK) == "grader: stopped"
    assert still_checks(kernel)


@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_a_kernel_that_is_gone_leaves_no_process(make_kernel: MakeKernel, how: str) -> None:
    with make_kernel() as one:
        workers = psutil.Process(one.pid).children(recursive=True)
        assert workers, "one starts as soon as the kit is imported"
        one.end(how)
        until = time.monotonic() + 20
        while any(map(is_running, workers)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not any(map(is_running, workers))


def is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


# --- a check, as in a terminal -------------------------------------------------------------------


def test_below_a_verdict_stands_what_a_terminal_says(kernel: Kernel) -> None:
    told = kernel.said(f"{RIGHT}{CHECK}").splitlines()
    assert told[0] == " ✓ softmax_naive"
    assert "1 of 1 pass the public checks" in told
    assert "hidden tests look at the same rules on other inputs" in told
    assert told[-1] == "next: softmax_rows, in softmax.py"
    told = kernel.said(f"def softmax_naive(scores):\n    return scores\n\n{CHECK}").splitlines()
    assert told[-1] == "0 of 1 pass the public checks"


def test_show_says_what_happens_line_by_line(kernel: Kernel) -> None:
    told = kernel.said(
        "def softmax_naive(scores):\n    e = torch.exp(scores)\n    print('largest', e.max() > 0)\n"
        "    return e / e.sum()\n\n"
        'grader.check("softmax_naive", show=True)'
    )
    lines = [words(line) for line in told.splitlines()]
    assert "softmax_naive(scores)" in lines
    assert any(line.startswith("2 e = torch.exp(scores) e (3,) float32") for line in lines), told
    assert any(re.match(r"4 return e / e.sum\(\) → \(3,\) float32", line) for line in lines), told
    assert "your code printed:" in lines
    assert "largest tensor(True)" in lines


def test_show_can_be_interrupted(kernel: Kernel) -> None:
    told = kernel.said(ENDLESS.format("getpid") + 'grader.check("softmax_naive", show=True)')
    assert "scores = scores + 1" in told
    assert "KeyboardInterrupt" in told
    assert still_checks(kernel)


def test_show_is_for_one_exercise(kernel: Kernel) -> None:
    assert "show=True is for one exercise" in kernel.said("grader.check(show=True)")
    assert "softmax is a unit" in kernel.said('grader.check("softmax", show=True)')


AFTERWARDS = """\
[softmax_naive]
why = "What is divided by its sum sums to one."
another_way = "Divide by the sum of each row."
try_it = "Add a thousand to each score."
"""


def test_what_is_solved_for_the_first_time_brings_something_to_read(kernel: Kernel) -> None:
    path = kernel.folder / "afterwards" / "softmax.toml"
    before = path.read_text("utf-8") if path.is_file() else ""
    path.parent.mkdir(exist_ok=True)
    path.write_text(AFTERWARDS, "utf-8")
    try:
        (first,), (again,) = kernel.run(f"{RIGHT}{CHECK}"), kernel.run(CHECK)
    finally:
        path.write_text(before, "utf-8")
    progress = "softmax: 1 of 4 exercises, 2 of 8 points; the whole course: 2 of "
    for output in (first, again):
        assert progress in text_of(output)
        assert progress in page_of(output)
        assert "Divide by the sum of each row." in page_of(output)
    assert "Why it works\nWhat is divided by its sum sums to one." in text_of(first)
    assert "Why it works" not in text_of(again)
    assert "<details open><summary>Why it works, Another way, Try it" in page_of(first)
    assert "<details><summary>Why it works, Another way, Try it" in page_of(again)


def test_a_text_that_cannot_be_read_costs_a_note_and_no_verdict(kernel: Kernel) -> None:
    path = kernel.folder / "afterwards" / "softmax.toml"
    before = path.read_text("utf-8") if path.is_file() else ""
    path.parent.mkdir(exist_ok=True)
    path.write_text("[softmax_naive]\nwhat = 1\n", "utf-8")
    try:
        told = kernel.said(f"{RIGHT}{CHECK}")
    finally:
        path.write_text(before, "utf-8")
    assert " ✓ softmax_naive" in told
    assert "softmax.toml" in told


LOOK = '''\
"""The weights of three scores."""

import torch

import grader
from grader.mine import softmax_naive

weights = softmax_naive(torch.tensor([1.0, 2.0, 3.0]))
grader.heatmap(weights, tokens="abc", title="three weights").show()
'''


def test_the_last_cell_of_a_unit_shows_what_this_notebook_has_defined(kernel: Kernel) -> None:
    course = load_course(kernel.folder)
    script = course.look_file("softmax")
    script.parent.mkdir(exist_ok=True)
    script.write_text(LOOK, "utf-8")
    try:
        unit = next(unit for unit in course.units if unit.name == "softmax")
        *_, about, look = notebook_cells(course, unit, dict.fromkeys(course.exercises, ()))
    finally:
        script.unlink()
    assert "The weights of three scores." in "".join(about["source"])
    kernel.run(RIGHT)  # and nothing is saved
    (picture,) = kernel.run("".join(look["source"]))
    assert "<svg" in page_of(picture)
    assert text_of(picture).splitlines()[:2] == ["three weights", "    a  b  c"]


def test_an_experiment_takes_what_this_notebook_has_defined_once_it_is_solved(
    kernel: Kernel,
) -> None:
    asked = "from grader.mine import yours\nyours('softmax_naive', None, 'recorded numbers');"
    kernel.run(f"def softmax_naive(scores):\n    return scores\n{CHECK}")
    assert "softmax_naive: recorded numbers (until you have" in kernel.said(asked)
    kernel.run(f"{RIGHT}{CHECK}")  # and nothing is saved
    assert "softmax_naive: yours, from this notebook" in kernel.said(asked)


# --- names that are not defined ------------------------------------------------------------------


@pytest.fixture
def saved(kernel: Kernel) -> Iterator[Save]:
    """Save these cells as the kernel's notebook, each with its number where it ran before."""
    path = kernel.folder / "notes.ipynb"

    def save(*cells: tuple[str, int | None]) -> None:
        notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
        for text, count in cells:
            cell = nbformat.v4.new_code_cell(text, execution_count=count)  # type: ignore[no-untyped-call]
            notebook.cells.append(cell)
        path.write_text(nbformat.writes(notebook), "utf-8")  # type: ignore[no-untyped-call]

    save()
    kernel.run(f"os.environ['JPY_SESSION_NAME'] = {str(path)!r}")
    yield save
    kernel.run("os.environ.pop('JPY_SESSION_NAME')")
    path.unlink()


# Each test has a name of its own: what ran in the kernel stays in its history.
HELPER = "def {}(scores):\n    return scores.exp()\n"
USES_HELPER = "def softmax_naive(scores):\n    e = {}(scores)\n    return e / e.sum()\n"


def test_a_cell_that_ran_before_the_kernel_was_started_is_to_run_again(
    kernel: Kernel, saved: Save
) -> None:
    saved(("import torch", 1), (HELPER.format("ran_before"), 3))
    told = (
        "ran_before has not been defined since this kernel started. The cell that was [3] defines"
    )
    assert told in words(kernel.said(USES_HELPER.format("ran_before") + CHECK))
    assert told in words(kernel.said("ran_before(torch.zeros(2))"))


def test_a_cell_that_never_ran_is_to_run_first(kernel: Kernel, saved: Save) -> None:
    saved((HELPER.format("fresh"), None), ("import numpy as somewhere", None))
    told = "fresh is not defined yet. The cell with `def fresh(scores):` defines fresh: run that"
    assert told in words(kernel.said(USES_HELPER.format("fresh") + CHECK))
    assert "The cell with `import numpy as somewhere`" in kernel.said("somewhere.zeros(2)")


def test_a_cell_whose_name_is_gone_is_to_run_again(kernel: Kernel) -> None:
    number = kernel.said(HELPER.format("gone") + "len(In) - 1")
    kernel.run("del gone")
    told = f"gone was deleted, or cell [{number}] stopped before it defined gone: run that cell"
    assert told in kernel.said("gone(torch.zeros(2))")
    # Its text is there, for a check as for a grading.
    assert "✓ softmax_naive" in kernel.said(USES_HELPER.format("gone") + CHECK)


def test_what_another_file_of_the_course_defines_is_named(kernel: Kernel) -> None:
    answer = kernel.folder / "softmax.py"
    before = answer.read_text("utf-8")
    answer.write_text("import torch\n" + RIGHT.replace("naive", "rows"), "utf-8")
    helpers = kernel.folder / "own_helpers.py"
    helpers.write_text("def distinct_helper(x):\n    return x\n", "utf-8")
    try:
        told = kernel.said("softmax_rows(torch.zeros(2, 2))")
        assert "softmax.py defines softmax_rows: `from grader.mine import softmax_rows`" in told
        assert "own_helpers.py defines distinct_helper" in kernel.said("distinct_helper(1)")
        stub = "def softmax_rows(scores):\n    raise NotImplementedError\n"
        told = kernel.said(f"{stub}softmax_rows(torch.zeros(2, 2))")
        assert "In this kernel softmax_rows is still the stub. softmax.py defines" in told
    finally:
        kernel.run("globals().pop('softmax_rows', None)")
        helpers.unlink()
        answer.write_text(before, "utf-8")


def test_an_exercise_that_nobody_has_written_is_said_to_be_one(kernel: Kernel) -> None:
    told = kernel.said("prefix_sum_matrix(3)")
    assert "prefix_sum_matrix is an exercise of averaging, and is not written yet" in told


def test_a_stub_that_is_called_says_what_to_do_and_where(kernel: Kernel) -> None:
    told = kernel.said(
        "def causal_mask(num_tokens):\n    raise NotImplementedError\n\ncausal_mask(3)"
    )
    assert "causal_mask still has a part to write" in told
    assert "----> 2     raise NotImplementedError" in told
    kernel.run("del causal_mask")


def test_a_stub_that_an_answer_calls_is_the_one_that_is_named(kernel: Kernel) -> None:
    told = kernel.said(
        "def causal_mask(num_tokens):\n    raise NotImplementedError\n\n"
        "def causal_attention(x):\n    return causal_mask(3)\n\ncausal_attention(1)"
    )
    assert "causal_mask still has a part to write" in told
    kernel.run("del causal_mask, causal_attention")


def test_a_cell_to_play_in_can_be_the_first_that_runs_after_a_restart(
    kernel: Kernel, saved: Save
) -> None:
    course = load_course(REAL)
    unit = next(unit for unit in course.units if unit.name == "softmax")
    cells = notebook_cells(course, unit, dict.fromkeys(course.exercises, ()))
    (play,) = ("".join(c["source"]) for c in cells if c["id"] == "softmax_stable-play")
    answer = "def softmax_stable(scores, dim=-1):\n    return scores.softmax(dim)\n"
    saved((answer, 3), (play, 4))
    kernel.run("%reset -f")  # and what is built in stays
    try:
        told = words(kernel.said(play))
        assert "softmax_stable has not been defined since this kernel started" in told
        assert "The cell that was [3]" in told
        assert "Solve it first" not in told
        kernel.run(f"import torch\n{answer}")
        assert " by " in kernel.said(play)
    finally:
        kernel.run(IMPORTS)


def test_other_errors_stay_as_they_are(kernel: Kernel) -> None:
    (output,) = kernel.run("unheard_of_name")
    assert output.traceback[-1].endswith("name 'unheard_of_name' is not defined")
    assert "ZeroDivisionError" in kernel.said("1 / 0")


# --- cells that were edited ----------------------------------------------------------------------

OTHER = "def softmax_naive(scores):\n    return torch.exp(scores) / torch.exp(scores).sum()\n"
STUB = "def softmax_naive(scores):\n    raise NotImplementedError\n"
EDITED = "the saved notebook, which a grading reads, has another softmax_naive than this kernel"
USES = "def softmax_naive(scores):\n    return shares(scores.exp())\n"
SHARES = "def shares(x):\n    return x / x.sum()\n"
OLD_SHARES = SHARES.replace("x.sum()", "2")


@pytest.mark.parametrize(
    ("ran", "file"),
    {
        "edited and not run": ([RIGHT], [OTHER]),
        "run and not saved": ([OTHER, RIGHT], [OTHER]),
        "an old version below": ([OTHER, RIGHT], [RIGHT, OTHER]),
        "run out of order": ([OLD_SHARES, USES, SHARES], [SHARES, USES, OLD_SHARES]),
        "a helper was edited": ([SHARES, USES], [OLD_SHARES, USES]),
        "a helper was deleted": ([SHARES, USES], [USES]),
        "an import is missing": ([RIGHT], [RIGHT]),
    }.values(),
)
def test_a_saved_notebook_with_another_answer_is_reported(
    kernel: Kernel, saved: Save, ran: list[str], file: list[str]
) -> None:
    for text in ran:
        kernel.run(text)
    saved(*((text, 1) for text in file))
    (output,) = kernel.run(CHECK)
    assert EDITED in words(text_of(output))
    assert EDITED in words(page_of(output))


@pytest.mark.parametrize("file", [[], [STUB]])
def test_a_saved_notebook_without_the_answer_is_reported(
    kernel: Kernel, saved: Save, file: list[str]
) -> None:
    kernel.run(RIGHT)
    saved(*((text, 1) for text in file))
    assert "which a grading reads, has no softmax_naive yet" in words(kernel.said(CHECK))


@pytest.mark.parametrize(
    ("ran", "file"),
    {
        "the same": ([RIGHT], [RIGHT]),
        "an old version above": ([OTHER, RIGHT], [OTHER, RIGHT]),
        "another comment": ([RIGHT], [RIGHT.replace("return", "# done\n    return")]),
        "run again": ([SHARES, USES, SHARES, USES], [SHARES, USES]),
        "an older helper": ([OLD_SHARES, USES, SHARES], [SHARES, USES]),
        "other cells": (["a = 1", RIGHT, "a = 2"], [RIGHT, "a = 3"]),
    }.values(),
)
def test_a_saved_notebook_with_the_same_answer_is_not(
    kernel: Kernel, saved: Save, ran: list[str], file: list[str]
) -> None:
    for text in ran:
        kernel.run(text)
    saved(("import torch", 1), *((text, 1) for text in file))
    assert "the saved notebook" not in words(kernel.said(CHECK))


def test_a_cell_that_is_no_python_is_reported_beside_the_answer_that_ran_before_it(
    kernel: Kernel,
) -> None:
    kernel.run(RIGHT)
    kernel.run(RIGHT.replace("):", ")", 1))
    said = words(kernel.said(CHECK))
    assert "✓ softmax_naive" in said
    assert "is not valid Python and did not run: the check read softmax_naive from an" in said
    kernel.run(RIGHT)
    assert "not valid Python" not in words(kernel.said(CHECK))


def test_a_name_that_is_misspelt_is_reported_beside_the_answer_that_ran_before_it(
    kernel: Kernel,
) -> None:
    kernel.run(RIGHT)
    kernel.run(RIGHT.replace("softmax_naive", "softmax_naiv"))
    assert "defines softmax_naiv: did you mean softmax_naive?" in words(kernel.said(CHECK))
    kernel.run(RIGHT)
    assert "did you mean" not in words(kernel.said(CHECK))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("math.sqrt(4)", "is `import math` missing?"),
        ("normalise_by_sum(1)", "did you mean normalize_by_sum?"),
    ],
)
def test_a_name_that_nobody_defines_is_nearly_another(kernel: Kernel, line: str, said: str) -> None:
    assert said in words(kernel.said(line))


def test_what_fails_in_a_notebook_is_listed_as_failing_now(kernel: Kernel) -> None:
    kernel.run(RIGHT)
    kernel.run(CHECK)
    kernel.run(RIGHT.replace("return", "return 2 *"))
    kernel.run(CHECK)
    assert "softmax_naive" in kernel.said("grader.list()")
    assert "solved before, fails now" in kernel.said("grader.list()")
    kernel.run(RIGHT)
    kernel.run(CHECK)
    assert "fails now" not in kernel.said("grader.list()")
