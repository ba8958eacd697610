"""Describes in sentences how an answer's behaviour differs from that of right answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from grader.course.contract import Contract
from grader.course.forms import TensorSpec
from grader.proxies.facts import LIFT, Fact, Facts, Kind

MOST_TOLD = 2  # the most sentences on one answer
LEADING = "a leading dimension"
BATCH = "batch"


def sentences_on(contract: Contract, right: Facts, theirs: Facts) -> list[str]:
    """At most `MOST_TOLD` sentences on how an answer's behaviour is wrong, the gravest first.

    `right` says which facts hold for right answers; `theirs` says which hold for this answer.
    A difference that follows from another difference is left out.
    """
    wrong = [fact for fact, holds in right.items() if theirs.get(fact, holds) is not holds]
    words = _Words(contract, right, frozenset(wrong))
    sentences: dict[str, None] = {}
    for say in (
        words.repeating, words.sums, words.future, words.heeded, words.leaks, words.gradients,
        words.missing, words.alike, words.changes,
    ):  # fmt: skip
        sentences.update(dict.fromkeys(say()))
    return list(sentences)[:MOST_TOLD]


@dataclass(frozen=True)
class _Words:
    """Writes sentences about the facts in which an answer is wrong."""

    contract: Contract
    ours: Mapping[Fact, bool]
    wrong: frozenset[Fact]

    def _argument(self, number: int) -> str:
        return f"`{self.contract.called.parameters[number].name}`"

    def _axis_in(self, number: int, axis: int) -> str:
        specs = self.contract.called.parameters[number].specs
        return label_of(specs[0] if specs else None, axis)

    def _axis_out(self, axis: int) -> str:
        return label_of(self.contract.called.returned, axis)

    def _of(self, *kinds: Kind) -> list[Fact]:
        return sorted(fact for fact in self.wrong if fact.kind in kinds)

    def repeating(self) -> Iterator[str]:
        """Report that two equal calls give different results, or that dropout has no effect."""
        if self._of("repeats"):
            yield "Called twice with the same input, your code gives two different results."
        for fact in self._of("repeats in training"):
            if self.ours[fact]:
                yield (
                    "In training mode, two calls with the same input give two different results; "
                    "a right answer gives the same result twice."
                )
            else:
                yield (
                    "In training mode, two calls with the same input give the same result: dropout "
                    "should make them differ."
                )

    def sums(self) -> Iterator[str]:
        """Report a result that sums to one along the wrong axes, or has negative numbers."""
        for fact in self._of("sums"):
            (axis,) = fact.at
            if self.ours[fact]:
                out = axis_named(self._axis_out(axis))
                yield f"Along {out}, your result does not sum to one; it should."
            elif not any(self.ours.get(Fact("sums", at=(a,))) for a in range(-9, 0)):
                out = axis_named(self._axis_out(axis))
                yield f"Along {out}, your result sums to one; it should not."
        if self._of("bounded") and self.ours[Fact("bounded")]:
            yield "Your result has negative numbers; a right result has none here."

    def _pairs(self) -> Iterator[tuple[int, int, int, list[Fact]]]:
        """The wrong "reaches" facts, grouped by argument, its axis and the result's axis.

        Such a fact says whether a position of an argument affects a position of the result. Facts
        about a row of the batch and a place within a row are left out: a reader would take them for
        facts about all rows.
        """
        found = self._of("reaches")
        for subject in sorted({fact.subject for fact in found}):
            _, number, (axis, over) = subject
            rows = [
                label in (BATCH, LEADING)
                for label in (self._axis_in(number, axis), self._axis_out(over))
            ]
            if rows[0] is not rows[1]:
                continue
            yield number, axis, over, [fact for fact in found if fact.subject == subject]

    def _reached(self, number: int, axis: int, over: int) -> dict[tuple[int, int], bool]:
        return {
            (fact.at[1], fact.at[3]): holds
            for fact, holds in self.ours.items()
            if fact.subject == ("reaches", number, (axis, over))
        }

    def future(self) -> Iterator[str]:
        """Report that a position of the result depends on later positions of an argument."""
        for number, axis, over, wrong in self._pairs():
            ours = self._reached(number, axis, over)
            causal = all(not holds for (of, to), holds in ours.items() if of > to)
            looks_back = any(holds for (of, to), holds in ours.items() if of < to)
            leaks = [fact.at for fact in wrong if not self.ours[fact] and fact.at[1] > fact.at[3]]
            same_axis = self._axis_in(number, axis) == self._axis_out(over) != LEADING
            if same_axis and causal and looks_back and leaks:
                _, of, _, to = leaks[0]
                yield (
                    f"It sees the future: when {self._argument(number)} changes at position {of} "
                    f"of `{self._axis_in(number, axis)}` only, your result changes at position "
                    f"{to}."
                )

    def leaks(self) -> Iterator[str]:
        """Report a position of the result that depends on a position that it should ignore.

        Dependence on later positions is left to `future`; an argument that is ignored, such as a
        mask, to `heeded`.
        """
        if any(self.ours[fact] for fact in self._of("heeds")):
            return
        for number, axis, over, wrong in self._pairs():
            leaks = [fact.at for fact in wrong if not self.ours[fact]]
            if not leaks or any(self.future()):
                continue
            _, of, _, to = leaks[0]
            inward, outward = self._axis_in(number, axis), self._axis_out(over)
            yield (
                f"When {self._argument(number)} changes {_at(of, inward)} only, your result "
                f"changes {_at(to, outward)}; it should not change there."
            )

    def heeded(self) -> Iterator[str]:
        """Report an argument that the result wrongly ignores, or wrongly depends on."""
        for fact in self._of("heeds"):
            argument = self._argument(fact.argument)
            if self.ours[fact]:
                yield (
                    f"Your result does not depend on {argument}: another value gives the same "
                    "result."
                )
            else:
                yield f"Your result depends on {argument}, but should not here."

    def missing(self) -> Iterator[str]:
        """Report that a position of the result ignores a position of an argument."""
        for number, axis, over, wrong in self._pairs():
            gaps = [fact.at for fact in wrong if self.ours[fact]]
            if not gaps or Fact("heeds", number) in self.wrong:
                continue
            _, of, _, to = gaps[0]
            inward, outward = self._axis_in(number, axis), self._axis_out(over)
            yield (
                f"When {self._argument(number)} changes {_at(of, inward)}, your result "
                f"{_at(to, outward)} stays as it is; it should change."
            )

    def gradients(self) -> Iterator[str]:
        """Report missing or wrong gradients."""
        for fact in self._of("gradient", "weights"):
            if self.ours[fact]:
                if fact.kind == "weights":
                    yield "One of your parameters gets no gradient: is it used at all?"
                    continue
                to = self._argument(fact.argument)
                yield f"No gradient reaches {to}: what cuts the result off from it?"
        for fact in self._of("slope"):
            if self.ours[fact]:
                yield (
                    f"The gradient that reaches {self._argument(fact.argument)} is not the slope "
                    "of your own result: is a part of the computation cut off, as by `.detach()`, "
                    "`.data` or `torch.no_grad()`?"
                )

    def alike(self) -> Iterator[str]:
        """Report a result that varies along an axis, although an argument does not."""
        for fact in self._of("alike"):
            axis, _ = fact.at
            argument, along = self._argument(fact.argument), self._axis_in(fact.argument, axis)
            every = "in all rows" if along == BATCH else "at all positions"
            if self.ours[fact]:
                yield (
                    f"If {argument} has the same values {every} {_along(along)}, your result "
                    f"should also be the same {every}, but it differs."
                )

    def changes(self) -> Iterator[str]:
        """Report that the result changes wrongly when an argument is shifted or scaled."""
        added = f"add {LIFT:g} to all of"
        does = {"shift": added, "lift": added}
        stays = {"shift": "stay as it is", "scale": "stay as it is", "double": "double too",
                 "lift": f"grow by {LIFT:g} too"}  # fmt: skip
        for fact in self._of("shift", "scale", "lift", "double"):
            if self.ours[fact]:
                act = does.get(fact.kind, "double")
                yield (
                    f"If you {act} {self._argument(fact.argument)}, the result should "
                    f"{stays[fact.kind]}; yours does not."
                )


def label_of(spec: TensorSpec | None, axis: int) -> str:
    """The name of the axis with this negative index; `LEADING` in or before a variadic group."""
    if spec is not None and spec.dimensions and -axis <= len(spec.dimensions):
        dimension = spec.dimensions[axis]
        if not any(d.variadic for d in spec.dimensions[axis:]):
            return dimension.label
    return LEADING


def axis_named(label: str) -> str:
    """An axis in a sentence."""
    return label if label == LEADING else f"`{label}`"


def _at(position: int, label: str) -> str:
    """A place along an axis: "at position 2 of `tokens`", "in row 1 of the batch"."""
    if label == BATCH:
        return f"in row {position} of the batch"
    return f"at position {position} of {axis_named(label)}"


def _along(label: str) -> str:
    return "of the batch" if label == BATCH else f"along {axis_named(label)}"
