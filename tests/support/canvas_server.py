"""A small Canvas on 127.0.0.1, with its documented REST API, and a host of files beside it.

The files' host is called ``localhost``, so that it is another host than ``127.0.0.1``. The server
records what it was asked and what it did, and fails on demand: see `Canvas.fail`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

TOKEN = "7~SeCrEtToKeNoFaTeAcHer0123456789"
COURSE, ASSIGNMENT = 12, 345
PAGE = 15  # entries of a page, whatever the client asks for

How = Literal[
    "429", "403", "400", "401", "404", "502", "forbidden", "half", "before", "after", "hang",
    "hang after",
]  # fmt: skip


@dataclass
class Fault:
    """A failure of the next requests: `before` or `after` the work, an answer cut in `half`, …"""

    method: str
    path: str  # a regular expression
    how: How
    times: int = 1
    skip: int = 0  # so many requests of this kind do not fail


@dataclass
class Canvas:
    """The state of a Canvas with one course and one assignment."""

    users: list[dict[str, Any]] = field(default_factory=list)
    submissions: dict[int, dict[str, Any]] = field(default_factory=dict)
    files: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)  # of uploaded files
    assignment: dict[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    graded: list[tuple[int, str]] = field(default_factory=list)  # user and grade, in order
    commented: list[tuple[int, str]] = field(default_factory=list)  # user and name of the page
    asked: list[str] = field(default_factory=list)  # all requests to Canvas
    foreign: list[tuple[str, str | None]] = field(default_factory=list)  # path, authorization
    faults: list[Fault] = field(default_factory=list)
    deaf: bool = False  # whether grades are accepted, and forgotten
    raw: dict[str, bytes] = field(default_factory=dict)  # answers instead of the usual, by path
    headers: dict[str, str] = field(default_factory=dict)  # of the answers in `raw`
    moved: str = ""  # where files are said to be
    url: str = ""
    files_url: str = ""
    hanging: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fail(self, method: str, path: str, how: How, times: int = 1, skip: int = 0) -> None:
        """Let the next requests of this kind fail, after some that do not."""
        self.faults.append(Fault(method, path, how, times, skip))

    def fault(self, method: str, path: str) -> How | None:
        """The failure that this request meets."""
        with self.lock:
            for one in self.faults:
                if one.method == method and one.times and re.search(one.path, path):
                    if one.skip:
                        one.skip -= 1
                        continue
                    one.times -= 1
                    return one.how
        return None

    def enrol(self, name: str, sortable: str, *files: tuple[str, bytes], **more: Any) -> int:
        """Add a student who submitted these files, and return the user's number."""
        user = 1000 + len(self.users)
        self.users.append(
            {
                "id": user,
                "name": name,
                "sortable_name": sortable,
                "sis_user_id": f"s{user}",
                "login_id": f"login{user}",
                "email": f"{user}@example.edu",
                "enrollments": [{"type": "StudentEnrollment", "course_section_id": 1 + user % 2}],
            }
        )
        attachments = [self.attach(name, data) for name, data in files]
        self.submissions[user] = {
            "id": 5 * user,
            "user_id": user,
            "assignment_id": ASSIGNMENT,
            "attempt": 1 if files else None,
            "submitted_at": "2026-11-20T10:00:00Z" if files else None,
            "workflow_state": "submitted" if files else "unsubmitted",
            "submission_type": "online_upload" if files else None,
            "body": None,
            "url": None,
            "score": None,
            "entered_score": None,
            "late": False,
            "excused": False,
            "attachments": attachments,
            "submission_comments": [],
            **more,
        }
        return user

    def attach(self, name: str, data: bytes) -> dict[str, Any]:
        """Store a file, and describe it as an attachment."""
        number = 70_000 + len(self.files)
        self.files[number] = data
        return {
            "id": number,
            "display_name": name,
            "filename": name.replace(" ", "+"),
            "size": len(data),
            "content-type": "text/x-python",
            "url": f"{self.url}/files/{number}/download?download_frd=1&verifier=abc",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer would wait for 40 ms
    canvas: Canvas

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, data: bytes = b"", half: bool = False, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if half else data)
        if half:
            self.hang_up()

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(2)

    def hang(self) -> None:
        self.canvas.hanging.set()
        self.canvas.released.wait(30)
        self.hang_up()

    def handle_one(self) -> None:
        body, canvas = self.body(), self.canvas
        how = canvas.fault(self.command, self.path)
        if how == "before":
            self.hang_up()
        elif how == "hang":
            self.hang()
        elif how == "429":
            self.answer(429, b"{}", Retry_After="7")
        elif how == "403":
            self.answer(403, b"403 Forbidden (Rate Limit Exceeded)\n")
        elif how == "forbidden":
            self.answer(403, b'{"errors":[{"message":"user not authorized"}]}')
        elif how == "401":
            self.answer(401, b'{"errors":[{"message":"Invalid access token."}]}',
                        WWW_Authenticate="Bearer")  # fmt: skip
        elif how is not None and how.isdigit():
            self.answer(int(how), b'{"errors":[{"message":"no"}]}')
        else:
            with canvas.lock:
                status, data, headers = self.work(body)
            if how == "hang after":
                self.hang()
            elif how == "after":
                self.hang_up()
            else:
                self.answer(status, data, how == "half", **headers)

    do_GET = do_POST = do_PUT = handle_one  # noqa: N815 (http.server's names)

    def work(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        raise NotImplementedError


class _Files(_Handler):
    """The other host, which keeps the files."""

    def work(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        self.canvas.foreign.append((self.path, self.headers.get("Authorization")))
        if self.command == "GET":
            return 200, self.canvas.files[int(self.path.rpartition("/")[2])], {}
        kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        parts: Any = message_from_bytes(kind + body).get_payload()
        names = [part.get_param("name", header="content-disposition") for part in parts]
        assert names == ["key", "file"], "the file is the last field"
        number = 90_000 + len(self.canvas.files)
        self.canvas.files[number] = parts[-1].get_payload(decode=True)
        name = self.canvas.names[number] = parts[-1].get_filename()
        done = f"{self.canvas.url}/api/v1/files/{number}/create_success?name={name}"
        return 303, b"", {"Location": self.canvas.moved or done}


class _Api(_Handler):
    """Canvas itself."""

    def work(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        canvas = self.canvas
        canvas.asked.append(f"{self.command} {self.path}")
        parts = urlsplit(self.path)
        if match := re.fullmatch(r"/files/(\d+)/download", parts.path):
            place = canvas.moved or f"{canvas.files_url}/kept/{match[1]}"
            return 302, b"", {"Location": place}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, b'{"errors":[{"message":"Invalid access token."}]}', {
                "WWW_Authenticate": "Bearer"
            }  # fmt: skip
        query = parse_qs(parts.query)
        path = parts.path.removeprefix("/api/v1/")
        if path in canvas.raw and self.command == "GET":
            return 200, canvas.raw[path], canvas.headers
        course = f"courses/{COURSE}"
        one = f"{course}/assignments/{ASSIGNMENT}"
        if match := re.fullmatch(r"files/(\d+)/create_success", path):
            return self.json({"id": int(match[1]), "display_name": query["name"][0]})
        if match := re.fullmatch(rf"{one}/submissions/(\d+)(/comments/files)?", path):
            return self.submission(int(match[1]), bool(match[2]), parse_qs(body.decode()))
        simple: dict[str, Callable[[], Any]] = {
            course: lambda: {"id": COURSE, "name": "Attention"},
            one: lambda: {"id": ASSIGNMENT, "course_id": COURSE, **canvas.assignment},
        }
        lists: dict[str, Callable[[], list[Any]]] = {
            f"{one}/submissions": self.all_submissions,
            f"{course}/search_users": lambda: canvas.users,
            f"{course}/sections": lambda: [{"id": n, "name": f"Lab {n}"} for n in (1, 2)],
            f"{course}/groups": lambda: canvas.groups,
        }
        if path in simple:
            return self.json(simple[path]())
        if path not in lists:
            return 404, b'{"errors":[{"message":"The specified resource does not exist."}]}', {}
        entries, start = lists[path](), int(query.get("page", ["bookmark:0"])[0].split(":")[1])
        status, data, headers = self.json(entries[start : start + PAGE])
        if start + PAGE < len(entries):
            address = f"{canvas.url}{parts.path}?page=bookmark:{start + PAGE}"
            headers = {"Link": f'<{canvas.url}{self.path}>; rel="current",<{address}>; rel="next"'}
        return status, data, headers

    def json(self, data: Any) -> tuple[int, bytes, dict[str, str]]:
        return 200, json.dumps(data).encode(), {}

    def all_submissions(self) -> list[Any]:
        users = {int(user["id"]): user for user in self.canvas.users}
        return [{**one, "user": users[n]} for n, one in self.canvas.submissions.items()]

    def submission(
        self, user: int, uploads: bool, form: dict[str, list[str]]
    ) -> tuple[int, bytes, dict[str, str]]:
        canvas, one = self.canvas, self.canvas.submissions[user]
        if uploads:
            url = f"{canvas.files_url}/upload"
            return self.json({"upload_url": url, "upload_params": {"key": form["name"][0]}})
        if self.command == "PUT":
            if "submission[posted_grade]" in form and not canvas.deaf:
                (grade,) = form["submission[posted_grade]"]
                one |= {"score": float(grade), "entered_score": float(grade), "excused": False}
                canvas.graded.append((user, grade))
            if "submission[excuse]" in form:
                one |= {"score": None, "entered_score": None, "excused": True}
                canvas.graded.append((user, "EX"))
            if "comment[text_comment]" in form:
                names = []
                for number in form["comment[file_ids][]"]:
                    page = canvas.files[int(number)]
                    names.append({"id": int(number), "display_name": canvas.names[int(number)]})
                    canvas.commented.append((user, page.decode()))
                one["submission_comments"].append({"id": 1, "attachments": names})
        return self.json(one)


@contextmanager
def served(assignment: dict[str, Any] | None = None) -> Iterator[Canvas]:
    """Run a Canvas and its host of files."""
    canvas = Canvas(assignment={"name": "Homework", "points_possible": 4.0, **(assignment or {})})
    servers = [
        ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (kind,), {"canvas": canvas}))
        for kind in (_Api, _Files)
    ]
    canvas.url = f"http://127.0.0.1:{servers[0].server_port}"
    canvas.files_url = f"http://localhost:{servers[1].server_port}"
    threads = [threading.Thread(target=s.serve_forever, args=(0.01,), daemon=True) for s in servers]
    for thread in threads:
        thread.start()
    try:
        yield canvas
    finally:
        canvas.released.set()
        for server in servers:
            server.shutdown()
            server.server_close()
