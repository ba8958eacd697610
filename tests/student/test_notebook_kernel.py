"""`grader` in a real kernel: what a student does to it, and what it says then."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from grader.course.course import NAMED
from grader.student.progress import FILE
from tests.support.places import REAL, ROOT

IMPORTS = "import os, signal, sys, time\nimport grader\nimport torch\nfrom torch import nn"
RIGHT = "def softmax_naive(scores):\n    e = torch.exp(scores)\n    return e / e.sum()\n"
CHECK = 'grader.check("softmax_naive")'


class Kernel:
    """A kernel with a course; each cell's outputs as what a page would show."""

    def __init__(self, client: NotebookClient, folder: Path) -> None:
        self._client = client
        self.folder = folder

    def run(self, text: str) -> list[Any]:
        """Run a cell, and return its outputs."""
        cell = nbformat.v4.new_code_cell(text)  # type: ignore[no-untyped-call]
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return list(cell.outputs)

    def said(self, text: str) -> str:
        """What a cell puts out as text."""
        return "\n".join(map(text_of, self.run(text)))


def text_of(output: Any) -> str:
    match output.output_type:
        case "stream":
            return str(output.text)
        case "error":
            return "\n".join(output.traceback)
    return str(output.data["text/plain"])


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for all tests here: each loads torch, and opens the course."""
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
        client = NotebookClient(
            nbformat.v4.new_notebook(),  # type: ignore[no-untyped-call]
            timeout=120,
            kernel_name="python3",
            allow_errors=True,
            resources={"metadata": {"path": str(folder)}},
        )
        with client.setup_kernel():
            running = Kernel(client, folder)
            running.run(
                "import os, signal, sys, time\nimport grader\nimport torch\nfrom torch import nn"
            )
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
    "body",
    [
        "while True:\n        pass",
        "while True:\n        scores = scores + 0",
        "while True:\n        try: scores.sum()\n        except Exception: pass",
        "while True:\n        try: len(scores)\n        except: pass",
        "while True:\n        try:\n            scores.sum()\n        except:\n            pass",
        "time.sleep(1000)",
        "try:\n        while True:\n            pass\n    except BaseException:\n"
        "        return torch.softmax(scores, 0)",
    ],
    ids=[
        "python",
        "torch",
        "except Exception",
        "bare except",
        "bare except around torch",
        "sleep",
        "caught",
    ],
)
def test_an_endless_answer_is_ended_as_in_a_terminal(kernel: Kernel, body: str) -> None:
    told = words(kernel.said(f"def softmax_naive(scores):\n    {body}\n\n{CHECK}"))
    assert "(timeout)" in told
    assert "it took too long: does a loop never end?" in told
    assert still_checks(kernel)


@pytest.mark.parametrize(
    "body",
    [
        "os._exit(1)",
        "os.abort()",
        "os.kill(os.getpid(), 9)",
        "try:\n        os._exit(1)\n    except BaseException:\n        return scores",
    ],
)
def test_an_answer_that_ends_its_process_leaves_the_kernel(kernel: Kernel, body: str) -> None:
    told = words(kernel.said(f"def softmax_naive(scores):\n    {body}\n\n{CHECK}"))
    assert "(crashed)" in told
    assert "the code ended its own process" in told
    assert still_checks(kernel)


@pytest.mark.parametrize("body", ["sys.exit(1)", "exit()", "quit()"])
def test_an_answer_that_exits_leaves_the_kernel(kernel: Kernel, body: str) -> None:
    told = words(kernel.said(f"def softmax_naive(scores):\n    {body}\n\n{CHECK}"))
    assert "line 2 raised SystemExit" in told
    assert still_checks(kernel)


def test_a_check_gives_back_what_it_took(kernel: Kernel) -> None:
    kernel.run("before = os._exit, os.abort, os.kill, signal.getsignal(signal.SIGINT)")
    kernel.run(f"def softmax_naive(scores):\n    os._exit(1)\n\n{CHECK}")
    after = "(os._exit, os.abort, os.kill, signal.getsignal(signal.SIGINT))"
    assert kernel.said(f"before == {after}, 'ask_exit' in vars(get_ipython())") == "(True, False)"
