"""A course: the order, points, hints, prerequisites and forbidden operations in ``course.toml``.

The only room that knows the file format. Mistakes in it are told with file, line and key.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from grader.records.faults import CallError
from grader.records.grade import THOUSAND

File = TypeVar("File")
NAMED = "GRADER_COURSE"  # the environment variable that names a course, as --course does
SOLUTIONS, RECORDED = "solutions", "recorded"  # beside a course's folder, and in it


class NoCourse(CallError):
    """No course is named, and none was found."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Exercise(_Table, frozen=True):
    """One exercise as ``course.toml`` describes it."""

    name: str
    title: str
    points: float
    hints: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    @property
    def thousandths(self) -> int:
        """Its points, in thousandths."""
        return round(self.points * THOUSAND)


class Unit(_Table, frozen=True):
    """Exercises that share a file stem."""

    name: str
    title: str
    exercise: tuple[Exercise, ...]


class OperationGroup(_Table, frozen=True):
    """Torch functions that an exercise may forbid under one name.

    `layers` are keys of torch's dispatcher that go with them: ``Autograd`` is what records a graph.
    """

    title: str
    functions: tuple[str, ...]
    layers: tuple[Literal["Autograd"], ...] = ()


class LimitTable(_Table, frozen=True):
    """What one submission may use."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024


class Aliases(_Table, frozen=True):
    """Other names that mean the same: of arguments, and of parameters (weights)."""

    arguments: Mapping[str, tuple[str, ...]] = {}
    parameters: Mapping[str, tuple[str, ...]] = {}


Told = Literal["mistakes", "verdicts", "nothing"]


class FeedbackTable(_Table, frozen=True):
    """What students read of hidden tests.

    ``mistakes``: title, verdict, and the mistake's name and hint where it is a known one;
    ``verdicts``: title and verdict; ``nothing``: whether all of them passed.
    """

    hidden: Told = "mistakes"


class Assignment(_Table, frozen=True):
    """A part of the course that is handed in, graded and exported together."""

    name: str
    exercises: tuple[str, ...]  # names of exercises, or of units for all of theirs
    title: str = ""
    points: float | None = None  # what it counts elsewhere, if that is not the exercises' sum
    due: datetime | None = None

    @property
    def heading(self) -> str:
        """What people call it."""
        return self.title or self.name

    def scale(self, most: float) -> float:
        """What one point of the exercises' `most` counts elsewhere."""
        return self.points / most if self.points is not None and most else 1.0


class CourseFile(_Table, frozen=True):
    """The whole of ``course.toml``."""

    name: str
    title: str
    seed: str
    unit: tuple[Unit, ...]
    operations: Mapping[str, OperationGroup] = {}
    limits: LimitTable = LimitTable()
    aliases: Aliases = Aliases()
    feedback: FeedbackTable = FeedbackTable()
    assignment: tuple[Assignment, ...] = ()
    assigned: str = ""  # in a bundle: the assignment that this part of the course is for


class Overlay(_Table, frozen=True):
    """A ``course.toml`` that lays private solutions over another course.

    What it names besides takes the place of what the other one says.
    """

    overlay: str  # the other course's folder; relative to this one's
    limits: LimitTable | None = None
    feedback: FeedbackTable | None = None
    assignment: tuple[Assignment, ...] | None = None


@dataclass(frozen=True)
class Course:
    """A course on disk: what its file says, and where its parts live."""

    folder: Path  # holds course.toml, the stubs and checks/
    file: CourseFile
    private: Path | None = None  # a folder whose solutions come before those beside `folder`

    @property
    def assigned(self) -> Assignment | None:
        """The assignment that this is the part for, in a bundle of one."""
        return self.assignment(self.file.assigned) if self.file.assigned else None

    def titled(self, assignment: Assignment | None) -> str:
        """The course's title, and the assignment's."""
        return self.file.title + (f": {assignment.heading}" if assignment is not None else "")

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The exercises that count: an assignment need not be the whole of its units."""
        return self.select(self.assigned.exercises if self.assigned else ())

    def asked_in(self, unit: str) -> tuple[str, ...]:
        """Those of one unit."""
        return tuple(name for name in self.asked if self.unit_of[name] == unit)

    @property
    def worth(self) -> float:
        """What one point of an exercise counts elsewhere: an assignment has points of its own."""
        return self.assigned.scale(self.most(self.asked)) if self.assigned is not None else 1.0

    def most(self, names: Iterable[str]) -> float:
        """The points that these exercises have to give."""
        return sum(self.exercises[name].thousandths for name in names) / THOUSAND

    @property
    def name(self) -> str:
        """The name that an output folder remembers."""
        return self.file.name

    @property
    def label(self) -> str:
        """Which course this is, for whoever has to know whose code runs: its name and folder."""
        if self.private is None and self.folder == _kits_own():
            return f"{self.name} (the kit's own)"
        return f"{self.name}, {self.private or self.folder}"

    @property
    def seed(self) -> str:
        """The public seed, of the public checks."""
        return self.file.seed

    @property
    def units(self) -> tuple[Unit, ...]:
        """Units in teaching order."""
        return self.file.unit

    @cached_property
    def exercises(self) -> Mapping[str, Exercise]:
        """Exercises by name, in teaching order."""
        return {exercise.name: exercise for unit in self.units for exercise in unit.exercise}

    @cached_property
    def unit_of(self) -> Mapping[str, str]:
        """The unit's name for each exercise's name."""
        return {exercise.name: unit.name for unit in self.units for exercise in unit.exercise}

    @property
    def solutions(self) -> Path:
        """The folder that a student never sees: beside the course folder, if it is there at all."""
        return self.folder.parent / SOLUTIONS

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Every folder that a student never sees."""
        own = [self.private / SOLUTIONS] if self.private is not None else []
        return (*own, self.solutions)

    def solution(self, *parts: str) -> Path:
        """A file of the solutions: the private one, if there is one of that name."""
        return next(
            (path for folder in self.secrets if (path := folder.joinpath(*parts)).is_file()),
            self.solutions.joinpath(*parts),
        )

    @property
    def recorded(self) -> Path:
        """What a student's bundle has instead of solutions: recorded results, untouched stubs."""
        return self.folder / RECORDED

    @property
    def has_solutions(self) -> bool:
        """Whether references are at hand. In a bundle, a folder of that name is a student's own."""
        return _has_solutions(self.folder)

    def stub_file(self, unit: str) -> Path:
        """The stubs of a unit, into which a student writes."""
        return self.folder / f"{unit}.py"

    def pristine(self, unit: str) -> Path:
        """The stubs of a unit as they were: a copy in a bundle, the file itself in a clone."""
        kept = self.recorded / "stubs" / f"{unit}.py"
        return kept if kept.is_file() else self.stub_file(unit)

    def check_files(self) -> list[Path]:
        """The public checks, in teaching order."""
        return [self.folder / "checks" / f"test_{unit.name}.py" for unit in self.units]

    def checks_of(self, names: Collection[str]) -> dict[Path, bool]:
        """The public checks of the units of these exercises, as files that are not hidden."""
        wanted = {self.unit_of[name] for name in names}
        pairs = zip(self.units, self.check_files(), strict=True)
        return {path: False for unit, path in pairs if unit.name in wanted}

    def tests_of(self, names: Collection[str]) -> dict[Path, bool]:
        """Public checks and hidden graders of the units of these exercises."""
        others = {f"test_{unit.name}.py" for unit in self.units} - {
            f"test_{self.unit_of[name]}.py" for name in names
        }
        # A private file of another name may hold tests of any unit.
        graders = [path for path in self.grader_files() if path.name not in others]
        return self.checks_of(names) | dict.fromkeys(graders, True)

    def has_stubs_beside(self, answers: Path) -> bool:
        """Whether answers can be compared with stubs: not where they overwrite the only copy."""
        return self.recorded.is_dir() or answers.resolve() != self.folder

    def grader_files(self) -> list[Path]:
        """The hidden graders, in teaching order; those that only a private folder has come last."""
        names = [f"test_{unit.name}.py" for unit in self.units]
        more: list[Path] = []
        if self.private is not None:
            more = sorted((self.private / SOLUTIONS / "graders").glob("test_*.py"))
        return [
            *(self.solution("graders", name) for name in names),
            *(path for path in more if path.name not in names),
        ]

    def mistakes_file(self, unit: str) -> Path:
        """The known wrong and right answers of a unit."""
        return self.solution("mistakes", f"{unit}.py")

    def reference_file(self, unit: str) -> Path:
        """The references of a unit."""
        return self.solution(f"{unit}.py")

    def test_files(self) -> dict[Path, bool]:
        """Both, each with whether its tests are hidden."""
        return dict.fromkeys(self.check_files(), False) | dict.fromkeys(self.grader_files(), True)

    def require_solutions(self, command: str) -> None:
        """Raise `CallError` unless references and hidden graders are beside the course."""
        if not self.has_solutions:
            raise CallError(
                f"`grader {command}` needs the folder {self.solutions}, which is not there: "
                "only instructors have it"
            )

    def require_answers(self) -> None:
        """Raise `CallError` unless there are references to compare with, or recordings of them."""
        if not self.has_solutions and not self.recorded.is_dir():
            raise CallError(
                f"neither {self.recorded} nor {self.solutions} is there: answers can be checked in "
                "a student's bundle, or in a clone of the kit"
            )

    def hidden_seed(self) -> str:
        """The seed of the hidden graders."""
        path = self.solution("seed")
        try:
            seed = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            seed = ""
        if not seed:
            raise CallError(
                f"{path} is missing or empty: write any secret text into it, or pass --seed"
            )
        return seed

    def select(self, names: Sequence[str]) -> tuple[str, ...]:
        """These exercises in teaching order (a unit's name stands for all of it); all if empty."""
        chosen: set[str] = set()
        for name in names:
            unit = [unit for unit in self.units if unit.name == name]
            if unit:
                chosen |= {exercise.name for exercise in unit[0].exercise}
            elif name in self.exercises:
                chosen.add(name)
            else:
                raise CallError(f"there is no exercise called {name!r}{self._nearest(name)}")
        return tuple(name for name in self.exercises if name in chosen or not names)

    def assignment(self, name: str) -> Assignment:
        """The assignment of this name."""
        found = [one for one in self.file.assignment if one.name == name]
        if not found:
            known = ", ".join(one.name for one in self.file.assignment)
            named = f"the assignments are {known}" if known else "course.toml names none"
            raise CallError(f"there is no assignment called {name!r}; {named}")
        return found[0]

    def one(self, name: str, of_unit: str) -> Exercise:
        """The exercise of this name; `of_unit` is what to say to one who names a unit."""
        if name not in self.exercises:
            self.select([name])  # says what is near, unless it is a unit
            raise CallError(f"{name} is a unit: {of_unit}")
        return self.exercises[name]

    def _nearest(self, name: str) -> str:
        import difflib

        known = [*self.exercises, *(unit.name for unit in self.units)]
        near = difflib.get_close_matches(name, known, n=1)
        units = ", ".join(unit.name for unit in self.units)
        return f"; did you mean {near[0]}?" if near else f"; the units are {units}"

    def fingerprint(self) -> str:
        """A hash over everything that decides a grade.

        Course file, checks, graders, references; stubs, which are no answers; known mistakes too,
        since their names stand in a grade.
        """
        digest = hashlib.blake2b(digest_size=16)
        folders = [self.folder, *([self.private] if self.private is not None else [])]
        files = [folder / "course.toml" for folder in folders]
        files += [*self.check_files(), *self.grader_files()]
        for unit in self.units:
            files += [
                self.pristine(unit.name), self.reference_file(unit.name),
                self.mistakes_file(unit.name),
            ]  # fmt: skip
        for path in files:
            digest.update(path.name.encode())
            if path.is_file():
                digest.update(hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()


def below(course: Course, name: str) -> list[str]:
    """What an exercise requires, and what that requires, nearest first."""
    found = list(course.exercises[name].requires)
    for base in found:  # grows meanwhile
        found += [more for more in course.exercises[base].requires if more not in found]
    return found


def find_course(given: Path | None, start: Path | None = None, *, student: bool = False) -> Path:
    """The folder of the course that a command is for: the one place that decides this.

    A course is code: its checks, references and hidden tests run as whoever types the command. So
    a course is used because somebody chose it, and not because it lies near:

    1. The course that is named: `given` (``--course``), or else the environment variable `NAMED`.
    2. The nearest course upward from `start` (the working directory), but only if it is the kit's
       own, beside this engine; or, for a `student`'s own commands, if it holds no solutions, as in
       the bundle that a student works in. Its checks run as they do.
    3. Where there is none upward, the kit's own.

    An instructor's working directory may be a hand-in. Raises `CallError` for any other course that
    was merely found, also where a `student`'s command was typed, and where there is none.
    """
    named = given if given is not None else _named_by_environment()
    if named is not None:
        if (folder := _course_at(named)) is None:
            raise CallError(f"there is no course.toml in {named}")
        return folder
    own = _kits_own()
    found = nearest_course(start or Path.cwd()) or own
    if found is None:
        raise NoCourse(
            "there is no course.toml here or in a folder above; go to the course's folder, "
            f"or name it with --course DIR or {NAMED}"
        )
    if found != own:
        _refuse_unchosen(found, student)
    return found


def nearest_course(start: Path) -> Path | None:
    """The nearest course upward from a folder whose files are trusted already."""
    return next(filter(None, map(_course_at, (start, *start.parents))), None)


def _course_at(place: Path) -> Path | None:
    for folder in (place, place / "exercises"):
        if (folder / "course.toml").is_file():
            return folder.resolve()
    return None


def _kits_own() -> Path | None:
    """The course beside this engine, as in a clone and in a student's folder."""
    return _course_at(Path(__file__).parents[1])


def _named_by_environment() -> Path | None:
    text = os.environ.get(NAMED, "")
    if text and not Path(text).is_absolute():
        raise CallError(
            f"{NAMED} is {text!r}, which is another course in every folder: give a path that "
            "begins at the root"
        )
    return Path(text) if text else None


def _refuse_unchosen(found: Path, student: bool) -> None:
    """Raise `CallError` for a course that was merely found, unless it is a `student`'s bundle."""
    met = f"the course in {found} was found above the working directory, and nobody named it"
    # An overlay is nothing but solutions, whatever lies below it.
    if _overlays(_text(found)[1]) or _has_solutions(found):
        raise CallError(
            f"{met}: its solutions would run as you. If it is yours, name it with --course DIR or "
            f"{NAMED}"
        )
    if not student:
        raise CallError(
            f"{met}; it has no solutions, so it is a student's copy. Name yours with --course DIR "
            f"or {NAMED}"
        )


def _has_solutions(folder: Path) -> bool:
    recorded = folder / RECORDED / "course.json"
    return (folder.parent / SOLUTIONS).is_dir() and not recorded.is_file()


def _overlays(text: str) -> bool:
    """Whether a ``course.toml`` lays solutions over another course."""
    return re.search(r"^\s*overlay\s*=", text, re.MULTILINE) is not None


def load_course(folder: Path) -> Course:
    """Read ``course.toml``; raise `CallError` with file, line and key if it is not right."""
    path, text = _text(folder)
    if not _overlays(text):
        return Course(folder, decode_course(path, text))
    overlay = _decoded(path, text, Overlay)
    below = (folder / overlay.overlay).resolve()
    base_path, base = _text(below)
    file = decode_course(base_path, base)
    own = {k: v for k, v in msgspec.structs.asdict(overlay).items() if v is not None}
    del own["overlay"]
    return Course(below, _checked(path, text, msgspec.structs.replace(file, **own)), folder)


def decode_course(path: Path, text: str) -> CourseFile:
    """What a text says that is to stand in ``course.toml``; raises as `load_course` does."""
    return _checked(path, text, _decoded(path, text, CourseFile))


def _text(folder: Path) -> tuple[Path, str]:
    path = folder / "course.toml"
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: {error}") from None


def _decoded(path: Path, text: str, kind: type[File]) -> File:
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise CallError(_located(path, text, str(error))) from None
    except msgspec.DecodeError as error:
        raise CallError(f"{path}: {error}") from None


def _checked(path: Path, text: str, file: CourseFile) -> CourseFile:
    for place, problem in _problems(file):
        raise CallError(_located(path, text, f"{problem} - at `{place}`"))
    return file


# --- what the types alone do not say -------------------------------------------------------------


def _problems(file: CourseFile) -> Iterator[tuple[str, str]]:
    yield from _problems_of_assignments(file)
    for key, value in msgspec.structs.asdict(file.limits).items():
        if not 0 < value < math.inf:
            yield f"$.limits.{key}", f"{key} must be positive, got {value}"
    units: set[str] = set()
    seen: set[str] = set()
    for u, unit in enumerate(file.unit):
        if not unit.name.isidentifier():
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is not a file stem"
        if unit.name in units:
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is there twice"
        units.add(unit.name)
        for e, exercise in enumerate(unit.exercise):
            where = f"$.unit[{u}].exercise[{e}]"
            if not exercise.name.isidentifier() or keyword.iskeyword(exercise.name):
                yield f"{where}.name", f"exercise {exercise.name!r} is not a Python name"
            if exercise.name in seen:
                yield f"{where}.name", f"exercise {exercise.name!r} is there twice"
            if not 1 / THOUSAND <= exercise.points < math.inf:
                yield f"{where}.points", f"points must be positive, got {exercise.points}"
            for name in exercise.requires:
                if name not in seen:
                    yield f"{where}.requires", f"{name!r} does not come before {exercise.name}"
            for name in exercise.forbidden:
                if name not in file.operations:
                    known = ", ".join(file.operations)
                    yield f"{where}.forbidden", f"there are operations {known}, no {name!r}"
            seen.add(exercise.name)


def _problems_of_assignments(file: CourseFile) -> Iterator[tuple[str, str]]:
    known = {unit.name for unit in file.unit} | {e.name for u in file.unit for e in u.exercise}
    names: set[str] = set()
    for a, assignment in enumerate(file.assignment):
        where = f"$.assignment[{a}]"
        if assignment.name in names:
            yield f"{where}.name", f"assignment {assignment.name!r} is there twice"
        names.add(assignment.name)
        if not assignment.exercises:
            yield f"{where}.exercises", f"assignment {assignment.name!r} has no exercises"
        for name in assignment.exercises:
            if name not in known:
                yield f"{where}.exercises", f"there is no exercise or unit called {name!r}"
        if assignment.points is not None and not 0 < assignment.points < math.inf:
            yield f"{where}.points", f"points must be positive, got {assignment.points}"
    if file.assigned and file.assigned not in names:
        yield "$.assigned", f"there is no assignment called {file.assigned!r}"


# --- where in the file ---------------------------------------------------------------------------


def _located(path: Path, text: str, message: str) -> str:
    """Add the line to a msgspec message, which names the place as ``$.unit[0].exercise[1]``."""
    told, _, place = message.partition(" - at `")
    place = place.rstrip("`").removeprefix("$")
    unknown = re.search(r"unknown field `([^`]+)`", told)
    missing = re.search(r"missing required field `([^`]+)`", told)
    # An index is a number; "[...]" is any key of a free table.
    keys = [key or index for key, index in re.findall(r"([A-Za-z_]\w*)|\[([\d.]+)\]", place)]
    if unknown:
        return f"{path}:{_line_of(text, [*keys, unknown[1]])}: unknown key {unknown[1]!r}"
    if missing:
        return f"{path}:{_line_of(text, keys)}: key {missing[1]!r} is missing"
    line, found = _nearest(text, keys)
    named = [key for key in found or keys if not key.isdigit()]
    at_key = f"{named[-1]}: " if named and not told.startswith(named[-1]) else ""
    return f"{path}:{line}: {at_key}{told}"


def _line_of(text: str, keys: Sequence[str]) -> int:
    return _nearest(text, keys)[0]


def _nearest(text: str, keys: Sequence[str]) -> tuple[int, list[str]]:
    """Line and path of the key or table at a path, or of the nearest table around it."""
    best: tuple[int, list[str]] = (1, [])
    for number, path in _keys(text):
        pairs = list(zip(keys, path, strict=False))
        if len(path) > len(keys) or any(want not in ("...", have) for want, have in pairs):
            continue
        if len(path) > len(best[1]):
            best = number, path
    return best


def _keys(text: str) -> Iterator[tuple[int, list[str]]]:
    """Every table header and key with its line and path, as far as plain TOML lines tell."""
    counts: dict[str, int] = {}
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"""\s*(\[\[?)\s*([\w.\-"' ]+?)\s*\]""", line):
            table = []
            parts = [part.strip(" \"'") for part in header[2].split(".")]
            for depth, part in enumerate(parts, start=1):
                table.append(part)
                name = ".".join(table)
                if depth == len(parts) and header[1] == "[[":
                    counts[name] = counts.get(name, -1) + 1
                if name in counts:
                    table.append(str(counts[name]))
            yield number, list(table)
        elif key := re.match(r"""\s*["']?([\w\- ]+?)["']?\s*=""", line):
            yield number, [*table, key[1]]
