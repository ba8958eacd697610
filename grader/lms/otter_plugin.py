"""otter-grader: a plugin that grades in our jail what otter would run, and gives otter our scores.

otter runs a submission in a kernel, its tests in the same kernel, and unpickles what that kernel
wrote. So nothing of a submission may come to that kernel: not its cells, not its files (Python
imports from the folder in which a kernel starts), not its metadata (which names tests and
kernels). otter's kernel is given an empty notebook, and what it finds does not count.

otter unpacks an autograder into ``source/``, and puts a copy of what was handed in beside it, into
``submission/``. There it also puts the files that the autograder carries, the solutions among them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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

COURSE = Path("source", "files", "course")  # where otter unpacks what an autograder carries
STUDENT = "submission"  # otter does not say whose it is

NO_GRADE = "otter asked for scores before it let anything be graded"
WEAK = " (weak: code that was written to find the solutions might find them)"


class Plugin(AbstractOtterPlugin):  # type: ignore[misc]  # otter has no types
    """Named in ``otter_config.json``; its setting ``only`` lists the exercises or units to grade.

    Where grading fails on our side it raises, and otter gives no score.
    """

    _told: Grade | None = None
    _worth = 1.0  # what a point of it counts there

    def before_grading(self, config: Any) -> None:
        """Leave nothing beside the submission: otter would unpickle a log that lies there."""
        config.grade_from_log = False
        self._autograder.chmod(0o700)  # the solutions are in it, and jails may be other users
        for path in self._handed_in.parent.iterdir():
            if path != self._handed_in:
                _remove(path)

    def before_execution(self, submission: object) -> nbformat.NotebookNode:
        """Grade the file that was handed in; otter gets an empty notebook in its place."""
        del submission  # otter's reading of the file
        handed_in = read_submission(STUDENT, self._handed_in)
        _remove(self._handed_in)  # a kernel imports from the folder in which it starts
        course = load_carried(self._autograder / COURSE)
        # Containers may lack layers of isolation: what there was is said in the results.
        grade = grade_one(
            course,
            handed_in,
            only=self.plugin_config.get("only", course.asked),
            isolation="weak",
            secrets=[self._autograder],
        )
        if grade.status == "grader_error":
            raise HostFault(grade.message)
        self._told, self._worth = for_students(grade, course), course.worth
        empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return nbformat.NotebookNode(empty)  # type: ignore[no-untyped-call]

    def after_grading(self, results: GradingResults) -> None:
        """Put our results in the place of all that otter found."""
        if self._told is None:
            raise HostFault(NO_GRADE)
        exercises = counted_elsewhere(self._told.exercises, self._worth)
        ours = GradingResults(list(map(_in_words_of_otter, exercises)), results.notebook)
        ours.set_output("\n".join(_remarks(self._told)))
        vars(results).clear()
        vars(results).update(vars(ours))

    def generate_report(self) -> str:
        """What otter prints of us."""
        if self._told is None:
            raise HostFault(NO_GRADE)
        return "\n".join(_remarks(self._told))

    @property
    def _handed_in(self) -> Path:
        """The submission: otter chose it, and of its path only the name is the student's."""
        return Path(self.submission_path)

    @property
    def _autograder(self) -> Path:
        """The folder in which otter works."""
        return self._handed_in.parents[1]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# --- a grade in otter's words --------------------------------------------------------------------


def _in_words_of_otter(result: ExerciseResult) -> ExceptionTestFile:
    """One exercise as otter shows a file of tests."""
    findings = verdict_of(result).findings
    cases = [TestCase(f.title, None, f.hidden, f.max, None, None) for f in findings]
    file = ExceptionTestFile(result.name, f"{result.name}.py", cases, all_or_nothing=False)
    file.test_case_results = [
        TestCaseResult(case, "\n".join(_lines(finding)), finding.status == "passed")
        for case, finding in zip(cases, findings, strict=True)
    ]
    # Points are not always those of the tests that passed: forbidden operations cost all. Where
    # they are, otter adds up itself, and finds all that there is where all passed.
    if round(file.score - result.points, 3) != 0:
        file.update_score(result.points)
    return file


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.wording.sign} {finding.status}"
    yield from (terminal.safe(told) for told in (finding.message, *finding.named) if told)


def _remarks(grade: Grade) -> Iterator[str]:
    """What concerns the whole submission."""
    yield from (terminal.safe(told) for told in (grade.message, *grade.notes) if told)
    layers = [layer for layer in grade.isolation if layer != "weak"]
    yield f"Isolation: {', '.join(layers) or 'none'}" + (WEAK if "weak" in grade.isolation else "")
