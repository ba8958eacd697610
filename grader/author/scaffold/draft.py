"""Writes an exercise into a course: derives its files, audits them in a copy, then writes them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.author.audit import audit_course
from grader.author.findings import Audited
from grader.author.mutants import mutants_of
from grader.author.scaffold.annotations import annotated
from grader.author.scaffold.calls import Calls
from grader.author.scaffold.edges import find_edges
from grader.author.scaffold.example import find_example
from grader.author.scaffold.facts import facts_of
from grader.author.scaffold.inputs import find_inputs
from grader.author.scaffold.ladder import LARGE, edges_test, hidden_tests, public_checks
from grader.author.scaffold.library import applicable, defined, waiting
from grader.author.scaffold.pieces import (
    CHECKS,
    HIDDEN,
    MISTAKES,
    REFERENCE,
    STUB,
    Draft,
    existing,
    files_of,
    texts_of,
)
from grader.author.scaffold.source import read_source
from grader.author.scaffold.stub import SENTENCES
from grader.course.course import RECORDED, Course, load_course
from grader.course.references import load_solutions
from grader.course.statements import BUILT_IN, COMPUTES
from grader.mistakes import load_library
from grader.records.faults import CallError
from grader.records.files import write_whole

MOST_AUDITS = 4


@dataclass(frozen=True)
class Outcome:
    """What was written and left out, and the findings of the audit."""

    written: Mapping[Path, Sequence[str]]  # the pieces, by file
    kept: Mapping[Path, Sequence[str]]  # pieces that were there already
    left_out: Sequence[str]  # tests that do not hold, or that catch nothing
    findings: Sequence[Audited]


def write_exercise(
    course: Course,
    name: str,
    unit: str,
    origin: Path | None,
    example: str = "",
    report: Callable[[str], object] = lambda _: None,
) -> Outcome:
    """Write what can be derived from a reference into the files of a unit, and audit it.

    The reference is read from `origin`, or from the unit's references, where it is left as it is if
    it is there. Pieces that exist stay as they are. Nothing is written before everything is
    audited. Raises `CallError` if there is no usable reference.
    """
    _refuse_names(course, name, unit)
    there = existing(course, name, unit)
    if len(there) == len(files_of(course, unit)):
        report("auditing")
        return Outcome({}, _by_file(there), (), audit_course(course, [name], 1))
    draft = _derived(course, name, unit, there, origin, example, report)
    with tempfile.TemporaryDirectory(prefix="grader-") as folder:
        draft, findings = _audited(draft, Path(folder), report)
    texts, pieces = texts_of(draft, waiting(findings, draft.dead))
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    return Outcome(pieces, _by_file(draft.there), draft.left_out, findings)


def _by_file(pieces: Mapping[str, Path]) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for piece, path in pieces.items():
        found.setdefault(path, []).append(piece)
    return found


def _derived(
    course: Course,
    name: str,
    unit: str,
    there: Mapping[str, Path],
    origin: Path | None,
    example: str,
    report: Callable[[str], object],
) -> Draft:
    report("reading the reference")
    references = course.reference_file(unit)
    if origin is None or REFERENCE in there:
        origin = references
    package = ""
    if origin == references and unit in {one.name for one in course.units}:
        package = load_solutions(course)[unit].__package__ or ""
    source = read_source(origin, name)
    before = source.text
    source, definition, contract, given = annotated(source, example, package)
    for parameter in contract.called.parameters:
        if parameter.kind in ("model", "batches"):
            raise CallError(
                f"{origin}: {name} takes {parameter.name}, a model or batches, for which nothing "
                "can be derived: write the files by hand, as docs/authors/models.md shows"
            )
    if REFERENCE in there and source.text != before:
        there = {piece: path for piece, path in there.items() if piece != REFERENCE}
    report("trying inputs")
    trial = find_inputs(name, definition, contract, given)
    calls = Calls(trial, facts_of(trial))
    draft = Draft(course, name, unit, source, calls, find_example(trial), there)
    draft.checks = public_checks(calls, draft.example)
    draft.hidden = hidden_tests(calls)
    if STUB in there:
        known = {*BUILT_IN, *draft.rules}
        draft.checks = [test for test in draft.checks if test.rule in known]
        draft.hidden = [test for test in draft.hidden if test.rule in known]
    if draft.example is None:
        draft.left_out.append("the example: no small input has a result that is easily read")
    facts = calls.facts
    for holds, why in (
        (facts.float64, "float64: the reference does not keep it"),
        (facts.unchanged, "unchanged arguments: the reference has none, or changes them"),
        (facts.batch, "rows of a batch: the arguments have no batch whose rows are independent"),
        (facts.gradients, "gradients: none flow back to the arguments"),
    ):
        if not holds:
            draft.left_out.append(f"a test of {why}")
    return draft


def _refuse_names(course: Course, name: str, unit: str) -> None:
    if course.private is not None:
        raise CallError(f"{course.private} lies over {course.folder}: name that course instead")
    for what, text in (("NAME", name), ("--unit", unit)):
        if not text.isidentifier():
            raise CallError(f"{what} {text!r} is no name of Python")
    if course.unit_of.get(name, unit) != unit:
        raise CallError(f"{name} is an exercise of the unit {course.unit_of[name]}")
    if unit in course.unit_of:
        raise CallError(f"{unit} is an exercise: give the unit another name")


# --- the audit -----------------------------------------------------------------------------------


def _audited(
    draft: Draft, folder: Path, report: Callable[[str], object]
) -> tuple[Draft, Sequence[Audited]]:
    """Audit the exercise in copies of the course, without and with numbers at edges.

    Numbers at edges stay if fewer faults are left then.
    """
    findings = _settled(draft, folder / "plain", report)
    edged = _with_edges(draft, folder / "edges", findings)
    if edged is not None:
        more = _settled(edged, folder / "edged", report)
        before, after = ({one.name for one in some if not one.well} for some in (findings, more))
        # No common mistake shows at edges alone: the rule needs one of the mutants that die there.
        if len(after - {f"{draft.name}/{COMPUTES}"}) < len(before):
            dead = before - after
            edged.dead = [one for one in findings if one.kind == "mutant" and one.name in dead]
            return edged, more
    return draft, findings


def _settled(draft: Draft, folder: Path, report: Callable[[str], object]) -> Sequence[Audited]:
    """Audit copies of the course until all that was derived is in order."""
    findings: Sequence[Audited] = ()
    for number in range(MOST_AUDITS):
        copy = _copied(draft, folder / str(number))
        if draft.slugs is None and MISTAKES not in draft.there:
            draft.slugs = _slugs(draft, copy)
            copy = _copied(draft, folder / f"{number} with mistakes")
        report("auditing" if not number else "auditing again")
        findings = [
            _in_place(one, copy, draft.course) for one in audit_course(copy, [draft.name], 1)
        ]
        if not _pruned(draft, findings):
            break
    return findings


def _in_place(finding: Audited, copy: Course, course: Course) -> Audited:
    """A finding on a copy of the course, with the paths of the course."""
    text, place = finding.text, finding.place
    for there, here in ((copy.folder, course.folder), (copy.solutions, course.solutions)):
        text, place = (one.replace(str(there), str(here)) for one in (text, place))
    return replace(finding, text=text, place=place)


def _with_edges(draft: Draft, folder: Path, findings: Sequence[Audited]) -> Draft | None:
    """The draft with a test of numbers at edges; None if no living mutant differs there.

    The statement shows an example, so the test asks nothing that the statement does not say.
    """
    living = {one.name for one in findings if one.kind == "mutant" and not one.well}
    if not living or {STUB, HIDDEN} & {*draft.there}:
        return None
    copy = _copied(draft, folder)
    names = vars(load_solutions(copy)[draft.unit])
    mutants = mutants_of(copy.reference_file(draft.unit).read_text("utf-8"), draft.name)
    wrong = [defined(one.definition, draft.name, names) for one in mutants if one.id in living]
    found = find_edges(draft.calls.trial, wrong)
    if found is None:
        return None
    edged, example = found
    hidden = [*draft.hidden, edges_test(draft.calls, edged)]
    return replace(draft, edges=example, hidden=hidden, left_out=[*draft.left_out])


def _copied(draft: Draft, to: Path) -> Course:
    """A copy of the course with the exercise in it."""
    course = draft.course
    shutil.copytree(course.folder, to / "exercises", ignore=shutil.ignore_patterns(RECORDED))
    shutil.copytree(course.solutions, to / "solutions")
    for path, text in texts_of(draft)[0].items():
        inside = path.is_relative_to(course.solutions)
        place = (
            to / "solutions" / path.relative_to(course.solutions)
            if inside
            else to / "exercises" / path.relative_to(course.folder)
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    return load_course(to / "exercises")


def _slugs(draft: Draft, copy: Course) -> dict[str, tuple[str, ...]]:
    """The common mistakes that apply, each with the rules that it breaks."""
    variants = load_library(copy, [draft.name]).of(draft.name, "mistake")
    names = dict(vars(load_solutions(copy)[draft.unit]))
    kept = applicable(variants, draft.calls.trial, names, draft.rules)
    return {variant.slug: variant.breaks for variant in variants if variant.slug in kept}


def _pruned(draft: Draft, findings: Sequence[Audited]) -> bool:
    """Drop tests that fail on the reference or catch nothing, and mistakes without a name.

    Returns whether anything was dropped.
    """
    faults = {one.name.partition("/")[2]: one for one in findings if not one.well}
    failing = {name for name, one in faults.items() if one.kind == "exercise"}
    idle = {name for name, one in faults.items() if one.kind == "test"}
    unproved = {name for name, one in faults.items() if one.kind == "rule"} & {*SENTENCES}
    before = len(draft.hidden), len(draft.checks), len(draft.slugs or ())
    if HIDDEN not in draft.there:
        for test in draft.hidden:
            if test.name in failing:
                draft.left_out.append(f"{test.name}: it fails on the reference")
            elif test.name in idle and test.rule not in (COMPUTES, LARGE):
                draft.left_out.append(f"{test.name}: it {faults[test.name].text}")
            elif test.rule in unproved - {LARGE}:
                draft.left_out.append(f"{test.name}: {faults[test.rule].text}")
        draft.hidden = [
            test
            for test in draft.hidden
            if test.name not in failing
            and (test.name not in idle or test.rule == COMPUTES)
            and test.rule not in unproved
        ]
    if CHECKS not in draft.there:
        draft.checks = [test for test in draft.checks if test.name not in failing]
    if MISTAKES not in draft.there and draft.slugs is not None:
        unnamed = {name for name, one in faults.items() if one.kind in ("mistake", "margin")}
        texts = [one.text for one in faults.values() if one.kind == "rule"]
        unnamed |= {
            slug
            for slug in draft.slugs
            if any(f"{slug} breaks it alone, but fails" in text for text in texts)
        }
        known = {*BUILT_IN, *draft.rules}
        draft.slugs = {
            slug: breaks
            for slug, breaks in draft.slugs.items()
            if slug not in unnamed and {*breaks} <= known
        }
    return (len(draft.hidden), len(draft.checks), len(draft.slugs or ())) != before
