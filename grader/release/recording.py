"""Records the outcomes of public checks, which replace the solutions in a student's bundle.

Each public check runs on the references and on every known mistake, unless the sheet in the user's
cache already has the outcome. The sheet's public rows are the recording. A recording contains no
code of a reference or a mistake, and no hidden test.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from grader import wire
from grader.author.examples import wrong_examples
from grader.course.collection import Case, Test
from grader.course.contract import Contract
from grader.course.course import Course
from grader.grading.behaviour import Behaviour, right_behaviour
from grader.grading.desk import Desk
from grader.grading.diagnosis import shows_numbers
from grader.grading.order import Order, basis
from grader.grading.play import replay
from grader.grading.recorded import Asked, Made, RecordedCall, Weight, asked_key
from grader.grading.replays import Given
from grader.grading.rows import Key, Rows, cache, kept_under, stored_size, write_rows
from grader.grading.sheet import Entry, NamedMistake, Sheet
from grader.mistakes import Variant, load_library
from grader.proxies.adoption import biases, probe, without_biases
from grader.records.faults import CallError
from grader.run.workers import share
from grader.sandbox.session import Nowhere
from grader.wire import payload

MOST_BIASES = 4  # with more biases, a module is recorded only with all of them
WRONG = 3  # mistakes on which a check runs again; its calls to references must stay the same


def record_course(
    course: Course,
    to: Path,
    report: Callable[[str], None] = lambda _: None,
    jobs: int = 1,
    most: int | None = None,
) -> None:
    """Write a course's recordings and untouched stubs into the folder `to`.

    Calls `report` with each exercise that is completely recorded. If the results of known mistakes
    take more than `most` bytes, those of the largest exercises are left out: checks then work as
    before, but name no mistake there. Raises `CallError` if an example or a check is wrong of the
    reference, or if a check passes a student's result on to the reference.
    """
    course.require_solutions("release")
    (to / "stubs").mkdir(parents=True, exist_ok=True)
    for unit in course.units:
        shutil.copyfile(course.stub_file(unit.name), to / "stubs" / f"{unit.name}.py")
    files = dict.fromkeys(course.check_files(), False)
    order = Order(
        course,
        course.seed,
        files,
        isolation="weak",
        backend=nullcontext(Nowhere()),
        keeps_sheet=True,
    )
    with kept_under(basis(order)) as rows:
        lacking = [name for name in course.exercises if _entry(rows, name) is None]
        for name in course.exercises:
            if name not in lacking:
                report(name)
        # Begin with the later exercises, which take longer, so that the last to end are short.
        for name in share(order, _find_out, lacking[::-1], jobs):
            report(name)
        single = {variant.id for variant in load_library(course).variants}
        public = {name: _public(rows, course, name, single) for name in course.exercises}
        if most is not None:
            public = _within(public, most)
        write_rows(to / course.sheet.name, dict(chain(*(own.items() for own in public.values()))))


def _entry(rows: Rows, exercise: str) -> Entry | None:
    return rows.get(Key("exercise", exercise), Entry)


def _public(rows: Rows, course: Course, name: str, single: Collection[str]) -> dict[Key, bytes]:
    """An exercise's rows that a student may have; they do not depend on earlier gradings.

    `single` are the ids of the course's known mistakes, without pairs.
    """
    public: dict[Key, bytes] = {}
    entry = _entry(rows, name)
    if entry is None:
        raise CallError(
            f"the recordings of {name} could not be kept in {cache()}: is there room, and can you "
            "write there?"
        )
    public[Key("exercise", name)] = msgspec.msgpack.encode(entry)
    if (behaviour := rows.get(Key("facts", name), Behaviour)) is not None:
        public[Key("facts", name)] = msgspec.msgpack.encode(behaviour)
    answers = {"", *(f"{name}/{mistake.slug}" for mistake in entry.mistakes)}
    for test in entry.tests:
        found = dict(rows.public(test))
        for key, value in found.items():
            if (
                key.kind == "asked"
                or (key.kind == "gave" and key.name in answers)
                or (key.name in single and _may_follow(course, name, key, found))
            ):
                public[key] = value
    return public


def _within(public: Mapping[str, dict[Key, bytes]], most: int) -> dict[str, dict[Key, bytes]]:
    """The rows, without the mistakes of the largest exercises if these exceed `most` bytes."""
    left = most
    sizes = {name: stored_size(map(own.__getitem__, _known(own))) for name, own in public.items()}
    fitting = dict(public)
    for name in sorted(sizes, key=sizes.__getitem__):
        left -= sizes[name]
        if left < 0:
            fitting[name] = _without_mistakes(name, public[name])
    return fitting


def _known(rows: Iterable[Key]) -> list[Key]:
    """The keys of results of known mistakes."""
    return [key for key in rows if key.kind == "built" or (key.kind == "gave" and key.name)]


def _without_mistakes(name: str, rows: Mapping[Key, bytes]) -> dict[Key, bytes]:
    entry = msgspec.msgpack.decode(rows[Key("exercise", name)], type=Entry)
    bare = msgspec.structs.replace(entry, mistakes=[])
    known = {*_known(rows)}
    kept = {key: value for key, value in rows.items() if key not in known}
    return kept | {Key("exercise", name): msgspec.msgpack.encode(bare)}


def _may_follow(course: Course, exercise: str, key: Key, found: Mapping[Key, bytes]) -> bool:
    """Whether a mistake in a required exercise gives wrong numbers in this case.

    A case in which the mistake raises an exception does not count: see `Diagnosis.follows`. The
    text of the exception would also tell students how to fake the mistake.
    """
    if key.kind != "built":
        return False
    base = key.name.partition("/")[0]
    gone = found.get(key._replace(name=_gone(base).id))
    if base not in course.exercises[exercise].requires or gone is None or _given(gone).passed:
        return False
    given = _given(found[key])
    return not given.passed and shows_numbers(given.results)


def _given(value: bytes) -> Given:
    return msgspec.msgpack.decode(value, type=Given)


def _gone(exercise: str) -> Variant:
    """A version of an exercise that always raises; it shows which cases use the exercise."""
    text = f"def {exercise}(*_): raise RuntimeError"
    return Variant(exercise, "(gone)", "mistake", "", "", text)


# --- at a desk -----------------------------------------------------------------------------------


def _find_out(desk: Desk, name: str) -> str:
    """Add all public rows of an exercise to the desk's sheet; return the exercise's name."""
    sheet = desk.sheet
    assert sheet is not None
    for example in wrong_examples(desk.course, name, desk.definitions):
        raise CallError(str(example))
    tests = desk.tests[name]
    cases = [(test, case) for test in tests for case in test.cases]
    for test, case in cases:
        _note_asked(desk, sheet, test, case)
        sheet.given(None, test.key, case.label)
    caught = list(_caught(sheet, name, cases))
    # Only direct prerequisites are needed: the checks of the exercises in between name the mistakes
    # of earlier prerequisites.
    for base in desk.course.exercises[name].requires:
        using = [
            at for at in cases if not sheet.built_on(_gone(base), at[0].key, at[1].label).passed
        ]
        for mistake in sheet.mistakes(base):
            for test, case in using:
                sheet.built_on(mistake, test.key, case.label)
    right_behaviour(desk, name)
    entry = Entry(desk.oracle.contracts[name], [test.key for test in tests], caught)
    sheet.once(Key("exercise", name), Entry, lambda: entry)
    return name


def _caught(sheet: Sheet, name: str, cases: Sequence[tuple[Test, Case]]) -> Iterator[NamedMistake]:
    """The mistakes, and pairs of mistakes, that fail a public check with results to compare."""
    pairs = sheet.pairs(name)
    for variant in (*sheet.mistakes(name), *pairs):
        givens = [sheet.given(variant, test.key, case.label) for test, case in cases]
        if any(given.results for given in givens):  # a case that passes has no results
            yield NamedMistake(
                variant.slug,
                variant.title,
                variant.hint,
                variant in pairs,
                tuple(variant.same_as),
                variant.breaks,
            )


def _note_asked(desk: Desk, sheet: Sheet, test: Test, case: Case) -> None:
    """Add to the sheet the calls that a case makes to references, with their results."""
    notes = _Notes(desk.oracle.contracts)
    with desk.listening(lambda *_: notes):
        played = replay(desk, desk.definitions, test, case, words=True)
    if not played.passed:
        raise CallError(f"{test.place}: {test.name} fails on the reference: {played.message}")
    for ending in notes.endings:
        ending()
    _refuse_answers_in_questions(desk, sheet, test, case, notes)
    make = desk.make_for(test, case)
    for exercise, asked in notes.asked.items():
        sheet.once(asked_key(make, exercise), Asked, partial(Asked, asked.made, asked.calls))


def _refuse_answers_in_questions(
    desk: Desk, sheet: Sheet, test: Test, case: Case, notes: _Notes
) -> None:
    """Raise `CallError` if a case passes results of a wrong answer on to a reference."""
    mistakes = (
        variant
        for variant in sheet.mistakes(test.exercise)
        if shows_numbers(sheet.given(variant, test.key, case.label).results)
    )
    for variant in islice(mistakes, WRONG):
        doubts = _Doubts(notes)
        with desk.listening(lambda *_, doubts=doubts: doubts):
            replay(desk, desk.replays.definitions(variant), test, case)
        if doubts.strange:
            raise CallError(
                f"{test.key}[{case.label}] passes on to the reference what a student's code "
                f"gave (seen with {variant.id}): a bundle has no reference to ask"
            )


# --- calls to references -------------------------------------------------------------------------
#
# A question is an exercise and the arguments of a call to its reference.


class _Notes:
    """A `Listener` that keeps the calls that one case makes to references, and their results."""

    def __init__(self, contracts: Mapping[str, Contract]) -> None:
        self._contracts = contracts
        self.asked: dict[str, Asked] = {}  # by exercise
        self.questions: set[bytes] = set()
        self.endings: list[Callable[[], None]] = []  # functions to call after the case

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`."""
        entry = Made(list(map(payload.pack_input, arguments)), list(_weights(module)))
        made = self._of(exercise).made
        if entry not in made:
            made.append(entry)
        self.endings.append(lambda: self._note_probes(exercise, module, arguments))

    def called(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """See `Listener`."""
        self.questions.add(_question(exercise, arguments))
        if module is None:
            self._note(exercise, _call(arguments, result))
        else:
            self._note_silenced(exercise, module, arguments)
        if any(tensor.requires_grad for tensor in payload.tensors_of(result)):
            state = _state(module) if module is not None else {}
            self.endings.append(lambda: self._note_gradients(exercise, module, arguments, state))

    def _of(self, exercise: str) -> Asked:
        return self.asked.setdefault(exercise, Asked([], []))

    def _note_gradients(
        self,
        exercise: str,
        module: nn.Module | None,
        arguments: Sequence[Any],
        state: dict[str, wire.TensorData],
    ) -> None:
        """Keep the gradients of a call's tensors, if the check has called `backward`."""
        passed = [payload.pack_input(value) for value in arguments]
        gradients = [_gradient(tensor) for tensor in payload.tensors_of(arguments)]
        learned = {
            path: data
            for path, parameter in (module.named_parameters() if module is not None else ())
            if (data := _gradient(parameter)) is not None
        }
        calls = self._of(exercise).calls
        for at, call in enumerate(calls):
            known = call.arguments == passed and call.state == state
            if known and (learned or any(data is not None for data in gradients)):
                calls[at] = msgspec.structs.replace(call, gradients=gradients, learned=learned)

    def _note_probes(self, exercise: str, made: nn.Module, arguments: Sequence[Any]) -> None:
        """Record a module's results on the probe input, with which weights are matched by role.

        The results depend on the module's weights at the end of the case.
        """
        inputs = probe(self._contracts[exercise], arguments)
        self.questions.add(_question(exercise, inputs))
        # In float32, since weights are matched before a check converts the module to float64.
        self._note_silenced(exercise, copy.deepcopy(made).float(), inputs, evaluated=True)

    def _note_silenced(
        self, exercise: str, made: nn.Module, inputs: Sequence[Any], *, evaluated: bool = False
    ) -> None:
        for module in _silenced(made):
            with torch.no_grad():
                result = (module.eval() if evaluated else module)(*inputs)
            call = _call(inputs, result)
            self._note(exercise, RecordedCall(call.arguments, call.result, _state(module)))

    def _note(self, exercise: str, call: RecordedCall) -> None:
        """Keep a call, unless the same call is already kept."""
        calls = self._of(exercise).calls
        plain = [msgspec.structs.replace(one, gradients=[], learned={}) for one in calls]
        if call not in plain:
            calls.append(call)


@dataclass
class _Doubts:
    """A `Listener` that notices questions which the case does not ask if the answer is right."""

    notes: _Notes
    strange: bool = False

    def made(self, exercise: str, module: nn.Module, arguments: Sequence[Any]) -> None:
        """See `Listener`."""

    def called(
        self, exercise: str, module: nn.Module | None, arguments: Sequence[Any], result: Any
    ) -> None:
        """See `Listener`."""
        del module, result
        self.strange |= _question(exercise, arguments) not in self.notes.questions


def _question(exercise: str, arguments: Sequence[Any]) -> bytes:
    return msgspec.msgpack.encode((exercise, list(map(payload.pack_input, arguments))))


def _silenced(module: nn.Module) -> Iterator[nn.Module]:
    """The module, then copies without some of its biases, in every combination.

    A student's module may lack any of these biases. If a module has more than `MOST_BIASES` biases,
    only the module itself is yielded. Then a check refuses an answer that lacks a bias.
    """
    plain = copy.deepcopy(module)
    plain._forward_hooks.clear()
    roles = biases(plain)
    roles = roles if len(roles) <= MOST_BIASES else []
    for gone in chain.from_iterable(combinations(roles, n) for n in range(len(roles) + 1)):
        yield without_biases(plain, gone)


def _weights(module: nn.Module) -> Iterator[Weight]:
    for path, parameter in module.named_parameters():
        owner = module.get_submodule(path.rpartition(".")[0])
        dtype = payload.NAMES[parameter.dtype]
        yield Weight(path, type(owner).__name__, tuple(parameter.shape), dtype)


def _state(module: nn.Module) -> dict[str, wire.TensorData]:
    return {path: payload.pack_tensor(p) for path, p in module.named_parameters()}


def _gradient(tensor: Tensor) -> wire.TensorData | None:
    if not tensor.is_leaf or tensor.grad is None:
        return None
    return payload.pack_tensor(tensor.grad)


def _call(arguments: Sequence[Any], result: Any) -> RecordedCall:
    return RecordedCall([payload.pack_input(value) for value in arguments], payload.pack(result))
