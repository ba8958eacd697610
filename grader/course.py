"""A course: the order, points, hints, prerequisites and forbidden operations in ``course.toml``.

The only room that knows the file format. Mistakes in it are told with file, line and key.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from grader.faults import CallError

THOUSAND = 1000  # points are counted in integers of a thousandth


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
    """Torch functions that an exercise may forbid under one name."""

    title: str
    functions: tuple[str, ...]


class LimitTable(_Table, frozen=True):
    """What one submission may use."""

    test_seconds: float = 5.0
    submission_seconds: float = 120.0
    memory_mb: int = 1024


class Aliases(_Table, frozen=True):
    """Other names that mean the same: of arguments, and of parameters (weights)."""

    arguments: Mapping[str, tuple[str, ...]] = {}
    parameters: Mapping[str, tuple[str, ...]] = {}


class CourseFile(_Table, frozen=True):
    """The whole of ``course.toml``."""

    name: str
    title: str
    seed: str
    unit: tuple[Unit, ...]
    operations: Mapping[str, OperationGroup] = {}
    limits: LimitTable = LimitTable()
    aliases: Aliases = Aliases()


@dataclass(frozen=True)
class Course:
    """A course on disk: what its file says, and where its parts live."""

    folder: Path  # holds course.toml, the stubs and checks/
    file: CourseFile

    @property
    def name(self) -> str:
        """The name that an output folder remembers."""
        return self.file.name

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
        return self.folder.parent / "solutions"

    def stub_file(self, unit: str) -> Path:
        """The stubs of a unit."""
        return self.folder / f"{unit}.py"

    def check_files(self) -> list[Path]:
        """The public checks, in teaching order."""
        return [self.folder / "checks" / f"test_{unit.name}.py" for unit in self.units]

    def grader_files(self) -> list[Path]:
        """The hidden graders, in teaching order."""
        return [self.solutions / "graders" / f"test_{unit.name}.py" for unit in self.units]

    def require_solutions(self, command: str) -> None:
        """Raise `CallError` unless references and hidden graders are beside the course."""
        if not self.solutions.is_dir():
            raise CallError(
                f"`grader {command}` needs the folder {self.solutions}, which is not there: "
                "only instructors have it"
            )

    def hidden_seed(self) -> str:
        """The seed of the hidden graders."""
        try:
            return (self.solutions / "seed").read_text(encoding="utf-8").strip()
        except OSError:
            raise CallError(
                f"{self.solutions / 'seed'} cannot be read: write any secret text into it, "
                "or pass --seed"
            ) from None

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

    def _nearest(self, name: str) -> str:
        import difflib

        known = [*self.exercises, *(unit.name for unit in self.units)]
        near = difflib.get_close_matches(name, known, n=1)
        units = ", ".join(unit.name for unit in self.units)
        return f"; did you mean {near[0]}?" if near else f"; the units are {units}"

    def fingerprint(self) -> str:
        """A hash over everything that decides a grade: course file, checks, graders, references."""
        digest = hashlib.blake2b(digest_size=16)
        files = [self.folder / "course.toml", *self.check_files(), *self.grader_files()]
        files += [self.solutions / f"{unit.name}.py" for unit in self.units]
        for path in files:
            digest.update(path.name.encode())
            if path.is_file():
                digest.update(hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()


def find_course(given: Path | None, start: Path | None = None) -> Path:
    """The folder that holds ``course.toml``: the one given, or the nearest one upward."""
    places = [given] if given is not None else [start or Path.cwd(), *(start or Path.cwd()).parents]
    for place in places:
        for folder in (place, place / "exercises"):
            if (folder / "course.toml").is_file():
                return folder.resolve()
    if given is not None:
        raise CallError(f"there is no course.toml in {given}")
    raise CallError(
        "there is no course.toml here or in a folder above; go to the course's folder, "
        "or name it with --course DIR"
    )


def load_course(folder: Path) -> Course:
    """Read ``course.toml``; raise `CallError` with file, line and key if it is not right."""
    path = folder / "course.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: {error}") from None
    try:
        file = msgspec.toml.decode(text, type=CourseFile)
    except msgspec.ValidationError as error:
        raise CallError(_located(path, text, str(error))) from None
    except msgspec.DecodeError as error:
        raise CallError(f"{path}: {error}") from None
    for place, problem in _problems(file):
        raise CallError(_located(path, text, f"{problem} - at `{place}`"))
    return Course(folder, file)


# --- what the types alone do not say -------------------------------------------------------------


def _problems(file: CourseFile) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for u, unit in enumerate(file.unit):
        if not unit.name.isidentifier():
            yield f"$.unit[{u}].name", f"unit {unit.name!r} is not a file stem"
        for e, exercise in enumerate(unit.exercise):
            where = f"$.unit[{u}].exercise[{e}]"
            if not exercise.name.isidentifier() or keyword.iskeyword(exercise.name):
                yield f"{where}.name", f"exercise {exercise.name!r} is not a Python name"
            if exercise.name in seen:
                yield f"{where}.name", f"exercise {exercise.name!r} is there twice"
            if exercise.points <= 0:
                yield f"{where}.points", f"points must be positive, got {exercise.points}"
            for name in exercise.requires:
                if name not in seen:
                    yield f"{where}.requires", f"{name!r} does not come before {exercise.name}"
            for name in exercise.forbidden:
                if name not in file.operations:
                    known = ", ".join(file.operations)
                    yield f"{where}.forbidden", f"there are operations {known}, no {name!r}"
            seen.add(exercise.name)


# --- where in the file ---------------------------------------------------------------------------


def _located(path: Path, text: str, message: str) -> str:
    """Add the line to a msgspec message, which names the place as ``$.unit[0].exercise[1]``."""
    told, _, place = message.partition(" - at `")
    place = place.rstrip("`")
    unknown = re.search(r"unknown field `([^`]+)`", told)
    missing = re.search(r"missing required field `([^`]+)`", told)
    steps = re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", place)
    keys: list[str | int] = [int(index) if index else key for key, index in steps]
    wrong = None
    if unknown:
        wrong = unknown.group(1)
        told = f"unknown key {wrong!r}"
    elif missing:
        told = f"key {missing.group(1)!r} is missing"
    else:
        wrong = next((str(key) for key in reversed(keys) if isinstance(key, str)), None)
        told = f"{wrong}: {told}" if wrong else told
    line = _line_of(text, keys, wrong)
    return f"{path}:{line}: {told}"


def _line_of(text: str, keys: Sequence[Any], wrong: str | None) -> int:
    """The line of key `wrong` in the table at `keys`, or that table's own line.

    Follows the headers of tables, which is all that a course file is made of.
    """
    counts: dict[str, int] = {}
    table = ""
    best, best_depth = 1, -1
    wanted = ".".join(str(key) for key in keys)
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*(\[\[?)\s*([\w.\-]+)\s*\]", line)
        if header:
            parts = header.group(2).split(".")
            table = ""
            for depth, part in enumerate(parts):
                table = f"{table}.{part}".lstrip(".")
                if depth == len(parts) - 1 and header.group(1) == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    for known in [k for k in counts if k.startswith(f"{table}.{counts[table]}.")]:
                        del counts[known]
                if table in counts:
                    table = f"{table}.{counts[table]}"
            if (wanted == table or wanted.startswith(f"{table}.")) and len(parts) >= best_depth:
                best, best_depth = number, len(parts)
        key = re.match(r"\s*([\w\-]+)\s*=", line)
        inside = wanted == table or wanted.startswith(f"{table}.") or not table
        if key and wrong == key.group(1) and inside and _depth_fits(wanted, table, wrong):
            return number
    return best


def _depth_fits(wanted: str, table: str, wrong: str | None) -> bool:
    """Whether a key in `table` is the one meant by the path `wanted`."""
    full = f"{table}.{wrong}".lstrip(".")
    return wanted in (table, full) or wanted.startswith(f"{full}.")
