"""Fetches an assignment's submissions from Canvas into a folder that `grader grade` reads.

The files in ``submissions/`` have the names of Canvas's own download. Each file is written
completely or not at all, and files that are there are kept: after an interruption, the same call
goes on.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from grader.intake.files import MAX_ARCHIVE, MAX_FILE, MAX_FILES
from grader.intake.names import ARCHIVES, shown, suffix, well_formed
from grader.intake.roster import NOBODYS
from grader.lms.canvas import user_of
from grader.lms.canvas_api import Api, CanvasRefused
from grader.records.faults import CallError, Unreachable
from grader.records.files import remove_left, require_empty, write_whole
from grader.records.rows import called, counted, csv_line
from grader.records.times import written_time

SUBMISSIONS, ROSTER, TIMES = "submissions", "roster.csv", "times.csv"
ORIGIN = "canvas.json"  # says which assignment the folder holds
ANONYMOUS = "anon"  # begins the names of submissions that are graded anonymously
NAME_BYTES, WHO_BYTES = 130, 50  # of a file's own name, and of a student's name in front of it


class Attachment(msgspec.Struct):
    """A file of a submission or of a comment."""

    id: int
    display_name: str | None = None
    filename: str | None = None
    size: int | None = None  # bytes
    url: str | None = None

    @property
    def name(self) -> str:
        """The name that Canvas shows."""
        return self.display_name or self.filename or "file"


class _Enrollment(msgspec.Struct):
    course_section_id: int | None = None


class User(msgspec.Struct):
    """A person in Canvas; Canvas hides some fields from some teachers."""

    id: int
    name: str | None = None
    sortable_name: str | None = None
    sis_user_id: str | int | None = None
    login_id: str | int | None = None
    email: str | None = None
    enrollments: list[_Enrollment] | None = None


class _Submission(msgspec.Struct):
    """A student's newest attempt."""

    user_id: int
    user: User | None = None
    submitted_at: datetime | None = None
    submission_type: str | None = None
    late: bool | None = None
    body: str | None = None
    url: str | None = None
    attachments: list[Attachment] | None = None


class _Named(msgspec.Struct):
    id: int
    name: str | None = None


class _Group(msgspec.Struct):
    name: str | None = None
    group_category_id: int | None = None
    users: list[User] | None = None


class CanvasAssignment(msgspec.Struct):
    """An assignment of a course in Canvas."""

    id: int
    name: str
    grading_type: str | None = None
    points_possible: float | None = None
    group_category_id: int | None = None
    grade_group_students_individually: bool | None = None
    anonymize_students: bool | None = None

    @property
    def grades_groups(self) -> bool:
        """Whether a grade for one student counts for all members of the group."""
        return self.group_category_id is not None and not self.grade_group_students_individually


@dataclass(frozen=True)
class Item:
    """A file to write: an attachment to download, or the text that a student typed."""

    student: str
    name: str
    attachment: Attachment | None = None
    text: bytes = b""


@dataclass(frozen=True)
class Inventory:
    """What Canvas has of an assignment."""

    path: str  # of the assignment, below the API's address
    origin: Mapping[str, str | int]
    items: Sequence[Item]
    students: frozenset[str]  # Canvas's ids of the students in the list of submissions
    roster: str
    times: str


@dataclass(frozen=True)
class Fetched:
    """What a call of `fetch` did; the counts are numbers of files."""

    new: int
    kept: int
    removed: int  # of earlier attempts
    failed: int  # that another try may fetch
    left_out: Sequence[str]  # a line for each file that was not fetched


def path_of(course: int, number: int) -> str:
    """An assignment's path below the API's address."""
    return f"courses/{course}/assignments/{number}"


def find_assignment(api: Api, course: int, number: int) -> CanvasAssignment:
    """An assignment; raises `CallError` if its students are anonymous, and as `Api.asking` does."""
    what = f"assignment {number} in course {course}"
    found = api.one(what, path_of(course, number), CanvasAssignment)
    if found.anonymize_students:
        raise CallError(
            f"{shown(found.name)!r} is graded anonymously, so Canvas hides whose a submission is: "
            "switch anonymous grading off, or use Canvas's download and its gradebook's CSV"
        )
    return found


def list_submissions(api: Api, course: int, number: int) -> Inventory:
    """Ask Canvas for the submissions, people, sections and groups of an assignment."""
    assignment, its = find_assignment(api, course, number), f"courses/{course}/"
    users, where = ("include[]", "user"), f"{path_of(course, number)}/submissions"
    found = api.every("the list of submissions", where, _Submission, users)
    submissions = [one for one in found if one.user is None or not _is_nobody(one.user)]
    fields = [
        ("enrollment_type[]", "student"),
        ("include[]", "email"),
        ("include[]", "enrollments"),
    ]
    listed = api.every("the list of students", f"{its}search_users", User, *fields)
    people = [user for user in listed if not _is_nobody(user)]
    if not people:
        raise CallError(f"Canvas lists no students in course {course}")
    named = api.every("the list of sections", f"{its}sections", _Named)
    sections = {one.id: one.name or str(one.id) for one in named}
    groups: dict[int, str] = {}
    if assignment.group_category_id is not None:
        members = ("include[]", "users")
        for group in api.every("the list of groups", f"{its}groups", _Group, members):
            if group.group_category_id == assignment.group_category_id:
                groups |= {user.id: group.name or "" for user in group.users or ()}
    return Inventory(
        path_of(course, number),
        {"url": api.url, "course": course, "assignment": number},
        _items(submissions, {user.id: user for user in people}),
        frozenset(str(one.user_id) for one in submissions),
        _roster(people, sections, groups),
        _times(submissions),
    )


def _is_nobody(user: User) -> bool:
    """Whether this is the student as whom a teacher looks at a course."""
    return user.sortable_name in NOBODYS


def _items(submissions: Sequence[_Submission], people: Mapping[int, User]) -> list[Item]:
    items: list[Item] = []
    seen: set[int] = set()  # each member of a group has the same files: the roster has the group
    for one in submissions:
        user = one.user or people.get(one.user_id) or User(one.user_id)
        who = "".join(c for c in (user.sortable_name or user.name or "").lower() if c.isalpha())
        if who == ANONYMOUS:
            who += "-"  # a person's name, and no pseudonym
        start = f"{_cut(who, WHO_BYTES)}{'_LATE' * bool(one.late)}_{one.user_id}"
        student = called(str(one.user_id), shown(user.name or ""))
        for file in one.attachments or ():
            if file.id not in seen:
                items.append(Item(student, f"{start}_{file.id}_{_file_name(file.name)}", file))
            seen.add(file.id)
        typed = {"online_text_entry": ("text", one.body), "online_url": ("link", one.url)}
        kind, text = typed.get(one.submission_type or "", ("", None))
        if text:
            page = text if kind == "text" else f"<p>{html.escape(text)}</p>"
            data = well_formed(f"<html><body>{page}</body></html>").encode()
            items.append(Item(student, f"{start}_{kind}.html", text=data))
    return items


def _file_name(name: str) -> str:
    """A student's name for a file, without characters that lead elsewhere, in bounded length."""
    text = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "-" for c in name)
    text = text.rstrip(". ") or "file"
    end = suffix(text)[:20]
    return text if len(text.encode()) <= NAME_BYTES else _cut(text, NAME_BYTES - 80) + end


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def _roster(people: Sequence[User], sections: Mapping[int, str], groups: Mapping[int, str]) -> str:
    """The class as a roster; if Canvas shows no student's SIS id, its own ids stand in."""
    has_ids = any(user.sis_user_id for user in people)
    header = ["name", "id", "email", "login", "section", "canvas id", *["group"] * bool(groups)]
    lines = [csv_line(header)]
    for user in people:
        numbers = dict.fromkeys(one.course_section_id or 0 for one in user.enrollments or ())
        cells = [
            user.name or "",
            str(user.sis_user_id or "") if has_ids else str(user.id),
            user.email or "",
            str(user.login_id or ""),
            " and ".join(sections[n] for n in numbers if n in sections),
            str(user.id),
            *[groups.get(user.id, "")] * bool(groups),
        ]
        lines.append(csv_line(cells))
    return "".join(lines)


def _times(submissions: Sequence[_Submission]) -> str:
    """The times of the submissions, by Canvas's numbers: a name or an id may be another's id."""
    lines = [csv_line(["canvas id", "time"])]
    for one in submissions:
        if one.submitted_at:
            lines.append(csv_line([str(one.user_id), written_time(one.submitted_at)]))
    return "".join(lines)


def fetch(api: Api, listing: Inventory, to: Path, advance: Callable[[], None]) -> Fetched:
    """Write a listing into a folder, and call `advance` after each file.

    A file that cannot be downloaded does not keep the others back. Raises `CallError` if the folder
    holds something else, and `Unreachable` if Canvas itself does not answer any more.
    """
    _begin(to, listing)
    folder = to / SUBMISSIONS
    folder.mkdir(mode=0o700, exist_ok=True)
    wanted = {item.name for item in listing.items}
    old = [p for p in folder.iterdir() if p.name not in wanted
           and user_of(p.name) in listing.students]  # fmt: skip
    for path in old:
        path.unlink()
    write_whole(to / ROSTER, listing.roster.encode())
    write_whole(to / TIMES, listing.times.encode())
    new = kept = failed = 0
    left_out: list[str] = []
    files: dict[str, int] = {}
    for item in listing.items:
        files[item.student] = files.get(item.student, 0) + 1
        path = folder / item.name
        what = f"{item.student}: {shown(item.attachment.name if item.attachment else item.name)}"
        size = len(item.text) if item.attachment is None else item.attachment.size
        why = _too_much(item, size, files[item.student])
        if why:
            left_out.append(f"{what} is left out: {why}")
        elif _is_there(path, item, size):
            kept += 1
        else:
            try:
                write_whole(path, item.text or _content(api, item.attachment, what))
                new += 1
            except CanvasRefused as error:
                left_out.append(f"{what} is left out: {error}")
            except Unreachable as error:
                left_out.append(f"{what} is missing: {error}")
                failed += 1
                # Go on if only this file's host does not answer: this raises if Canvas does not.
                api.one("the assignment", listing.path, CanvasAssignment)
        advance()
    return Fetched(new, kept, len(old), failed, left_out)


def _is_there(path: Path, item: Item, size: int | None) -> bool:
    """Whether a file was fetched before; typed text can change without changing its size."""
    if not path.is_file() or path.stat().st_size != size:
        return False
    return item.attachment is not None or path.read_bytes() == item.text


def _begin(to: Path, listing: Inventory) -> None:
    """Create the folder, and remember whose it is; refuse the folder of anything else."""
    origin = msgspec.json.encode(listing.origin)
    mark = to / ORIGIN
    remove_left(mark)
    if mark.is_file():
        if mark.read_bytes() != origin:
            raise CallError(f"{to} holds another assignment of Canvas: name another folder")
    else:
        require_empty(to)
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(mark, origin)


def _too_much(item: Item, size: int | None, files: int) -> str:
    """Why a file is not fetched, as the grader would not read it; "" if it is."""
    most = MAX_ARCHIVE if suffix(item.name) in ARCHIVES else MAX_FILE
    if size is None or not 0 <= size <= most:
        return f"it is larger than {counted(most / 2**20, 'MiB').removesuffix('s')}"
    return f"more than {MAX_FILES} files" if files > MAX_FILES else ""


def _content(api: Api, attachment: Attachment | None, what: str) -> bytes:
    if attachment is None or attachment.size is None or not attachment.url:
        raise CanvasRefused("Canvas gives no address for it")
    return api.download(attachment.url, attachment.size, what)
