"""Runs an answer: as it is, with probes on its values, and with small changes of its text.

A `Study` belongs to one answer that passes its public checks. The inputs are those that the checks
pass to it. Each changed text runs in a jail of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from grader import wire
from grader.course.contract import Contract, Signature
from grader.grading.behaviour import right_behaviour
from grader.grading.desk import Desk
from grader.grading.play import play
from grader.intake import Submission
from grader.proxies.calls import argument_order, first_outcome
from grader.proxies.facts import Example, Facts, uncontradicted
from grader.questions.inputs import TRAINING, Input, inputs_of
from grader.questions.outcomes import (
    NOTHING,
    Outcome,
    Values,
    all_same,
    gap_of,
    outcome_of,
    shapes_of,
)
from grader.questions.running import make_of, run, values_of
from grader.questions.texts import in_python, spliced, stands, surrounded
from grader.questions.words import sentences_about
from grader.sandbox.session import StudentCall, StudentLost
from grader.wire import SourceText

MOST_EXAMPLES = 2  # inputs of checks that confirm sentences about behaviour
MOST_LOST = 2  # changes that may lose the process, as by running for ever
RAISING = "[][0]"
PROBE = "_probe_"  # see `grader.guest.sites`


class Unfit(Exception):
    """No question can be asked about an answer; the text says why."""


@dataclass
class Study:
    """One answer, and what running it has shown."""

    desk: Desk
    contract: Contract  # with the student's names of the parameters
    sources: tuple[SourceText, ...]
    inputs: Sequence[Input]
    others: Sequence[Input]  # of the checks
    sites: Sequence[wire.Site]
    values: Values
    example: Example | None
    facts: Facts
    examples: Sequence[tuple[Input, Facts]]  # facts about other inputs of the checks
    _outcomes: dict[wire.Site, Outcome | None] = field(default_factory=dict)
    _sure: dict[wire.Site, bool] = field(default_factory=dict)
    _said: dict[wire.Site, list[set[str]]] = field(default_factory=dict)
    _lost: int = 0

    @property
    def name(self) -> str:
        """The name of the exercise."""
        return self.contract.name

    @cached_property
    def readable(self) -> Sequence[Input]:
        """The inputs that can be written in a sentence."""
        return [one for one in self.inputs if one.is_readable]

    def result_of(self, one: Input) -> str:
        """The result for an input, as Python writes it; "" if it is long or odd."""
        value = self.values[self.inputs.index(one)]
        return in_python(value.value) if isinstance(value, wire.Returned) else ""

    @property
    def clear_input(self) -> Input | None:
        """The first input of the checks whose sizes all differ."""
        return next((one for one in self.inputs if not one.only and one.is_clear), None)

    @property
    def has_modes(self) -> bool:
        """Whether a module gives another result in training mode."""
        usual = [
            (one.call, value)
            for one, value in zip(self.inputs, self.values, strict=True)
            if not one.only
        ]
        return any(
            one.only == TRAINING
            and all(gap_of(value, other) != "same" for call, other in usual if call == one.call)
            for one, value in zip(self.inputs, self.values, strict=True)
        )

    def outcome(self, site: wire.Site) -> Outcome | None:
        """What a change of the answer does; None if that is not clear."""
        if site not in self._outcomes:
            self._outcomes[site] = self._changed(site)
        return self._outcomes[site]

    def is_sure(self, site: wire.Site) -> bool:
        """Whether a change does the same when it is run again, and is of code that runs."""
        if site not in self._sure:
            outcome = self._changed(site)
            sure = outcome is not None and outcome == self.outcome(site)
            sure = sure and self._is_so_for_other_masks(site)
            if outcome is not None and outcome.kind in ("nothing", "edge"):
                sure = sure and self._is_reached(site) and self._is_nothing_to_others(site)
            self._sure[site] = sure
        return self._sure[site]

    def is_general(self, site: wire.Site, reply: str, choices: Sequence[str]) -> bool:
        """Whether other inputs of the checks confirm a reply about behaviour among choices."""
        outcome = self.outcome(site)
        about = {*outcome.true, *outcome.false} - {NOTHING} if outcome is not None else set()
        if about.isdisjoint(choices):
            return True
        if site not in self._said:
            self._said[site] = [*self._sentences(site)]
        wrong = {*choices} - {reply}
        return all(
            said.isdisjoint(wrong) and (reply in said or reply not in about)
            for said in self._said[site]
        )

    def _sentences(self, site: wire.Site) -> Iterator[set[str]]:
        """What a change does to each other example, in sentences about behaviour."""
        sources = spliced(self.sources, site, site.new)
        assert sources is not None
        for one, before in self.examples:
            ran = run(self.desk, self.name, sources, [one], one.as_example)
            # Without facts, as after an exception, nothing is confirmed.
            yield {*sentences_about(self.contract, before, ran[1])} if ran else set()

    def _is_reached(self, site: wire.Site) -> bool:
        """Whether the answer raises if an expression that raises takes the place of this one."""
        return isinstance(self._values(site, self.inputs[:1], RAISING)[0], wire.Raised)

    def _is_so_for_other_masks(self, site: wire.Site) -> bool:
        """Whether a change does the same for other masks, of which a question tells nothing."""
        outcome = self.outcome(site)
        one = self.inputs[outcome.at if outcome else 0]
        inputs = [one, one.with_other_masks]
        if inputs[0] == inputs[1]:
            return True
        usual = self._values(site, inputs, site.text)
        pairs = zip(self._values(site, inputs, site.new), usual, strict=True)
        first, second = ((gap_of(value, was), shapes_of(value)) for value, was in pairs)
        return not isinstance(usual[1], wire.Returned) or first == second

    def _is_nothing_to_others(self, site: wire.Site) -> bool:
        """Whether a change has no effect on the other inputs of the checks."""
        pairs = zip(self._values(site, self.others, site.new), self._values_of_others, strict=True)
        return all(gap_of(*pair) == "same" for pair in pairs if isinstance(pair[1], wire.Returned))

    @cached_property
    def _values_of_others(self) -> Values:
        return values_of(self.desk, self.name, self.sources, self.others)

    def _values(self, site: wire.Site, inputs: Sequence[Input], new: str) -> Values:
        """The outcomes with a new text at a site."""
        sources = spliced(self.sources, site, new)
        assert sources is not None
        return values_of(self.desk, self.name, sources, inputs)

    def _changed(self, site: wire.Site) -> Outcome | None:
        sources = spliced(self.sources, site, site.new)
        if sources is None or self._lost >= MOST_LOST:
            return None
        first = self.values[0]
        ran = run(self.desk, self.name, sources, self.inputs, self.example, like=first)
        if ran is None:
            self._lost += 1
            return None
        return outcome_of(self.contract, self.inputs, (self.values, self.facts), ran)

    def probed(
        self, sites: Sequence[wire.Site], inputs: Sequence[Input]
    ) -> list[Mapping[wire.Site, list[wire.Value]]]:
        """The values at these sites, in the order in which they came, for each input.

        The first input is one of the study's. Returns nothing if a call fails, or if probes change
        the first result.
        """
        around = [(site, f"{PROBE}({number}, ", ")") for number, site in enumerate(sites)]
        sources = surrounded(self.sources, around)
        ran = run(self.desk, self.name, sources, inputs, None, probes=True)
        if ran is None or not all_same(ran[0][:1], [self.values[self.inputs.index(inputs[0])]]):
            return []
        results = [value for value in ran[0] if isinstance(value, wire.Returned)]
        if len(results) < len(inputs):
            return []
        return [
            {
                site: [seen.value for seen in result.seen if seen.probe == number]
                for number, site in enumerate(sites)
            }
            for result in results
        ]


def study(desk: Desk, submission: Submission, name: str) -> Study:
    """Run an answer on the inputs of its public checks; raise `Unfit` if it does not pass them."""
    try:
        with desk.seat(submission, [name]) as seat:
            seat.session.listens = True
            calls: list[wire.Call] = []
            for test in desk.tests[name]:
                for case in () if test.hidden else test.cases:
                    played = play(desk, seat, test, case, words=False)
                    if not played.passed:
                        raise Unfit("the answer does not pass its public checks")
                    calls += [one.call for one in played.calls if isinstance(one, StudentCall)]
            seat.begin(make_of(desk, name))
            outcome = first_outcome(seat.session.run(wire.Locate(name)))
            sites = outcome.sites if isinstance(outcome, wire.Located) else []
            contract = _in_own_names(desk, name, seat.calls.found.get(name))
    except StudentLost as lost:
        raise Unfit(f"the answer does not run: {lost}") from None
    inputs, others = inputs_of(name, calls)
    known = right_behaviour(desk, name)
    example = known.example if known is not None else None
    ran = run(desk, name, submission.sources, inputs, example)
    again = run(desk, name, submission.sources, inputs, example)
    if ran is None or again is None:
        raise Unfit("the answer does not run on the inputs of its checks alone")
    if ran[1] != again[1]:
        raise Unfit("the answer gives other results each time")
    # Inputs on which the answer raises, or draws by chance, are left out.
    kept = [n for n in range(len(inputs)) if all_same(ran[0][n : n + 1], again[0][n : n + 1])]
    if not kept or inputs[kept[0]].only:
        raise Unfit("the answer gives other results each time, or raises")
    fitting = [site for site in sites if stands(submission.sources, site)]
    values = [ran[0][n] for n in kept]
    inputs = [inputs[n] for n in kept]
    sources, agreed = submission.sources, ran[1]
    examples = [*_examples(desk, name, sources, inputs, example)] if agreed else []
    for _, own in examples:  # what is so for one input alone is no fact about the answer
        agreed = uncontradicted(agreed, own)
    return Study(
        desk, contract, sources, inputs, others, fitting, values, example, agreed, examples
    )


def _examples(
    desk: Desk,
    name: str,
    sources: tuple[SourceText, ...],
    inputs: Sequence[Input],
    known: Example | None,
) -> Iterator[tuple[Input, Facts]]:
    """Some inputs of the checks beside a known example, and facts about them."""
    others = [one for one in inputs if not one.only and one.as_example not in (None, _plain(known))]
    for one in others[:MOST_EXAMPLES]:
        ran = run(desk, name, sources, [one], one.as_example)
        if ran is not None and ran[1]:
            yield one, ran[1]


def _plain(example: Example | None) -> Example | None:
    """An example without the check that it comes from."""
    return example and Example(example.made_with, example.arguments)


def _in_own_names(desk: Desk, name: str, found: wire.Found | None) -> Contract:
    """The contract of an exercise, with the parameters named as the student names them."""
    contract, aliases = desk.oracle.contracts[name], desk.course.file.aliases.arguments

    def named(signature: Signature, listed: Sequence[wire.Argument] | None) -> Signature:
        names = [argument.name for argument in listed or () if argument.kind == "positional"]
        order = [*range(len(names))]
        by_name = argument_order(signature, listed, len(signature.parameters), aliases)
        if by_name[1]:
            order, names = by_name
        own = {at: one for at, one in zip(order, names, strict=True) if one.isidentifier()}
        parameters = enumerate(signature.parameters)
        return replace(
            signature, parameters=tuple(replace(p, name=own.get(n, p.name)) for n, p in parameters)
        )

    return replace(
        contract,
        call=named(contract.call, found.arguments if found else None),
        forward=contract.forward and named(contract.forward, found.forward if found else None),
    )
