"""A student at `grader watch`: a course, a checker without torch, a screen, and lines."""

from __future__ import annotations

import asyncio
import html
import io
import re
import shutil
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    redirect_stdout,
    suppress,
)
from pathlib import Path

from grader.course.course import Course, load_course
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult, Picture, TestResult
from grader.student.checking import Checker, Checks
from grader.student.lesson import Lesson
from grader.student.progress import FILE
from grader.student.watch.plain import watch
from grader.student.watch.screen import WatchApp
from tests.support.places import TINY

DEADLINE = 60  # seconds; an idle machine needs a fraction of a second
OpenChecks = Callable[[], AbstractContextManager[Checker]]
CELL = 12.2  # how wide a column is in a screenshot
HINTS = '["Which mean?", "Which axis?", "x - x.mean()"]'


def until(condition: Callable[[], object]) -> None:
    """Wait for another thread or process."""
    end = time.monotonic() + DEADLINE
    tick = threading.Event()
    while not condition():
        assert time.monotonic() < end
        tick.wait(0.005)


# --- a course ------------------------------------------------------------------------------------


def copied(to: Path, *, first_run: bool) -> Course:
    shutil.copytree(TINY, to / "tiny")
    folder = to / "tiny" / "exercises"
    toml = (folder / "course.toml").read_text("utf-8")
    (folder / "course.toml").write_text(re.sub(r"hints = \[.*\]", f"hints = {HINTS}", toml))
    if not first_run:
        (folder / FILE).touch()
    return load_course(folder)


def with_stubs(course: Course) -> Course:
    """The course, with the untouched stubs that a bundle has."""
    stubs = course.recorded / "stubs"
    stubs.mkdir(parents=True)
    for unit in course.units:
        shutil.copy(course.stub_file(unit.name), stubs)
    return course


# --- a checker without torch ---------------------------------------------------------------------

PICTURE = Picture(
    ((True, False), (True, True)),
    ((True, True), (True, True)),
    ((False, True), (False, False)),
    rows=2,
    columns=2,
)
NUMBERS = Picture(
    tuple((0.25, -0.5, 1.5, 0.0, 12.0, -0.75) for _ in range(6)),
    tuple((0.25, -0.5, 1.5, 0.0, 12.0, -0.33) for _ in range(6)),
    tuple((False,) * 5 + (True,) for _ in range(6)),
    rows=6,
    columns=6,
)
EVIL = "[bold]loud[/bold] \x1b[31mred"  # markup and an escape sequence, which mean nothing here


class Fake(Checker):
    """It reads the verdicts from comments in the file, such as ``# center: right``."""

    def __init__(self, course: Course) -> None:
        self.course = course

    def check(self, names: Sequence[str] = ()) -> list[ExerciseResult]:
        return [self._check(name) for name in names]

    def _check(self, name: str) -> ExerciseResult:
        unit = self.course.unit_of[name]
        text = self.course.stub_file(unit).read_text("utf-8")
        match re.findall(rf"^# {name}: (\w+)", text, re.MULTILINE)[-1:]:
            case ["right"]:
                tests = [TestResult("exists", "It is there", "passed")]
            case ["wrong"]:
                tests = [
                    TestResult("exists", "It is there", "passed"),
                    TestResult(
                        "value",
                        "It is right",
                        "failed",
                        message=f"not so: {EVIL}",
                        mistake="The mean is added",
                        hint="What remains?",
                        picture=PICTURE,
                    ),
                ]
            case ["numbers"]:
                off = TestResult("value", "It is right", "failed", message="off", picture=NUMBERS)
                tests = [TestResult("exists", "It is there", "passed"), off]
            case ["fault"]:
                raise HostFault("the moon is full")
            case ["stop"]:
                raise KeyboardInterrupt
            case ["call"]:
                raise CallError("there is no .py file")
            case ["bug"]:
                raise ZeroDivisionError("division by zero")
            case _:
                tests = [TestResult("exists", "It is there", "missing", message="still the stub")]
        return ExerciseResult(name, unit, 0, 1, tuple(tests))


def fake(course: Course) -> OpenChecks:
    @contextmanager
    def opened() -> Iterator[Checker]:
        yield Fake(course)

    return opened


def save(course: Course, found: str, name: str = "center") -> None:
    """Save an answer to an exercise, as most editors do: a new file replaces the old one."""
    path = course.stub_file(course.unit_of[name])
    draft = path.with_suffix(".draft")
    text = path.read_text("utf-8")
    draft.write_text(f"{text}\n{name} = {len(text)}\n# {name}: {found}\n", "utf-8")
    draft.replace(path)


# --- the screen ----------------------------------------------------------------------------------


class Desk:
    """The app as a person uses it: press keys, read text."""

    def __init__(self, app: WatchApp, pilot: object) -> None:
        self.app = app
        self._pilot = pilot

    @property
    def current(self) -> str:
        """The current exercise."""
        return self.app.board.current

    @property
    def svg(self) -> str:
        return self.app.export_screenshot()

    @property
    def text(self) -> str:
        """The lines of the screen."""
        lines: dict[float, list[tuple[float, str]]] = {}
        for tag, inner in re.findall(r"<text([^>]*)>([^<]*)</text>", self.svg):
            x, y = (float(re.findall(rf'\b{axis}="([\d.]+)"', tag)[0]) for axis in "xy")
            if "clip-path" in tag:  # the window's title has none
                lines.setdefault(y, []).append(
                    (x, html.unescape(inner).replace("\xa0", " ").rstrip("\n"))
                )
        return "\n".join(_line(sorted(lines[y])) for y in sorted(lines))

    @property
    def contrasts(self) -> dict[str, float]:
        """The contrast of each piece of text: 1 is invisible, 21 is black on white."""
        found: dict[str, float] = {}
        for text, colour, ground in self._coloured():
            found[text] = min(contrast(colour, ground), found.get(text, 21))
        return found

    def colours(self, text: str) -> set[str]:
        """The colours of all pieces of text that contain this."""
        return {colour for shown, colour, _ in self._coloured() if text in shown}

    @property
    def grounds(self) -> set[str]:
        """All rectangles: backgrounds of text, and bars."""
        return set(re.findall(r'<rect fill="(#\w{6})" x', self.svg))

    def _coloured(self) -> Iterator[tuple[str, str, str]]:
        """Each piece of text with its colour and its background."""
        style, _, body = self.svg.partition("</style>")
        fills = dict(re.findall(r"\.([\w-]+) \{ fill: (#\w{6})", style))
        rects = re.findall(
            r'<rect fill="(#\w{6})" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"',
            body,
        )
        grounds = [(*map(float, place), fill) for fill, *place in rects]
        for kind, x, y, text in re.findall(
            r'<text class="([\w-]+)" x="([\d.]+)" y="([\d.]+)" [^>]*clip[^>]*>([^<]*)<', body
        ):
            shown = html.unescape(text).replace("\xa0", " ").strip()
            across, down = float(x) + 1, float(y) - 5  # y is the baseline of the letters
            under = [
                fill
                for left, top, width, height, fill in grounds
                if left <= across < left + width and top <= down < top + height
            ]
            if shown and under:
                yield shown, fills[kind], under[-1]

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)  # type: ignore[attr-defined]
        await self._pilot.pause()  # type: ignore[attr-defined]

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)  # type: ignore[attr-defined]
        await self._pilot.pause()  # type: ignore[attr-defined]

    async def sees(self, *wanted: str) -> None:
        """Wait until the screen shows all of these, whatever its line breaks."""

        def plain(text: str) -> str:
            return " ".join(text.replace("│", " ").split())

        end = time.monotonic() + DEADLINE
        while not all(plain(part) in plain(self.text) for part in wanted):
            assert time.monotonic() < end, f"{wanted} not in:\n{self.text}"
            await self._pilot.pause(0.01)  # type: ignore[attr-defined]


def _line(pieces: Sequence[tuple[float, str]]) -> str:
    """Pieces of text by column, without the spaces between them."""
    line = ""
    for x, text in pieces:
        line = line.ljust(round(x / CELL)) + text
    return line


def contrast(one: str, other: str) -> float:
    """Of two colours like ``#1f1f1f``, as WCAG defines it."""
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(share * p for share, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


Scenario = Callable[[Desk], Awaitable[None]]


def app_of(
    course: Course, start: str | None, checker: OpenChecks, *, poll: bool = False
) -> WatchApp:
    """The full screen, begun as `run_watch` does."""
    lesson = Lesson(course)
    return WatchApp(
        lesson,
        start or lesson.standing.next or course.asked[0],
        Checks(course, checker),
        first_run=not (course.folder / FILE).exists(),
        poll=poll,
        clock=lambda: "12:00:00",
    )


@asynccontextmanager
async def at_desk(
    course: Course, start: str | None, checker: OpenChecks, size: tuple[int, int], poll: bool
) -> AsyncIterator[Desk]:
    app = app_of(course, start, checker, poll=poll)
    try:
        async with app.run_test(size=size) as pilot:
            yield Desk(app, pilot)
    finally:
        app.close()


def play(
    course: Course,
    scenario: Scenario,
    *,
    start: str | None = None,
    checker: OpenChecks | None = None,
    size: tuple[int, int] = (80, 24),
    poll: bool = False,
    theme: str | None = None,
) -> None:
    async def run() -> None:
        async with at_desk(course, start, checker or fake(course), size, poll) as desk:
            if theme is not None:
                desk.app.theme = theme
                await desk.press()  # nothing, which lets it be drawn
            await scenario(desk)

    asyncio.run(run())


# --- line by line --------------------------------------------------------------------------------


class Reader:
    """A student who reads the lines of a plain watch."""

    def __init__(self, out: io.StringIO) -> None:
        self._out = out
        self._read = 0

    @property
    def all(self) -> str:
        return self._out.getvalue()

    def reads(self, wanted: str) -> str:
        """Wait for this text, and return all output since the previous call."""

        def there() -> bool:
            return self._found(wanted) is not None

        until(there)
        end = self._found(wanted)
        assert end is not None
        news = self.all[self._read : end]
        self._read = end
        return news

    def _found(self, wanted: str) -> int | None:
        pattern = r"\s+".join(map(re.escape, wanted.split()))
        found = re.compile(pattern).search(self.all, self._read)
        return found.end() if found else None


@contextmanager
def reading(course: Course, start: str = "center", *, first_run: bool = False) -> Iterator[Reader]:
    """A plain watch in a thread, with a checker without torch."""
    lesson, checks = Lesson(course), Checks(course, fake(course))

    def run() -> None:
        with suppress(KeyboardInterrupt):
            watch(lesson, start, checks, first_run=first_run, poll=False)

    thread = threading.Thread(target=run)
    with redirect_stdout(io.StringIO()) as out:
        thread.start()
        try:
            yield Reader(out)
        finally:
            for name in course.exercises:  # whichever is the current one
                save(course, "stop", name)
            thread.join(DEADLINE)
    assert not thread.is_alive()
