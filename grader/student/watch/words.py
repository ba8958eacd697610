"""What `grader watch` says. Text only; `lesson` decides when it is said."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.course.course import Course
from grader.course.statements import PART, listing
from grader.feedback.pictures.text import drawn
from grader.feedback.terminal import all_asked, safe
from grader.feedback.verdict import Verdict
from grader.records.rows import counted

WELCOME = (
    "Each exercise says what to write, and in which file. The key o opens that file.",
    "Save it, and a moment later you read here what is right, and what is not yet.",
    "Stuck? h gives a hint: a question, a pointer, nearly the solution. Hints cost no points.",
    "Solved? Take your time: nothing moves on by itself. n goes to the next exercise.",
    "What you solved is kept in progress.txt. q stops, and next time you go on from here.",
)
LOADING = (
    "Loading torch and the checks. This takes a few seconds, once; right after the installation up "
    "to a minute. You can read and write meanwhile: a save is not missed."
)
SO_FAR = "So far: {} s."
FIRST_CHECK = (
    "Torch and the checks are there. For the first check, a process starts in which your code runs."
)
CHECKING = "Checking."
STOPPED_ALL = "Checking all of them was broken off."
NO_MORE_HINTS = "That was the last hint. Another look at the statement's example often helps."
NO_HINTS = "This exercise has no hints."
FIRST = "This is the first exercise."
LAST = "This is the last exercise. l lists all of them."
NO_SOLUTIONS = "This course comes without solutions."
NOT_YET = "The solution can be read once you have solved the exercise. h gives a hint."
NOTHING_KEPT = "This exercise was not reset: there is nothing to take back."
LEFT = "Nothing was changed."
NO_MATCH = "No exercise matches. Type other letters, or fewer."
GOES_TO = "Enter: go to {}"
UNTOUCHED = "Write your lines in {}, and save. o opens it."
HINT = "Hint {} of {}"
ASK_RESET = (
    "Put the untouched stub of {} back? Your lines are kept, and u brings them back. (y or n)"
)
WAS_RESET = "{} is a stub again. Your file as it was is kept in {}; u brings it back."
WAS_UNDONE = "What you had of {} is back. u once more takes that back."
EDITOR_OPENED = "{} opens in your editor, at line {}."
NO_SUSPEND = "This terminal cannot be lent to an editor. Open it yourself: {}, line {}."
SHOWING = "Running your lines of {}, to show the shapes in them. This takes a few seconds."
SHOWN = "{}: your lines at work, and what they printed"
ELSEWHERE = "You changed {}. j goes {}."
NOTHING_ELSEWHERE = "You changed no other exercise since you came to this one."
REST = "d shows the rest: {}."
CHECKING_ALL = "Checking all of them: {} of {}."


@dataclass(frozen=True)
class Shortcut:
    """A key, and what it does in a word and in a sentence."""

    key: str
    word: str
    told: str


KEYS = (
    Shortcut("n", "next", "go to the next exercise"),
    Shortcut("p", "previous", "go to the one before"),
    Shortcut("h", "hint", "read the next hint; hints cost no points"),
    Shortcut("l", "list", "list the exercises, and go to any of them"),
    Shortcut("d", "details", "read all of the statement, or only what comes first"),
    Shortcut("s", "shapes", "see your lines at work: shapes line by line, and what you printed"),
    Shortcut("v", "view", "view a solution, once you have solved the exercise"),
    Shortcut("j", "jump", "go to the other exercise whose answer you have just saved"),
    Shortcut("r", "reset", "put the untouched stub back (asks first, and keeps your lines)"),
    Shortcut("u", "undo", "take the reset back"),
    Shortcut("o", "open", "open the file in your editor"),
    Shortcut("a", "all", "check all exercises"),
    Shortcut("?", "help", "read this"),
    Shortcut("q", "quit", "stop; what you solved is kept"),
)

SCREEN_KEYS = (
    ("arrows", "scroll; so do Page Up, Page Down, Home and End"),
    ("1, 2", "scroll the statement, or the verdict; Tab goes from one to the next"),
    ("t", "dark on light, or light on dark"),
)


def heading(course: Course, name: str) -> str:
    """An exercise's name, and where it stands."""
    return f"{name} ({_place(course, name)})"


def file_line(course: Course, name: str) -> str:
    """What an exercise is about, and where it stands."""
    return f"{course.exercises[name].title} ({_place(course, name)})"


def _place(course: Course, name: str) -> str:
    """Where an exercise stands in its unit, in which file, and what it counts."""
    unit = course.unit_of[name]
    inside = [other for other, its in course.unit_of.items() if its == unit]
    points = counted(course.exercises[name].points, "point")
    return (
        f"{inside.index(name) + 1} of {len(inside)} in {course.stub_file(unit).name}, "
        f"{points if name in course.asked else 'not asked'}"
    )


def solved(course: Course, name: str, known: frozenset[str]) -> str:
    """What to do once an exercise is solved."""
    names = list(course.exercises)
    if set(course.asked) <= known:
        return (
            f"Solved, and with it all {all_asked(course, 'exercise')}: well done! "
            "`grader pack` makes the zip to hand in."
        )
    later = names[names.index(name) + 1 :]
    if later:
        return f"Solved! n goes on to {later[0]}: {course.exercises[later[0]].title}."
    first = next(other for other in course.asked if other not in known)
    return f"Solved, and this was the last one. Still to do: {first}. l lists all of them."


def all_checked(course: Course, solved_now: int, broken: Sequence[str], faults: int) -> str:
    """What a check of all found."""
    told = f"{solved_now} of {all_asked(course)} pass now."
    if faults:
        told += f" {faults} could not be checked."
    if broken:
        told += f" Solved before, and failing now: {', '.join(broken)}."
    return told


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """A part of a docstring; an example and a formula keep their lines."""

    text: str
    example: bool = False
    title: str = ""  # of the part of a statement that begins with it: "Rules"
    entries: Sequence[tuple[str, str]] = ()  # if it is a list: names (or none) and texts


def paragraphs(docstring: str) -> Iterator[Paragraph]:
    """The parts of a docstring, prose without its line breaks, so that any width suits it."""
    for block in docstring.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        if found := listing("\n".join(lines)):
            title, entries = found
            items = [f"  {name}: {said}" if name else f"  {said}" for name, said in entries]
            yield Paragraph("\n".join([f"{title}:", *items]), title=title, entries=entries)
            continue
        if any(line.startswith((" ", "\t", ">>>", "- ", "* ", "|")) for line in lines):
            yield Paragraph("\n".join(lines), example=True)
        else:
            begins = PART.match(lines[0])
            text = " ".join(line.strip() for line in lines)
            yield Paragraph(text, title=begins[1] if begins else "")


def prose(docstring: str, width: int) -> str:
    """A docstring as lines of text."""
    parts = [
        part.text
        if part.example
        else "\n".join(
            textwrap.fill(line, width, subsequent_indent=line.startswith(" ") * "    ")
            for line in part.text.splitlines()
        )
        for part in paragraphs(docstring)
    ]
    return "\n\n".join(parts)


# --- a verdict that is read aloud ----------------------------------------------------------------


def verdict_lines(verdict: Verdict, width: int) -> Iterator[str]:
    """One exercise's verdict in words, without signs that a screen reader would stumble over."""
    copies = safe(verdict.which_counts).splitlines()
    if verdict.solved:
        yield f"Solved: {verdict.exercise}"
        yield from copies
        return
    again = ", although it was solved before" if verdict.lost else ""
    yield f"Not solved yet: {verdict.exercise}{again}"
    yield from copies
    if verdict.mistake is not None:
        yield f"Likely mistake: {safe(verdict.mistake.heading)}"
        if verdict.mistake.hint:
            yield f"Think about: {safe(verdict.mistake.hint)}"
    for finding in verdict.wrong:
        yield f"{finding.wording.word}: {finding.title}"
        yield from (f"  {line}" for line in safe(finding.message.strip()).splitlines())
        if finding.picture is not None and finding.is_best_picture:
            picture = drawn(finding.picture, width=width - 2, ascii_only=True) or ""
            yield from (f"  {line}" for line in picture.splitlines())
