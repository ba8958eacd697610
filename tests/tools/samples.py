"""Brings two sample submissions up to date with the course: ``python -m tests.tools.samples``.

`ada` answers every exercise: she gets an answer to each exercise that she lacks. `blank` is the
untouched stub file of the first unit. Then all samples are graded, and the README shows the result.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from tempfile import TemporaryDirectory

from grader.course.course import Course, load_course
from grader.mistakes import Library, load_library, text_of_definition
from tests.support.places import REAL, SAMPLES
from tests.tools.readme import README, put


def completed(course: Course, library: Library, unit: str, text: str) -> str:
    """A file of answers to a unit, with an answer to each exercise that it lacks.

    The answer is the first right answer in another form, or else the reference.
    """
    there = {getattr(node, "name", "") for node in ast.parse(text).body}
    lacking = [name for name in course.select([unit]) if name not in there]
    if not lacking:
        return text
    imports = [
        ast.unparse(node).replace("from .", "from ")
        for node in ast.parse(library.sources[unit]).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return (
        "\n\n\n".join(
            [
                text.rstrip(),
                "\n".join(imports),
                *(
                    next(
                        (variant.definition for variant in library.of(name, "accepted")),
                        text_of_definition(library.sources[unit], name),
                    ).strip()
                    for name in lacking
                ),
            ]
        ).lstrip()
        + "\n"
    )


def gradebook() -> str:
    """The output of a grading of all samples, without paths and times."""
    with TemporaryDirectory() as folder:
        ran = subprocess.run(
            [sys.executable, "-m", "grader", "grade", str(SAMPLES), "--out", "grades"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
    lines = [line.rstrip() for line in ran.stdout.rstrip().splitlines()]
    shown = lines[lines.index(load_course(REAL).file.title) : -1]
    return "\n".join(["```text", *shown, "```\n"])


if __name__ == "__main__":
    course = load_course(REAL)
    library = load_library(course)
    for unit in library.sources:
        path = SAMPLES / "ada" / f"{unit}.py"
        path.touch()
        path.write_text(completed(course, library, unit, path.read_text("utf-8")), "utf-8")
    (first, *_) = library.sources
    blank = SAMPLES / "blank" / f"{first}.py"
    blank.write_text(course.stub_file(first).read_text("utf-8"), "utf-8")
    README.write_text(put(README.read_text("utf-8"), "gradebook", gradebook(), "samples"), "utf-8")
