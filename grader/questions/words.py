"""Says in a sentence how a changed answer behaves differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grader.course.contract import Contract
from grader.course.forms import TensorSpec
from grader.feedback.behaviour import BATCH, LEADING, axis_named, label_of
from grader.proxies.facts import Fact, Facts

# The kinds of facts, the most telling first.
ORDER = (
    "repeats", "repeats in training", "sums", "reaches", "heeds", "gradient", "weights", "bounded",
    "shift", "scale", "lift", "double",
)  # fmt: skip


def sentences_about(contract: Contract, before: Facts, after: Facts) -> list[str]:
    """How the behaviour `after` a change differs from that `before`, the most telling first."""
    changed = {
        fact: after[fact]
        for fact in before
        if after.get(fact, before[fact]) != before[fact]
        # That a result has no negative numbers may be so for the example alone.
        and not (fact.kind == "bounded" and after[fact])
    }
    return list(dict.fromkeys(_sentences(contract, before, changed)))


def false_sentences(contract: Contract, before: Facts, after: Facts) -> list[str]:
    """Sentences about changes of behaviour that did not happen."""
    moved = {f.subject for f in before if f.kind == "reaches" and after.get(f) != before[f]}
    same = {
        fact: not holds
        for fact, holds in before.items()
        if after.get(fact) == holds and (fact.kind != "reaches" or fact.subject not in moved)
    }
    true = set(sentences_about(contract, before, after))
    found = dict.fromkeys(_sentences(contract, before, same))
    return [sentence for sentence in found if sentence not in true]


def is_named(spec: TensorSpec | None, label: str) -> bool:
    """Whether exactly one axis has this name."""
    names = [dimension.label for dimension in spec.dimensions or ()] if spec is not None else []
    return label != LEADING and names.count(label) == 1


def _sentences(contract: Contract, before: Facts, changed: Mapping[Fact, bool]) -> Iterator[str]:
    signature = contract.called
    out = signature.returned

    def argument(fact: Fact) -> str:
        return f"`{signature.parameters[fact.argument].name}`"

    for kind in ORDER:
        of_kind = {fact: holds for fact, holds in sorted(changed.items()) if fact.kind == kind}
        if kind == "reaches":
            yield from _reaching(contract, before, of_kind)
            continue
        for fact, holds in of_kind.items():
            match kind:
                case "repeats" if not holds:
                    yield "Two equal calls now give different results."
                case "repeats in training":
                    how = "the same result" if holds else "different results"
                    yield f"In training mode, two equal calls now give {how}."
                case "sums":
                    label = label_of(out, fact.at[0])
                    if is_named(out, label) and label != BATCH:
                        now = "now" if holds else "no longer"
                        yield f"Along {axis_named(label)}, the result {now} sums to one."
                case "heeds":
                    now = "now" if holds else "no longer"
                    yield f"The result {now} depends on {argument(fact)}."
                case "gradient" if not holds:
                    yield f"No gradient reaches {argument(fact)} any more."
                case "weights" if not holds:
                    yield "A parameter of the module gets no gradient: its `grad` stays None."
                case "bounded":
                    yield f"The result now has {'no' if holds else 'also'} negative numbers."
                case "shift" | "scale":
                    how = "Adding a constant to" if kind == "shift" else "Doubling"
                    now = "no longer" if holds else "now"
                    yield f"{how} {argument(fact)} {now} changes the result."
                case "lift" | "double":
                    how = "Adding a constant to" if kind == "lift" else "Doubling"
                    does = "adds it to the result" if kind == "lift" else "doubles the result"
                    now = "now" if holds else "no longer"
                    yield f"{how} {argument(fact)} {now} {does}."


def _reaching(contract: Contract, before: Facts, changed: Mapping[Fact, bool]) -> Iterator[str]:
    """Sentences on which positions of an argument the result depends."""
    signature = contract.called
    out = signature.returned
    for subject in dict.fromkeys(fact.subject for fact in changed):
        _, number, (axis, over) = subject
        parameter = signature.parameters[number]
        inward = label_of(parameter.specs[0] if parameter.specs else None, axis)
        outward = label_of(out, over)
        spec = parameter.specs[0] if parameter.specs else None
        if inward != outward or not (is_named(spec, inward) and is_named(out, outward)):
            continue
        was = {(f.at[1], f.at[3]): holds for f, holds in before.items() if f.subject == subject}
        now = was | {
            (f.at[1], f.at[3]): holds for f, holds in changed.items() if f.subject == subject
        }
        positions = {position for pair in was for position in pair}
        if any((of, to) not in was for of in positions for to in positions if of != to):
            continue  # for some positions, the results do not decide it
        along = f"Along {axis_named(inward)},"
        later = any(was[pair] for pair in was if pair[0] > pair[1])
        if inward == BATCH:
            if not any(was[pair] for pair in was if pair[0] != pair[1]) and any(
                now[pair] for pair in now if pair[0] != pair[1]
            ):
                yield "Rows of the batch now mix: a row of the result depends on another row."
        elif not later and any(now[pair] for pair in now if pair[0] > pair[1]):
            yield f"{along} the result now depends on later positions of `{parameter.name}`."
        elif later and not any(now[pair] for pair in now if pair[0] > pair[1]):
            yield f"{along} the result no longer depends on later positions of `{parameter.name}`."
