"""Compares other judges with ours on our wrong and right answers to the same exercises.

``python -m tests.benchmarks.judges`` installs torch-judge and torchleet from the package index into
an environment of its own, ``build/judges``, and prints a table. These rules were fixed before any
run:

- An adapter wraps an answer in the signature and the conventions of the judge. If the judge does
  not accept the adapted reference 20 times of 20, the exercise is left out.
- A wrong answer counts only if it differs from the adapted reference on one of 50 seeded inputs: by
  more than 1e-4, in shape, or by an exception. The inputs have the kind and sizes of the judge's
  own tests. Weights are equal by name, biases are zero and nothing is dropped. Dropout, dtypes,
  devices, biases and side effects therefore do not count.
- Right answers are the reference and our accepted answers. An answer is left out if the adapter
  does not fit it: arguments in another order, or weights under names that the adapter cannot set.
- If conventions differ, the exercise or answer is left out, and listed with the reason. After a
  first run, five answers were added to that list, two adapters were corrected, and right answers
  were no longer compared by value. All three changes favour the judges.
- An answer is accepted if it passes 5 times of 5, with torch's seeds 0 to 4.
- The column "ours" is our grader's verdict on the same answers, graded here. The library of answers
  was written against our grader. The table is therefore the judges' coverage of our library, not a
  rate in a class.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from grader.grading.ladder import grade_alone
from grader.intake import Submission
from grader.mistakes import Library, Variant, load_library
from tests.benchmarks import throughput
from tests.benchmarks.adapters import LEFT_OUT, TASKS
from tests.benchmarks.judges_table import REFERENCE, Fate, figures, report
from tests.support.places import ROOT

PACKAGES = ("torch-judge==0.1.1", "torchleet==0.1.0")
NEEDED = ("torch", "numpy", "jaxtyping")  # by our answers; as constraints.txt has them
PLACE = ROOT / "build" / "judges"


class NotMeasured(Exception):
    """The judges cannot be installed or asked; the text says why."""


def main() -> int:
    """Install, ask, grade, print; the exit code."""
    example = "Example: python -m tests.benchmarks.judges --json build/judges.json"
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.judges",
        description=__doc__,
        epilog=example,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    given = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    try:
        fates = measured(environment(console), console)
    except NotMeasured as error:
        print(f"judges: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("judges: stopped, without a report", file=sys.stderr)
        return 130
    dated = dated_versions()
    print("\n".join(report(fates, dated)))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(figures(fates, dated), indent=2), "utf-8")
        console.print(f"written to {given.json}", markup=False)
    return 0


# --- the judges' environment ---------------------------------------------------------------------


def environment(console: Console) -> Path:
    """The Python that has the judges. An environment that was left half made is made anew."""
    python, ready = PLACE / "bin" / "python", PLACE / "ready.json"
    wanted = json.dumps([*PACKAGES, *(f"{name}=={version(name)}" for name in NEEDED)])
    if ready.is_file() and ready.read_text("utf-8") == wanted:
        return python
    console.print(f"setting up {PLACE.relative_to(ROOT)} (once; torch is a large download)")
    shutil.rmtree(PLACE, ignore_errors=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    except subprocess.CalledProcessError as error:
        raise NotMeasured(f"no environment can be made in {PLACE.relative_to(ROOT)}") from error
    install: list[str | Path] = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    constraints: list[str | Path] = ["-c", ROOT / "constraints.txt"]
    ran = subprocess.run(
        [*install, *constraints, *NEEDED, *PACKAGES], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        lines = [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
        why = lines[0].removeprefix("ERROR: ") if lines else f"pip ended with {ran.returncode}"
        raise NotMeasured(f"{' and '.join(PACKAGES)} cannot be installed: {why}")
    ready.write_text(wanted, "utf-8")
    return python


def dated_versions() -> dict[str, str]:
    """Of all that was measured."""
    found = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "python": platform.python_version()}
    found |= dict(package.split("==") for package in PACKAGES)
    return found | {name: version(name) for name in ("torch", "attention-grader")}


# --- measuring -----------------------------------------------------------------------------------


def measured(python: Path, console: Console) -> list[Fate]:
    """What became of every answer."""
    library = load_library(throughput.course())
    names = dict.fromkeys(task.exercise for task in TASKS)
    answers = {name: answers_of(library, name) for name in names}
    found: list[tuple[int, str, str, str]] = []
    for one in judged(python, library, answers):
        found.append(one)
        if one[1] == REFERENCE:
            task = TASKS[one[0]]
            console.print(f"{task.judge}: {task.task}, {len(answers[task.exercise])} answers")
    ours = dict(graded(library, answers, console))
    fates = []
    for number, id, fate, why in found:
        exercise = TASKS[number].exercise
        wrong = answers[exercise][id].kind == "mistake"
        fates.append(Fate(number, id, wrong, fate, why, ours[exercise, id]))
    return fates


def answers_of(library: Library, exercise: str) -> dict[str, Variant]:
    """The reference, right answers in other forms, and mistakes, by name."""
    reference = Variant(exercise, REFERENCE, "accepted", "The reference", "", "")
    known = [*library.of(exercise, "accepted"), *library.of(exercise, "mistake")]
    return {variant.slug: variant for variant in (reference, *known)}


def judged(
    python: Path, library: Library, answers: Mapping[str, Mapping[str, Variant]]
) -> Iterator[tuple[int, str, str, str]]:
    """Task, answer, fate and reason, as the judges' environment finds them out."""
    conventions = {(one.judge, one.task, slug) for one in LEFT_OUT for slug in one.answers}
    tasks = [
        [
            number,
            [
                {"id": slug, "kind": kind_of(one), "definition": one.definition}
                for slug, one in answers[task.exercise].items()
                if (task.judge, task.task, slug) not in conventions
            ],
        ]
        for number, task in enumerate(TASKS)
    ]
    job = json.dumps({"references": library.together(), "tasks": tasks})
    # torch-judge notes progress in a file: there is nothing to note, and here it would be.
    alone = {**os.environ, "PROGRESS_PATH": str(PLACE / "progress.json"), "OMP_NUM_THREADS": "1"}
    command = [str(python), "-m", "tests.benchmarks.judged"]
    with subprocess.Popen(
        command, cwd=ROOT, env=alone, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            running.stdin.write(job)
            running.stdin.close()
            yield from (tuple(json.loads(line)) for line in running.stdout)
        except BaseException:
            running.kill()
            raise
    if running.returncode:
        raise NotMeasured(f"the judges' environment ended with {running.returncode}")


def kind_of(variant: Variant) -> str:
    """The kind as the judges' environment names it."""
    return REFERENCE if variant.slug == REFERENCE else variant.kind


def graded(
    library: Library, answers: Mapping[str, Mapping[str, Variant]], console: Console
) -> Iterator[tuple[tuple[str, str], bool]]:
    """Whether our grader gives an answer all points, by exercise and name."""
    order = replace(throughput.order(*answers), isolation="weak")
    with order.desk() as desk:
        for exercise, variants in answers.items():
            console.print(f"ours: {exercise}, {len(variants)} answers")
            for slug, variant in variants.items():
                sources = library.submission(exercise, variant)
                with desk.seat(Submission(slug, sources), [exercise]) as seat:
                    yield (exercise, slug), grade_alone(desk, seat, exercise).solved


if __name__ == "__main__":
    raise SystemExit(main())
