"""A course on disk: where its parts live, and which one a command uses."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from grader.course.file import (
    Assignment,
    CourseFile,
    Exercise,
    Overlay,
    Unit,
    checked_course,
    decode_course,
    decode_table,
)
from grader.records.faults import CallError
from grader.records.grade import THOUSAND


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
        if self.private is None and self.folder == kits_own():
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
    def sheet(self) -> Path:
        """The recorded results."""
        return self.recorded / SHEET

    @property
    def has_solutions(self) -> bool:
        """Whether references are at hand. In a bundle, a folder of that name is a student's own."""
        return has_solutions(self.folder)

    def stub_file(self, unit: str) -> Path:
        """The stubs of a unit, into which a student writes."""
        return self.folder / f"{unit}.py"

    def pristine(self, unit: str) -> Path:
        """The stubs of a unit as they were: a copy in a bundle, the file itself in a clone."""
        kept = self.recorded / "stubs" / f"{unit}.py"
        return kept if kept.is_file() else self.stub_file(unit)

    def stubs(self) -> dict[str, str]:
        """The text of each unit's stubs as they were."""
        return {unit.name: self.pristine(unit.name).read_text("utf-8") for unit in self.units}

    def afterwards_file(self, unit: str) -> Path:
        """What is read once exercises of a unit are solved; a course need not have it."""
        return self.folder / "afterwards" / f"{unit}.toml"

    def look_file(self, unit: str) -> Path:
        """What is there to look at once a unit is solved: a script that runs the student's own."""
        return self.folder / "afterwards" / f"{unit}.py"

    def after_files(self) -> list[Path]:
        """All of those that are there, and what is played."""
        both = [(self.afterwards_file(unit.name), self.look_file(unit.name)) for unit in self.units]
        plays = [*self.plays().values()]
        data = sorted(self.play_folder.glob("*.txt")) if plays else []
        return [path for path in (*sum(both, ()), *plays, *data) if path.is_file()]

    @property
    def play_folder(self) -> Path:
        """Where scripts lie that make something of several answers, and what those read."""
        return self.folder / "afterwards" / "play"

    def plays(self) -> dict[str, Path]:
        """Those scripts, by name: the ones whose answers are all exercises of this course."""
        return {
            path.stem: path
            for path in sorted(self.play_folder.glob("*.py"))
            if self.exercises.keys() >= {*answers_in(path)}
        }

    @cached_property
    def experiments(self) -> Mapping[str, Sequence[str]]:
        """The names of experiments that are there, by unit: those of exercises, then its own."""
        named = {
            unit.name: [
                *(one for exercise in unit.exercise for one in exercise.experiments),
                unit.name,
            ]
            for unit in self.units
        }
        return {
            unit: [one for one in dict.fromkeys(names) if self.experiment_file(one).is_file()]
            for unit, names in named.items()
        }

    def experiment_file(self, name: str) -> Path:
        """A script that shows why, for an exercise or for the unit of this name."""
        return self.folder / "experiments" / f"{name}.py"

    def check_files(self) -> list[Path]:
        """The public checks, in teaching order."""
        return [self.folder / "checks" / f"test_{unit.name}.py" for unit in self.units]

    def checks_of(self, names: Collection[str]) -> dict[Path, bool]:
        """The public checks of the units of these exercises, as files that are not hidden."""
        wanted = {self.unit_of[name] for name in names}
        pairs = zip(self.units, self.check_files(), strict=True)
        return {path: False for unit, path in pairs if unit.name in wanted}

    def tests_of(self, names: Collection[str] = ()) -> dict[Path, bool]:
        """Test files of the units of these exercises (all if none), each with whether it is hidden.

        Those are public checks and hidden graders.
        """
        names = names or self.exercises.keys()
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

    def mistakes_files(self) -> dict[str, Path]:
        """The known wrong and right answers, by unit; a unit need not have any."""
        return {unit.name: self.solution("mistakes", f"{unit.name}.py") for unit in self.units}

    @property
    def common_mistakes_file(self) -> Path:
        """The table of mistakes that exercises of many units share; a course need not have one."""
        return self.solution("mistakes", "common.py")

    def reference_file(self, unit: str) -> Path:
        """The references of a unit."""
        return self.solution(f"{unit}.py")

    def reference_files(self) -> dict[str, Path]:
        """The references, by unit."""
        return {unit.name: self.reference_file(unit.name) for unit in self.units}

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

    def solution_files(self) -> dict[str, Path]:
        """What decides a grade among the solutions, by its place there; of two, the private one.

        References and what they import, graders, mistakes; and weights that graders read.
        """
        found: dict[str, Path] = {}
        for folder in self.secrets if self.has_solutions else ():
            for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.safetensors")]):
                found.setdefault(path.relative_to(folder).as_posix(), path)
        return found

    def fingerprint(self) -> str:
        """A hash over everything that decides a grade.

        Course file, checks, graders, references and what they import, trained weights; stubs, which
        are no answers; known mistakes too, since their names stand in a grade.
        """
        digest = hashlib.blake2b(digest_size=16)
        folders = [self.folder, *([self.private] if self.private is not None else [])]
        shown = [folder / "course.toml" for folder in folders] + self.check_files()
        shown += [self.pristine(unit.name) for unit in self.units]
        named = [(path.name, path) for path in shown]
        for name, path in (*named, *self.solution_files().items()):
            digest.update(name.encode())
            if path.is_file():
                digest.update(hashlib.blake2b(path.read_bytes()).digest())
        return digest.hexdigest()


def answers_in(script: Path) -> list[str]:
    """The student's own answers that a script imports from ``grader.mine``."""
    return [
        alias.name
        for node in ast.walk(ast.parse(script.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.module == "grader.mine"
        for alias in node.names
    ]


def below(course: Course, name: str) -> list[str]:
    """What an exercise requires, and what that requires, nearest first."""
    found = list(course.exercises[name].requires)
    for base in found:  # grows meanwhile
        found += [more for more in course.exercises[base].requires if more not in found]
    return found


def load_course(folder: Path) -> Course:
    """Read ``course.toml``; raise `CallError` with file, line and key if it is not right."""
    path, text = text_of_course(folder)
    if not lies_over_another(text):
        return Course(folder, decode_course(path, text))
    overlay = decode_table(path, text, Overlay)
    base_folder = (folder / overlay.overlay).resolve()
    base_path, base = text_of_course(base_folder)
    file = decode_course(base_path, base)
    own = {k: v for k, v in msgspec.structs.asdict(overlay).items() if v is not None}
    del own["overlay"]
    file = checked_course(path, text, msgspec.structs.replace(file, **own))
    return Course(base_folder, file, folder)


# --- which course a command uses -----------------------------------------------------------------


SOLUTIONS, RECORDED = "solutions", "recorded"  # beside a course's folder, and in it
SHEET = "sheet.sqlite"  # in `RECORDED`
NAMED = "GRADER_COURSE"  # the environment variable that names a course, as --course does


class NoCourse(CallError):
    """No course is named, and none was found."""


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
    """The nearest course upward from a folder whose files are trusted already."""
    return next(filter(None, map(_course_at, (start, *start.parents))), None)


def _course_at(place: Path) -> Path | None:
    for folder in (place, place / "exercises"):
        if (folder / "course.toml").is_file():
            return folder.resolve()
    return None


def kits_own() -> Path | None:
    """The course beside this engine, as in a clone and in a student's folder."""
    return _course_at(Path(__file__).parents[2])


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
    if lies_over_another(text_of_course(found)[1]) or has_solutions(found):
        raise CallError(
            f"{met}: its solutions would run as you. If it is yours, name it with --course DIR or "
            f"{NAMED}"
        )
    if not student:
        raise CallError(
            f"{met}; it has no solutions, so it is a student's copy. Name yours with --course DIR "
            f"or {NAMED}"
        )


def has_solutions(folder: Path) -> bool:
    """Whether solutions lie beside a course's folder, and nothing was recorded in their place."""
    sheet = folder / RECORDED / SHEET
    return (folder.parent / SOLUTIONS).is_dir() and not sheet.is_file()


def lies_over_another(text: str) -> bool:
    """Whether a ``course.toml`` lays solutions over another course."""
    return re.search(r"^\s*overlay\s*=", text, re.MULTILINE) is not None


def text_of_course(folder: Path) -> tuple[Path, str]:
    """A course's ``course.toml``, and what it says; raise `CallError` where it cannot be read."""
    path = folder / "course.toml"
    try:
        return path, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CallError(f"{path}: {error}") from None
