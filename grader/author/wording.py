"""Checks the form of an exercise's statement, and its agreement with the annotations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from grader.course.contract import Contract, Parameter, Signature
from grader.course.forms import TensorSpec
from grader.course.statements import (
    BUILT_IN,
    EXAMPLE,
    FORBIDDEN,
    GIVES,
    MADE_WITH,
    ORDER,
    RULES,
    SOURCE,
    TAKES,
    Statement,
)

TODO = "TODO"  # marks what an author still has to write
AT_HEART = "at most half of the points"


def faults(
    stated: Statement, contract: Contract, forbids: bool, heart: Collection[str] = ()
) -> Iterator[str]:
    """Missing parts of a statement, and differences from the reference's annotations.

    A statement that has no parts at all is free prose, and is not checked.
    """
    for title, text in stated.parts.items():
        if TODO in text:
            yield f"left for a person: {title or _first(stated)}"
    if not stated.formal:
        return
    module = contract.forward is not None
    titles = [title for title in ORDER if title != MADE_WITH or module]
    there = [title for title in stated.parts if title]
    if missing := [title for title in titles if title != RULES and title not in there]:
        yield f"the statement lacks {', '.join(missing)}"
    if there != [title for title in ORDER if title in there]:
        yield f"the parts of the statement are in another order than {', '.join(ORDER)}"
    if not stated.formula:
        yield "the statement has no formula below its first sentence"
    if ">>>" not in stated.parts.get(EXAMPLE, ""):
        yield "the statement's example has no numbers"
    if "https://" not in stated.parts.get(SOURCE, ""):
        yield "the statement's source has no address"
    for key, sentence in stated.rules.items():
        if key == TODO:
            continue
        if key in BUILT_IN:
            yield f"the rule {key} is built in, so the statement must not define it"
        if not sentence.endswith("."):
            yield f"the rule {key} is not a sentence: {sentence}"
        if AT_HEART in sentence and key not in heart:
            yield f"the rule {key} says `{AT_HEART}`, but `heart` in course.toml does not list it"
        elif AT_HEART not in sentence and key in heart:
            yield (
                f"the rule {key} is at the heart in course.toml, and lacks the sentence `An answer "
                f"that breaks this rule gets {AT_HEART}.`"
            )
    if forbids and FORBIDDEN not in stated.rules:
        yield f"the exercise forbids operations, but has no rule {FORBIDDEN}"
    if module:
        yield from _differs(stated.entries(MADE_WITH), MADE_WITH, contract.call)
    called = contract.called
    yield from _differs(stated.entries(TAKES), TAKES, called)
    if unsaid := _unsaid(stated.parts.get(GIVES, ""), Parameter(GIVES, called.returns)):
        yield f"{GIVES} does not say {unsaid}"


def _first(stated: Statement) -> str:
    """What is left to write above the titled parts."""
    sentence, _, formula = stated.computes.partition("\n")
    slots = {"the first sentence": sentence, "the formula": formula}
    left = [slot for slot, text in slots.items() if TODO in text]
    return " and ".join(left) or "the text above the titles"


def _differs(entries: Mapping[str, str], part: str, signature: Signature) -> Iterator[str]:
    names = [parameter.name for parameter in signature.parameters]
    if [*entries] != names:
        yield f"{part} lists {', '.join(entries) or 'nothing'}, but the reference takes {names}"
        return
    for parameter in signature.parameters:
        if unsaid := _unsaid(entries[parameter.name], parameter):
            yield f"{part}: {parameter.name} does not say {unsaid}"


def _unsaid(text: str, parameter: Parameter) -> str:
    """The first shape or type that a text should say and does not; empty if it says all."""
    if unsaid := _unsaid_shape(text, parameter.specs):
        return unsaid
    if parameter.kind == "int" and not re.search(r"\bint\b", text):
        return "int"
    if parameter.kind == "model" and "nn.Module" not in text:
        return "nn.Module"
    if parameter.nullable and "None" not in text:
        return "None"
    return ""


def _unsaid_shape(text: str, wanted: Sequence[TensorSpec]) -> str:
    """The first wanted shape that a text lacks, if read in order; empty if it has all."""
    text = re.sub(r",?\s*\)", ")", " ".join(text.split()))
    for spec in wanted:
        if spec.dimensions is None:
            continue
        kind = "" if spec.kind == "float" else f"{spec.kind} "
        before, found, after = text.partition(f"{kind}{spec}")
        if not found or (not kind and before.endswith(("bool ", "int "))):
            return f"{kind}{spec}"
        text = after
    return ""
