"""Writes the known mistakes of an exercise: common mistakes that apply, and living mutants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from grader.author.findings import Audited
from grader.author.scaffold.facts import gradients_of
from grader.author.scaffold.trial import Refused, Trial, same, tensors_in
from grader.author.texts import template
from grader.course.statements import BUILT_IN, COMPUTES
from grader.mistakes import Variant

PER_LINE = 4  # slugs of common mistakes


def common_mistakes_text(name: str, slugs: Sequence[str]) -> str:
    """The call that gives an exercise these common mistakes."""
    if not slugs:
        return ""
    rows = [slugs[start : start + PER_LINE] for start in range(0, len(slugs), PER_LINE)]
    lines = (f"    {', '.join(f'{chr(34)}{slug}{chr(34)}' for slug in row)},\n" for row in rows)
    return f'common_mistakes(\n    "{name}",\n{"".join(lines)})  # fmt: skip\n'


def applicable(
    variants: Sequence[Variant], trial: Trial, names: Mapping[str, Any], rules: Collection[str]
) -> list[str]:
    """The slugs of the common mistakes that break rules of the exercise, and differ in results.

    Of several mistakes with the same results and gradients, only the first is kept, since no test
    could say which of them an answer has. A mistake that raises an exception is left out, since an
    exception has many causes.
    """
    right = _results(trial)
    seen: list[Any] = []
    kept = []
    for variant in variants:
        if not {*variant.breaks} <= {*BUILT_IN, *rules}:
            continue
        definition = defined(variant.definition, trial.name, names)
        if definition is None:
            continue
        results = _results(replace(trial, definition=definition))
        if isinstance(results[0], _Raised):
            continue
        if COMPUTES in variant.breaks and not _comparable(results, right):
            continue
        if not same(results, right):
            if any(same(results, one) for one in seen):
                continue
            seen.append(results)
        kept.append(variant.slug)
    return kept


def defined(text: str, name: str, names: Mapping[str, Any]) -> Any:
    """The definition of a name in a text; None if the text raises."""
    own = dict(names)
    try:
        exec(compile(text, name, "exec", dont_inherit=True), own)
    except Exception:
        return None
    return own[name]


class _Raised(str):
    """The text of an exception, in place of a result."""


def _results(trial: Trial) -> list[Any]:
    found: list[Any] = []
    for case in trial.cases:
        try:
            found.append(trial.run(case))
        except Refused as refused:
            found.append(_Raised(str(refused)))
        found.append(tuple(gradients_of(trial, case).values()))
    return found


def _comparable(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether the first result has the right dtypes."""
    mine, right = ([one.dtype for one in tensors_in(results[0])] for results in (some, others))
    return mine == right


# --- living mutants ------------------------------------------------------------------------------


def waiting(findings: Sequence[Audited], at_edges: Sequence[Audited]) -> str:
    """Mutants as commented mistakes, each of which waits for a title and a hint.

    They are those that live, and those that only the test of edges catches.
    """
    living = [one for one in findings if one.kind == "mutant" and not one.well]
    texts = []
    for mutants, form in ((living, "waiting"), (at_edges, "waiting_at_edges")):
        lines = template(f"exercise/{form}.txt").splitlines()
        for finding in mutants:
            lines += ["#", *(f"# {line}".rstrip() for line in finding.suggestion.splitlines())]
        texts += ["\n".join(lines) + "\n"] if mutants else []
    return "\n".join(texts)
