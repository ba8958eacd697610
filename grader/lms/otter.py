"""otter-grader: writes student notebooks, autograders, and notebooks for `otter assign`.

`otter generate` makes the autograders, so containers run otter's own code. An autograder is a zip
in Gradescope's format. All autograders contain the same course and kit; each lists the exercises
that it grades. An autograder's settings name a plugin (`otter_plugin`), through which otter calls
the kit.
"""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from grader.course.collection import rules_left_out
from grader.course.course import Course
from grader.lms.gradescope import PROGRAMS, ZIP
from grader.lms.system import Bundle, System
from grader.records.bundles import bundled, require_free, write_sums
from grader.records.faults import CallError
from grader.records.files import files_in, zipped
from grader.release import texts
from grader.release.courses import carry
from grader.release.engine import copy_engine
from grader.release.student import refuse_solved_stubs, write_student_bundle
from grader.release.texts import write_text

PLUGIN = "grader.lms.otter_plugin.Plugin"
# The version of Python for containers: the same as on this machine.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

# otter copies only files called ``requirements.*`` into a container before it installs packages.
KIT = "requirements.kit.zip"
UNPACKED = "/autograder/source"  # the autograder in a container
NO_TESTS = "This folder has no tests: the plugin in `otter_config.json` grades submissions.\n"
NO_METADATA = """
# `otter grade` leaves this file empty, and then otter cannot read it for a plugin.
if [ ! -s /autograder/submission_metadata.json ]; then
  echo '{}' > /autograder/submission_metadata.json
fi
"""


def release_otter(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
    jobs: int = 1,
    torch_index: str | None = None,
) -> list[Path]:
    """Write the release into `to`, unreadable for other users, and return its files.

    `torch_index` is the address of a second package index for pip. `report` is called after each
    recorded exercise. Raises `CallError` if otter or the seed is missing, if a stub is solved, if
    `to` holds other files, or if it holds an edited release and `replace` is not set.
    """
    course.require_solutions("release otter")
    course.hidden_seed()
    refuse_solved_stubs(course)
    require_free(to, replace)
    notebooks = _notebooks()
    checks, unchecked_in = notebooks.public_checks(course), rules_left_out(course)
    more = [f"--extra-index-url {torch_index}"] if torch_index else []
    with bundled(to, private=True) as draft:
        readme = {"README.md": _students_readme(course)}
        write_student_bundle(
            course,
            draft / "student",
            report,
            jobs=jobs,
            notebooks=False,
            texts_beside=readme | notebooks.student_version(course, checks, unchecked_in),
        )
        master = draft / "master"
        carry(course, master / "course")
        (master / KIT).write_bytes(_kit(course, draft / "student"))
        for unit in course.units:
            graded = course.asked_in(unit.name)
            text = notebooks.master(course, unit, checks, unchecked_in, _settings(graded, more))
            write_text(master / f"{unit.name}.ipynb", text)
            _write_autograder(draft / "autograders" / f"{unit.name}.zip", master, graded, more)
        _write_autograder(draft / ZIP, master, course.asked, more)
        write_text(draft / "README.md", _readme(course))
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]


def _notebooks() -> ModuleType:
    """The module `otter_notebooks`; raises `CallError` if a library that it needs is missing."""
    try:
        import otter.generate  # noqa: F401 (is it installed?)

        from grader.lms import otter_notebooks
    except ModuleNotFoundError as error:
        raise CallError(
            f"a release for otter needs {error.name}: pip install 'attention-grader[otter]'"
        ) from None
    return otter_notebooks


def _kit(course: Course, student: Path) -> bytes:
    """A zip that pip can install: the whole engine, which also requires the jails' libraries."""
    with TemporaryDirectory() as temporary:
        here = Path(temporary)
        copy_engine(here / "grader")
        write_text(here / "pyproject.toml", texts.pyproject(course, grading=True))
        for name in ("README.md", "LICENSE"):
            shutil.copyfile(student / name, here / name)
        return zipped({name.as_posix(): here / name for name in files_in(here)})


def _write_autograder(to: Path, supplies: Path, graded: Sequence[str], more: Sequence[str]) -> None:
    """Make an autograder with `otter generate`, add the kit and the course, and write it."""
    from otter.generate import main as generate

    with TemporaryDirectory() as temporary:
        here = Path(temporary)
        write_text(here / "otter_config.json", json.dumps(_config(graded)))
        write_text(here / "requirements.txt", "\n".join([*more, f"{UNPACKED}/{KIT}"]))
        generate(
            tests_dir=str(here / "tests"),
            output_path=str(here / to.name),
            config=str(here / "otter_config.json"),
            requirements=str(here / "requirements.txt"),
            no_environment=True,
            python_version=PYTHON,
        )
        with zipfile.ZipFile(here / to.name) as made:
            made.extractall(here / "made")
        write_text(here / "made" / "tests" / "README.md", NO_TESTS)  # otter needs the folder
        with (here / "made" / "setup.sh").open("a", encoding="utf-8", newline="\n") as setup:
            setup.write(NO_METADATA)
        files = {name.as_posix(): here / "made" / name for name in files_in(here / "made")}
        files[KIT] = supplies / KIT
        for name in files_in(supplies / "course"):
            files[f"files/course/{name.as_posix()}"] = supplies / "course" / name
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(zipped(files, PROGRAMS))


def _config(graded: Sequence[str]) -> Mapping[str, Any]:
    """The settings in an autograder's ``otter_config.json``."""
    return {"show_hidden": True, "plugins": [{PLUGIN: {"only": list(graded)}}]}


def _settings(graded: Sequence[str], more: Sequence[str]) -> Mapping[str, Any]:
    """The settings for `otter assign` in a master notebook."""
    return {
        "requirements": [*more, f"{UNPACKED}/files/{KIT}"],
        "python_version": PYTHON,
        "tests": {"files": True, "ok_format": False},
        "export_cell": {"pdf": False, "run_tests": False},
        "autograder_files": ["course", KIT],
        "generate": _config(graded),
    }


def _readme(course: Course) -> str:
    """The README for the instructor."""
    first = course.asked[0]
    return texts.template(
        "otter/README.md",
        __package__,
        title=texts.full_title(course),
        first=first,
        first_unit=course.unit_of[first],
    )


def _students_readme(course: Course) -> str:
    """The README for students, who use otter's notebooks."""
    first = course.asked[0]
    return texts.template(
        "otter/student.md",
        __package__,
        title=texts.full_title(course),
        first=first,
        first_unit=course.unit_of[first],
        units=texts.table_of_units(course, "{0}/{0}.ipynb"),
    )


def _next_steps(to: Path, files: int) -> Sequence[str]:
    return [f"{files} files in {to}, with the solutions: give students only {to / 'student'}"]


_RELEASE_HELP = """\
Write a folder for otter-grader: student notebooks, autograders, masters for `otter assign`.

The autograders and masters hold the solutions: give students only DIR/student. Its public checks
are recorded, as in the student bundle.
"""

SYSTEM = System(
    "otter",
    "otter-grader",
    bundle=Bundle(
        release_otter,
        _next_steps,
        example="otter/",
        help=_RELEASE_HELP,
        options=("torch_index",),
        recorded=True,
    ),
)
