"""The connection to Canvas's REST API, through the library `canvasapi`.

Only `_Courier` knows the token: it adds the token to requests to Canvas's own host, and to no
others. `canvasapi`, whose objects and logs may show what they hold, gets a stand-in. The courier
also gives every request its time limits, waits if Canvas says that requests come too fast, and
repeats requests that change nothing. A request that changes something is never repeated here: its
caller first looks whether Canvas did the work.

Answers are read as JSON here, and not by `canvasapi`'s objects, which take every text that looks
like a date for a date, and cannot read some of them.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NoReturn, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from grader.intake.names import shown, well_formed
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
MOST_HOST, MOST_LABEL = 253, 63  # characters of a host's name, and of its parts
PAGE = 100  # entries of a list's page that are asked for
BUSY = (500, 502, 503, 504)
MOST_SAID = 300  # characters of Canvas's own words in a line
# What an odd answer raises here or in the libraries; ValueError is for addresses and numbers.
ODD = (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError, HTTPError)
MOVED = (201, 301, 302, 303, 307, 308)

Tell = Callable[[str], None]
Pause = Callable[[float], None]
T = TypeVar("T")
Field = tuple[str, str | int]  # a name and a value in a request


class CanvasRefused(CallError):
    """Canvas refused a single request; the text gives the reason."""


class NotAllowed(CanvasRefused):
    """The token's owner lacks the right to do this."""


class _Courier(HTTPAdapter):
    """Sends all requests of a session; with a token, to the host of `url` only."""

    def __init__(self, url: str, token: str | None, tell: Tell, pause: Pause) -> None:
        super().__init__()
        self._origin, self._token = _origin(url), token
        self._tell, self._pause = tell, pause

    def send(self, request: Any, stream: bool = False, *_: Any, **options: Any) -> Any:
        """Send a request, and again after a pause; raises `requests.RequestException`."""
        place = _parts(request.url)
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


def _parts(url: str) -> SplitResult:
    """The parts of an address; raises `requests.exceptions.InvalidURL`, also for a wrong port."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise requests.exceptions.InvalidURL(str(error)) from None
    return parts


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = _parts(url)
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
    """A connection to one Canvas, with the rights of the token's owner; see `canvas_at`."""

    def __init__(self, url: str, token: str, tell: Tell, pause: Pause | None = None) -> None:
        self.url = url
        self._pause: Pause = pause or sleep
        self._tell = tell
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

    def pause(self, turn: int) -> None:
        """Wait before a further try."""
        self._pause(_seconds("", turn))

    def one(self, what: str, path: str, kind: type[T], *fields: Field) -> T:
        """The data at a path below the API's address; raises as `asking` does."""
        with self.asking(what):
            return _converted(_json(self._asked("GET", path, fields).content), kind)

    def every(self, what: str, path: str, kind: type[T], *fields: Field) -> list[T]:
        """All entries of a paged list; an entry of an unknown form is reported, and left out."""
        found: list[T] = []
        odd = ""
        with self.asking(what):
            answer = self._asked("GET", path, (("per_page", PAGE), *fields))
            seen: set[str] = set()
            while True:
                for entry in _converted(_json(answer.content), list[Any]):
                    try:
                        found.append(_converted(entry, kind))
                    except msgspec.ValidationError as error:
                        odd = self._said(f"{_called(entry)} has an unknown form: {error}")
                        self._tell(f"{what}: the entry {odd}; it is left out")
                address = answer.links.get("next", {}).get("url")
                if address is None:
                    break
                if _origin(address) != _origin(self.url):
                    raise msgspec.ValidationError("the next page has another address")
                if address in seen:
                    raise msgspec.ValidationError("the list's pages never end")
                seen.add(address)
                answer = self._requester.request("GET", _url=address)
            if odd and not found:
                raise msgspec.ValidationError(f"the entry {odd}")
        return found

    def change(self, what: str, path: str, kind: type[T], *fields: Field) -> T:
        """Change the data at a path, and return it as it is then; raises as `asking` does."""
        with self.asking(what):
            return _converted(_json(self._asked("PUT", path, fields).content), kind)

    def _asked(self, method: str, path: str, fields: Sequence[Field]) -> requests.Response:
        answer: requests.Response = self._requester.request(method, path, _kwargs=[*fields])
        return answer

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turn the errors of a request about `what` into exceptions with one clear line.

        Raises `CallError` for a wrong token, its subclasses `NotAllowed` for missing rights and
        `CanvasRefused` if only this request was wrong, and `Unreachable` if it is unknown whether
        the work was done.
        """
        try:
            yield
        except exceptions.InvalidAccessToken:
            raise CallError(
                f"{self.url} does not accept the token: it expired, or it is of another Canvas. "
                f"Make one in Canvas (Account, Settings, New Access Token), and set {TOKEN}"
            ) from None
        except (exceptions.Unauthorized, exceptions.Forbidden) as error:
            raise NotAllowed(
                f"Canvas does not let the token's owner do this ({what}): only a teacher of the "
                "course may. If the assignment has moderated grading, first publish its grades in "
                f"Canvas. Canvas says: {self._said(error)}"
            ) from None
        except exceptions.ResourceDoesNotExist:
            raise CanvasRefused(
                f"Canvas does not know {what}, or hides it from the token's owner; the numbers are "
                "in the address of the assignment's page: /courses/COURSE/assignments/ASSIGNMENT"
            ) from None
        except (exceptions.BadRequest, exceptions.Conflict, exceptions.UnprocessableEntity) as e:
            raise CanvasRefused(f"Canvas refused it ({what}): {self._said(e)}") from None
        except (exceptions.CanvasException, requests.RequestException) as error:
            raise Unreachable(
                f"{self.url} gave no whole answer ({what}; {type(error).__name__}): run the same "
                "command again, it goes on where it stopped"
            ) from None
        except ODD as error:
            raise Unreachable(
                f"{self.url} gave an answer of an unknown form ({what}): is this the address that "
                f"your browser shows in Canvas? {self._said(error)}"
            ) from None

    def _said(self, words: object) -> str:
        return shown(self._courier.without_token(str(words))[:MOST_SAID])

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
                raise CanvasRefused(f"it cannot be downloaded (status {answer.status_code})")
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
            permit = _converted(_json(answer.content), _Permit)
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
            text = sent.content.removeprefix(b"while(1);")  # in answers meant for browsers
            return _converted(_json(text), _Uploaded).id


def _json(data: bytes) -> Any:
    """An answer's JSON, in well-formed text; msgspec's own reader refuses single surrogates."""
    found = json.loads(data, parse_constant=_no_number)
    if b"\\ud" not in data.lower():
        return found
    return json.loads(well_formed(json.dumps(found, ensure_ascii=False)))


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _converted(found: Any, kind: type[T]) -> T:
    """JSON as data; some Canvases write numbers as text."""
    return msgspec.convert(found, kind, strict=False)


def _called(entry: Any) -> str:
    """What names an entry of a list in a message."""
    known = entry if isinstance(entry, dict) else {}
    return shown(str(known.get("user_id") or known.get("name") or known.get("id") or entry))[:80]


class _Permit(msgspec.Struct):
    upload_url: str
    upload_params: dict[str, Any]


class _Uploaded(msgspec.Struct):
    id: int


def canvas_at(url: str | None, tell: Tell) -> Api:
    """Connect to Canvas at an address, or at the one in the environment.

    `tell` gets a line when a pause begins. Raises `CallError` if the address or the token is
    missing, or if the address is not encrypted.
    """
    given = (url or os.environ.get(URL, "")).strip()
    if not given:
        raise CallError(f"where is your Canvas? --url https://canvas.example.edu, or set {URL}")
    try:
        parts = _parts(given if "://" in given else f"https://{given}")
    except requests.exceptions.InvalidURL:
        parts = urlsplit("")
    host = parts.hostname or ""
    whole = given.isprintable() and " " not in given
    named = 0 < len(host) <= MOST_HOST and all(len(part) <= MOST_LABEL for part in host.split("."))
    if "@" in parts.netloc or not whole or not named or parts.scheme not in ("https", "http"):
        text = shown(given.rpartition("@")[2][:MOST_HOST])
        raise CallError(f"{text!r} is no address of a Canvas")
    if parts.scheme == "http" and host not in LOCAL:
        raise CallError(f"the token is not sent unencrypted: write https://{parts.netloc}")
    return Api(f"{parts.scheme}://{parts.netloc}", _token(host), tell)


def _token(host: str) -> str:
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        try:
            token = keyring.get_password(SERVICE, host) or ""
        except Exception:  # a keyring may be any library, and may be missing or locked
            token = ""
    if not token:
        raise CallError(
            f"there is no token for {host}: make one in Canvas (Account, Settings, New Access "
            f"Token), and set {TOKEN}, or store it: keyring set {SERVICE} {host}"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CallError(f"the token for {host} is not one line of letters: copy it again")
    return token
