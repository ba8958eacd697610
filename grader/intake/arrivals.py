"""Who handed in what: paths become hand-ins, and hand-ins become submissions with names."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from grader.course.course import Course
from grader.intake import files
from grader.intake.archives import archive_files
from grader.intake.downloads import Downloads, called_so, items_of, read_hand_in, top_names
from grader.intake.files import (
    FoundFile,
    Other,
    Problem,
    Submission,
    Unreadable,
    folder_files,
    name_of,
    on_disk,
    open_plain,
    read_files,
    reason,
    submissions_in,
    unread,
)
from grader.intake.names import ARCHIVES, DOCUMENTS, SKIPPED, SOURCES, ZIP, escaped, shown, suffix
from grader.intake.roster import NOBODY, Claim, Roster, all_of, conflicts_of, left_over
from grader.records.faults import CallError
from grader.records.rows import Person, counted, some_of
from grader.records.saves import saves, snapshot

NO_SOURCE = "neither a .py file nor a notebook nor a zip of those"


@dataclass(frozen=True)
class Arrivals:
    """All that came, from whom, and how it was understood."""

    submissions: tuple[Submission, ...]
    people: Mapping[str, Person] = field(default_factory=dict)  # by student; absent ones as well
    told: tuple[str, ...] = ()  # a line for each path, and for what someone should look at
    # Why several hand-ins are left out, of which only one can count: by each name that a grade of
    # them would have.
    conflicts: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""  # why nothing could be read, while someone waits for what arrives


@dataclass(frozen=True)
class _Arrived:
    """A hand-in that was read, before it is known whether it is the last, and whose."""

    place: Path
    submission: Submission
    people: tuple[Person, ...] = ()
    number: tuple[str, str] | None = None  # the system and its number: one student, or group
    moment: tuple[float, ...] = ()
    members: Mapping[str, Person] = field(
        default_factory=dict
    )  # by their names, once they are known


def find_submissions(
    paths: Sequence[Path],
    course: Course,
    downloads: Sequence[Downloads] = (),
    *,
    single: bool = False,
) -> list[Submission]:
    """The submissions under these paths, by name; raise `CallError` for none, and for a conflict.

    With `single`, each path is one submission, whatever is in it.
    """
    if single:
        return [read_submission(name_of(path), path.resolve()) for path in paths]
    arrivals = take_in(paths, course, downloads=downloads)
    if arrivals.conflicts:
        raise CallError(all_of(arrivals.conflicts))
    return list(arrivals.submissions)


def take_in(
    paths: Sequence[Path],
    course: Course,
    roster: Roster = NOBODY,
    downloads: Sequence[Downloads] = (),
) -> Arrivals:
    """Find out what the paths hold, and read it; raise `CallError` if nothing of it can be graded.

    A file is one submission, and so is a folder with a file named like a unit, or, beside others,
    with no files and folders at all. A download of a whole assignment is known by the names at its
    top: it is of the first of `downloads` that made them; a zip is one only under a name that the
    system gave it. Any other folder is a folder of submissions. Of several hand-ins of a student
    the last one counts; where nothing says which one is the last, or whose it is, they are in
    conflict, and the others come without them. With a `roster`, those who handed in nothing are
    among the people.
    """
    arrivals, others = _arrivals(paths, course, roster, downloads)
    if not arrivals.submissions:
        there = f"; there is: {some_of(others)}" if others else ""
        raise CallError(
            all_of(arrivals.conflicts)
            or f"no submissions in {', '.join(map(_at, paths))}: there is no .py file, no "
            f"notebook and no zip of those{there}"
        )
    return arrivals


def _arrivals(
    paths: Sequence[Path], course: Course, roster: Roster, downloads: Sequence[Downloads]
) -> tuple[Arrivals, list[str]]:
    """The same, where nothing may have arrived yet; and the names of what is no submission."""
    units = {unit.name for unit in course.units}
    own_places = {secret.resolve().parent for secret in course.secrets}
    for path in paths:
        _require(path, own_places)
    recognised = _recognised(paths, units, downloads)
    arrived: list[_Arrived] = []
    told: list[str] = []
    others: list[str] = []
    for path in paths:
        try:
            made = recognised[path]
            if made is None:
                own, left = _plain(path, units)
            else:
                own, left = _downloaded(path, made, units)
        except (OSError, Unreadable) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise CallError(f"{_at(path)}: {why}") from None
        if made is not None or len(own) != 1:
            told.append(_told(path, made, own))
        told += [f"{_at(path)}: {line}" for line in _left_out(made, left)]
        others += left
        told += _look_alikes(own if made is None else (), units, downloads)
        arrived += own
    if all(map(_is_nothing, arrived)):
        others += [shown(one.place.name) for one in arrived if one.place not in paths]
        arrived = []
    return _settled(_named(_latest(arrived)), roster, told), others


def _require(path: Path, own_places: Collection[Path]) -> None:
    """Raise `CallError` unless something is there that may have been handed in."""
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long, a folder that is closed
        raise CallError(f"{_at(path)}: {reason(error)}") from None
    if not there:
        raise CallError(f"there is no such file or folder: {_at(path)}")
    if path.resolve() in own_places:
        raise CallError(f"{_at(path)} is the course itself: name what was handed in")


def _at(path: Path) -> str:
    """A path as people and terminals see it: parts of it may be a student's own."""
    return escaped(path.as_posix())


# --- what a path holds ---------------------------------------------------------------------------


def _recognised(
    paths: Sequence[Path], units: set[str], downloads: Sequence[Downloads]
) -> dict[Path, Downloads | None]:
    """Of which system each path is a download, if of any.

    A student can name what is in a zip after the manner of Canvas, and must not hand in for others.
    So a zip is a download only under a name that the system gave it, and one of several only if all
    of them are: a class may be graded as ``*.zip``.
    """
    found = {path: _made_by(path, units, downloads) for path in paths}
    for path, made in found.items():
        if made is not None and not path.is_dir() and not called_so(path, made, downloads):
            found[path] = None
    zips = [path for path in paths if path.is_file() and suffix(path.name) == ZIP]
    if not all(found[path] for path in zips):
        found |= dict.fromkeys(zips)
    return found


def _made_by(
    path: Path, units: set[str], downloads: Sequence[Downloads], most: int | None = None
) -> Downloads | None:
    folders = {one.folder for one in downloads}
    try:
        if path.is_dir():
            if _is_one(path, units):
                return None
            names = top_names(path)
            if path.resolve().name in folders and _is_tree(path):
                names = {path.resolve().name}
        elif suffix(path.name) == ZIP:
            with items_of(path, folders, most) as items:
                names = {item.parts[0] for item in items}
        else:
            return None
    except (OSError, Unreadable):  # told when it is read
        return None
    return next((one for one in downloads if one.made(names)), None)


def _is_tree(folder: Path) -> bool:
    """Whether there are students in it, and below them nothing but assignments."""
    students = [folder / name for name in top_names(folder)]
    return bool(students) and all(
        student.is_dir() and all((student / name).is_dir() for name in top_names(student))
        for student in students
    )


def _downloaded(path: Path, made: Downloads, units: set[str]) -> tuple[list[_Arrived], list[str]]:
    """What was handed in; and the names at the top that are neither the system's nor anyone's."""
    with items_of(path, {made.folder}) as items:
        hand_ins = made.hand_ins(items, units)
        used = {item.parts[0] for hand_in in hand_ins for item in hand_in.files.values()}
        names = {item.parts[0] for item in items}
        arrived = [
            _Arrived(
                path,
                read_hand_in(hand_in),
                hand_in.people,
                (made.system, hand_in.number),
                hand_in.moment,
            )
            for hand_in in hand_ins
        ]
        return arrived, [shown(name) for name in sorted(names - used - {*made.made(names)})]


def _plain(path: Path, units: set[str]) -> tuple[list[_Arrived], list[str]]:
    """One submission, or a folder of submissions that nobody but the instructor named.

    The names are those of what is in the folder and nobody's.
    """
    entries, left = ([path], list[str]()) if _is_one(path, units) else submissions_in(path)
    own = [_Arrived(entry, read_submission(name_of(entry), entry.resolve())) for entry in entries]
    return own, left


def _is_one(path: Path, units: set[str]) -> bool:
    if not path.is_dir():
        if not path.is_file() or suffix(path.name) not in (*SOURCES, ZIP):
            raise CallError(f"{_at(path)} is {NO_SOURCE}")
        return True
    if (path / "grades.db").is_file():
        raise CallError(f"{_at(path)} is a gradebook: name what was handed in")
    names = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    inside = path / "exercises"
    names += list(inside.iterdir()) if inside.is_dir() else []
    return not names or any(n.stem in units and suffix(n.name) in SOURCES for n in names)


def _is_nothing(one: _Arrived) -> bool:
    """Whether it is a student's only if somebody else handed in something beside it."""
    if one.number is not None or one.submission.sources or suffix(one.place.name) == ZIP:
        return False
    return all(isinstance(file, Other) for file in _files_of(one.place.resolve()))


# --- one path, one submission --------------------------------------------------------------------


def read_submission(student: str, path: Path) -> Submission:
    """Read all source files of one submission. What cannot be read is a problem, not an error."""
    return Submission(student, *read_files(_files_of(path)))


def _files_of(path: Path) -> Iterable[FoundFile]:
    name = shown(path.name)
    try:
        folder = stat.S_ISDIR(path.lstat().st_mode)
    except OSError as error:
        return [Problem(name, reason(error))]
    if folder:
        return folder_files(path)
    if suffix(path.name) == ZIP:
        return archive_files(name, partial(open_plain, path))
    if suffix(path.name) in SOURCES:
        return [on_disk(path, name)]
    return [unread(path.name)]


# --- the last one of each, under a name of its own -----------------------------------------------


def _latest(arrived: Sequence[_Arrived]) -> list[_Arrived]:
    """The last of several hand-ins through one system, which knows that they are one student's."""
    of_one: dict[object, list[_Arrived]] = {}
    for one in arrived:
        of_one.setdefault(one.number or id(one), []).append(one)
    return [
        _with(
            max(own, key=lambda one: one.moment),
            attempts=max(
                len({one.moment for one in own}), *(one.submission.attempts for one in own)
            ),
        )
        for own in of_one.values()
    ]


def _named(arrived: Sequence[_Arrived]) -> list[_Arrived]:
    """By name; a system's numbers tell two of one name apart, where it has any."""
    numbers: dict[str, set[object]] = {}
    for one in arrived:
        for name, number in _names(one):
            numbers.setdefault(name, set()).add(number or id(one))

    def apart(name: str, number: str) -> str:
        return shown(f"{name}_{number}") if number and len(numbers[name]) > 1 else name

    named = []
    for one in arrived:
        names = [apart(*own) for own in _names(one)]
        student = one.submission.student if len(one.people) > 1 else names[0]
        members = dict(zip(names, one.people or (Person(),), strict=True))
        named.append(_with(replace(one, members=members), student=student))
    return sorted(named, key=lambda one: one.submission.student)


def _names(one: _Arrived) -> list[tuple[str, str]]:
    """The name of each whose it is, and what tells them apart from others of that name, or ""."""
    if len(one.people) > 1:
        return [(shown(p.name or p.email or p.id), p.id or p.email) for p in one.people]
    return [(one.submission.student, one.number[1] if one.number else "")]


def _with(one: _Arrived, **changes: Any) -> _Arrived:
    return replace(one, submission=replace(one.submission, **changes))


# --- whose it is ---------------------------------------------------------------------------------


def _settled(named: Sequence[_Arrived], roster: Roster, told: list[str]) -> Arrivals:
    """Who gets the grade of each, by the system and the roster; and who is left without."""
    claims: dict[Claim, Person] = {}
    for number, one in enumerate(named):
        for student, person in _members(one, roster).items():
            place = _at(one.place)
            key = roster.find(person, student)
            claims[Claim(number, one.submission.student, place, student, key)] = person
    conflicts = conflicts_of(claims, roster)
    waiting, people = dict(roster.keys), dict[str, Person]()
    strangers: dict[str, Person] = {}
    members: dict[int, list[str]] = {number: [] for number in range(len(named))}
    for claim, person in claims.items():
        student, key = claim.student, claim.key
        known = person if key is None else _both(roster.keys[key], person)
        if key is None:
            strangers[student] = person
        else:
            waiting.pop(key, None)
        if student in conflicts:
            # Without a grade, who is on the roster has the roster's key.
            people[key or student] = roster.keys[key] if key else person
        else:
            members[claim.number].append(student)
            people |= {student: known} if known != Person() else {}
    if roster.people:
        told += left_over(strangers, waiting)
    submissions = [
        replace(one.submission, group=() if own == [one.submission.student] else tuple(own))
        for number, one in enumerate(named)
        if (own := members[number])
    ]
    return Arrivals(tuple(submissions), people | waiting, tuple(told), conflicts)


def _members(one: _Arrived, roster: Roster) -> Mapping[str, Person]:
    """The students of a submission, by the names under which they stand in the gradebook."""
    name = one.submission.student
    group = roster.group(name)
    if group:
        return {key: roster.keys[key] for key in group}
    return one.members


def _both(listed: Person, told: Person) -> Person:
    """What the roster says of someone, and the numbers that a system knows them by."""
    return msgspec.structs.replace(listed, canvas=told.canvas, moodle=told.moodle)


# --- what to say ---------------------------------------------------------------------------------


def _told(path: Path, made: Downloads | None, own: Sequence[_Arrived]) -> str:
    kinds: dict[str, int] = {}
    if made is None:
        for one in own:
            kind = _kind(one.place)
            kinds[kind] = kinds.get(kind, 0) + 1
        return f"{_at(path)}: {counted(len(own), 'submission')}: " + ", ".join(
            counted(count, kind) for kind, count in kinds.items()
        )
    marks = {
        "late": sum(one.submission.late for one in own),
        "handed in again": sum(one.submission.attempts > 1 for one in own),
        "without a file that can be read": sum(one.submission.status != "ready" for one in own),
    }
    of_all = "".join(f", {count} {mark}" for mark, count in marks.items() if count)
    return f"{_at(path)}: a download from {made.system}: {counted(len(own), 'submission')}{of_all}"


def _look_alikes(
    own: Sequence[_Arrived], units: set[str], downloads: Sequence[Downloads]
) -> Iterator[str]:
    """A line for each student's zip in which names are like those of a download."""
    for one in own:
        # No more is looked at than is read of one student's.
        most = files.MAX_DIRECTORY
        if one.place.is_file() and (like := _made_by(one.place, units, downloads, most)):
            yield (
                f"{_at(one.place)}: read as one student's, since a student can name files in a "
                f"zip as {like.system} does; a download of your own is recognised once it is "
                "unpacked, or where every zip is called so: hw1_submissions.zip"
            )


def _left_out(made: Downloads | None, names: Sequence[str]) -> Iterator[str]:
    """What of a path is nobody's, in one line, or none."""
    why = "no submissions of their own"
    if made is not None:
        why = f"{made.system} does not say whose they are"
    if names:
        yield f"left out ({why}): {some_of(names)}"


def _kind(place: Path) -> str:
    if place.is_dir():
        return "git clone" if (place / ".git").exists() else "folder"
    other = "archive" if suffix(place.name) in ARCHIVES else "document"
    return {".py": "file", ".ipynb": "notebook"}.get(suffix(place.name), other)


# --- arriving ------------------------------------------------------------------------------------
#
# A folder in which hand-ins arrive while someone waits.


HAND_INS = (*SOURCES, *ARCHIVES, *DOCUMENTS, ".txt")  # of which some are sources under a new name


def arriving(
    folder: Path, course: Course, roster: Roster, stop: Event, downloads: Sequence[Downloads] = ()
) -> Iterator[Arrivals]:
    """What the folder holds: now, and after each change, until `stop` is set."""
    seen = snapshot([folder], HAND_INS, SKIPPED)
    yield _look(folder, course, roster, downloads)
    for _ in saves([folder], HAND_INS, SKIPPED, seen, stop):
        yield _look(folder, course, roster, downloads)


def _look(folder: Path, course: Course, roster: Roster, downloads: Sequence[Downloads]) -> Arrivals:
    try:
        arrivals, _ = _arrivals([folder], course, roster, downloads)
        return arrivals
    except CallError as error:
        return Arrivals((), refused=str(error))
