"""A course on disk: the paths of its parts, and how a command finds its course."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property, lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from grader.course.file import (
    Assignment,
    CourseFile,
    Exercise,
    FeedbackTable,
    Overlay,
    Question,
    TermTable,
    Unit,
    checked_course,
    decode_course,
    decode_table,
    line_of,
    refusal,
)
from grader.records.faults import CallError, did_you_mean
from grader.records.grade import from_thousandths, shared
from grader.records.lateness import Policy, span_of


@dataclass(frozen=True)
class Course:
    """A course on disk: the content of its ``course.toml``, and the paths of its parts."""

    folder: Path  # contains course.toml, the stubs and checks/
    file: CourseFile
    private: Path | None = None  # a folder whose solutions are laid over those next to `folder`

    @property
    def assigned(self) -> Assignment | None:
        """The assignment of this bundle, if it was released for a single assignment."""
        return self.assignment(self.file.assigned) if self.file.assigned else None

    def titled(self, assignment: Assignment | None) -> str:
        """The course's title, followed by the assignment's title if there is one."""
        return self.file.title + (f": {assignment.heading}" if assignment is not None else "")

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The exercises that count: those of the bundle's assignment, or else all."""
        return self.select(self.assigned.exercises if self.assigned else ())

    def asked_in(self, unit: str) -> tuple[str, ...]:
        """The exercises of a unit that count."""
        return tuple(name for name in self.asked if self.unit_of[name] == unit)

    @property
    def worth(self) -> float:
        """The points on the learning platform for one point of the kit; see `Assignment.scale`."""
        if self.assigned is None:
            return 1.0
        marked = self.questions_of(self.assigned.name).values()
        return self.assigned.scale(self.most(self.asked) + sum(marked))

    @property
    def shares(self) -> Mapping[str, float]:
        """The points of each asked exercise on the learning platform; they sum to the whole."""
        points = [self.exercises[name].points for name in self.asked]
        return dict(zip(self.asked, shared(points, self.worth), strict=True))

    def most(self, names: Iterable[str]) -> float:
        """The sum of these exercises' points."""
        return from_thousandths(sum(self.exercises[name].thousandths for name in names))

    @property
    def name(self) -> str:
        """The course's name."""
        return self.file.name

    @property
    def identity(self) -> str:
        """The name that a gradebook records: with that of the private course, if there is one."""
        return self.name if self.private is None else f"{self.name}/{self.private.name}"

    @property
    def label(self) -> str:
        """The course's name and folder, which show a user whose code a command runs."""
        if self.private is None and self.folder == kits_own():
            return f"{self.name} (the kit's own)"
        return f"{self.name}, {self.private or self.folder}"

    @property
    def seed(self) -> str:
        """The seed of the inputs in public checks."""
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
        """The unit of each exercise, by name."""
        return {exercise.name: unit.name for unit in self.units for exercise in unit.exercise}

    @property
    def solutions(self) -> Path:
        """The folder of solutions next to the course's folder; a student's bundle lacks it."""
        return self.folder.parent / SOLUTIONS

    @property
    def secrets(self) -> tuple[Path, ...]:
        """All folders that students never see."""
        own = [self.private / SOLUTIONS] if self.private is not None else []
        return (*own, self.solutions)

    def solution(self, *parts: str) -> Path:
        """A file in ``solutions``; the private folder's file of the same path has priority."""
        return next(
            (path for folder in self.secrets if (path := folder.joinpath(*parts)).is_file()),
            self.solutions.joinpath(*parts),
        )

    def layers(self, *parts: str) -> list[Path]:
        """The existing files of this path in ``solutions``: the public one, then the private one.

        The private file adds to the public one; what has the same name replaces it.
        """
        both = (folder.joinpath(*parts) for folder in reversed(self.secrets))
        return [path for path in both if path.is_file()]

    @property
    def recorded(self) -> Path:
        """A bundle's folder with original stubs, and with recorded results instead of solutions."""
        return self.folder / RECORDED

    @property
    def sheet(self) -> Path:
        """The file of recorded results: the sheet."""
        return self.recorded / SHEET

    @property
    def has_solutions(self) -> bool:
        """Whether the course has references; false in a bundle, even next to ``solutions``."""
        return has_solutions(self.folder)

    def stub_file(self, unit: str) -> Path:
        """The file of a unit's stubs, which the student edits."""
        return self.folder / f"{unit}.py"

    def pristine(self, unit: str) -> Path:
        """The original stubs of a unit: a copy in a bundle, the stub file itself in a clone."""
        kept = self.recorded / "stubs" / f"{unit}.py"
        return kept if kept.is_file() else self.stub_file(unit)

    def stubs(self) -> dict[str, str]:
        """The text of each unit's original stubs; in a clone, a renamed file has none."""
        files = {unit.name: self.pristine(unit.name) for unit in self.units}
        return {unit: path.read_text("utf-8") for unit, path in files.items() if path.is_file()}

    def afterwards_file(self, unit: str) -> Path:
        """The file of texts to read after exercises of a unit are solved; it may be missing."""
        return self.folder / "afterwards" / f"{unit}.toml"

    def look_file(self, unit: str) -> Path:
        """The script that demonstrates a unit with the student's own answers; it may be missing."""
        return self.folder / "afterwards" / f"{unit}.py"

    def after_files(self) -> list[Path]:
        """All existing files to use after solving: texts, scripts, and plays with their data."""
        both = [(self.afterwards_file(unit.name), self.look_file(unit.name)) for unit in self.units]
        plays = [*self.plays().values()]
        data = sorted(self.play_folder.glob("*.txt")) if plays else []
        return [path for path in (*sum(both, ()), *plays, *data) if path.is_file()]

    @property
    def play_folder(self) -> Path:
        """The folder of plays (scripts that combine several answers) and of their data."""
        return self.folder / "afterwards" / "play"

    def plays(self) -> dict[str, Path]:
        """The plays by name, except plays that need exercises that this course lacks."""
        return {
            path.stem: path
            for path in sorted(self.play_folder.glob("*.py"))
            if self.exercises.keys() >= {*answers_in(path)}
        }

    @cached_property
    def experiments(self) -> Mapping[str, Sequence[str]]:
        """The existing experiments of each unit: those of its exercises, then the unit's own."""
        named = {
            unit.name: [
                *(name for exercise in unit.exercise for name in exercise.experiments),
                unit.name,
            ]
            for unit in self.units
        }
        return {
            unit: [name for name in dict.fromkeys(names) if self.experiment_file(name).is_file()]
            for unit, names in named.items()
        }

    def experiment_file(self, name: str) -> Path:
        """The script of an experiment; a unit's own experiment has the unit's name."""
        return self.folder / "experiments" / f"{name}.py"

    @cached_property
    def lacking(self) -> frozenset[str]:
        """The students' commands for which the course has no content, such as ``play``."""
        names = [unit.name for unit in self.units]
        content = {
            "after": any(self.afterwards_file(name).is_file() for name in names),
            "look": any(self.look_file(name).is_file() for name in names),
            "try": any(self.experiments.values()),
            "play": bool(self.plays()),
        }
        return frozenset(command for command, is_there in content.items() if not is_there)

    def check_files(self) -> list[Path]:
        """The files of public checks, in teaching order."""
        return [self.folder / "checks" / f"test_{unit.name}.py" for unit in self.units]

    def checks_of(self, names: Collection[str]) -> dict[Path, bool]:
        """Map the check files of these exercises' units to False: their tests are not hidden."""
        wanted = {self.unit_of[name] for name in names}
        pairs = zip(self.units, self.check_files(), strict=True)
        return {path: False for unit, path in pairs if unit.name in wanted}

    def tests_of(self, names: Collection[str] = ()) -> dict[Path, bool]:
        """Map the test files of these exercises' units to whether their tests are hidden.

        The files are public checks and hidden tests. If `names` is empty, the files of all units
        are returned.
        """
        names = names or self.exercises.keys()
        others = {f"test_{unit.name}.py" for unit in self.units} - {
            f"test_{self.unit_of[name]}.py" for name in names
        }
        # A private file that has no unit's name may hold tests of any unit.
        graders = [path for path in self.grader_files() if path.name not in others]
        return self.checks_of(names) | dict.fromkeys(graders, True)

    def has_stubs_beside(self, answers: Path) -> bool:
        """Whether the original stubs are in other files than the student's answers.

        In a clone of the kit, a student may write answers into the stub files themselves.
        """
        return self.recorded.is_dir() or answers.resolve() != self.folder

    def grader_files(self) -> list[Path]:
        """The files of hidden tests in teaching order, and then the private ones."""
        private: list[Path] = []
        if self.private is not None:
            private = sorted((self.private / SOLUTIONS / "graders").glob("test_*.py"))
        return [
            *(self.solutions / "graders" / f"test_{unit.name}.py" for unit in self.units),
            *private,
        ]

    def is_private(self, path: Path) -> bool:
        """Whether a file is in the private folder."""
        return self.private is not None and path.resolve().is_relative_to(self.private.resolve())

    def reference_file(self, unit: str) -> Path:
        """The file of a unit's references."""
        return self.solution(f"{unit}.py")

    def reference_files(self) -> dict[str, Path]:
        """The file of references of each unit."""
        return {unit.name: self.reference_file(unit.name) for unit in self.units}

    def require_solutions(self, command: str) -> None:
        """Raise `CallError` unless the course has references and hidden tests."""
        if not self.has_solutions:
            raise CallError(
                f"`grader {command}` needs the folder {self.solutions}, which is missing: "
                "only instructors have it"
            )

    def require_answers(self) -> None:
        """Raise `CallError` unless the course has references, or their recorded results."""
        if not self.has_solutions and not self.recorded.is_dir():
            raise CallError(
                f"{self.recorded} and {self.solutions} are both missing: answers can be checked in "
                "a student's bundle, or in a clone of the kit"
            )

    def hidden_seed(self) -> str:
        """The seed of the inputs in hidden tests."""
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
        """The exercises in teaching order that `names` (of exercises or units) select.

        If `names` is empty, returns all exercises.
        """
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
        """The assignment with this name; raises `CallError` if there is none."""
        found = [assignment for assignment in self.file.assignment if assignment.name == name]
        if not found:
            known = ", ".join(assignment.name for assignment in self.file.assignment)
            named = f"the assignments are {known}" if known else "course.toml names none"
            raise CallError(f"there is no assignment called {name!r}; {named}")
        return found[0]

    @cached_property
    def zone(self) -> tzinfo | None:
        """The zone of times without an offset; None if the course or this computer has none."""
        try:
            return ZoneInfo(self.file.zone) if self.file.zone else None
        except (KeyError, ValueError, OSError):  # a computer without data about zones
            return None

    def local(self, moment: datetime) -> datetime:
        """A time of ``course.toml`` in the course's zone, if there is one."""
        if self.zone is None:
            return moment
        if moment.tzinfo is None:
            return moment.replace(tzinfo=self.zone)
        return moment.astimezone(self.zone)

    @cached_property
    def questions(self) -> Mapping[str, Question]:
        """The questions without code, which a person marks, by name."""
        return {question.name: question for question in self.file.manual}

    def questions_of(self, assignment: str) -> Mapping[str, float]:
        """The points of the questions of an assignment, or of the course if the name is ""."""
        names = self.assignment(assignment).manual if assignment else [*self.questions]
        return {name: self.questions[name].points for name in names}

    def most_of(self, part: str) -> float | None:
        """The points that can be earned in an exercise, unit or question; None for other parts."""
        if part in self.questions:
            return self.questions[part].points
        if part in self.exercises:
            return self.exercises[part].points
        own = [unit for unit in self.units if unit.name == part]
        return self.most(exercise.name for exercise in own[0].exercise) if own else None

    def policy(self, assignment: str) -> Policy | None:
        """The rule of an assignment for late submissions; None if it has no due time."""
        one = self.assignment(assignment) if assignment else None
        if one is None or one.due is None:
            return None
        due, until = self.local(one.due), one.until
        if due.tzinfo is None:
            raise CallError(f"this computer has no data about the zone {self.file.zone!r}")
        return Policy(
            due.astimezone(UTC),
            one.late_by,
            one.late,
            span_of(one.grace or "0 minutes"),
            self.local(until).astimezone(UTC) if until is not None else None,
            one.counts,
        )

    def one(self, name: str, of_unit: str) -> Exercise:
        """The exercise with this name; raises `CallError` if there is none.

        `of_unit` is the advice in the error if `name` is a unit.
        """
        if name not in self.exercises:
            self.select([name])  # raises an error with a suggestion, unless the name is a unit
            raise CallError(f"{name} is a unit: {of_unit}")
        return self.exercises[name]

    def _nearest(self, name: str) -> str:
        units = [unit.name for unit in self.units]
        known = [*self.exercises, *units, *self.questions]
        return did_you_mean(name, known, f"; the units are {', '.join(units)}")

    def solution_files(self) -> list[tuple[str, Path]]:
        """The files in ``solutions`` that can affect a grade, each with its path in that folder.

        They are references and their imports, graders, mistakes, and weights that graders read: the
        public files, and then the private ones.
        """
        return [
            (path.relative_to(folder).as_posix(), path)
            for folder in (reversed(self.secrets) if self.has_solutions else ())
            for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.safetensors")])
        ]

    def fingerprint(self) -> str:
        """A hash over everything that can affect the computed points and messages of a grade.

        They are the checks, the original stubs, the `solution_files`, and ``course.toml`` without
        what concerns whole assignments and pages. The `solution_files` include the known mistakes,
        since a grade contains the names of mistakes.
        """
        digest = hashlib.blake2b(digest_size=16)
        file = msgspec.structs.replace(
            self.file,
            feedback=FeedbackTable(),
            assignment=(),
            manual=(),
            term=TermTable(),
            zone="",
            assigned="",
        )
        digest.update(msgspec.json.encode(file))
        shown = self.check_files() + [self.pristine(unit.name) for unit in self.units]
        named = [(path.name, path) for path in shown]
        for name, path in (*named, *self.solution_files()):
            digest.update(name.encode())
            if path.is_file():
                digest.update(hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file of the course; raise `CallError`, with file and line, for an error.

    Callers must not change the tree, since a file that stays the same is parsed once.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise CallError(f"{path} is missing: each unit of course.toml needs this file") from None
    return _parsed(path, text)


@lru_cache(maxsize=256)
def _parsed(path: Path, text: bytes) -> ast.Module:
    try:
        text.decode()
        return ast.parse(text)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise CallError(f"{path}:{line}: this is not UTF-8; save the file as UTF-8") from None
    except SyntaxError as error:
        raise CallError(f"{path}:{error.lineno}: {error.msg}") from None
    except ValueError as error:  # such as a NUL byte
        raise CallError(f"{path}: {error}") from None


def defined(path: Path) -> dict[str, ast.stmt]:
    """The statements at the top of a file that define names, by name; the last one counts."""
    found: dict[str, ast.stmt] = {}
    for node in parsed(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        for target in targets:
            name = getattr(target, "name", getattr(target, "id", None))
            if isinstance(name, str):
                found[name] = node
    return found


def place_of(path: Path, name: str) -> str:
    """The file and line of a definition that the file has."""
    return f"{path}:{defined(path)[name].lineno}"


def undefined(path: Path, name: str, course: Course) -> CallError:
    """The error to raise if a file does not define an exercise."""
    others = defined(path).keys() - course.exercises.keys()
    return CallError(f"{path} does not define {name}{did_you_mean(name, others, '')}")


def wrong_key(course: Course, name: str, key: str, problem: str) -> CallError:
    """The error to raise for a problem with a key of an exercise in ``course.toml``."""
    return refusal(*_key_of(course, name, key), problem)


def place_of_key(course: Course, name: str, key: str) -> str:
    """The file and line of a key of an exercise in ``course.toml``."""
    path, text, place = _key_of(course, name, key)
    return f"{path}:{line_of(text, place)}"


def _key_of(course: Course, name: str, key: str) -> tuple[Path, str, str]:
    """The path and text of ``course.toml``, and where in it an exercise has a key."""
    path, text = text_of_course(course.folder)
    units = decode_course(path, text).unit  # `course` may be a part with fewer units
    u = [unit.name for unit in units].index(course.unit_of[name])
    e = [exercise.name for exercise in units[u].exercise].index(name)
    return path, text, f"$.unit[{u}].exercise[{e}].{key}"


def not_imported(path: Path, error: Exception) -> tuple[int | None, str]:
    """Why a file of the course cannot be imported: the line in it that raised, and the reason."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    why = f"cannot be imported: {type(error).__name__}: {' '.join(str(error).split())}"
    return (lines[-1] if lines else None), why


def answers_in(script: Path) -> list[str]:
    """The names of a student's answers that a script imports from ``grader.mine``."""
    return [
        alias.name
        for node in ast.walk(ast.parse(script.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == "grader.mine"
        for alias in node.names
    ]


def below(course: Course, name: str) -> list[str]:
    """The exercises that an exercise requires, directly or indirectly, nearest first."""
    found = list(course.exercises[name].requires)
    for base in found:  # the list grows during the loop
        found += [more for more in course.exercises[base].requires if more not in found]
    return found


def load_course(folder: Path) -> Course:
    """Read a course's ``course.toml``; raise `CallError`, with line and key, for an error in it."""
    path, text = text_of_course(folder)
    if not lies_over_another(text):
        return Course(folder, decode_course(path, text))
    overlay = decode_table(path, text, Overlay)
    base_folder = (folder / overlay.overlay).resolve()
    if not (base_folder / "course.toml").is_file():
        raise refusal(path, text, "$.overlay", f"there is no course.toml in {base_folder}")
    base_path, base = text_of_course(base_folder)
    if lies_over_another(base):
        problem = f"{base_folder} is a private course, too: name the public course below it"
        raise refusal(path, text, "$.overlay", problem)
    file = decode_course(base_path, base)
    own = {k: v for k, v in msgspec.structs.asdict(overlay).items() if v is not None}
    del own["overlay"]
    file = checked_course(path, text, msgspec.structs.replace(file, **own))
    return Course(base_folder, file, folder)


# --- the course that a command uses --------------------------------------------------------------


# The folder of solutions next to a course's folder, and the folder of recordings inside it.
SOLUTIONS, RECORDED = "solutions", "recorded"
COMMON = "common.py"  # the table of mistakes that people make in many exercises
SHEET = "sheet.sqlite"  # the file of recorded results, in `RECORDED`
NAMED = "GRADER_COURSE"  # the environment variable with the course's folder, like --course


class NoCourse(CallError):
    """The user did not name a course, and no course was found."""


def find_course(given: Path | None, start: Path | None = None, *, student: bool = False) -> Path:
    """Find the folder of the course that a command uses; all commands use this function.

    A course is code: its checks, references and hidden tests run with the rights of the user.
    Therefore a command uses only a course that someone chose:

    1. The course that is named: `given` (``--course``), or else the environment variable `NAMED`.
    2. The nearest course upward from `start` (the working directory), if it is the kit's own. The
       commands of a `student` also accept a course without solutions, such as a student's bundle.
    3. The kit's own course, if there is no course upward.

    Raises `CallError` if there is no course. Also raises `CallError` if the nearest course upward
    is any other course: it may be part of a submission, in whose folder an instructor is working.
    """
    named = given if given is not None else _named_by_environment()
    if named is not None:
        if (folder := _course_at(named)) is None:
            raise CallError(f"there is no course.toml in {named}")
        return folder
    own = kits_own()
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
    """The nearest course upward from a folder; the caller must trust the files of that course."""
    return next(filter(None, map(_course_at, (start, *start.parents))), None)


def _course_at(place: Path) -> Path | None:
    for folder in (place, place / "exercises"):
        if (folder / "course.toml").is_file():
            return folder.resolve()
    return None


def kits_own() -> Path | None:
    """The course next to the kit's folder ``grader``, as in a clone or in a student's bundle."""
    return _course_at(Path(__file__).parents[2])


def _named_by_environment() -> Path | None:
    text = os.environ.get(NAMED, "")
    if text and not Path(text).is_absolute():
        raise CallError(
            f"{NAMED} is {text!r}, which depends on the working directory: give an absolute path"
        )
    return Path(text) if text else None


def _refuse_unchosen(found: Path, student: bool) -> None:
    """Raise `CallError` for a course that was found but not named, except a `student`'s bundle."""
    met = f"the course in {found} was found above the working directory, but was not named"
    # An overlay consists of solutions, even if the course below it has none.
    if lies_over_another(text_of_course(found)[1]) or has_solutions(found):
        raise CallError(
            f"{met}: its solutions would run as you. If it is yours, name it with --course DIR or "
            f"{NAMED}"
        )
    if not student:
        raise CallError(
            f"{met}; it has no solutions and is a student's copy. Name your course with "
            f"--course DIR or {NAMED}"
        )


def has_solutions(folder: Path) -> bool:
    """Whether there are solutions next to a course's folder, and no recordings in the folder."""
    sheet = folder / RECORDED / SHEET
    return (folder.parent / SOLUTIONS).is_dir() and not sheet.is_file()


def lies_over_another(text: str) -> bool:
    """Whether a ``course.toml`` is an overlay: private solutions for another course."""
    return re.search(r"^\s*overlay\s*=", text, re.MULTILINE) is not None


def text_of_course(folder: Path) -> tuple[Path, str]:
    """The path and text of a course's ``course.toml``; raise `CallError` if it is unreadable."""
    path = folder / "course.toml"
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: {error}") from None
