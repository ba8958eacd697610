"""The bundle for Gradescope: an ``autograder.zip`` to upload, and beside it what is in it.

It holds the solutions, the hidden tests and the seed. It is closed to other users of this machine,
and Gradescope shows it to instructors only.
"""

from __future__ import annotations

from pathlib import Path

from grader.course.course import Course
from grader.records.files import drafted, files_in, require_free, write_sums, zipped
from grader.release import texts
from grader.release.student import carried_seed, carry, copy_engine, licence, write_text

ZIP = "autograder.zip"
PROGRAMS = ("run_autograder", "setup.sh")  # what Gradescope runs of it


def release_gradescope(
    course: Course, to: Path, *, seed: str | None = None, torch_index: str | None = None,
    replace: bool = False,
) -> list[Path]:  # fmt: skip
    """Write the bundle into `to`, and return its files.

    `torch_index` is the address of a package index that pip looks into as well. The same course
    gives the same bytes. Raises `CallError` where `to` holds something else, or an earlier bundle
    with changes that only `replace` may lose, and where there is no seed.
    """
    course.require_solutions("release gradescope")
    seed = seed or course.hidden_seed()
    require_free(to, replace)
    with drafted(to, private=True) as draft:
        carry(course, draft)
        copy_engine(draft / "grader")
        written = {
            carried_seed(course): f"{seed}\n",
            "README.md": texts.gradescope(course),
            "pyproject.toml": texts.pyproject(jails=True),
            "LICENSE": licence(),
            **{name: texts.program(name) for name in PROGRAMS},
        }
        if torch_index:
            written["pip.conf"] = f"[global]\nextra-index-url = {torch_index}\n"
        for name, text in written.items():
            write_text(draft / name, text)
        for name in PROGRAMS:
            (draft / name).chmod(0o755)
        packed = {path.as_posix(): draft / path for path in files_in(draft)}
        (draft / ZIP).write_bytes(zipped(packed, PROGRAMS))
        write_sums(draft)
        names = files_in(draft)
    return [to / name for name in names]
