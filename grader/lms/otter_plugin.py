"""otter-grader: a plugin that grades in the kit's jail and gives otter the scores.

By itself, otter runs a submission and its tests in one kernel, and unpickles a file that the kernel
wrote. Therefore no part of a submission may reach otter's kernel: not its cells, not its metadata
(which names tests and kernels), not its files (a kernel imports from its working directory). The
plugin gives otter an empty notebook, and replaces otter's results by its own.

otter unpacks an autograder into ``source/``, and copies the submission into ``submission/``. It
also copies the autograder's files into ``submission/``, including the solutions.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from otter.plugins import AbstractOtterPlugin
from otter.test_files import (
    ExceptionTestFile,
    GradingResults,
    TestCase,
    TestCaseResult,
)

from grader.feedback import terminal
from grader.feedback.verdict import Finding, verdict_of
from grader.feedback.visible import for_students
from grader.intake import read_submission
from grader.lms.system import grade_one
from grader.records.faults import HostFault
from grader.records.grade import ExerciseResult, Grade, counted_elsewhere
from grader.release.courses import load_carried

COURSE = Path("source", "files", "course")  # where otter unpacks the autograder's course
STUDENT = "submission"  # the name in the grade, since otter does not name the student

NO_GRADE = "otter asked for scores before the submission was graded"
WEAK = " (weak: malicious code might find the solutions)"


class Plugin(AbstractOtterPlugin):  # type: ignore[misc]  # otter has no types
    """Grades a submission for otter.

    ``otter_config.json`` names this class. The plugin's setting ``only`` lists the exercises or
    units to grade. If the grader itself fails, the plugin raises an exception, and otter gives no
    score.
    """

    _grade: Grade | None = None
    _worth = 1.0  # points in otter for one point of the grade
    _shares: Mapping[str, float] = {}  # the maximum of each exercise in otter

    def before_grading(self, config: Any) -> None:
        """Remove all files except the submission; otter would unpickle a log that was submitted."""
        config.grade_from_log = False
        self._autograder.chmod(0o700)  # holds the solutions; a jail may be another user
        for path in self._submitted.parent.iterdir():
            if path != self._submitted:
                _remove(path)

    def before_execution(self, submission: object) -> nbformat.NotebookNode:
        """Grade the submitted file, and return an empty notebook for otter to run."""
        del submission  # a notebook that otter parsed; the plugin reads the file itself
        submitted = read_submission(STUDENT, self._submitted)
        _remove(self._submitted)  # a kernel imports from its working directory
        course = load_carried(self._autograder / COURSE)
        # A container may lack layers of isolation: the results name the active layers.
        grade = grade_one(
            course,
            submitted,
            only=self.plugin_config.get("only", course.asked),
            isolation="weak",
            secrets=[self._autograder],
        )
        if grade.status == "grader_error":
            raise HostFault(grade.message)
        self._grade = for_students(grade, course)
        self._worth, self._shares = course.worth, course.shares
        empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return nbformat.NotebookNode(empty)  # type: ignore[no-untyped-call]

    def after_grading(self, results: GradingResults) -> None:
        """Replace otter's results by those of the kit's grading."""
        if self._grade is None:
            raise HostFault(NO_GRADE)
        exercises = counted_elsewhere(self._grade.exercises, self._worth, self._shares)
        ours = GradingResults(list(map(_test_file, exercises)), results.notebook)
        ours.set_output("\n".join(_remarks(self._grade)))
        vars(results).clear()
        vars(results).update(vars(ours))

    def generate_report(self) -> str:
        """The lines that otter prints about the kit's grading."""
        if self._grade is None:
            raise HostFault(NO_GRADE)
        return "\n".join(_remarks(self._grade))

    @property
    def _submitted(self) -> Path:
        """The submitted file: otter chooses its folder, and the student only its name."""
        return Path(self.submission_path)

    @property
    def _autograder(self) -> Path:
        """The folder in which otter works."""
        return self._submitted.parents[1]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# --- a grade in otter's format -------------------------------------------------------------------


def _test_file(result: ExerciseResult) -> ExceptionTestFile:
    """The result of one exercise, in the form of otter's result of a test file."""
    findings = verdict_of(result).findings
    cases = [TestCase(f.title, None, f.hidden, f.max, None, None) for f in findings]
    file = ExceptionTestFile(result.name, f"{result.name}.py", cases, all_or_nothing=False)
    file.test_case_results = [
        TestCaseResult(case, "\n".join(_lines(finding)), finding.status == "passed")
        for case, finding in zip(cases, findings, strict=True)
    ]
    # Forbidden operations cost all points, even those of tests that passed. Only then replace
    # otter's sum of the tests, which is exact otherwise.
    if round(file.score - result.points, 3) != 0:
        file.update_score(result.points)
    return file


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.wording.sign} {finding.status}"
    yield from (terminal.safe(text) for text in (finding.message, *finding.named) if text)


def _remarks(grade: Grade) -> Iterator[str]:
    """Lines about the whole submission."""
    yield from (terminal.safe(text) for text in (grade.message, *grade.notes) if text)
    layers = [layer for layer in grade.isolation if layer != "weak"]
    yield f"Isolation: {', '.join(layers) or 'none'}" + (WEAK if "weak" in grade.isolation else "")
