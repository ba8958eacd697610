"""The texts of `grader watch`, both for its full screen and for `--plain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.course.course import Course
from grader.course.statements import EMPTY_LINE, PART, listing
from grader.feedback.terminal import all_asked
from grader.records.rows import counted
from grader.student.standing import Standing

WELCOME = (
    "Each exercise says what to write, and in which file. The key o opens that file.",
    "Save it, and a moment later you read here what is right, and what is not yet.",
    "Stuck? h gives a hint: a question, a pointer, nearly the solution. Hints cost no points.",
    "Solved? Take your time: nothing moves on by itself. n goes to the next exercise.",
    "What you solved is kept in progress.txt. q stops, and next time you go on from here.",
)
PLAIN_WELCOME = (
    "Each exercise says what to write, and in which file. Open that file in your editor.",
    WELCOME[1],
    "To go to another exercise, write in it and save. Ctrl-C stops; what you solved is kept.",
    "In another terminal: grader hint NAME, grader list, grader reset NAME; grader --help.",
)
LOADING = (
    "Loading torch and the checks. This takes a few seconds, once; right after the installation up "
    "to a minute. You can read and write in the meantime: no save is missed."
)
SO_FAR = "So far: {} s."
FIRST_CHECK = (
    "Torch and the checks are loaded. The first check starts a process in which your code runs."
)
CHECKING = "Checking."
STOPPED_ALL = "The check of all exercises was stopped."
NO_MORE_HINTS = "That was the last hint. Another look at the statement's example often helps."
NO_HINTS = "This exercise has no hints."
FIRST = "This is the first exercise."
LAST = "This is the last exercise. l lists all of them."
NO_SOLUTIONS = "This course comes without solutions."
NOT_YET = "The solution can be read once you have solved the exercise. h gives a hint."
NOTHING_KEPT = "This exercise was not reset: there is nothing to undo."
LEFT = "Nothing was changed."
NO_MATCH = "No exercise matches. Type other letters, or fewer."
GOES_TO = "Enter: go to {}"
UNTOUCHED = "Write your lines in {}, and save."
O_OPENS = "o opens it."
ASK_RESET = (
    "Put the untouched stub of {} back? Your lines are kept, and u brings them back. (y or n)"
)
WAS_RESET = "{} is a stub again. Your old file is kept in {}; u brings your lines back."
WAS_UNDONE = "Your lines of {} are back. u again brings back the stub."
EDITOR_OPENED = "{} opens in your editor, at line {}."
NO_QUESTIONS = "No questions can be asked on this screen. In another terminal: grader ask {}"
NO_SUSPEND = "No editor can be opened in this terminal. Open the file yourself: {}, line {}."
SHOWING = "Running your lines of {}, to show the shapes in them. This takes a few seconds."
SHOWN = "{}: your lines at work, and what they printed"
ELSEWHERE = "You changed {}. j goes {}."
NOTHING_ELSEWHERE = "You changed no other exercise since you came to this one."
REST = "d shows the rest: {}."
CHECKING_ALL = "Checking all exercises: {} of {}."


@dataclass(frozen=True)
class Shortcut:
    """A key, with a word and a sentence for its action."""

    key: str
    word: str
    sentence: str


KEYS = (
    Shortcut("n", "next", "go to the next exercise"),
    Shortcut("p", "previous", "go to the previous exercise"),
    Shortcut("h", "hint", "read the next hint; hints cost no points"),
    Shortcut("l", "list", "list the exercises, and go to any of them"),
    Shortcut("d", "details", "show the whole statement, or only its beginning"),
    Shortcut("s", "shapes", "see your lines at work: shapes line by line, and what you printed"),
    Shortcut("v", "view", "view a solution, once you have solved the exercise"),
    Shortcut("k", "know", "answer questions about your own answer, once it is solved"),
    Shortcut("j", "jump", "go to the other exercise whose answer you have just saved"),
    Shortcut("r", "reset", "put the untouched stub back (asks first, and keeps your lines)"),
    Shortcut("u", "undo", "undo the reset"),
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
    """The name of an exercise, and its place in the course."""
    return f"{name} ({place(course, name)})"


def place(course: Course, name: str) -> str:
    """The number of an exercise in its unit, with the file and the points."""
    unit = course.unit_of[name]
    inside = [other for other, its in course.unit_of.items() if its == unit]
    points = counted(course.exercises[name].points, "point")
    return (
        f"{inside.index(name) + 1} of {len(inside)} in {course.stub_file(unit).name}, "
        f"{points if name in course.asked else 'not asked'}"
    )


def solved(standing: Standing, name: str, key: str = "") -> str:
    """A sentence on what to do after an exercise is solved.

    `key` is the key for the next exercise; it is empty without a full screen.
    """
    course, names = standing.course, list(standing.course.exercises)
    if standing.next is None:
        return (
            f"Solved, and with it all {all_asked(course, 'exercise')}: well done! "
            "`grader pack` makes the zip to submit."
        )
    later = names[names.index(name) + 1 :]
    if not later:
        return f"Solved, and this was the last one. Still to do: {standing.next}."
    goes_on = f"{key} goes on to" if key else "Next comes"
    where = "" if key else f", in {course.stub_file(course.unit_of[later[0]]).name}"
    return f"Solved! {goes_on} {later[0]}: {course.exercises[later[0]].title}{where}."


def all_checked(standing: Standing, solved_now: int, faults: int) -> str:
    """Sentences with the result of a check of all exercises."""
    text = f"{solved_now} of {all_asked(standing.course)} pass now."
    if faults:
        text += f" {faults} could not be checked."
    solved = [name for name in standing.course.exercises if name in standing.progress.solved]
    broken = [name for name in solved if standing.state(name) == "failing"]
    if broken:
        text += f" Solved before, and failing now: {', '.join(broken)}."
    return text


# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of a docstring; an example or a formula keeps its lines."""

    text: str
    example: bool = False
    title: str = ""  # the title of the statement's part that begins here, such as "Rules"
    entries: Sequence[tuple[str, str]] = ()  # of a list: each entry's name (or "") and text


def paragraphs(docstring: str) -> Iterator[Paragraph]:
    """The paragraphs of a docstring; the lines of prose are joined, so that they fit any width."""
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
            yield Paragraph("\n".join(lines).replace(EMPTY_LINE, ""), example=True)
        else:
            begins = PART.match(lines[0])
            text = " ".join(line.strip() for line in lines)
            yield Paragraph(text, title=begins[1] if begins else "")
