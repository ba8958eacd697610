"""The connection to Canvas's REST API, through the library `canvasapi`.

Only `_Courier` knows the token: it adds the token to requests to Canvas's own host, and to no
others. `canvasapi`, whose objects and logs may show what they hold, gets a stand-in. The courier
also gives every request its time limits, waits if Canvas says that requests come too fast, and
repeats requests that change nothing. A request that changes something is never repeated here: its
caller first looks whether Canvas did the work.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from grader.intake.names import shown
from grader.records.faults import CallError, Unreachable

try:
    import canvasapi
    import keyring
    import requests
    from canvasapi import exceptions
    from requests.adapters import HTTPAdapter
    from urllib3.exceptions import HTTPError
except ModuleNotFoundError as _error:
    raise CallError(
        f"Canvas needs {_error.name}, which is missing: pip install 'attention-grader[canvas]'"
    ) from None

TOKEN, URL = "CANVAS_TOKEN", "CANVAS_URL"  # environment variables
SERVICE = "attention-grader"  # in the keyring; the user is Canvas's host
STAND_IN = "the token is added later"
LOCAL = ("127.0.0.1", "localhost")  # the only hosts that may be asked without encryption

TIMEOUT = (10.0, 60.0)  # seconds until a connection, and between two parts of an answer
LONGEST = 600.0  # seconds of one download
TURNS = 8  # times that a request is tried
TRIES = 3  # times that a download, or a change that may have been made, is tried
PAUSE = 60.0  # seconds of the longest pause
BUSY = (500, 502, 503, 504)
MOVED = (201, 301, 302, 303, 307, 308)

Tell = Callable[[str], None]
Pause = Callable[[float], None]
T = TypeVar("T")


class Refused(CallError):
    """Canvas refused a single request; the text gives the reason."""


class _Courier(HTTPAdapter):
    """Sends all requests of a session; with a token, to the host of `url` only."""

    def __init__(self, url: str, token: str | None, tell: Tell, pause: Pause) -> None:
        super().__init__()
        self._origin, self._token = _origin(url), token
        self._tell, self._pause = tell, pause

    def send(self, request: Any, stream: bool = False, *_: Any, **options: Any) -> Any:
        """Send a request, and again after a pause; raises `requests.RequestException`."""
        place = urlsplit(request.url)
        if place.scheme != "https" and place.hostname not in LOCAL:
            raise requests.exceptions.InvalidURL("not https")
        own = self._token is not None and _origin(request.url) == self._origin
        for turn in range(1, TURNS + 1):
            why, asked = "Canvas does not answer", ""
            try:
                response = self._sent(request, stream, own, **{**options, "timeout": TIMEOUT})
            except (requests.ConnectionError, requests.Timeout, _CutOff):
                if request.method != "GET" or turn >= TRIES:
                    raise
            else:
                busy = response.status_code in BUSY and request.method == "GET" and turn < TRIES
                throttled = _is_throttled(response)
                if not busy and not throttled:
                    return response
                if throttled:
                    why, asked = "Canvas asks for a pause", response.headers.get("Retry-After", "")
                response.close()
            seconds = _seconds(asked, turn)
            self._tell(f"{why}: waiting for {seconds:.0f} s")
            self._pause(seconds)
        raise requests.exceptions.RetryError("too many requests")

    def _sent(self, request: Any, stream: bool, own: bool, **options: Any) -> requests.Response:
        request.headers.pop("Authorization", None)
        if own:
            request.headers["Authorization"] = f"Bearer {self._token}"
        try:
            response = super().send(request, stream, **options)
            if not stream:
                _ = response.content  # fails here if the answer is cut off
            return response
        finally:
            # Errors and answers keep the request: they shall not keep the token.
            request.headers.pop("Authorization", None)

    def without_token(self, text: str) -> str:
        """A text without the token, should the text have it."""
        return text.replace(self._token, "…") if self._token else text


_CutOff = requests.exceptions.ChunkedEncodingError


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443}.get(parts.scheme, 80)


def _is_throttled(response: requests.Response) -> bool:
    """Whether requests come too fast: status 429, or 403 with these words in older Canvases."""
    if response.status_code == 429:
        return True
    return response.status_code == 403 and "rate limit exceeded" in response.text.lower()


def _seconds(asked: str, turn: int) -> float:
    """The pause that Canvas asks for, or else a pause that grows with each turn."""
    try:
        return min(max(1.0, float(asked)), PAUSE)
    except ValueError:
        return min(2.0**turn, PAUSE)


class Api:
    """A connection to one Canvas, with the rights of the token's owner; see `connected`."""

    def __init__(self, url: str, token: str, tell: Tell, pause: Pause | None = None) -> None:
        self.url = url
        self._pause: Pause = pause or sleep
        self._courier = _Courier(url, token, tell, self._pause)
        with warnings.catch_warnings(action="ignore"):  # about http, which only tests use
            self._canvas = canvasapi.Canvas(url, STAND_IN)
        # canvasapi has no public way to its session.
        self._requester = self._canvas._Canvas__requester
        self._session: requests.Session = self._requester._session
        self._bare = requests.Session()  # for uploads, which carry a permit instead of the token
        for session, courier in (
            (self._session, self._courier),
            (self._bare, _Courier(url, None, tell, self._pause)),
        ):
            session.mount("https://", courier)
            session.mount("http://", courier)

    def course(self, number: int) -> Any:
        """A course, as an object of canvasapi; raises as `asking` does."""
        with self.asking(f"course {number}"):
            return self._canvas.get_course(number)

    def pause(self, turn: int) -> None:
        """Wait before a further try."""
        self._pause(_seconds("", turn))

    def every(self, pages: Iterable[Any], kind: type[T]) -> list[tuple[T, Any]]:
        """All entries of a paged list as data of a kind, each with canvasapi's own object."""
        with self.asking("a list"):
            try:
                return [(self.data(one, kind), one) for one in pages]
            except AttributeError:  # raised by canvasapi
                raise msgspec.ValidationError("the next page has another address") from None

    def data(self, found: Any, kind: type[T]) -> T:
        """An object of canvasapi as data."""
        return msgspec.convert(vars(found), kind, from_attributes=True)

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turn the errors of a request about `what` into exceptions with one clear line.

        Raises `CallError` for a wrong token or missing rights, its subclass `Refused` if only this
        request was wrong, and `Unreachable` if it is unknown whether the work was done.
        """
        try:
            yield
        except exceptions.InvalidAccessToken:
            raise CallError(
                f"{self.url} does not accept the token: it expired, or it is of another Canvas. "
                f"Make one in Canvas (Account, Settings, New Access Token), and set {TOKEN}"
            ) from None
        except (exceptions.Unauthorized, exceptions.Forbidden) as error:
            raise CallError(
                f"Canvas does not let the token's owner do this ({what}): only a teacher of the "
                "course may. If the assignment has moderated grading, first publish its grades in "
                f"Canvas. Canvas says: {self._said(error)}"
            ) from None
        except exceptions.ResourceDoesNotExist:
            raise Refused(
                f"Canvas knows no {what}, or hides it from the token's owner; the numbers are in "
                "the address of the assignment's page: /courses/COURSE/assignments/ASSIGNMENT"
            ) from None
        except (exceptions.BadRequest, exceptions.Conflict, exceptions.UnprocessableEntity) as e:
            raise Refused(f"Canvas refused it ({what}): {self._said(e)}") from None
        except (exceptions.CanvasException, requests.RequestException) as error:
            raise Unreachable(
                f"{self.url} gave no whole answer ({what}; {type(error).__name__}): run the same "
                "command again, it goes on where it stopped"
            ) from None
        except msgspec.MsgspecError as error:
            raise Unreachable(
                f"{self.url} gave an answer of an unknown form ({what}): is this the address that "
                f"your browser shows in Canvas? {self._said(error)}"
            ) from None

    def _said(self, error: Exception) -> str:
        return shown(self._courier.without_token(str(error)))

    # --- files -----------------------------------------------------------------------------------

    def download(self, url: str, size: int, what: str) -> bytes:
        """A file of this many bytes, which may be at another host; raises as `asking` does."""
        for turn in range(1, TRIES + 1):
            try:
                with self.asking(what):
                    return self._downloaded(url, size)
            except Unreachable:
                if turn == TRIES:
                    raise
                self.pause(turn)
        raise AssertionError("the last turn returns or raises")

    def _downloaded(self, url: str, size: int) -> bytes:
        end = monotonic() + LONGEST
        found = bytearray()
        plain = {"Accept-Encoding": "identity"}
        with self._session.get(url, stream=True, headers=plain) as answer:
            if answer.status_code >= 400:
                if answer.status_code in BUSY:
                    raise requests.ConnectionError
                raise Refused(f"it cannot be downloaded (status {answer.status_code})")
            try:
                # read1 returns what is there, so that a slow host cannot delay the look at the
                # clock.
                while len(found) <= size and (part := answer.raw.read1(2**16)):
                    found += part
                    if monotonic() > end:
                        raise requests.Timeout
            except HTTPError as error:  # of urllib3: cut off, or no more data in time
                raise _CutOff(type(error).__name__) from None
        if len(found) != size:
            raise _CutOff("another length")
        return bytes(found)

    def upload(self, to: str, name: str, data: bytes) -> int:
        """Upload an HTML page, and return its number in Canvas; raises as `asking` does.

        `to` is the address, below the API's, that takes files for this purpose.
        """
        with self.asking(f"the upload of {name}"):
            answer = self._requester.request(
                "POST", to, name=name, size=len(data), content_type="text/html"
            )
            permit = msgspec.convert(answer.json(), _Permit)
            # requests writes the fields of a form before its file, as the permit demands.
            sent = self._bare.post(
                permit.upload_url,
                data=permit.upload_params,
                files={"file": (name, data, "text/html")},
                allow_redirects=False,
            )
            if sent.status_code in MOVED and "Location" in sent.headers:
                sent = self._session.get(urljoin(permit.upload_url, sent.headers["Location"]))
            if sent.status_code >= 400:
                raise requests.HTTPError
            text = sent.text.removeprefix("while(1);")  # in answers that are meant for browsers
            return msgspec.json.decode(text, type=_Uploaded).id


class _Permit(msgspec.Struct):
    upload_url: str
    upload_params: dict[str, Any]


class _Uploaded(msgspec.Struct):
    id: int


def connected(url: str | None, tell: Tell) -> Api:
    """Connect to Canvas at an address, or at the one in the environment.

    `tell` gets a line when a pause begins. Raises `CallError` if the address or the token is
    missing, or if the address is not encrypted.
    """
    given = (url or os.environ.get(URL, "")).strip()
    if not given:
        raise CallError(f"where is your Canvas? --url https://canvas.example.edu, or set {URL}")
    parts = urlsplit(given if "://" in given else f"https://{given}")
    host = parts.hostname or ""
    if "@" in parts.netloc or not host or parts.scheme not in ("https", "http"):
        raise CallError(f"{shown(given.rpartition('@')[2])!r} is no address of a Canvas")
    if parts.scheme == "http" and host not in LOCAL:
        raise CallError(f"the token is not sent unencrypted: write https://{parts.netloc}")
    return Api(f"{parts.scheme}://{parts.netloc}", _token(host), tell)


def _token(host: str) -> str:
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        try:
            token = keyring.get_password(SERVICE, host) or ""
        except keyring.errors.KeyringError:
            token = ""  # this computer has no keyring, or it is locked
    if not token:
        raise CallError(
            f"there is no token for {host}: make one in Canvas (Account, Settings, New Access "
            f"Token), and set {TOKEN}, or store it: keyring set {SERVICE} {host}"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CallError(f"the token for {host} is not one line of letters: copy it again")
    return token
