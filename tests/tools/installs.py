"""Installs each package of ``dist/`` in an empty environment, and uses it there.

``python -m tests.tools.installs`` runs after ``make dist``, before a release. For the wheel and for
the source distribution, a student solves a first exercise in the course that ``grader init``
writes. Then the extra ``instructor`` is added, and the sample submissions are graded with this
clone's course. It installs torch twice. Arguments are handed to pip, for example
``-c constraints.txt``. The first command that fails ends it with that command's exit code.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.support.places import ROOT

FIRST = ("softmax.py", "softmax_naive")
KINDS = ("*.whl", "*.tar.gz")


def main(options: list[str]) -> None:
    """Try each package; exit with 2 if one is missing."""
    for kind in KINDS:
        found = list((ROOT / "dist").glob(kind))
        if len(found) != 1:
            sys.exit(f"dist/{kind}: {len(found)} files, where one is expected. Run `make dist`.")
        with tempfile.TemporaryDirectory() as folder:
            try_package(found[0], Path(folder), options)
        print(f"{found[0].name}: installs, checks and grades")


def try_package(package: Path, folder: Path, options: list[str]) -> None:
    """Install the package in `folder`, solve an exercise, and grade the samples."""
    venv.create(folder / "env", with_pip=True)
    binaries = folder / "env" / "bin"
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GRADER_COURSE")}

    def run(program: str, *arguments: str | Path, place: Path = folder, expect: int = 0) -> None:
        ran = subprocess.run([binaries / program, *arguments], cwd=place, env=environment)
        if ran.returncode != expect:
            sys.exit(f"{package.name}: {program} {arguments[0]} exited with {ran.returncode}")

    run("pip", "install", "--quiet", *options, package, place=ROOT)
    run("grader", "--version")
    run("grader", "init", "attention")
    course, (file, exercise) = folder / "attention", FIRST
    run("grader", "check", exercise, place=course, expect=1)  # the stub is no answer
    shutil.copy(ROOT / "tests" / "submissions" / "ada" / file, course / "exercises" / file)
    run("grader", "check", exercise, place=course)
    run("pip", "install", "--quiet", *options, f"{package}[instructor]", place=ROOT)
    samples, grades = ROOT / "tests" / "submissions", folder / "grades"
    run("grader", "grade", samples, "--out", grades, "--course", ROOT / "exercises")
    with (grades / "gradebook.csv").open(encoding="utf-8", newline="") as table:
        graded = {row["student"] for row in csv.DictReader(table)}
    if graded != {path.stem for path in samples.iterdir()}:
        sys.exit(f"{package.name}: grades of {', '.join(sorted(graded))} only")


if __name__ == "__main__":
    main(sys.argv[1:])
