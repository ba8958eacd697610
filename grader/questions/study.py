"""Runs an answer: as it is, with probes on its values, and with small changes of its text.

A `Study` belongs to one answer that passes its public checks. The inputs are those that the checks
pass to it. Each changed text runs in a jail of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec
import torch
from torch import Tensor

from grader import wire
from grader.course.contract import Contract
from grader.course.references import WEIGHT_SCALE
from grader.course.tensors import Make
from grader.grading.behaviour import right_behaviour
from grader.grading.desk import Desk, Seat
from grader.grading.diagnosis import flat
from grader.grading.play import play
from grader.intake import Submission
from grader.proxies.facts import CLEAR, Example, Facts, facts
from grader.questions.words import false_sentences, sentences_about
from grader.sandbox.session import StudentCall, StudentLost
from grader.wire import SourceText, payload

MOST_INPUTS = 8
MOST_NUMBERS = 400  # of the tensors of an input
MOST_EDGES = 2  # inputs that are tried with large numbers too
MOST_LAYERS = 4  # of values inside values that are probed
SAME = 1e-5  # a smaller difference, relative to the numbers, is rounding
PROBE = "_probe_"  # see `grader.guest.sites`

Values = list[wire.Outcome | None]  # the outcome of each input; None if the process was lost


class Unfit(Exception):
    """No question can be asked about an answer; the text says why."""


@dataclass(frozen=True)
class Input:
    """The calls of a check to an answer: to its class, if it is one, and to the function."""

    call: wire.Invoke
    made: wire.Invoke | None = None
    only: str = ""  # for an input beside those of the checks: what it shows, see `_edges`

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among the arguments of the call."""
        return list(payload.tensors_of([payload.unpack(value) for value in self.call.arguments]))


@dataclass(frozen=True)
class Outcome:
    """What a change does."""

    kind: Literal["raises", "shape", "behaviour", "numbers", "edge", "nothing"]
    told: str  # the sentence that is true
    false: tuple[str, ...] = ()  # sentences about behaviour that are not
    ran: str = ""  # what was seen
    changed: frozenset[str] = frozenset()  # all sentences about behaviour that are true


RAISES = "It raises an exception."
NOTHING = "Nothing: every result stays as it is."
NUMBERS = "The result has the same shape, and other numbers."


@dataclass
class Study:
    """One answer, and what running it has shown."""

    desk: Desk
    name: str
    sources: tuple[SourceText, ...]
    inputs: Sequence[Input]
    sites: Sequence[wire.Site]
    values: Values
    example: Example | None
    facts: Facts
    _outcomes: dict[wire.Site, Outcome | None] = field(default_factory=dict)

    @property
    def contract(self) -> Contract:
        """The contract of the exercise."""
        return self.desk.oracle.contracts[self.name]

    def names(self, one: Input) -> list[str]:
        """The names of the arguments of a call, as the student wrote them."""
        signature = self.contract.forward or self.contract.call
        return one.call.keywords or [parameter.name for parameter in signature.parameters]

    def outcome(self, site: wire.Site) -> Outcome | None:
        """What a change of the answer does; None if that is not clear. It is run twice."""
        if site not in self._outcomes:
            changed = spliced(self.sources, site, site.new)
            one = self._run_changed(changed) if changed is not None else None
            sure = one is not None and one == self._run_changed(changed)
            self._outcomes[site] = one if sure else None
        return self._outcomes[site]

    def _run_changed(self, sources: tuple[SourceText, ...] | None) -> Outcome | None:
        assert sources is not None
        ran = run(self.desk, self.name, sources, self.inputs, self.example)
        return _judged(self, *ran) if ran is not None else None

    def results(self, inputs: Sequence[Input]) -> Values | None:
        """The results of the answer for other inputs, run twice; None if they are not clear."""
        one, other = (run(self.desk, self.name, self.sources, inputs, None) for _ in range(2))
        clear = one is not None and other is not None and _all_same(one[0], other[0])
        return one[0] if one is not None and clear else None

    def probed(self, sites: Sequence[wire.Site]) -> Mapping[wire.Site, list[list[wire.Value]]]:
        """The values that stand at these sites, for each input, in the order in which they came."""
        found: dict[wire.Site, list[list[wire.Value]]] = {}
        left = list(sites)
        for _ in range(MOST_LAYERS):
            layer = _apart(left)
            left = [site for site in left if site not in layer]
            sources: tuple[SourceText, ...] | None = self.sources
            # From the end of the text, so that the places of the others stay as they are.
            for number, site in reversed([*enumerate(layer)]):
                assert sources is not None
                sources = spliced(sources, site, f"{PROBE}({number}, {site.text})")
            assert sources is not None
            ran = run(self.desk, self.name, sources, self.inputs, None, probes=True)
            if ran is None or not _all_same(ran[0], self.values):
                continue
            for number, site in enumerate(layer):
                found[site] = [
                    [seen.value for seen in one.seen if seen.probe == number]
                    for one in ran[0]
                    if isinstance(one, wire.Returned)
                ]
        return found


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
            seat.begin(_make(desk, name))
            outcome = seat.session.run(wire.Locate(name))[-1]
            sites = outcome.sites if isinstance(outcome, wire.Located) else []
    except StudentLost as lost:
        raise Unfit(f"the answer does not run: {lost}") from None
    inputs = _inputs(name, calls)
    inputs += [edge for one in inputs[:MOST_EDGES] for edge in _edges(one)]
    known = right_behaviour(desk, name)
    example = known.example if known is not None else None
    ran = run(desk, name, submission.sources, inputs, example)
    again = run(desk, name, submission.sources, inputs, example)
    if ran is None or again is None or not inputs:
        raise Unfit("the answer does not run on the inputs of its checks alone")
    if ran[1] != again[1]:
        raise Unfit("the answer gives other results each time")
    # Inputs on which the answer raises, or draws by chance, are left out.
    kept = [n for n in range(len(inputs)) if _all_same(ran[0][n : n + 1], again[0][n : n + 1])]
    if not kept or inputs[kept[0]].only:
        raise Unfit("the answer gives other results each time, or raises")
    fitting = [site for site in sites if _stands(submission.sources, site)]
    values = [ran[0][n] for n in kept]
    inputs = [inputs[n] for n in kept]
    return Study(desk, name, submission.sources, inputs, fitting, values, example, ran[1])


def _make(desk: Desk, name: str) -> Make:
    return Make(desk.course.seed, name, "questions")


def _inputs(name: str, calls: Sequence[wire.Call]) -> list[Input]:
    """The inputs of checks, small ones and those with distinct sizes first."""
    made: dict[int, wire.Invoke] = {}
    found: list[Input] = []
    for call in calls:
        if isinstance(call, wire.Seed):
            made.clear()
        if not isinstance(call, wire.Invoke) or call.result == wire.TRIAL:
            continue
        plain = msgspec.structs.replace(
            call, leaves=[], keep_graph=False, observe=False, altered=()
        )
        if call.construct and call.target == name:
            made[call.result] = plain
        elif call.target == name:
            found.append(Input(plain))
        elif isinstance(call.target, int) and call.target in made:
            found.append(Input(plain, made[call.target]))
    distinct: dict[bytes, Input] = {}
    for one in found:
        if sum(tensor.numel() for tensor in one.tensors) <= MOST_NUMBERS:
            key = msgspec.msgpack.encode(
                [one.made.arguments if one.made else [], one.call.arguments]
            )
            distinct.setdefault(key, one)
    return sorted(distinct.values(), key=_rank, reverse=True)[:MOST_INPUTS]


LARGE, TRAINING = "large numbers", "training mode"
HUGE = 1000.0


def _edges(one: Input) -> Iterator[Input]:
    """Inputs beside those of the checks, on which a change may show its effect."""
    large = [_enlarged(value) for value in one.call.arguments]
    if large != one.call.arguments:
        yield replace(one, call=msgspec.structs.replace(one.call, arguments=large), only=LARGE)
    if one.made is not None:
        # A rate of 0.0 would hide dropout.
        arguments = [0.5 if value == 0.0 and type(value) is float else value
                     for value in one.made.arguments]  # fmt: skip
        made = msgspec.structs.replace(one.made, arguments=arguments)
        yield replace(one, made=made, only=TRAINING)


def _enlarged(value: wire.Input) -> wire.Input:
    if not isinstance(value, wire.TensorData) or not value.dtype.startswith("float"):
        return value
    if value.array:
        return value
    return payload.pack_tensor(payload.unpack_tensor(value) * HUGE)


def _rank(one: Input) -> tuple[bool, int, int]:
    """Distinct sizes above 1 first, then few numbers."""
    sizes = [size for tensor in one.tensors[:1] for size in tensor.shape]
    clear = len(set(sizes)) == len(sizes) and 1 not in sizes and bool(sizes)
    return clear, len(sizes), -sum(tensor.numel() for tensor in one.tensors)


# --- running -------------------------------------------------------------------------------------


def run(
    desk: Desk,
    name: str,
    sources: tuple[SourceText, ...],
    inputs: Sequence[Input],
    example: Example | None,
    *,
    probes: bool = False,
) -> tuple[Values, Facts] | None:
    """Run an answer's text on inputs, and find the facts about an example.

    Modules get the same weights each time. Returns None if the process is lost.
    """
    make = _make(desk, name)
    try:
        with desk.seat(Submission("question", sources), [name], probes=probes) as seat:
            seat.begin(make)
            values = [_called(seat, name, one, make) for one in inputs]
            known: Facts = {}
            if example is not None and isinstance(values[0], wire.Returned):
                known = facts(seat.begin(make), name, example, make)
            return values, known
    except StudentLost:
        return None


def _called(seat: Seat, name: str, one: Input, make: Make) -> wire.Outcome | None:
    session = seat.session
    target: str | int = name
    if one.made is not None:
        target = next(session.handles)
        (structure,) = session.run(msgspec.structs.replace(one.made, result=target))
        if not isinstance(structure, wire.Structure):
            return structure
        weights = {
            info.path: payload.pack_tensor(
                make.normal_like(torch.zeros(info.shape), WEIGHT_SCALE, name=info.path)
            )
            for info in structure.parameters
        }
        mode: Literal["train", "eval"] = "train" if one.only == TRAINING else "eval"
        session.run(wire.Assign(target, weights), wire.Convert(target, mode))
    call = msgspec.structs.replace(one.call, target=target, result=next(session.handles))
    return session.run(call)[-1]


# --- text ----------------------------------------------------------------------------------------


def spliced(
    sources: tuple[SourceText, ...], site: wire.Site, new: str
) -> tuple[SourceText, ...] | None:
    """The sources with a new text at a site; None if the site's text does not stand there."""
    changed = []
    done = False
    for source in sources:
        cells = list(source.cells)
        if source.name == site.place.file and not done:
            number = max(site.place.cell, 1) - 1
            if number < len(cells):
                text = _put(cells[number], site, new)
                if text is not None:
                    cells[number], done = text, True
        changed.append(SourceText(source.name, tuple(cells)))
    return tuple(changed) if done else None


def _put(cell: str, site: wire.Site, new: str) -> str | None:
    lines = re.sub(r"\r\n?", "\n", cell).split("\n")
    first, last = site.place.line - 1, site.end_line - 1
    if not 0 <= first <= last < len(lines):
        return None
    before, after = lines[first][: site.start], lines[last][site.end :]
    whole = "\n".join(lines[first : last + 1])
    if whole != f"{before}{site.text}{after}":
        return None
    return "\n".join([*lines[:first], before + new + after, *lines[last + 1 :]])


def _stands(sources: tuple[SourceText, ...], site: wire.Site) -> bool:
    return spliced(sources, site, site.text) is not None


def lines_of(study: Study, site: wire.Site, new: str | None = None) -> list[str]:
    """The lines of a site, as they are or with a new text."""
    sources = study.sources if new is None else spliced(study.sources, site, new)
    assert sources is not None
    lines = wire.lines_around(site.place, sources)
    end = site.end_line if new is None else site.place.line + new.count("\n")
    return lines[site.place.line - 1 : end]


# --- what a change does --------------------------------------------------------------------------


def _judged(study: Study, values: Values, now: Facts) -> Outcome | None:
    """What a change does; None if it is not clear."""
    every = list(zip(values, study.values, study.inputs, strict=True))
    pairs = [(value, was) for value, was, one in every if not one.only]
    values = [value for value, _ in pairs]
    lost = [value for value, _ in pairs if isinstance(value, wire.Raised)]
    if lost:
        if len(lost) < len(pairs):
            return None  # only some inputs raise
        kinds = {value.kind for value in lost}
        if len(kinds) > 1 or kinds & {"NameError", "NotBound", "SyntaxError", "ForbiddenOperation"}:
            return None
        return Outcome("raises", RAISES, ran=f"It raises {lost[0].kind}: {_short(lost[0].text)}")
    if not all(isinstance(value, wire.Returned) for value in values):
        return None
    gaps = [_gap(one.value, other.value) for one, other in pairs]  # type: ignore[union-attr]
    if None in gaps:
        return None
    if "shape" in gaps:
        if gaps[0] != "shape":
            return None
        shape, was = (shape_of(pair.value) for pair in pairs[0])  # type: ignore[union-attr]
        if shape is None or was is None or shape == was:
            return None
        told = f"The result has the shape {shape}."
        return Outcome("shape", told, ran=f"The result has the shape {shape}, not {was}.")
    contract = study.contract
    changed = sentences_about(contract, study.facts, now)
    false = tuple(false_sentences(contract, study.facts, now))
    if changed:
        return Outcome("behaviour", changed[0], false, " ".join(changed), frozenset(changed))
    if all(gap == "same" for gap in gaps):
        edges = [(value, was, one.only) for value, was, one in every if one.only]
        if not all(isinstance(value, wire.Returned) for value, _, _ in edges):
            return None
        off = {(one, _edge_in_words(one, value, was)) for value, was, one in edges}
        off = {(one, told) for one, told in off if told}
        if len(off) > 1:
            return None
        if off:
            ((_, told),) = off
            return Outcome("edge", told, false, told)
        ran = f"All results stay as they are, for {len(values)} inputs"
        return Outcome("nothing", NOTHING, false, f"{ran} and for small changes of them.")
    if gaps[0] == "same":
        return None  # only some inputs show it
    return Outcome("numbers", NUMBERS, false, "The numbers differ, and the shape is the same.")


def _edge_in_words(only: str, value: wire.Outcome | None, was: wire.Outcome | None) -> str:
    """How an input beside those of the checks shows the change; "" if it does not."""
    assert isinstance(value, wire.Returned)
    assert isinstance(was, wire.Returned)
    if _gap(value.value, was.value) == "same":
        return ""
    if only == LARGE:
        now, before = (_is_finite(one.value) for one in (value, was))
        if before and not now:
            return "Only for large numbers: the result is then NaN or infinite."
        return "Only for large numbers does the result change."
    return "Only in training mode does the result change."


def _is_finite(value: wire.Value) -> bool:
    tensors = payload.tensors_of([payload.unpack(value)])
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def _apart(sites: Sequence[wire.Site]) -> list[wire.Site]:
    """Some of these sites that do not overlap, in the order of the text."""
    found: list[wire.Site] = []
    end = ("", 0, 0, 0)
    ordered = sorted(sites, key=lambda s: (s.place.file, s.place.cell, s.place.line, s.start))
    for site in ordered:
        file, cell = site.place.file, site.place.cell
        if (file, cell) != end[:2] or (site.place.line, site.start) >= end[2:]:
            found.append(site)
            end = (file, cell, site.end_line, site.end)
    return found


def _short(text: str) -> str:
    return " ".join(text.split())[:160]


def _all_same(ones: Values, others: Values) -> bool:
    return len(ones) == len(others) and all(
        isinstance(one, wire.Returned)
        and isinstance(other, wire.Returned)
        and _gap(one.value, other.value) == "same"
        for one, other in zip(ones, others, strict=True)
    )


def _gap(one: wire.Value, other: wire.Value) -> Literal["same", "numbers", "shape"] | None:
    """How two results differ; None if it is unclear whether more than rounding differs."""
    ones, others = list(flat([one])), list(flat([other]))
    if len(ones) != len(others):
        return "shape"
    found: set[Literal["same", "numbers", "shape"] | None] = set()
    for a, b in zip(ones, others, strict=True):
        if isinstance(a, wire.TensorData) and isinstance(b, wire.TensorData):
            found.add(_gap_of_tensors(a, b))
        else:
            found.add("same" if a == b else "numbers" if type(a) is type(b) else "shape")
    if None in found:
        return None
    return "shape" if "shape" in found else "numbers" if "numbers" in found else "same"


def _gap_of_tensors(
    one: wire.TensorData, other: wire.TensorData
) -> Literal["same", "numbers", "shape"] | None:
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return "shape"
    if one == other or one.device != "cpu":
        return "same" if one == other else None
    a, b = (payload.unpack_tensor(value).double() for value in (one, other))
    if torch.allclose(a, b, rtol=SAME, atol=SAME, equal_nan=True):
        return "same"
    off = (a - b).abs().nan_to_num(nan=1.0, posinf=1.0)
    return "numbers" if float(off.max()) > CLEAR else None


def shape_of(value: wire.Value) -> tuple[int, ...] | None:
    """The shape of a tensor; None for any other value."""
    return value.shape if isinstance(value, wire.TensorData) else None


def inputs_in_words(study: Study, one: Input) -> str:
    """The arguments of a call, such as "`x` is (2, 5, 3), context_length is 8"."""
    parts: list[str] = []
    if one.made is not None:
        parts += _named(study.contract.call.parameters, one.made)
    parts += _named((study.contract.forward or study.contract.call).parameters, one.call)
    return ", ".join(parts)


def _named(parameters: Sequence[Any], call: wire.Invoke) -> Iterator[str]:
    names = call.keywords or [parameter.name for parameter in parameters]
    for name, value in zip(names, call.arguments, strict=False):
        if isinstance(value, wire.TensorData):
            yield f"`{name}` has the shape {value.shape}"
        elif value is None or isinstance(value, bool | int | float | str):
            yield f"`{name}` is {value!r}"
