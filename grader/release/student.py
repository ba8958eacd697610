"""The bundle for students: a folder that stands alone, and holds no solution.

Recorded results take the place of references; the engine comes along as source, so that
``pip install .`` in the folder is all that it takes.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import grader
from grader.course import Assignment, Course
from grader.faults import CallError, HostFault
from grader.release import texts
from grader.release.assignments import part_of
from grader.release.folders import drafted, files_in, require_free, write_sums

BUILT = {".pyc", ".pyo", ".so", ".pyd"}


def release_student(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
    jobs: int = 1,
    assignment: Assignment | None = None,
) -> list[Path]:
    """Write the bundle into `to`, and return its files; with an `assignment`, of its units only.

    The same course gives the same bytes. Raises `CallError` where `to` holds something else, or an
    earlier bundle with changes that only `replace` may lose; and where a stub is solved, since the
    bundle would give the solution away. `report` is told of each unit that is recorded.
    """
    course.require_solutions("release student")
    text = (course.folder / "course.toml").read_text("utf-8")
    if assignment is not None:
        course, text = part_of(course, assignment)
    refuse_solved_stubs(course)
    require_free(to, replace)
    with drafted(to) as draft:
        exercises = draft / "exercises"
        (exercises / "checks").mkdir(parents=True)
        _write(exercises / "course.toml", text)
        for path in map(course.stub_file, _units(course)):
            shutil.copyfile(path, exercises / path.name)
        for path in course.check_files():
            shutil.copyfile(path, exercises / "checks" / path.name)
        _notebooks(course, draft / "notebooks")
        _write(draft / "README.md", texts.readme(course))
        _write(draft / "AGENTS.md", texts.agents(course))
        _write(draft / "pyproject.toml", texts.pyproject())
        _write(draft / "LICENSE", _licence())
        copy_engine(draft / "grader")
        _record(course, exercises / "recorded", report, jobs)
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]


def refuse_solved_stubs(course: Course) -> None:
    """Raise `CallError` where a stub no longer ends in ``raise NotImplementedError``."""
    for unit in _units(course):
        path = course.stub_file(unit)
        try:
            body = ast.parse(path.read_bytes()).body
        except (OSError, SyntaxError, ValueError) as error:
            raise CallError(f"{path} cannot be read: {error}") from None
        for node in body:
            name = getattr(node, "name", "")
            if course.unit_of.get(name) == unit and not _is_stub(node):
                raise CallError(f"{path} holds a solution of {name}: a bundle would give it away")


def copy_engine(to: Path) -> None:
    """Copy the engine's source and its data, without what was built from it."""
    source = Path(grader.__file__).parent
    for path in files_in(source):
        hidden = any(part.startswith((".", "__pycache__")) for part in path.parts)
        # A wheel carries a bundle inside the engine: a bundle does not carry another.
        if hidden or path.suffix in BUILT or path.name.endswith("~") or path.parts[0] == "bundle":
            continue
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, to / path)


def _is_stub(node: ast.stmt) -> bool:
    """Whether a function, or every method of a class, ends in ``raise NotImplementedError``."""
    if isinstance(node, ast.ClassDef):
        methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        return bool(methods) and all(map(_is_stub, methods))
    if not isinstance(node, ast.FunctionDef) or not isinstance(node.body[-1], ast.Raise):
        return False
    raised = node.body[-1].exc
    raised = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _units(course: Course) -> list[str]:
    return [unit.name for unit in course.units]


def _notebooks(course: Course, folder: Path) -> None:
    try:
        from grader.release.notebooks import write_notebooks
    except ModuleNotFoundError as error:
        raise CallError(
            f"notebooks need {error.name}: pip install 'attention-grader[notebooks]'"
        ) from None
    write_notebooks(course, folder)


def _record(course: Course, folder: Path, report: Callable[[str], None], jobs: int) -> None:
    from grader.recording import record  # it loads torch

    record(course, folder, report, jobs)


def _licence() -> str:
    text = metadata.distribution("attention-grader").read_text("licenses/LICENSE")
    if text is None:
        raise HostFault("this install of attention-grader came without its LICENSE")
    return text


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())  # the same line ends everywhere
