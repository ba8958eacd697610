"""otter-grader: a folder with what students get, autograders, and notebooks for `otter assign`.

otter itself makes the autograders, so that what its containers run is otter's own; they are zips
as Gradescope takes them. Each carries the same course and the same kit, and names the exercises
that it grades. otter calls us through a plugin (`otter_plugin`), which the autograders name.
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
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"  # what the course was released with

# A container is set up before otter copies an autograder into it, all but files of such a name.
KIT = "requirements.kit.zip"
UNPACKED = "/autograder/source"  # where a container has an autograder
NO_TESTS = "No tests stand here: the plugin in `otter_config.json` grades what was handed in.\n"
NO_METADATA = """
# `otter grade` leaves an empty file there, which otter cannot read for a plugin.
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
    """Write the folder into `to`, closed to other users, and return its files.

    `torch_index` is the address of a package index that pip looks into as well. Raises `CallError`
    where otter is not installed, where `to` holds something else, or an earlier release with
    changes that only `replace` may lose, where a stub is solved, and where there is no seed.
    Calls `report` for each exercise that is recorded.
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
        (master / KIT).write_bytes(_kit(draft / "student"))
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
    """What makes notebooks, where otter and all that it needs are installed."""
    try:
        import otter.generate  # noqa: F401 (see whether it is there)

        from grader.lms import otter_notebooks
    except ModuleNotFoundError as error:
        raise CallError(
            f"a release for otter needs {error.name}: pip install 'attention-grader[otter]'"
        ) from None
    return otter_notebooks


def _kit(student: Path) -> bytes:
    """A zip that pip installs: the whole engine, with what jails need."""
    with TemporaryDirectory() as temporary:
        here = Path(temporary)
        copy_engine(here / "grader")
        write_text(here / "pyproject.toml", texts.pyproject(jails=True))
        for name in ("README.md", "LICENSE"):
            shutil.copyfile(student / name, here / name)
        return zipped({name.as_posix(): here / name for name in files_in(here)})


def _write_autograder(to: Path, supplies: Path, graded: Sequence[str], more: Sequence[str]) -> None:
    """Write what `otter generate` makes for these exercises, with the supplies in it."""
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
        write_text(here / "made" / "tests" / "README.md", NO_TESTS)  # otter wants the folder
        with (here / "made" / "setup.sh").open("a", encoding="utf-8", newline="\n") as setup:
            setup.write(NO_METADATA)
        files = {name.as_posix(): here / "made" / name for name in files_in(here / "made")}
        files[KIT] = supplies / KIT
        for name in files_in(supplies / "course"):
            files[f"files/course/{name.as_posix()}"] = supplies / "course" / name
        to.parent.mkdir(exist_ok=True)
        to.write_bytes(zipped(files, PROGRAMS))


def _config(graded: Sequence[str]) -> Mapping[str, Any]:
    """What otter is told when it grades."""
    return {"show_hidden": True, "plugins": [{PLUGIN: {"only": list(graded)}}]}


def _settings(graded: Sequence[str], more: Sequence[str]) -> Mapping[str, Any]:
    """What `otter assign` is told."""
    return {
        "requirements": [*more, f"{UNPACKED}/files/{KIT}"],
        "python_version": PYTHON,
        "tests": {"files": True, "ok_format": False},
        "export_cell": {"pdf": False, "run_tests": False},
        "autograder_files": ["course", KIT],
        "generate": _config(graded),
    }


def _readme(course: Course) -> str:
    """What an instructor does with the folder for otter."""
    first = course.asked[0]
    return texts.template(
        "otter/README.md",
        __package__,
        title=texts.full_title(course),
        first=first,
        first_unit=course.unit_of[first],
    )


def _students_readme(course: Course) -> str:
    """The README for students whose notebooks are otter's."""
    first = course.asked[0]
    return texts.template(
        "otter/student.md",
        __package__,
        title=texts.full_title(course),
        first=first,
        first_unit=course.unit_of[first],
        units=texts.table_of_units(course, "{0}/{0}.ipynb"),
    )


def _said(to: Path, files: int) -> Sequence[str]:
    return [f"{files} files in {to}, which holds the solutions: give away {to / 'student'} only"]


_RELEASE_HELP = """\
Write a folder for otter-grader: student notebooks, autograders, masters for `otter assign`.

The autograders and masters hold the solutions: only DIR/student is to be given away. Public
checks are recorded for it, as for the student bundle.
"""

SYSTEM = System(
    "otter",
    "otter-grader",
    bundle=Bundle(
        release_otter,
        _said,
        example="otter/",
        help=_RELEASE_HELP,
        options=("torch_index",),
        recorded=True,
    ),
)
