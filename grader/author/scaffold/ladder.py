"""Writes the tests of an exercise: public checks, and the hidden ladder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grader.author.scaffold.calls import REFERENCE, Calls, indented
from grader.author.scaffold.edges import largest
from grader.author.scaffold.example import WEIGHT, Example
from grader.author.scaffold.facts import enlarged
from grader.author.scaffold.kinds import literal
from grader.author.scaffold.layout import fitted
from grader.author.scaffold.source import defaults_of, methods
from grader.author.scaffold.trial import (
    Case,
    Refused,
    Trial,
    specs_drawn,
)
from grader.author.texts import template
from grader.course.statements import COMPUTES, RETURNS
from grader.course.tensors import Make
from grader.records.rows import listed

DTYPE, UNCHANGED, GRADIENTS, BATCH = "dtype", "unchanged", "gradients", "batch"
LARGE, WEIGHTS = "large", "weights"


@dataclass(frozen=True)
class Written:
    """A test as text, and the rule that it quotes."""

    name: str
    rule: str
    text: str


def public_checks(calls: Calls, example: Example | None) -> list[Written]:
    """The public checks: the shape, the statement's example, and one value."""
    few = calls.trial.cases[-1]
    tests = [_with_cases(calls, "shape", "keeps_the_shape", RETURNS, _with_ones(calls, few))]
    if example is not None:
        tests.append(_example(calls, example))
    tests.append(_with_cases(calls, "value", "gives_the_right_values", COMPUTES, [few]))
    return tests


def hidden_tests(calls: Calls) -> list[Written]:
    """The ladder of hidden tests: what holds for the reference, as the facts say."""
    facts, cases = calls.facts, calls.cases()
    tests = [
        _with_cases(calls, "shape", "has_the_right_shape", RETURNS, _with_ones(calls, cases[0])),
        _with_cases(calls, "values", "agrees_with_the_reference", COMPUTES, cases),
    ]
    few = calls.trial.cases[-1]
    if facts.weights:
        tests.append(_fixed(calls, "weights", "learns_its_weights", WEIGHTS, few, optional=False))
    if facts.float64:
        tests.append(_fixed(calls, "float64", "keeps_float64", DTYPE, few, double=True))
    if facts.unchanged:
        tests.append(_fixed(calls, "unchanged", "changes_no_argument", UNCHANGED, few))
    if facts.batch:
        tests.append(_fixed(calls, "batch", "keeps_the_rows_apart", BATCH, few))
    if facts.gradients:
        tests.append(_fixed(calls, "gradients", "has_the_right_gradients", GRADIENTS, few))
    if facts.large:
        far = replace(calls, trial=enlarged(calls.trial))
        tests.append(_fixed(far, "large", "stays_right_for_large_numbers", LARGE, few))
    return tests


def edges_test(calls: Calls, edged: Trial) -> Written:
    """The hidden test of numbers at edges, drawn as in another trial."""
    few = replace(calls, trial=edged)
    return _fixed(few, "edges", "is_right_at_edges", COMPUTES, largest(edged))


def _with_ones(calls: Calls, case: Case) -> list[Case]:
    ones = replace(case, sizes={**case.sizes, **dict.fromkeys(calls.facts.ones, 1)})
    return [case, ones] if ones != case and calls.trial.takes(ones) else [case]


def _defaults_work(trial: Trial, case: Case) -> bool:
    """Whether there are optional arguments, and the reference takes calls without them."""
    functions = dict(methods(trial.definition))
    defaults = {
        key: defaults_of(functions[key[0]])[key[1]]
        for key, parameter in trial.parameters
        if parameter.optional
    }
    arguments = trial.arguments(case, Make("trial", trial.name, "defaults"))
    try:
        trial.call({**arguments, **defaults})
    except Refused:
        return False
    return bool(defaults)


def _with_cases(calls: Calls, form: str, suffix: str, rule: str, cases: Sequence[Case]) -> Written:
    decorator, names = calls.parametrised(cases) if len(cases) > 1 else ("", "")
    case = None if decorator else cases[0]
    return _written(calls, form, suffix, rule, calls.fields(case), decorator, names)


def _fixed(calls: Calls, form: str, suffix: str, rule: str, case: Case, **options: bool) -> Written:
    return _written(calls, form, suffix, rule, calls.fields(case, **options))


def _written(
    calls: Calls,
    form: str,
    suffix: str,
    rule: str,
    fields: Mapping[str, str],
    decorator: str = "",
    names: str = "",
) -> Written:
    stem = f"test_{calls.trial.name.lower()}_{suffix}"
    made = fields["made"]
    asks = made or form in COMPARES or REFERENCE in f"{fields['inputs']}{fields['arguments']}"
    student = "student, reference" if asks else "student"
    by_default = ""
    if form == "values" and _defaults_work(calls.trial, calls.trial.cases[-1]):
        short = calls.fields(None if decorator else calls.trial.cases[-1], optional=False)
        by_default = template(
            "exercise/by_default.txt", made=short["made"], compared=_compared(short)
        )
    text = template(
        f"exercise/{form}.txt",
        **fields,
        by_default=by_default,
        compared=_compared(fields),
        rows=_rows(calls, fields),
        learned=f"{calls.trial.name} learns {listed(calls.facts.weights or ['nothing'], 'and')}",
        name=calls.trial.name,
        test=stem,
        decorator=decorator,
        fixtures=f"{student}, make{names}",
    )
    return Written(stem, rule, fitted(text))


# The forms of tests that compare with the reference's result.
COMPARES = ("value", "values", "float64", "gradients", "large", "edges")


def _compared(fields: Mapping[str, str]) -> str:
    """The two results, as the arguments of an assertion."""
    return f"{fields['theirs']}, {fields['ours']}"


def _rows(calls: Calls, fields: Mapping[str, str]) -> str:
    """A function of the batch alone, and the batch, as the arguments of an assertion."""
    batch = calls.free(calls.facts.batch)
    if fields["arguments"] == batch:
        return f"{fields['their_call']}, {batch}"
    given = re.sub(rf"\b{batch}\b", "rows", fields["arguments"], count=1) if batch else ""
    return f"lambda rows: {fields['their_call']}({given}), {batch}"


def _example(calls: Calls, example: Example) -> Written:
    trial = calls.trial
    lines, given = [], {}
    for function, signature in trial.signatures:
        own = calls.needed(function, signature.parameters, example.case)
        for parameter in own:
            if specs_drawn(parameter):
                value = literal(example.arguments[function, parameter.name], REFERENCE)
                lines.append(f"{calls.free(parameter.name)} = {value}")
        named = {name: repr(example.case.sizes[name]) for name in calls.sizes}
        texts = [calls.text((function, p.name), p, named, example.case) for p in own]
        given[function] = ", ".join(texts)
    fields = calls.called(given)
    made = fields["made"]
    if made:
        first, *rest = made.splitlines(keepends=True)
        made = "".join([first, template("exercise/constant.txt", weight=str(WEIGHT)), *rest])
    stem = f"test_{trial.name.lower()}_gives_the_example"
    compared = f"{fields['theirs']}, {literal(example.result, REFERENCE)}"
    asks = made or REFERENCE in f"{''.join(lines)}{compared}"
    text = template(
        "exercise/example.txt",
        name=trial.name,
        test=stem,
        fixtures="student, reference" if asks else "student",
        inputs=indented(lines),
        made=made,
        compared=compared,
    )
    return Written(stem, COMPUTES, fitted(text))
