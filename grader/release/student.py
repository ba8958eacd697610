"""The bundle for students: a folder that needs no other files, and contains no solution.

Recorded results replace the references. The bundle contains the source of those parts of the engine
that a student needs. To install it, type ``pip install .`` in the folder.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from grader.course.course import Course
from grader.records.bundles import bundled, require_free, write_sums
from grader.records.faults import CallError
from grader.records.files import files_in
from grader.release import texts
from grader.release.courses import copy_exercises
from grader.release.engine import FOR_STUDENTS, copy_engine
from grader.release.hosted import Wheel


def write_student_bundle(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
    jobs: int = 1,
    texts_beside: Mapping[str, str] | None = None,
    notebooks: bool = True,
    wheel: Wheel | None = None,
    engine: Collection[str] = FOR_STUDENTS,
    most: int | None = None,
) -> list[Path]:
    """Write the bundle into `to`, and return its files.

    `texts_beside` has further text files by path, which replace the bundle's files of the same
    name. With `notebooks`, the bundle has a notebook for each unit; with `wheel`, the notebooks
    install the kit from there. `engine` lists the rooms and modules to copy. `report` is called
    after each recorded exercise, and `most` limits the recorded mistakes: see `record_course`. The
    same course gives the same bytes.

    Raises `CallError` if `to` contains other files than a bundle's, or if it contains an edited
    bundle and `replace` is not set. Raises `CallError` also if a stub is solved, since the bundle
    would give the solution away.
    """
    course.require_solutions("release student")
    refuse_solved_stubs(course)
    require_free(to, replace)
    from grader.release.recording import record_course  # loads torch: only for a course that is fit

    with bundled(to) as draft:
        copy_exercises(course, draft / "exercises")
        if notebooks:
            _notebooks(course, draft / "notebooks", wheel)
        written = {
            "README.md": texts.readme(course),
            "AGENTS.md": texts.agents(course),
            "pyproject.toml": texts.pyproject(course),
            "LICENSE": texts.licence(),
            ".gitignore": texts.as_it_is("gitignore"),
            **(texts_beside or {}),
        }
        for name, text in written.items():
            texts.write_text(draft / name, text)
        copy_engine(draft / "grader", engine)
        record_course(course, draft / "exercises" / "recorded", report, jobs, most)
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]


def refuse_solved_stubs(course: Course) -> None:
    """Raise `CallError` if a stub does not end in ``raise NotImplementedError``."""
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


def _notebooks(course: Course, folder: Path, wheel: Wheel | None) -> None:
    try:
        from grader.release.notebooks import write_notebooks
    except ModuleNotFoundError as error:
        raise CallError(
            f"notebooks need {error.name}: pip install 'attention-grader[notebooks]'"
        ) from None
    write_notebooks(course, folder, wheel)
