"""Slips of authors: one line names the file, the line and what to do; the exit code is 2."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from grader.author.slips import refuse_slips
from grader.course.course import load_course
from tests.conftest import Grader
from tests.support.places import TINY

COURSE = "exercises/course.toml"
STUBS = "exercises/basics.py"
MODULE_STUBS = "exercises/layers.py"
CHECKS = "exercises/checks/test_basics.py"
REFERENCES = "solutions/basics.py"
MODULE_REFERENCES = "solutions/layers.py"
TESTS = "solutions/graders/test_basics.py"
MISTAKES = "solutions/mistakes/basics.py"
EXCUSES = "solutions/mistakes/audit.toml"
SEED = "solutions/seed"


class Slip(NamedTuple):
    """An edit of a right course, and what `grader audit center` must say about it."""

    name: str
    file: str
    old: str | None  # the text to replace; "" to append; None for a new file
    new: str | None  # the text instead; None to remove the file
    line: str  # a piece of the line that must be named; "" if only the file is named
    said: str
    code: int = 2  # 1 for a finding of the audit, which names the exercise instead of a line
    where: str = ""  # the file that must be named, if it is another one


HINTS = 'hints = ["What is the mean of what remains?"]'
ASSIGNMENT = '\n[[assignment]]\nname = "ps1"\nexercises = ["basics"]\n'
TEST = '''

@rung.{rung}
def test_more({arguments}):
    """More."""
    {body}
'''


def extra(
    rung: str = 'value("center")', arguments: str = "student", body: str = "student.center()"
) -> str:
    """The text of one more test."""
    return TEST.format(rung=rung, arguments=arguments, body=body)


SLIPS = [
    # --- course.toml ---
    Slip(
        "a key is misspelt", COURSE, HINTS, "hint = []", "hint =",
        "in unit.exercise \"center\"; did you mean hints?",
    ),
    Slip("a table is misspelt", COURSE, "[limits]", "[limit]", "[limit]", "did you mean limits?"),
    Slip(
        "a key has another type", COURSE, HINTS, 'hints = "What?"', "hints =",
        "write a list in brackets, not text",
    ),
    Slip(
        "points are text", COURSE, "points = 4", 'points = "4"', 'points = "4"',
        "points: write a number, not text",
    ),
    Slip("points are negative", COURSE, "points = 4", "points = -4", "points = -4", "positive"),
    Slip(
        "a key is missing", COURSE, 'title = "A module"\n', "", "",
        "'title' is missing in unit \"layers\"",
    ),
    Slip("a comma is missing", COURSE, HINTS, 'hints = ["a" "b"]', 'hints = ["a', "not valid TOML"),
    Slip(
        "a quotation mark is missing", COURSE, HINTS, 'hints = ["a]', 'hints = ["a',
        "not valid TOML",
    ),
    Slip(
        "a key is there twice", COURSE, "points = 4", "points = 4\npoints = 5", "points = 5",
        "not valid TOML",
    ),
    Slip(
        "a unit has no exercises", COURSE, "", '\n[[unit]]\nname = "more"\ntitle = "M"\n',
        '[[unit]]\nname = "more"', "key 'exercise' is missing",
    ),
    Slip(
        "a unit has an empty list", COURSE, "",
        '\n[[unit]]\nname = "more"\ntitle = "M"\nexercise = []\n', '[[unit]]\nname = "more"',
        "add a [[unit.exercise]]",
    ),
    Slip(
        "two exercises have one name", COURSE, 'name = "staircase"', 'name = "center" #',
        'name = "center" #', "twice",
    ),
    Slip(
        "two units have one name", COURSE, 'name = "layers"', 'name = "basics" #',
        'name = "basics" #', "twice",
    ),
    Slip(
        "the course has an exercise without a stub", COURSE, 'name = "staircase"',
        'name = "stairs"', "", "does not define stairs; did you mean staircase?", where=STUBS,
    ),
    Slip(
        "an exercise requires a later one", COURSE, 'requires = ["center"]',
        'requires = ["Projection"]', "requires", "only earlier exercises",
    ),
    Slip(
        "an exercise requires itself", COURSE, 'requires = ["center"]', 'requires = ["weigh"]',
        "requires", "only earlier exercises",
    ),
    Slip(
        "an exercise requires an unknown one", COURSE, 'requires = ["center"]',
        'requires = ["centre"]', "requires", "did you mean center?",
    ),
    Slip(
        "exercises require each other", COURSE, HINTS, 'requires = ["weigh"]', "requires",
        "only earlier exercises",
    ),
    Slip(
        "an assignment has an unknown exercise", COURSE, "", ASSIGNMENT.replace("basics", "basic"),
        '["basic"]', "did you mean basics?",
    ),
    Slip(
        "a date is text", COURSE, "", f'{ASSIGNMENT}due = "Friday"\n', "due",
        "write a date with a time",
    ),
    Slip(
        "a date does not exist", COURSE, "", f"{ASSIGNMENT}due = 2026-02-30T12:00:00Z\n", "due",
        "not valid TOML",
    ),
    Slip(
        "a date has no zone", COURSE, "", f"{ASSIGNMENT}due = 2026-02-20T12:00:00\n", "due", "zone",
    ),
    Slip(
        "an unknown group of operations is forbidden", COURSE, 'forbidden = ["softmax"]',
        'forbidden = ["sofmax"]', "forbidden", "did you mean softmax?",
    ),
    Slip(
        "a group is forbidden, but the course has none", COURSE,
        '[operations.softmax]\ntitle = "softmax"\nfunctions = ["softmax", "log_softmax"]\n', "",
        "forbidden", "[operations.softmax]",
    ),
    Slip(
        "a function of torch is misspelt", COURSE, '"log_softmax"', '"log_sofmax"', "log_sofmax",
        "did you mean log_softmax?",
    ),
    Slip(
        "a group of operations is empty", COURSE, '["softmax", "log_softmax"]', "[]",
        "functions = []", "no functions",
    ),
    Slip(
        "a rule at the heart is misspelt", COURSE, HINTS, 'heart = ["compute"]', "heart",
        "did you mean computes?",
    ),
    Slip("there are two hints", COURSE, HINTS, 'hints = ["a", "b"]', "", "2 hints, not three", 1),
    Slip(
        "there are four hints", COURSE, HINTS, 'hints = ["a", "b", "c", "d"]', "",
        "4 hints, not three", 1,
    ),
    Slip(
        "three hints are equal", COURSE, HINTS, 'hints = ["a", "a", "a"]', "hints",
        "1 and 2 are equal",
    ),
    Slip("a hint is empty", COURSE, HINTS, 'hints = ["a", "b", ""]', "hints", "hint 3 is empty"),
    Slip(
        "an alias is text", COURSE, 'linear = ["proj"]', 'linear = "proj"', "linear =",
        "write a list in brackets",
    ),
    Slip(
        "an alias is for an argument that no reference has", COURSE, "d_in = [", "din = [",
        "din = [", "did you mean d_in?",
    ),
    Slip(
        "an experiment does not exist", COURSE, HINTS, 'experiments = ["gone"]', "experiments",
        "gone.py",
    ),
    # --- stubs ---
    Slip(
        "a stub is misspelt", STUBS, "def center", "def centre", "",
        "does not define center; did you mean centre?",
    ),
    Slip("a file of stubs is missing", STUBS, "", None, "", "missing"),
    Slip("a stub is no Python", STUBS, "def center(x:", "def center(x", "def center", ""),
    Slip(
        "a stub has no annotations", STUBS,
        'def center(x: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:', "def center(x):",
        "def center", "write Float[Tensor, ' tokens']",
    ),
    Slip(
        "a stub takes other arguments", MODULE_STUBS, "d_in: int, d_out: int",
        "d_out: int, d_in: int", "def __init__", "the reference (self, d_in, d_out, bias)",
    ),
    Slip(
        "a stub has another default", MODULE_STUBS, "bias: bool = False", "bias: bool = True",
        "def __init__", "the reference has False",
    ),
    Slip(
        "a stub has another shape", STUBS, '-> Float[Tensor, " tokens"]', '-> Float[Tensor, ""]',
        "def center", "tokens",
    ),
    Slip(
        "a stub has no statement", STUBS, '    """Subtract the mean from each element."""\n', "",
        "def center", "statement",
    ),
    Slip(
        "a stub is solved", STUBS, 'element."""\n    raise NotImplementedError\n',
        'element."""\n    return x - x.mean()\n', "def center", "NotImplementedError",
    ),
    Slip("a file is not UTF-8", STUBS, "", "# \udcff\n", "\udcff", "save the file as UTF-8"),
    # --- references ---
    Slip("a file of references is missing", REFERENCES, "", None, "", "missing"),
    Slip(
        "a reference is missing", REFERENCES, "def center", "def centre", "",
        "does not define center; did you mean centre?",
    ),
    Slip("a reference is no Python", REFERENCES, "def center(x:", "def center(x", "def center", ""),
    Slip(
        "a reference is no function", REFERENCES, "", "\n\ncenter = 3\n", "center = 3", "function",
    ),
    Slip(
        "a reference has no annotation", REFERENCES, 'def center(x: Float[Tensor, " tokens"])',
        "def center(x)", "def center", "annotation",
    ),
    Slip(
        "a reference has an unknown dtype", REFERENCES, 'def center(x: Float[Tensor, " tokens"])',
        'def center(x: Shaped[Tensor, " tokens"])', "def center", "Shaped", where=STUBS,
    ),
    Slip(
        "a reference has a dtype that torch lacks", MODULE_REFERENCES,
        'x: Float[Tensor, "batch d_in"]', "x: Tensor", "def forward", "x", where=MODULE_STUBS,
    ),
    Slip(
        "an import fails", REFERENCES, "import torch\n", "import torcch\n", "torcch",
        "No module named",
    ),
    Slip("a reference raises at import", REFERENCES, "", "\n1 / 0\n", "1 / 0", "division by zero"),
    # --- tests ---
    Slip(
        "two tests have one name", TESTS, "",
        "\n\ndef test_center_agrees_with_the_reference(): ...\n", "(): ...", "give it another name",
    ),
    Slip("a file of tests is missing", TESTS, "", None, "", "missing"),
    Slip("a file of checks is missing", CHECKS, "", None, "", "missing"),
    Slip("a test is no Python", TESTS, "", "\nx = = 1\n", "x = = 1", "invalid syntax"),
    Slip(
        "an import of a test fails", TESTS, "import torch\n", "import torcch\n", "torcch",
        "No module named",
    ),
    Slip(
        "a test has no rung", TESTS, "", "\n\ndef test_more(student):\n    ...\n", "def test_more",
        "rung",
    ),
    Slip(
        "a test is about an unknown exercise", TESTS, "", extra('value("centre")'), '"centre"',
        "did you mean center?",
    ),
    Slip(
        "a test quotes an unknown rule", TESTS, "", extra('value("center", rules=("return",))'),
        '"return"', "did you mean returns?",
    ),
    Slip(
        "rules are text", TESTS, "", extra('value("center", rules="returns")'), 'rules="returns"',
        "write rules=('returns',)",
    ),
    Slip(
        "a rung is misspelt", TESTS, "", extra('values("center")'), "rung.values",
        "no attribute 'values'",
    ),
    Slip(
        "a test uses an unknown fixture", TESTS, "", extra(arguments="students"),
        '@rung.value("center")\ndef test_more', "did you mean student?",
    ),
    Slip(
        "a test uses a fixture of pytest", TESTS, "", extra(arguments="student, tmp_path"),
        '@rung.value("center")\ndef test_more', "may use student, reference, make",
    ),
    Slip(
        "a test is a method", TESTS, "", "\n\nclass TestMore:\n    def test_more(self): ...\n",
        "def test_more(self)", "not a class",
    ),
    Slip(
        "a check has points", CHECKS, '@rung.value("weigh")', '@rung.value("weigh", points=2)',
        '"weigh", points=2', "leave out points=",
    ),
    Slip(
        "points of a test are text", TESTS, '"center", points=4', '"center", points="4"',
        'points="4"', "write a number from 0",
    ),
    Slip(
        "points of a test are negative", TESTS, '"center", points=4', '"center", points=-4',
        "points=-4", "write a number from 0",
    ),
    Slip(
        "a test has no docstring", TESTS, "", extra().replace('    """More."""\n', ""),
        '@rung.value("center")\ndef test_more', "docstring",
    ),
    Slip(
        "a test is skipped", TESTS, '@rung.gradient("center")',
        '@pytest.mark.skip\n@rung.gradient("center")', "mark.skip", "skip",
    ),
    Slip(
        "no test has points", TESTS, '@rung.value("center", points=4)',
        '@rung.value("center", points=0)', "points=0", "they hold 0 of 3",
    ),
    Slip(
        "values hold less than half", TESTS, "points=4", "points=1", "points=1", "they hold 1 of 4",
    ),
    Slip(
        "a test's name begins otherwise", TESTS, "", extra().replace("def test_", "def tets_"),
        "def tets_", "begin its name with test_",
    ),
    Slip(
        "a test calls no answer", TESTS, "student.center(x), reference",
        "reference.center(x), reference", '@rung.value("center"', "never calls student",
    ),
    Slip(
        "a test asserts nothing", TESTS,
        "    assert_agrees(student.center(x), reference.center(x))", "    student.center(x)", "",
        "catches no wrong answer", 1,
    ),
    Slip(
        "a test belongs to another unit", TESTS, "", extra('value("Projection")'), '"Projection"',
        "test_layers.py",
    ),
    Slip("a file of tests has no unit", "solutions/graders/test_basic.py", None, "", "", "rename"),
    # --- mistakes ---
    Slip(
        "a mistake is about an unknown exercise", MISTAKES, '    "center",\n    "adds"',
        '    "centre",\n    "adds"', "mistake(", "did you mean center?",
    ),
    Slip(
        "a change does not apply", MISTAKES, '{"x - ": "x + "}', '{"x - x.maen()": "x"}',
        "mistake(", "the nearest line is 'return x - x.mean()'",
    ),
    Slip(
        "a change is no Python", MISTAKES, '{"x - ": "x + "}', '{"x - ": "x - ("}', "mistake(",
        "is no Python: '(' was never closed",
    ),
    Slip(
        "a change uses a module that its file lacks", MISTAKES, '{"x - ": "x + "}',
        '{"x.mean()": "math.fsum(x)"}', "mistake(",
        "the changed reference uses math, which its file does not import",
    ),
    Slip(
        "a hint is not written yet", MISTAKES, 'hint="Which middle is meant?"', 'hint="TODO: ask"',
        "@mistake", "left for a person: title and hint of median", 1,
    ),
    Slip(
        "a change changes nothing", MISTAKES, '{"x - ": "x + "}', '{"x - ": "x - "}', "mistake(",
        "as it is",
    ),
    Slip(
        "two mistakes have one slug", MISTAKES, '"median", "The', '"adds", "The', "@mistake",
        "there are two variants center/adds: rename one",
    ),
    Slip(
        "a mistake has no hint", MISTAKES, '", hint="Which middle is meant?")', '")', "@mistake",
        "hint",
    ),
    Slip(
        "a mistake has no title", MISTAKES, '"median", "The median is subtracted"', '"median"',
        "@mistake", "this one has no title",
    ),
    Slip(
        "a mistake breaks an unknown rule", MISTAKES, 'hint="Which middle is meant?"',
        'hint="?", breaks=("return",)', "@mistake", "did you mean returns?",
    ),
    Slip(
        "breaks is text", MISTAKES, 'hint="Which middle is meant?"', 'hint="?", breaks="returns"',
        "@mistake", "write breaks=('returns',)",
    ),
    Slip(
        "a mistake is the same as an unknown one", MISTAKES, 'hint="Which middle is meant?"',
        'hint="?", same_as={"add": "x"}', "@mistake", "did you mean adds?",
    ),
    Slip(
        "a common mistake is unknown", MISTAKES, 'hint="Which middle is meant?"', 'common="medain"',
        "@mistake", "no common mistake 'medain'",
    ),
    Slip(
        "a mistake takes other arguments", MISTAKES, "def with_the_median(x)",
        "def with_the_median(x, y)", "@mistake", "takes (x, y), but the reference (x)",
    ),
    Slip(
        "an accepted answer is the reference", MISTAKES,
        "    middle = torch.mean(x)\n    return x - middle", "    return x - x.mean()", "@accepted",
        "leave this answer out",
    ),
    Slip(
        "a mistake has a misspelt argument", MISTAKES, 'hint="Which middle is meant?"', 'hnt="?"',
        "@mistake", "unexpected keyword argument",
    ),
    Slip(
        "a definition has no mistake above it", MISTAKES, "", "\n\ndef other(x):\n    return x\n",
        "def other", "write @mistake",
    ),
    Slip("mistakes are no Python", MISTAKES, "", "\nx = = 1\n", "x = = 1", "invalid syntax"),
    Slip("a file of mistakes has no unit", "solutions/mistakes/basic.py", None, "", "", "rename"),
    # --- audit.toml, seed ---
    Slip(
        "an unknown kind of excuse", EXCUSES, None, '[equivalents]\n"center/x" = "y"\n',
        "[equivalents]", "did you mean equivalent?",
    ),
    Slip(
        "an excuse without a reason", EXCUSES, None, '[near]\n"center/adds" = 3\n', "[near]",
        "write text in quotation marks",
    ),
    Slip("an excuse is no TOML", EXCUSES, None, "[near\n", "[near", "not valid TOML"),
    Slip(
        "an excuse of an unknown mutant", EXCUSES, None, '[equivalent]\n"center/L2:x" = "y"\n', "",
        "center/L2:x: audit.toml excuses this, but no excuse is needed", 1,
    ),
    Slip(
        "an excuse of an unknown exercise", EXCUSES, None, '[equivalent]\n"centre/L2:x" = "y"\n',
        '"centre/L2:x"', "did you mean center?",
    ),
    Slip("the seed is empty", SEED, "tiny-hidden\n", "", "", "secret"),
    Slip("the seed is missing", SEED, "", None, "", "secret"),
]  # fmt: skip


def spoilt(folder: Path, slip: Slip) -> Path:
    """A copy of the tiny course with the slip; returns its folder."""
    shutil.copytree(TINY, folder)
    path = folder / slip.file
    if slip.new is None:
        path.unlink()
        return folder
    text = "" if slip.old is None else path.read_text("utf-8")
    if slip.old:
        assert slip.old in text
        text = text.replace(slip.old, slip.new, 1)
    else:
        text += slip.new
    path.write_text(text, "utf-8", errors="surrogateescape")
    return folder


def places_of(slip: Slip, course: Path) -> Collection[str]:
    """The texts that name the right place: a file, and each line with the piece."""
    path = course / (slip.where or slip.file)
    if not slip.line:
        return [str(path)]
    text = path.read_text("utf-8", errors="surrogateescape")
    starts = [found.start() for found in re.finditer(re.escape(slip.line), text)]
    assert starts
    return [f"{path}:{text.count(chr(10), 0, start) + 1}: " for start in starts]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
def test_a_slip_of_an_author_is_one_line_with_file_and_line(
    tmp_path: Path, grader: Grader, slip: Slip
) -> None:
    course = spoilt(tmp_path / "course", slip)
    ran = grader("audit", "center", "weigh", "--jobs", "1", "--course", course / "exercises")
    assert ran.code == slip.code, ran
    if slip.code == 1:
        assert slip.said in ran.out
        return
    (told,) = ran.err.splitlines()
    assert any(place in told for place in places_of(slip, course)), told
    assert slip.said in told


@pytest.mark.parametrize(
    ("annotation", "other"),
    [
        (' -> Float[Tensor, " tokens"]', """ -> "Float[Tensor, 'tokens']\""""),
        (' -> Float[Tensor, " tokens"]', ' -> Float[torch.Tensor, "tokens"]'),
    ],
    ids=["in quotes", "with the module"],
)
def test_a_stub_may_write_an_annotation_in_another_form(
    tmp_path: Path, annotation: str, other: str
) -> None:
    slip = Slip("another form", STUBS, annotation, other, "", "")
    refuse_slips(load_course(spoilt(tmp_path / "course", slip) / "exercises"))
