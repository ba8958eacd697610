"""Writes what an assignment on Classroom 50 needs: the autograder, the template, its settings."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

from grader.course.course import Course
from grader.records.bundles import bundled, require_free, write_sums
from grader.records.faults import CallError
from grader.records.files import files_in
from grader.release import texts
from grader.release.engine import FOR_STUDENTS
from grader.release.pins import pip_files
from grader.release.student import write_student_bundle

# The modules that the runner needs in addition to those for the student's commands.
RUNNER_MODULES = ("cli.host", "lms.system", "lms.markdown", "lms.classroom50")
PYTHON = "3.12"  # the bundle's libraries exist for it; Classroom 50's own default is newer
MOST = 10 * 2**20  # bytes of the autograder, packed, that Classroom 50 fetches
MOST_MISTAKES = 4_500_000  # bytes of it for known mistakes: the engine and references take the rest
LONGEST = 39  # characters of a name on Classroom 50


def release_classroom50(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    *,
    torch_index: str | None = None,
    replace: bool = False,
    jobs: int = 1,
) -> list[Path]:
    """Write the autograder and the template into `to`, and return the files.

    `torch_index` is the address of a second package index for pip. Raises `CallError` as
    `write_student_bundle` does, and if the autograder is larger than Classroom 50 allows. The same
    course gives the same bytes.
    """
    require_free(to, replace)
    with bundled(to) as draft:
        beside = {
            "autograder.py": texts.as_it_is("classroom50/autograder.py", __package__),
            **pip_files(texts.pyproject(course), torch_index),
        }
        write_student_bundle(
            course,
            draft / "autograder",
            report,
            jobs=jobs,
            texts_beside=beside,
            notebooks=False,
            engine=(*FOR_STUDENTS, *RUNNER_MODULES),
            most=MOST_MISTAKES,
        )
        _require_small(draft / "autograder")
        # The second bundle takes its recordings from the cache.
        readme = texts.readme(course) + texts.as_it_is("classroom50/submit.md", __package__)
        write_student_bundle(
            course, draft / "template", jobs=jobs, texts_beside={"README.md": readme}
        )
        texts.write_text(draft / "runtime.json", json.dumps({"python": PYTHON}) + "\n")
        texts.write_text(draft / "README.md", _readme(course))
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]


def _require_small(autograder: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(autograder, ".")
    if len(packed.getvalue()) > MOST:
        raise CallError(
            f"the autograder takes {len(packed.getvalue()) / 2**20:.1f} MB, and Classroom 50 "
            f"fetches {MOST // 2**20}: release a part of the course with --assignment"
        )


def _readme(course: Course) -> str:
    assigned = course.assigned
    due = course.local(assigned.due) if assigned is not None and assigned.due is not None else None
    return texts.template(
        "classroom50/README.md",
        __package__,
        title=texts.full_title(course),
        called=(assigned.heading if assigned is not None else course.file.title).replace('"', "'"),
        slug=slug(assigned.name if assigned is not None else course.name),
        due=f" --due {due.isoformat()}" if due is not None else "",
    )


def slug(name: str) -> str:
    """The name of an assignment on Classroom 50: lower-case letters, digits and hyphens."""
    plain = texts.slug(name)[:LONGEST].strip("-")
    return plain if len(plain) > 1 else f"{plain or 'a'}-1"
