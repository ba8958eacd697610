"""`grader.check` and its neighbours in notebooks: what they show, and what they leave alone."""

from __future__ import annotations

import _thread
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

import grader
from grader.course.course import NAMED, load_course
from grader.records.faults import CallError
from grader.student import notebook
from grader.student.notebook_display import Checked
from grader.student.progress import FILE, LastCheck, read_progress, record_progress
from tests.support.places import REAL, ROOT

FORBIDDEN_TAGS = {"script", "link", "img", "iframe", "style", "object", "form", "input"}

IMPORTS = "import grader\nimport torch\nfrom torch import nn\n"
STUB = 'def softmax_naive(scores):\n    """Softmax."""\n    raise NotImplementedError\n'
RIGHT = "def softmax_naive(scores):\n    e = torch.exp(scores)\n    return e / e.sum()\n"
WRONG_AXIS = """\
def softmax_rows(scores):
    print("<b>shape</b>", tuple(scores.shape))
    e = torch.exp(scores)
    return e / e.sum(0)
"""
FORBIDDEN = "def softmax_naive(scores):\n    return torch.softmax(scores, 0)\n"
RAISES = "def softmax_naive(scores):\n    return helper(scores)\n\ndef helper(x):\n    x.nothing\n"
ENDLESS = "def softmax_naive(scores):\n    while True:\n        pass\n"

Cell = Callable[[str], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course: opened once, and progress is written into it."""
    root = tmp_path_factory.mktemp("notebook")
    shutil.copytree(REAL, root / "exercises")
    shutil.copytree(ROOT / "solutions", root / "solutions")
    (root / "exercises" / FILE).unlink(missing_ok=True)
    return root / "exercises"


@pytest.fixture
def cell(shell: InteractiveShell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    """Run a cell in a notebook of its own, and return its last value."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(
        "grader.course.course.__file__", str(folder.parent / "grader" / "course" / "course.py")
    )

    def run(text: str) -> Any:
        ran = shell.run_cell(text, store_history=True)
        ran.raise_error()
        return ran.result

    run(IMPORTS)
    yield run
    (folder / FILE).unlink(missing_ok=True)


class Page(HTMLParser):
    """What a page says, which tags it has, and whether they are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.attributes = "", set[str](), dict[str, set[str]]()
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")
        if tag != "br" and not (self.get_starttag_text() or "").endswith("/>"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:  # the parser tells the end of <path/> too
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page(result: Checked) -> Page:
    return Page(result._repr_html_())


def words(text: str) -> str:
    return " ".join(text.split())


# --- verdicts ------------------------------------------------------------------------------------


def test_what_is_not_defined_gets_kind_words(cell: Cell) -> None:
    result = cell('grader.check("softmax_naive")')
    assert not result.solved
    for text in (repr(result), page(result).text):
        assert "it is not defined in this session yet: run the cell that defines it" in words(text)


@pytest.mark.parametrize("stub", [STUB, "@staticmethod\n" + STUB], ids=["plain", "decorated"])
def test_a_stub_gets_kind_words(cell: Cell, stub: str) -> None:
    cell(stub)
    result = cell('grader.check("softmax_naive")')
    assert "still the stub: write your own lines" in words(repr(result))
    assert "not written yet" in page(result).text


def test_a_class_that_is_a_stub_gets_kind_words(cell: Cell) -> None:
    cell(
        "class CausalAttention(nn.Module):\n    def __init__(self, d_in, d_out):\n"
        "        super().__init__()\n        raise NotImplementedError\n\n"
        "    def forward(self, x):\n        raise NotImplementedError\n"
    )
    assert "still the stub" in repr(cell('grader.check("CausalAttention")'))


def test_the_arguments_of_a_class_are_told(cell: Cell) -> None:
    cell(
        "class CausalAttention(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "    def forward(self, x):\n        return x\n"
    )
    text = words(repr(cell('grader.check("CausalAttention")')))
    assert "CausalAttention.__init__ takes (nothing)" in text


def test_a_right_definition_is_solved_and_remembered(cell: Cell, folder: Path) -> None:
    cell(RIGHT)
    result = cell('grader.check("softmax_naive")')
    assert result.solved
    assert repr(result).startswith(" ✓ softmax_naive\n\n1 of 1 pass the public checks\n")
    assert "softmax_naive: solved" in page(result).text
    assert read_progress(folder).solved == {"softmax_naive"}


def test_a_wrong_definition_gets_the_mistakes_name_and_a_picture(cell: Cell) -> None:
    cell(WRONG_AXIS)
    result = cell('grader.check("softmax_rows")')
    shown = page(result)
    for text in (repr(result), shown.text):
        assert "Each column sums to one, not each row" in text
        assert "Which axis should sum to one?" in text
        assert "<b>shape</b> (2, 3)" in text
    assert "b" not in shown.tags
    assert "svg" in shown.tags
    assert "yours − expected" in shown.text


def test_a_page_needs_nothing_from_outside_and_runs_nothing(cell: Cell) -> None:
    cell(WRONG_AXIS)
    shown = page(cell('grader.check("softmax")'))
    assert not shown.tags & FORBIDDEN_TAGS
    assert not shown.attributes.keys() & {"src", "href", "onclick", "onload", "xlink:href", "id"}


def test_an_exception_is_told_with_its_cell_and_line(cell: Cell) -> None:
    cell(RAISES)
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "cell [2] line 5 raised AttributeError" in text
    assert "x.nothing" in text


Beside = Callable[[str, str], Path]


@pytest.fixture
def beside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    """Write a file into the folder of the notebook."""
    monkeypatch.syspath_prepend(folder)  # as for a kernel
    written: list[Path] = []

    def write(name: str, text: str) -> Path:
        written.append(folder / name)
        written[-1].write_text(text, "utf-8")
        return written[-1]

    yield write
    for path in written:
        path.unlink()
        sys.modules.pop(path.stem, None)


def test_a_definition_may_be_imported_from_a_file(cell: Cell, beside: Beside) -> None:
    beside("my_own_softmax.py", RAISES)
    cell("from my_own_softmax import softmax_naive")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "my_own_softmax.py line 5 raised AttributeError" in text


def test_a_helper_may_be_imported_from_a_file(cell: Cell, beside: Beside) -> None:
    beside("my_helpers.py", "def total(scores):\n    return scores.sum()\n")
    cell(f"from my_helpers import total\n{RIGHT.replace('e.sum()', 'total(e)')}")
    assert cell('grader.check("softmax_naive")').solved


def test_an_answer_may_be_imported_from_a_notebook_that_is_saved(
    cell: Cell, beside: Beside, capsys: pytest.CaptureFixture[str]
) -> None:
    made = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    made.cells = [nbformat.v4.new_code_cell(f"import torch\n{RIGHT}")]  # type: ignore[no-untyped-call]
    beside("mine.ipynb", nbformat.writes(made))  # type: ignore[no-untyped-call]
    cell("from grader.mine import softmax_naive")
    assert "yours, from mine.ipynb cell 1" in capsys.readouterr().out
    assert cell('grader.check("softmax_naive")').solved


def test_a_file_that_nobody_hands_in_is_none_to_import_from(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far_away.py").write_text(RIGHT, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    cell("from far_away import softmax_naive")
    result = cell('grader.check("softmax_naive")')
    assert not result.solved
    assert "softmax_naive is in this kernel, but neither your files nor" in words(repr(result))


def test_a_stub_that_was_imported_from_a_file_is_told(cell: Cell, beside: Beside) -> None:
    beside("my_stubs.py", STUB)
    cell("import my_stubs\ndef softmax_naive(scores):\n    return my_stubs.softmax_naive(scores)\n")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "my_stubs.py line 3 still raises NotImplementedError: there is a part to write" in text


USES_ANOTHER = "def softmax_naive(scores):\n    return shares(torch.exp(scores))\n"
SHARES = "def shares(x):\n    return normalize_by_sum(x)\n"  # a helper of the notebook's own
AT_FAULT = {
    "a stub": (
        "def normalize_by_sum(scores):\n    raise NotImplementedError\n",
        "normalize_by_sum is a stub: write it first, since softmax_naive uses it",
    ),
    "not run": (
        "",
        "normalize_by_sum is not defined in this session: run the cell that defines it, or "
        "`from grader.mine import normalize_by_sum`, since softmax_naive uses it",
    ),
    "wrong": (
        "def normalize_by_sum(scores):\n    return scores / scores.sum() + 3\n",
        "normalize_by_sum fails its own checks now: mend it first, since softmax_naive uses it "
        '(`grader.check("normalize_by_sum")` says why)',
    ),
}


@pytest.mark.parametrize("how", AT_FAULT)
def test_an_earlier_exercise_that_is_at_fault_is_named_first(cell: Cell, how: str) -> None:
    earlier, said = AT_FAULT[how]
    cell(earlier + SHARES + USES_ANOTHER)
    result = cell('grader.check("softmax_naive")')
    assert [one.name for one in result.results] == ["softmax_naive"]
    assert said in words(page(result).text)
    assert said in words(repr(result)).partition("✗ Start with what it uses: ")[2]


@pytest.mark.parametrize("end", ["gives_the_weights_of_the_example", "keeps_float64"])
def test_an_assertion_names_the_earlier_exercise_that_is_at_fault(cell: Cell, end: str) -> None:
    earlier, said = AT_FAULT["wrong"]
    cell(earlier + SHARES + USES_ANOTHER)
    with pytest.raises(AssertionError, match=f"^{re.escape(said)}"):
        notebook.require("softmax_naive", f"test_softmax_naive_{end}")


def test_an_earlier_exercise_that_is_not_used_is_not_blamed(cell: Cell) -> None:
    wrong = "def softmax_naive(normalize_by_sum):\n    return normalize_by_sum + 1\n"
    cell(f"{AT_FAULT['wrong'][0]}{SHARES}{wrong}")
    assert "normalize_by_sum" not in repr(cell('grader.check("softmax_naive")'))


def test_a_part_that_is_still_to_write_is_told(cell: Cell) -> None:
    cell("def softmax_naive(scores):\n    e = scores.exp()\n    raise NotImplementedError\n")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "cell [2] line 3 still raises NotImplementedError: there is a part to write" in text


def test_a_forbidden_operation_is_told_and_stays_usable(cell: Cell) -> None:
    cell(FORBIDDEN)
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "cell [2] line 2 uses softmax" in text
    assert torch.softmax(torch.zeros(2), 0).tolist() == [0.5, 0.5]


def test_wrong_arguments_are_told_before_anything_runs(cell: Cell) -> None:
    cell("def softmax_naive():\n    return 1\n")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "softmax_naive takes (nothing); the statement lists (scores)" in text


def test_what_was_solved_before_is_said(cell: Cell) -> None:
    cell(RIGHT)
    cell('grader.check("softmax_naive")')
    cell(FORBIDDEN)
    result = cell('grader.check("softmax_naive")')
    assert "(it was solved before)" in repr(result)
    assert "(it was solved before)" in page(result).text


def test_all_references_in_one_notebook_pass(cell: Cell) -> None:
    for path in sorted((ROOT / "solutions").glob("*.py")):
        text = path.read_text("utf-8")
        cell(re.sub(r"^from \..*$", "", text, flags=re.MULTILINE))
    result = cell("grader.check()")
    assert [r.name for r in result.results if not r.solved] == []
    assert len(result.results) > 20
    count = len(result.results)
    assert f"{count} of {count} pass the public checks" in repr(result)


# --- what is checked -----------------------------------------------------------------------------


def test_without_names_all_that_is_defined_is_checked(cell: Cell) -> None:
    cell(RIGHT)
    cell(WRONG_AXIS)
    assert [r.name for r in cell("grader.check()").results] == ["softmax_naive", "softmax_rows"]


def test_a_unit_and_a_function_can_be_named_too(cell: Cell) -> None:
    cell(RIGHT)
    assert len(cell('grader.check("softmax")').results) == 4
    assert cell("grader.check(softmax_naive)").solved


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('grader.check("softmax_naif")', "there is no exercise called 'softmax_naif'; did you"),
        ("grader.check()", "no exercise of the course is defined yet"),
        ('grader.check("softmax_naive", course="elsewhere")', "no course.toml in elsewhere"),
        ('grader.hint("softmax_naif")', "there is no exercise called 'softmax_naif'; did you"),
        ('grader.hint("softmax")', "softmax is a unit: a hint is for one exercise"),
        ("grader.heatmap(torch.zeros(2, 2, 2))", "pick one of them"),
    ],
)
def test_a_call_that_is_not_right_is_told_without_a_traceback(
    cell: Cell, call: str, told: str
) -> None:
    with pytest.raises(CallError, match=told) as caught:
        cell(call)
    lines = caught.value._render_traceback_()  # type: ignore[attr-defined]
    assert " ".join(lines) == f"grader: {caught.value}"


def test_a_course_is_found_beside_the_notebook_or_named(
    cell: Cell, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell(RIGHT)
    notes = folder.parent / "notes"
    notes.mkdir(exist_ok=True)
    for here in (folder.parent, notes, folder / "checks"):
        monkeypatch.chdir(here)
        assert cell('grader.check("softmax_naive")').solved
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "grader.course.course.__file__", str(tmp_path / "installed" / "course" / "course.py")
    )
    with pytest.raises(CallError, match=r"there is no course\.toml in .* above: name the course's"):
        cell('grader.check("softmax_naive")')
    assert cell(f'grader.check("softmax_naive", course={str(folder)!r})').solved


def test_progress_that_cannot_be_kept_costs_no_verdict(cell: Cell, folder: Path) -> None:
    (folder / FILE).mkdir()
    try:
        cell(RIGHT)
        result = cell('grader.check("softmax_naive")')
    finally:
        (folder / FILE).rmdir()
    assert result.solved
    assert "progress is not recorded" in repr(result)


# --- what is left alone --------------------------------------------------------------------------


def _state() -> list[Any]:
    return [
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),  # type: ignore[index]
        random.getstate(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.get_default_device(),
        sys.stdout,
        sys.stderr,
    ]


def test_a_check_leaves_the_session_as_it_was(
    cell: Cell, capsys: pytest.CaptureFixture[str]
) -> None:
    cell(WRONG_AXIS)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), torch.device("meta"):
            before = _state()
            cell('checked = grader.check("softmax_rows")')
            assert _state() == before
    finally:
        torch.set_default_dtype(torch.float32)
    assert capsys.readouterr() == ("", "")
    assert "Each column sums to one" in repr(cell("checked"))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C works, also where the suite runs in the background, whose shell switches it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_endless_loop_can_be_stopped(cell: Cell) -> None:
    before = _state()
    cell(ENDLESS)
    threading.Timer(0.5, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt, match="stopped") as caught:
        cell('grader.check("softmax_naive")')
    assert caught.value._render_traceback_() == ["grader: stopped"]  # type: ignore[attr-defined]
    assert _state() == before
    cell(RIGHT)
    assert cell('grader.check("softmax_naive")').solved


def test_import_grader_loads_no_torch_and_starts_nothing() -> None:
    code = (
        "import sys, grader; grader.__version__\n"
        "print({'torch', 'subprocess', 'grader.unsandboxed.worker'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def test_outside_of_notebooks_a_check_says_where_there_is_one() -> None:
    code = "import grader\ngrader.check('softmax_naive')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "in a terminal, type grader check softmax_naive" in ran.stderr


# --- the text of the cells ------------------------------------------------------------------------


def test_what_was_typed_below_a_magic_counts(cell: Cell) -> None:
    cell(f"%%time\n{RIGHT}")
    assert cell('grader.check("softmax_naive")').solved
    cell(f'%%time\n{FORBIDDEN}checked = grader.check("softmax_naive")')
    assert "cell [4] line 3 uses softmax" in words(repr(cell("checked")))


def test_a_definition_below_the_check_does_not_count_yet(cell: Cell) -> None:
    cell(f'{RIGHT}checked = grader.check("softmax_naive")\n{FORBIDDEN}')
    assert cell("checked").solved
    assert not cell('grader.check("softmax_naive")').solved


def test_a_stub_that_ran_last_is_what_is_checked(cell: Cell) -> None:
    cell(RIGHT)
    cell(STUB)
    assert "still the stub" in repr(cell('grader.check("softmax_naive")'))


def test_what_an_answer_does_not_need_is_not_run_again(cell: Cell, tmp_path: Path) -> None:
    log = tmp_path / "ran"
    note = f"open({str(log)!r}, 'a').write('{{}}\\n')\n"
    cell(note.format("training"))
    cell(f"scale = {note.format('needed').strip()} * 0 + 1\n")
    cell(RIGHT.replace("return", "return scale *"))
    log.unlink()
    assert cell('grader.check("softmax_naive")').solved
    assert log.read_text("utf-8").split() == ["needed"]


def test_what_exec_has_made_is_in_no_text(cell: Cell) -> None:
    cell(f"exec({RIGHT!r})")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "softmax_naive is in this kernel, but neither your files nor the cells that ran" in text


def test_an_answer_that_is_gone_from_the_kernel_is_said_to_be(cell: Cell) -> None:
    cell(RIGHT)
    cell("del softmax_naive")
    text = words(repr(cell('grader.check("softmax_naive")')))
    assert "this kernel has no softmax_naive any more" in text


# --- the list, and the zip ------------------------------------------------------------------------


def test_the_list_says_what_is_solved(cell: Cell, tmp_path: Path) -> None:
    folder = written(tmp_path, "softmax")
    record_progress(folder, solved=["softmax_naive"])
    listed = cell(f'grader.list("softmax", course={str(folder)!r})')
    assert "✓ softmax_naive" in repr(listed)
    assert "? softmax_stable" in Page(listed._repr_html_()).text
    with pytest.raises(CallError, match="did you mean softmax"):
        cell('grader.list("softmx")')


def test_what_was_solved_in_the_kernel_and_is_not_saved_is_told(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook._desks, "solved", set())
    to = tmp_path / "ada.zip"
    cell(f'{RIGHT}grader.check("softmax_naive")')
    told = repr(cell(f'grader.pack({str(to)!r}, course=".")'))
    assert "solved in this kernel, but not in the saved files: softmax_naive" in told
    assert "is not written" in told
    assert not to.exists()
    told = repr(cell(f'grader.pack({str(to)!r}, anyway=True, course=".")'))
    assert told.endswith(f"{to} is written")
    assert "averaging.py" in zipfile.ZipFile(to).namelist()


def test_completion_offers_what_is_not_loaded_yet() -> None:
    code = "import sys, grader; print(*dir(grader)); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, loaded = ran.stdout.splitlines()
    assert {"check", "heatmap", "hint", "list", "pack", "__version__"} <= set(names.split())
    assert loaded == "False"


def test_grader_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        _ = grader.chekc


# --- hints ---------------------------------------------------------------------------------------


def test_hints_come_one_by_one_and_are_remembered(cell: Cell, folder: Path) -> None:
    hints = load_course(folder).exercises["softmax_naive"].hints
    for level, said in enumerate([*hints, hints[-1]], start=1):
        result = cell('grader.hint("softmax_naive")')
        shown = Page(result._repr_html_())
        number = min(level, len(hints))
        for text in (repr(result), shown.text):
            assert f"softmax_naive, hint {number} of {len(hints)}" in text
            assert words(said) in words(text)
            assert ("the next hint: grader.hint" in text) == (level < len(hints))
        assert not shown.tags & FORBIDDEN_TAGS
        assert read_progress(folder).hints == {"softmax_naive": number}


def test_a_hint_without_a_name_is_for_the_exercise_last_checked(cell: Cell) -> None:
    cell(f'{WRONG_AXIS}grader.check("softmax_rows")')
    assert cell("grader.hint()").name == "softmax_rows"


def test_a_hint_without_a_name_is_for_an_exercise_that_was_solved_before_and_fails_now(
    cell: Cell, folder: Path
) -> None:
    record_progress(folder, solved=["softmax_rows"])
    cell(f'{FORBIDDEN}grader.check("softmax_naive")')
    cell(f'{WRONG_AXIS}grader.check("softmax_rows")')
    assert cell("grader.hint()").name == "softmax_rows"


def test_after_a_solved_exercise_a_hint_without_a_name_costs_no_hint_of_another(
    cell: Cell, folder: Path
) -> None:
    cell(f'{WRONG_AXIS}grader.check("softmax_rows")')
    cell(f'{RIGHT}grader.check("softmax_naive")')
    with pytest.raises(CallError) as caught:
        cell("grader.hint()")
    assert str(caught.value) == (
        "softmax_naive, which you checked last, is solved: name an exercise, as in "
        'grader.hint("softmax_rows")'
    )
    assert read_progress(folder).hints == {}


def test_before_any_check_a_hint_without_a_name_is_for_the_next_exercise(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebook._desks, "checked", None)
    folder = written(tmp_path, *(unit.name for unit in load_course(REAL).units))
    first, second, *rest = load_course(folder).exercises
    record_progress(folder, solved=[first])
    ask = f"grader.hint(course={str(folder)!r})"
    assert cell(ask).name == second
    record_progress(folder, solved=[second, *rest])
    with pytest.raises(CallError, match="all exercises are solved"):
        cell(ask)


def written(to: Path, *units: str) -> Path:
    """A copy of the course of its own, in which these units are written."""
    folder = to / "exercises"
    shutil.copytree(REAL, folder, ignore=shutil.ignore_patterns(FILE, ".*"))
    for unit in units:
        shutil.copy(ROOT / "solutions" / f"{unit}.py", folder)
    return folder


def test_progress_that_cannot_be_kept_costs_no_hint(cell: Cell, folder: Path) -> None:
    (folder / FILE).mkdir()
    try:
        result = cell(f"{RIGHT}grader.hint(softmax_naive)")
    finally:
        (folder / FILE).rmdir()
    assert "softmax_naive, hint 1 of" in repr(result)
    assert "progress is not recorded" in repr(result)


# --- questions -----------------------------------------------------------------------------------


def test_questions_are_about_a_files_answer_if_the_cell_has_only_the_stub(
    cell: Cell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stubs = (folder / "softmax.py").read_text("utf-8")
    shutil.copy(ROOT / "solutions" / "softmax.py", folder)
    record_progress(folder, checked={"softmax_naive": LastCheck(True)})
    replies = cycle(["a", "(1, 1)"])  # one is none to this question, and is asked again
    monkeypatch.setattr("builtins.input", lambda _: next(replies))
    try:
        said = repr(cell(f'{STUB}grader.ask("softmax_naive")'))
    finally:
        (folder / "softmax.py").write_text(stubs, "utf-8")
    assert "right about softmax_naive" in said
    assert "softmax_naive" in read_progress(folder).asked


# --- a real notebook -----------------------------------------------------------------------------


def test_a_notebook_shows_verdicts_as_html(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAMED, str(folder))  # in the kernel it is not the kit's own
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    check = 'grader.check("softmax_rows")'
    right = "def softmax_rows(scores):\n    e = scores.exp()\n    return e / e.sum(1, True)\n"
    cells = [
        "import grader, torch",
        f"{STUB.replace('naive', 'rows')}{check}",
        f"{right}{check}",
        f"{WRONG_AXIS.replace('sum(0)', 'sum(0) + e.nothing')}{check}",
        f"{WRONG_AXIS}{check}",
        "grader.heatmap(torch.eye(3))",
        'grader.check("nonsense")',
        f"{RIGHT}grader.check()",
    ]
    notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in cells]  # type: ignore[no-untyped-call]
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[0] == []
    unsolved, solved, raised, wrong, heatmap = (output.data for (output,) in outputs[1:6])
    assert "still the stub" in unsolved["text/html"]
    assert "softmax_rows</strong>: solved" in solved["text/html"]
    assert solved["text/plain"].startswith(" ✓ softmax_rows\n")
    assert "cell [4] line 4 raised AttributeError" in words(raised["text/plain"])
    assert "Each column sums to one, not each row" in wrong["text/html"]
    assert "<svg" in wrong["text/html"]
    assert "<svg" in heatmap["text/html"]
    (nonsense,), (both,) = outputs[6:8]
    told = " ".join(nonsense.traceback)
    assert told.startswith("grader: there is no exercise called 'nonsense'; the units")
    assert "1 of 2 pass the public checks" in both.data["text/plain"]
