"""Turns paths into named submissions, and matches the submissions with the roster."""

from __future__ import annotations

import hashlib
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
from grader.intake.commits import commit_time
from grader.intake.downloads import Downloads, items_of, named_as_download, read_upload, top_names
from grader.intake.files import (
    FoundFile,
    Other,
    Problem,
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
from grader.intake.groups import Share, settle_groups
from grader.intake.names import (
    ARCHIVES,
    DOCUMENTS,
    SKIPPED,
    SOURCES,
    ZIP,
    escaped,
    may_be_submission,
    shown,
    suffix,
    well_formed,
)
from grader.intake.roster import NO_ROSTER, Claim, Roster, all_of, conflicts_of, left_over
from grader.intake.submission import Submission
from grader.intake.times import NO_TIMES, Times
from grader.records.faults import CallError
from grader.records.rows import Person, counted, some_of
from grader.records.saves import saves, snapshot

NO_SOURCE = "neither a .py file nor a notebook nor a zip of those"


@dataclass(frozen=True)
class Arrivals:
    """The submissions found under some paths, their students, and notices for the instructor."""

    submissions: tuple[Submission, ...]
    people: Mapping[str, Person] = field(
        default_factory=dict
    )  # by the student's key; absent students included
    notices: tuple[str, ...] = ()  # a line for each path and for each oddity
    # Why submissions are left out, by each name that their grade would have in the gradebook.
    conflicts: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""  # why the folder could not be read; only `arriving` sets this
    earlier: tuple[Submission, ...] = ()  # those that their students replaced


@dataclass(frozen=True)
class _Arrived:
    """A submission as it was read, not yet matched with a student or compared with later ones."""

    place: Path
    submission: Submission
    people: tuple[Person, ...] = ()
    number: tuple[str, str] | None = None  # a system, and its number for the student or group
    moment: tuple[float, ...] = ()
    members: Mapping[str, Person] = field(default_factory=dict)  # students by name; see `_named`


def find_submissions(
    paths: Sequence[Path],
    course: Course,
    downloads: Sequence[Downloads] = (),
    *,
    single: bool = False,
) -> list[Submission]:
    """The submissions under these paths, sorted by name.

    Raises `CallError` if there are none, or if some are in conflict. With `single`, each path is
    read as one submission.
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
    roster: Roster = NO_ROSTER,
    downloads: Sequence[Downloads] = (),
    times: Times = NO_TIMES,
    *,
    known: Mapping[str, Person] | None = None,
) -> Arrivals:
    """Find and read the submissions under these paths; raise `CallError` if there are none.

    - A file is a submission, except a zip that is a download (see below).
    - A folder is a submission if it holds a file named like a unit. An empty folder is also a
      submission if another submission can be read.
    - A folder or a zip is a download of a whole assignment if a learning system made the names at
      its top. The first match in `downloads` counts. The zip's own name must also be one that the
      system gives to downloads.
    - Any other folder is a folder of submissions.

    A student's last submission counts. If several submissions may be the last, or may belong to the
    same student or group, all of them are left out, and `conflicts` says why. With a `roster`,
    `people` includes absent students. A time in `times` replaces the time that a system gives. If
    these are not the whole class's submissions, `known` has the people of the gradebook: a student
    keeps the name there, and no notice names students who are missing here.
    """
    arrivals, others = _arrivals(paths, course, roster, downloads, times, known)
    if not arrivals.submissions and not arrivals.conflicts:
        there = f"; there is: {some_of(others)}" if others else ""
        raise CallError(
            f"no submissions in {', '.join(map(_at, paths))}: there is no .py file, no notebook "
            f"and no zip of those{there}"
        )
    return arrivals


def _arrivals(
    paths: Sequence[Path],
    course: Course,
    roster: Roster,
    downloads: Sequence[Downloads],
    times: Times,
    known: Mapping[str, Person] | None = None,
) -> tuple[Arrivals, list[str]]:
    """Find and read submissions as `take_in` does, but possibly none.

    Also returns the names of files that are not submissions.
    """
    units = {unit.name for unit in course.units}
    own_places = {secret.resolve().parent for secret in course.secrets}
    for path in paths:
        _require(path, own_places)
    recognised = _recognised(paths, units, downloads)
    arrived: list[_Arrived] = []
    notices: list[str] = []
    others: list[str] = []
    for path in paths:
        try:
            made = recognised[path]
            if made is None:
                own, left = _plain(path, units)
                _refuse_strange(path, own, roster)
            else:
                own, left = _downloaded(path, made, units)
        except (OSError, Unreadable) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            raise CallError(f"{_at(path)}: {why}") from None
        if made is not None or len(own) != 1:
            notices.append(_summary(path, made, own))
        notices += [f"{_at(path)}: {line}" for line in _left_out(made, left)]
        others += left
        notices += _look_alikes(own if made is None else (), units, downloads)
        arrived += own
    if all(map(_is_unread, arrived)):
        others += [shown(one.place.name) for one in arrived if one.place not in paths]
        arrived = []
    latest = _named(_latest(arrived), known or {})
    settled = _settled(latest, roster, notices, whole=known is None)
    timed = _timed(settled, arrived, times, whole=known is None)
    return replace(timed, earlier=tuple(_earlier(arrived, latest, timed.submissions))), others


def _timed(
    arrivals: Arrivals, arrived: Sequence[_Arrived], times: Times, *, whole: bool
) -> Arrivals:
    """Put the times of a table in place of those that systems gave, and add notices about times."""

    def person(student: str) -> Person:
        return arrivals.people.get(student, Person())

    def timed(one: Submission) -> Submission:
        found = (times.of([one.student, name], person(name)) for name in one.members)
        time = max(filter(None, found), default=None)
        return one if time is None else replace(one, submitted=time, by_table=True)

    submissions = tuple(map(timed, arrivals.submissions))
    everybody = [*arrivals.people, *(name for one in submissions for name in one.members)]
    known = [([name], person(name)) for name in dict.fromkeys(everybody)]
    for one in submissions:
        alone = one.members[0] if len(one.members) == 1 else one.student
        known.append(([one.student, alone], person(alone)))
    if wrong := times.contradictions(known):
        raise CallError(f"the table of times contradicts itself: {some_of(wrong)}")
    notices = list(arrivals.notices)
    if whole and (unknown := times.strangers(known)):
        notices.append(
            f"times of students without a submission here: {some_of(list(map(escaped, unknown)))}"
        )
    commits = sum(one.submission.submitted is not None and one.number is None for one in arrived)
    if commits and not times.entries:
        notices.append(
            f"{counted(commits, 'time')} from git commits, which students can set; --times FILE "
            "replaces them"
        )
    return replace(arrivals, submissions=submissions, notices=tuple(notices))


def _require(path: Path, own_places: Collection[Path]) -> None:
    """Raise `CallError` if the path does not exist, or is the course itself."""
    try:
        there = path.exists()
    except OSError as error:  # such as a name that is too long, or a folder without access
        raise CallError(f"{_at(path)}: {reason(error)}") from None
    if not there:
        raise CallError(f"there is no such file or folder: {_at(path)}")
    if path.resolve() in own_places:
        raise CallError(f"{_at(path)} is the course itself: name the submissions instead")


def _at(path: Path) -> str:
    """A path that is safe to print: students may have chosen parts of it."""
    return escaped(path.as_posix())


# --- what a path holds ---------------------------------------------------------------------------


def _recognised(
    paths: Sequence[Path], units: set[str], downloads: Sequence[Downloads]
) -> dict[Path, Downloads | None]:
    """For each path, the system whose download it is, or None.

    A student could make a zip that looks like a download of Canvas, and submit for others with it.
    Therefore a zip counts as a download only if its own name is one that the system gives to
    downloads. If any zip among the paths is no download, none of the zips is: they may be a class's
    submissions, passed as ``*.zip``.
    """
    found = {path: _made_by(path, units, downloads) for path in paths}
    for path, made in found.items():
        if made is not None and not path.is_dir() and not named_as_download(path, made, downloads):
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
            if _is_single(path, units):
                return None
            names = top_names(path)
            if path.resolve().name in folders and _is_tree(path):
                names = {path.resolve().name}
        elif suffix(path.name) == ZIP:
            with items_of(path, folders, most) as items:
                names = {item.parts[0] for item in items}
        else:
            return None
    except (OSError, Unreadable):  # reported when the path is read
        return None
    return next((one for one in downloads if one.made(names)), None)


def _is_tree(folder: Path) -> bool:
    """Whether a folder holds only students' folders, and these only folders of assignments."""
    students = [folder / name for name in top_names(folder)]
    return bool(students) and all(
        student.is_dir() and all((student / name).is_dir() for name in top_names(student))
        for student in students
    )


def _downloaded(path: Path, made: Downloads, units: set[str]) -> tuple[list[_Arrived], list[str]]:
    """The submissions in a download, and the names at its top that belong to no submission."""
    with items_of(path, {made.folder}) as items:
        uploads = made.uploads(items, units)
        used = {item.parts[0] for upload in uploads for item in upload.files.values()}
        names = {item.parts[0] for item in items}
        arrived = [
            _Arrived(
                path,
                read_upload(upload),
                tuple(map(_well_formed, upload.people)),
                (made.system, upload.number),
                upload.moment,
            )
            for upload in uploads
        ]
        return arrived, [shown(name) for name in sorted(names - used - {*made.made(names)})]


def _well_formed(person: Person) -> Person:
    """The person's data in a form that the gradebook can store."""
    fields = {
        name: well_formed(text)
        for name, text in msgspec.structs.asdict(person).items()
        if isinstance(text, str)
    }
    return msgspec.structs.replace(person, **fields)


def _plain(path: Path, units: set[str]) -> tuple[list[_Arrived], list[str]]:
    """The submissions at a path that is no download, and the names of files that are left out."""
    entries, left = ([path], list[str]()) if _is_single(path, units) else submissions_in(path)
    own = [
        _with(
            _Arrived(entry, read_submission(name_of(entry), entry.resolve())),
            submitted=commit_time(entry.resolve()) if entry.is_dir() else None,
        )
        for entry in entries
    ]
    return own, left


def _is_single(path: Path, units: set[str]) -> bool:
    """Whether the path is a single submission, not a folder of submissions."""
    if not path.is_dir():
        if not path.is_file() or suffix(path.name) not in (*SOURCES, ZIP):
            raise CallError(f"{_at(path)} is {NO_SOURCE}")
        return True
    if (path / "grades.db").is_file():
        raise CallError(f"{_at(path)} is a gradebook: name the submissions instead")
    names = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    inside = path / "exercises"
    names += list(inside.iterdir()) if inside.is_dir() else []
    return not names or any(n.stem in units and suffix(n.name) in SOURCES for n in names)


# A folder is refused if so many of its folders hold no answers, and so large a share of them. A
# small class is never refused, whatever its students submitted.
FEWEST_STRANGE, SHARE_STRANGE = 20, 0.8


def _refuse_strange(path: Path, own: Sequence[_Arrived], roster: Roster) -> None:
    """Raise `CallError` for a folder of something else than submissions, such as ``/etc``.

    Strange is a folder that holds files, of which none may be a submission even in a wrong format.
    Folders that are empty or broken, and documents, are not strange, and a student on the roster
    proves a class.
    """
    if len(own) < FEWEST_STRANGE:
        return
    strange = [one for one in own if _is_strange(one)]
    filled = sum(one.submission.status != "empty" for one in own)
    if len(strange) < FEWEST_STRANGE or len(strange) < SHARE_STRANGE * filled:
        return
    if any(roster.find(Person(), one.submission.student) for one in own):
        return
    names = some_of([one.submission.student for one in strange], 3)
    raise CallError(
        f"{_at(path)} is no folder of submissions: {len(strange)} of {counted(len(own), 'folder')} "
        f"in it hold files, but no .py file, no notebook, no zip and no document ({names}). If it "
        "is one, pass the roster with --roster, or put the submissions into a folder of their own"
    )


def _is_strange(one: _Arrived) -> bool:
    if one.submission.sources or not one.place.is_dir():
        return False
    names = [file.name for file in _files_of(one.place.resolve())]
    return bool(names) and not any(map(may_be_submission, names))


def _is_unread(one: _Arrived) -> bool:
    """Whether a submission holds only files of types that are not read.

    If this is true of all submissions, none of them counts as a submission.
    """
    if one.number is not None or one.submission.sources or suffix(one.place.name) == ZIP:
        return False
    return all(isinstance(file, Other) for file in _files_of(one.place.resolve()))


# --- one path, one submission --------------------------------------------------------------------


def read_submission(student: str, path: Path) -> Submission:
    """Read all source files of a submission. Unreadable files become problems, not exceptions."""
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


# --- the last submission of each student, under a unique name -------------------------------------


def _latest(arrived: Sequence[_Arrived]) -> list[_Arrived]:
    """The last submission of each student or group; a system's number identifies them."""
    return [
        _with(
            max(own, key=lambda one: one.moment),
            attempts=max(
                len({one.moment for one in own}), *(one.submission.attempts for one in own)
            ),
        )
        for own in _of_one(arrived).values()
    ]


def _of_one(arrived: Sequence[_Arrived]) -> dict[object, list[_Arrived]]:
    found: dict[object, list[_Arrived]] = {}
    for one in arrived:
        found.setdefault(one.number or id(one), []).append(one)
    return found


def _earlier(
    arrived: Sequence[_Arrived], latest: Sequence[_Arrived], settled: Sequence[Submission]
) -> Iterator[Submission]:
    """The submissions that their students replaced, if the last one is nobody else's."""
    last = {one.submission.student: one for one in latest if one.number is not None}
    everyone = _of_one(arrived)
    for submission in settled:
        one = last.get(submission.student)
        if one is None:
            continue
        for old in everyone[one.number]:
            if old.moment < one.moment:
                yield as_earlier(
                    replace(old.submission, student=submission.student, group=submission.members)
                )


def as_earlier(submission: Submission) -> Submission:
    """The submission as one that its student replaced; its name says when, and identifies the text.

    A submission whose name is its student's keeps counting for this student.
    """
    mark = hashlib.blake2b(repr(submission.sources).encode(), digest_size=4).hexdigest()
    if submission.submitted is not None:
        mark = f"{submission.submitted:%Y-%m-%d %H:%M:%S} UTC, {mark}"
    return replace(
        submission,
        student=shown(f"{submission.student} ({mark})"),
        group=submission.members,
        earlier=True,
    )


def _named(arrived: Sequence[_Arrived], known: Mapping[str, Person]) -> list[_Arrived]:
    """Sort submissions by name; append the system's number to a name that several students have.

    A student whose number is that of a person in `known` has that person's name.
    """
    numbers: dict[str, set[object]] = {}
    names_of = {number: name for name, person in known.items() for number in _numbers(person)}
    taken = {name: {*_numbers(person)} for name, person in known.items()}
    for one in arrived:
        for name, number in _names(one):
            numbers.setdefault(name, set()).add(number or id(one))

    def unique(name: str, number: str) -> str:
        return shown(f"{name}_{number}") if number and len(numbers[name]) > 1 else name

    named = []
    for one in arrived:
        names = [unique(*own) for own in _names(one)]
        people = one.people or (Person(),)
        for place, person in enumerate(people):
            own = {*_numbers(person)}
            there = next((names_of[number] for number in own if number in names_of), None)
            if there is not None:
                names[place] = there
            elif own and taken.get(names[place]):  # a namesake, with another number
                names[place] = shown(f"{names[place]}_{next(iter(own))[1]}")
        student = one.submission.student if len(people) > 1 else names[0]
        members = dict(zip(names, people, strict=True))
        named.append(_with(replace(one, members=members), student=student))
    return sorted(named, key=lambda one: one.submission.student)


def _numbers(person: Person) -> Iterator[tuple[str, str]]:
    """The systems that know a person by a number, each with the number."""
    for system, number in (("canvas", person.canvas), ("moodle", person.moodle)):
        if number:
            yield system, number


def _names(one: _Arrived) -> list[tuple[str, str]]:
    """The name of each member, with an id that distinguishes namesakes, or ``""``."""
    if len(one.people) > 1:
        return [(shown(p.name or p.email or p.id), p.id or p.email) for p in one.people]
    return [(one.submission.student, one.number[1] if one.number else "")]


def _with(one: _Arrived, **changes: Any) -> _Arrived:
    return replace(one, submission=replace(one.submission, **changes))


# --- matching with the roster ---------------------------------------------------------------------


def _settled(
    named: Sequence[_Arrived], roster: Roster, notices: list[str], *, whole: bool
) -> Arrivals:
    """Assign each submission to students on the roster, if possible, and find the conflicts."""
    shares = [_share(one, roster) for one in named]
    one_for_all = settle_groups(shares, roster)
    notices += one_for_all.notices
    claims: dict[Claim, Person] = {}
    for number, one in enumerate(named):
        for student, person in one_for_all.members[number].items():
            place = _at(one.place)
            key = roster.find(person, student)
            claims[Claim(number, one.submission.student, place, student, key)] = person
    conflicts = {**conflicts_of(claims, roster), **one_for_all.conflicts}
    waiting, people = dict(roster.keys), dict[str, Person]()
    strangers: dict[str, Person] = {}
    members: dict[int, list[str]] = {number: [] for number in range(len(named))}
    for claim, person in claims.items():
        student, key, known = claim.student, claim.key, person
        if key is None:
            strangers[student] = person
        else:
            waiting.pop(key, None)
            listed = roster.keys[key]
            ids = {"canvas": person.canvas or listed.canvas, "moodle": person.moodle}
            known = msgspec.structs.replace(listed, **ids)
        if student in conflicts:
            # Without a grade, a student on the roster keeps the roster's key.
            people[key or student] = roster.keys[key] if key else person
        else:
            members[claim.number].append(student)
            people |= {student: known} if known != Person() else {}
    if roster.people:
        notices += [*roster.notes, *left_over(strangers, waiting, whole=whole)]
    submissions = [
        replace(one.submission, group=() if own == [one.submission.student] else tuple(own))
        for number, one in enumerate(named)
        if (own := members[number])
    ]
    return Arrivals(tuple(submissions), people | waiting, tuple(notices), conflicts)


def _share(one: _Arrived, roster: Roster) -> Share:
    """A submission with its students, and the group on the roster for which it was made."""
    submission = one.submission
    group = roster.group(submission.student)
    if group:
        return Share(submission, dict[str, Person](), group, "")
    if roster.groups and len(one.members) == 1:
        ((student, person),) = one.members.items()
        key = roster.find(person, student)
        team = next((keys for keys in roster.groups.values() if key in keys), ())
        if key is not None and len(team) > 1:
            return Share(submission, {key: person}, team, key)
    return Share(submission, one.members, (), "")


# --- notices -------------------------------------------------------------------------------------


def _summary(path: Path, made: Downloads | None, own: Sequence[_Arrived]) -> str:
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
        "resubmitted": sum(one.submission.attempts > 1 for one in own),
        "without a readable file": sum(one.submission.status != "ready" for one in own),
    }
    of_all = "".join(f", {count} {mark}" for mark, count in marks.items() if count)
    return f"{_at(path)}: a download from {made.system}: {counted(len(own), 'submission')}{of_all}"


def _look_alikes(
    own: Sequence[_Arrived], units: set[str], downloads: Sequence[Downloads]
) -> Iterator[str]:
    """Yield a notice for each student's zip in which the names look like those of a download."""
    for one in own:
        # This limit is the one for a student's archive, not for a download.
        most = files.MAX_DIRECTORY
        if one.place.is_file() and (like := _made_by(one.place, units, downloads, most)):
            yield (
                f"{_at(one.place)}: read as one student's submission, since a student can name "
                f"files in a zip as {like.system} does. If this zip is your download, unpack it, "
                "or give every zip a name such as hw1_submissions.zip"
            )


def _left_out(made: Downloads | None, names: Sequence[str]) -> Iterator[str]:
    """At most one notice, which names the files that belong to no submission."""
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
# Watches a folder in which submissions arrive.


SUBMITTED = (*SOURCES, *ARCHIVES, *DOCUMENTS, ".txt")  # a renamed source may end in .txt


def arriving(
    folder: Path,
    course: Course,
    roster: Roster,
    stop: Event,
    downloads: Sequence[Downloads] = (),
    times: Times = NO_TIMES,
) -> Iterator[Arrivals]:
    """Yield the folder's arrivals now, and after each change, until `stop` is set."""
    seen = snapshot([folder], SUBMITTED, SKIPPED)
    yield _look(folder, course, roster, downloads, times)
    for _ in saves([folder], SUBMITTED, SKIPPED, seen, stop):
        yield _look(folder, course, roster, downloads, times)


def _look(
    folder: Path, course: Course, roster: Roster, downloads: Sequence[Downloads], times: Times
) -> Arrivals:
    try:
        arrivals, _ = _arrivals([folder], course, roster, downloads, times)
        return arrivals
    except CallError as error:
        return Arrivals((), refused=str(error))
