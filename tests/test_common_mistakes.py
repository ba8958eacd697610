"""The common table: a mistake is declared once, and becomes a change of many references."""

from __future__ import annotations

import ast
import dataclasses
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from grader.course.course import COMMON, Course, load_course
from grader.mistakes import Library, Variant, load_library
from grader.records.faults import CallError
from tests.support.places import REAL, ROOT, TINY

TABLE = r"""
import re

from grader.mistakes import common

common("halved", "The result is halved", hint="Is anything divided by two?",
       change={re.compile("return (.+)"): r"return (\1) / 2"})
common("added", "What should be taken away is added", hint="Plus or minus?",
       change=[{"x - ": "x + "}, {"scores - largest": "scores + largest"}],
       same_as={"twice": "not really"})
common("own", "Everyone does it in another way", hint="Which way?")
"""
USES = """
from grader.mistakes import accepted, common_mistakes, mistake

common_mistakes("center", "halved", "added")
common_mistakes("weigh", "added", "halved")
mistake("weigh", "twice", common="halved", hint="Once or twice?")
mistake("staircase", common="own", change={"tril": "triu"}, same_as={"nobody": "no reason"})

@mistake("center", common="own")
def something_else(x):
    return x
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, with a common table."""
    shutil.copytree(TINY, tmp_path / "tiny")
    course = load_course(tmp_path / "tiny" / "exercises")
    (course.solutions / "mistakes" / COMMON).write_text(TABLE, "utf-8")
    (course.solutions / "mistakes" / "basics.py").write_text(USES, "utf-8")
    return course


def found(library: Library, id: str) -> Variant:
    return next(variant for variant in library.variants if variant.id == id)


def body(variant: Variant) -> str:
    """The last line of a definition."""
    return variant.definition.splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("id", "line"),
    [
        ("center/halved", "return (x - x.mean()) / 2"),
        ("center/added", "return x + x.mean()"),
        ("weigh/halved", "return (weights / weights.sum(dim=-1, keepdim=True)) / 2"),
        ("staircase/own", "return torch.ones(size, size, dtype=torch.bool).triu()"),
        ("center/own", "return x"),
    ],
)
def test_a_common_mistake_becomes_a_change_of_each_reference(
    course: Course, id: str, line: str
) -> None:
    assert body(found(load_library(course), id)) == line


def test_of_several_changes_the_first_that_fits_is_made(course: Course) -> None:
    assert "torch.exp(scores + largest)" in found(load_library(course), "weigh/added").definition


def test_title_hint_and_reasons_come_from_the_table_unless_an_exercise_says_better(
    course: Course,
) -> None:
    library = load_library(course)
    plain, own = found(library, "weigh/halved"), found(library, "weigh/twice")
    assert (plain.title, plain.hint) == ("The result is halved", "Is anything divided by two?")
    assert (own.title, own.hint, own.common) == (plain.title, "Once or twice?", "halved")
    assert found(library, "weigh/added").same_as == {"twice": "not really"}
    assert found(library, "staircase/own").same_as == {"nobody": "no reason"}


def test_mistakes_stand_in_the_order_in_which_their_unit_lists_them(course: Course) -> None:
    listed = [variant.slug for variant in load_library(course).of("weigh", "mistake")]
    assert listed == ["added", "halved", "twice"]


@pytest.mark.parametrize("names", [("added", "halved"), ("halved", "added")])
def test_common_mistakes_are_combined_in_either_order(
    course: Course, names: tuple[str, str]
) -> None:
    library = load_library(course)
    both = library.combined(*(found(library, f"center/{name}") for name in names))
    assert both is not None
    assert both.slug == "+".join(names)
    assert body(both) == "return (x + x.mean()) / 2"


def test_a_pattern_does_not_take_away_the_words_that_a_string_looks_for(course: Course) -> None:
    path = course.solutions / "mistakes" / "basics.py"
    with path.open("a", encoding="utf-8") as file:
        file.write('mistake("center", "one", "One", hint="?", change={"return x": "return 1"})\n')
    library = load_library(course)
    both = library.combined(found(library, "center/halved"), found(library, "center/one"))
    assert both is not None
    assert body(both) == "return (1 - x.mean()) / 2"


def test_what_two_mistakes_say_alike_is_said_once(course: Course) -> None:
    path = course.solutions / "mistakes" / "basics.py"
    with path.open("a", encoding="utf-8") as file:
        for slug, change in (("one", '{"x - ": "1 - "}'), ("half", '{"x.mean()": "x.mean() / 2"}')):
            file.write(f'mistake("center", "{slug}", "Off", hint="Why?", change={change})\n')
    library = load_library(course)
    both = library.combined(found(library, "center/one"), found(library, "center/half"))
    assert both is not None
    assert (both.title, both.hint) == ("Off", "Why?")
    other = library.combined(found(library, "center/one"), found(library, "center/halved"))
    assert other is not None
    assert other.title == "Off; and: The result is halved"
    assert other.hint == "Why? Is anything divided by two?"


def test_what_changes_the_same_words_is_not_combined(course: Course) -> None:
    library = load_library(course)
    added = found(library, "center/added")
    assert library.combined(added, added) is None


def test_what_python_warns_of_when_two_changes_meet_is_not_combined(course: Course) -> None:
    path = course.solutions / "mistakes" / "basics.py"
    with path.open("a", encoding="utf-8") as file:
        for slug, old, new in (("list", "x - ", "[x] - "), ("row", "- x.mean()", "[0, 1]")):
            file.write(
                f'mistake("center", "{slug}", "{slug}", hint="?", change={{"{old}": "{new}"}})\n'
            )
    library = load_library(course)
    one, other = found(library, "center/list"), found(library, "center/row")
    assert library.combined(one, other) is None


def declare(course: Course, *lines: str) -> None:
    """Add lines to the library's file of the unit `basics`."""
    with (course.solutions / "mistakes" / "basics.py").open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def test_mistakes_that_people_make_at_once_become_a_pair_that_says_both(course: Course) -> None:
    declare(
        course,
        'mistake("center", "one", "Ones", hint="?", change={"return x": "return 1"}, breaks=["a"])',
        'mistake("center", together=("one", "halved"))',
    )
    library = load_library(course)
    (pair,) = library.of("center", "pair")
    assert body(pair) == "return (1 - x.mean()) / 2"
    assert (pair.id, pair.title) == ("center/one+halved", "Ones; and: The result is halved")
    assert pair.hint == "? Is anything divided by two?"
    assert pair.breaks == ("a", *found(library, "center/halved").breaks)
    assert pair not in library.of("center", "mistake")


def test_three_mistakes_can_be_made_at_once(course: Course) -> None:
    declare(
        course,
        'mistake("center", "one", "Ones", hint="?", change={"return x": "return 1"})',
        'mistake("center", "sum", "Summed", hint="?", change={"mean()": "sum()"})',
        'mistake("center", together=("halved", "sum", "one"))',
    )
    (triple,) = load_library(course).of("center", "pair")
    assert body(triple) == "return (1 - x.sum()) / 2"


def test_a_pair_whose_changes_do_not_fit_together_has_a_change_of_its_own(course: Course) -> None:
    declare(
        course,
        'mistake("center", "sum", "Summed", hint="?", change={"mean()": "sum()"})',
        'mistake("center", together=("added", "sum"), change={"- x.mean()": "+ x.sum()"})',
    )
    (pair,) = load_library(course).of("center", "pair")
    assert body(pair) == "return x + x.sum()"


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (
            'together=("halved", "unknown")',
            "center/halved\\+unknown: no mistake 'unknown' is declared",
        ),
        ('together=("added", "added")', "the changes do not fit together: give a change"),
        ('together=("added",)', "is no pair: name two mistakes or more"),
        ('together="added"', "is no pair: name two mistakes or more"),
    ],
)
def test_a_pair_that_cannot_be_made_is_refused(course: Course, declared: str, why: str) -> None:
    declare(course, f'mistake("center", {declared})')
    with pytest.raises(CallError, match=why):
        load_library(course)


def test_mistakes_that_differ_in_a_number_are_declared_in_a_loop(course: Course) -> None:
    declare(
        course,
        "for number in (3, 4):",
        '    wrong = f"x.sum() / {number}"',
        '    mistake("center", f"over-{number}", "?", hint="?", change={"x.mean()": wrong})',
        '@mistake("center", "zero", "Zero", hint="?")',
        "def nothing(x):",
        "    return 0 * x",
    )
    library = load_library(course)
    assert body(found(library, "center/over-4")) == "return x - x.sum() / 4"
    assert "for number" not in found(library, "center/zero").definition


def test_a_reference_that_imports_what_is_no_unit_is_refused(course: Course) -> None:
    path = course.reference_files()["basics"]
    path.write_text(f"from .helpers import thing\n{path.read_text('utf-8')}", "utf-8")
    library = load_library(course)
    with pytest.raises(CallError, match=r"basics\.py imports from helpers\.py, which is no unit"):
        library.submission("center")


def test_without_names_an_exercise_gets_all_that_fit_and_that_it_does_not_bring_itself(
    course: Course,
) -> None:
    path = course.solutions / "mistakes" / "basics.py"
    text = """
from grader.mistakes import common_mistakes, mistake
common_mistakes("center")
common_mistakes("weigh", but=["added"])
common_mistakes("staircase")
mistake("center", common="halved", change={"x - x.mean()": "(x - x.mean()) * 0.5"})
mistake("staircase", "halved", "Half of it", hint="How much?", change={"size, size": "size, 1"})
"""
    path.write_text(text, "utf-8")
    library = load_library(course)
    own = {"added", "halved"}  # the engine's table adds others
    assert [variant.id for variant in library.variants if variant.slug in own] == [
        "center/added",
        "weigh/halved",
        "center/halved",
        "staircase/halved",
    ]
    assert body(found(library, "center/halved")) == "return (x - x.mean()) * 0.5"


# --- what makes no sense -------------------------------------------------------------------------

BAD_USES = {
    "center/gone: there is no common mistake 'gone'": 'common_mistakes("center", "gone")',
    "staircase/added: 'x - ' occurs 0 times in the reference, not once; 'scores - largest'": (
        'common_mistakes("staircase", "added")'
    ),
    "center: there is no common mistake 'gone'": 'common_mistakes("center", but=["gone"])',
    "basics.py:3: center: give either slugs or `but`, not both": (
        'common_mistakes("center", "halved", but=["added"])'
    ),
    "'nobody' is no exercise of unit basics": 'common_mistakes("nobody", "added")',
    "center/own: there is neither a change nor a definition": 'common_mistakes("center", "own")',
    "center/a: 'x' cannot become '\\\\2': invalid group reference": (
        'mistake("center", "a", "A", hint="?", change={re.compile("x"): r"\\2"})'
    ),
    "there are two variants center/added": 'common_mistakes("center", "added", "added")',
    "center/a: there is neither a change nor a definition": (
        'mistake("center", "a", "A", hint="?")'
    ),
    "basics.py:3: center: a mistake has a slug, a title and a hint": (
        'mistake("center", hint="?", change={"x - ": "x + "})'
    ),
    "center/a: there is both a change and a definition below it": (
        '@mistake("center", "a", "A", hint="?", change={"x - ": "x + "})\ndef a(x):\n    return x'
    ),
    "basics.py:4: common mistakes are declared in common.py only": (
        'from grader.mistakes import common\ncommon("a", "A", hint="?")'
    ),
    "center/a: it decorates no function or class at the top of its file": (
        'mistake("center", "a", "A", hint="?")(print)'
    ),
    "center/a: change={'x - ': 'x - '} leaves the reference as it is": (
        'mistake("center", "a", "A", hint="?", change={"x - ": "x - "})'
    ),
    "center/a: there is neither a change nor a definition below it": (
        'accepted("center", "a", "A")\ndef a(x):\n    return x'
    ),
    "change={} is no change: map old text to new text": (
        '@mistake("center", "a", "A", hint="?", change={})\ndef a(x):\n    return x'
    ),
    "basics.py:3: change={} is no change": 'mistake("center", common="halved", change={})',
    "basics.py:3: change={} is no": (
        '@accepted("center", "a", "A", change={})\ndef a(x):\n    return x'
    ),
    "basics.py:5: change=[{'x - ': 'x + '}] is no change": (
        '\n\nmistake("center", "a", "A", hint="?", change=[{"x - ": "x + "}])'
    ),
    "change={'x - ': None} is no change": (
        'mistake("center", "a", "A", hint="?", change={"x - ": None})'
    ),
}
BAD_TABLES = {
    "there are two common mistakes 'a'": 'common("a", "A", hint="?")\n' * 2,
    "holds common mistakes only": 'common_mistakes("center", "halved")',
    "cannot be imported: NameError": "common(nobody)",
    "unexpected end of pattern": r'common("a", "A", hint="?", change={re.compile("(?P"): ""})',
    "change={} is no change": 'common("a", "A", hint="?", change={})',
    "change=[] is no change": 'common("a", "A", hint="?", change=[])',
    "change=None is no change": 'common("a", "A", hint="?", change=[None])',
    "change='x' is no change": 'common("a", "A", hint="?", change="x")',
}


@pytest.mark.parametrize(("why", "text"), BAD_USES.items())
def test_a_use_that_makes_no_sense_is_refused_with_file_line_and_reason(
    course: Course, why: str, text: str
) -> None:
    path = course.solutions / "mistakes" / "basics.py"
    imports = "import re\nfrom grader.mistakes import accepted, common_mistakes, mistake"
    path.write_text(f"{imports}\n{text}\n", "utf-8")
    with pytest.raises(CallError) as refused:
        load_library(course)
    assert why in str(refused.value)
    assert re.match(rf"{path}:\d+: ", str(refused.value))


@pytest.mark.parametrize(("why", "text"), BAD_TABLES.items())
def test_a_table_that_makes_no_sense_is_refused_with_file_line_and_reason(
    course: Course, why: str, text: str
) -> None:
    path = course.solutions / "mistakes" / COMMON
    path.write_text(
        f"import re\nfrom grader.mistakes import common, common_mistakes\n{text}\n", "utf-8"
    )
    with pytest.raises(CallError) as refused:
        load_library(course)
    assert str(refused.value).startswith(f"{path}:{3 if 'there are two' not in why else 4}: ")
    assert why in str(refused.value)


def test_a_unit_cannot_have_the_name_of_the_table(course: Course) -> None:
    path = course.folder / "course.toml"
    text = path.read_text("utf-8")
    path.write_text(text.replace('name = "basics"', 'name = "common"'), "utf-8")
    for folder in (course.folder, course.solutions):
        shutil.copy(folder / "basics.py", folder / "common.py")
    with pytest.raises(CallError, match="no unit can be 'common'"):
        load_library(load_course(course.folder))


# --- a course without a table, and one over another -----------------------------------------------


def test_a_course_without_a_table_has_the_engines(course: Course) -> None:
    (course.solutions / "mistakes" / COMMON).unlink()
    path = course.solution("mistakes", "basics.py")
    path.write_text(
        'from grader.mistakes import common_mistakes\ncommon_mistakes("center", "negated")'
    )
    assert body(found(load_library(course), "center/negated")) == "return -(x - x.mean())"


def test_a_mistake_of_the_course_replaces_the_engines_of_that_name(course: Course) -> None:
    table = course.solutions / "mistakes" / COMMON
    table.write_text(table.read_text("utf-8").replace('"halved"', '"negated"'), "utf-8")
    path = course.solution("mistakes", "basics.py")
    path.write_text(
        'from grader.mistakes import common_mistakes\ncommon_mistakes("center", "negated")'
    )
    negated = found(load_library(course), "center/negated")
    assert (negated.title, body(negated)) == (
        "The result is halved",
        "return (x - x.mean()) / 2",
    )


def test_the_table_is_part_of_the_fingerprint(course: Course) -> None:
    before = course.fingerprint()
    (course.solutions / "mistakes" / COMMON).write_text(TABLE.replace("Plus", "Add"), "utf-8")
    changed = course.fingerprint()
    (course.solutions / "mistakes" / COMMON).unlink()
    assert len({before, changed, course.fingerprint()}) == 3


def test_a_private_table_takes_the_place_of_the_other(course: Course, tmp_path: Path) -> None:
    private = tmp_path / "mine" / "solutions" / "mistakes" / "common.py"
    private.parent.mkdir(parents=True)
    private.write_text(TABLE.replace("Plus or minus?", "Which sign?"), "utf-8")
    over = dataclasses.replace(course, private=tmp_path / "mine")
    assert found(load_library(over), "center/added").hint == "Which sign?"


# --- several exercises at once --------------------------------------------------------------------

SEVERAL = """
from grader.mistakes import accepted, common_mistakes, mistake

mistake(("staircase", "weigh"), "last", "Too much", hint="How much?",
        change={re.compile("return (.+)"): r"return (\\1)[:1]"})
common_mistakes(("center", "weigh"), "halved")
common_mistakes(("staircase", "center"), but=["added"])

@accepted(("center", "weigh"), "same", "As it is")
def as_it_is(x):
    return x
"""


@pytest.fixture
def several(course: Course) -> Library:
    """The library of a unit whose entries name two exercises each."""
    (course.solutions / "mistakes" / "basics.py").write_text("import re\n" + SEVERAL, "utf-8")
    return load_library(course)


def test_a_change_that_several_exercises_share_is_made_in_each_reference(several: Library) -> None:
    both = [found(several, f"{name}/last") for name in ("staircase", "weigh")]
    assert [body(variant)[-5:] for variant in both] == [")[:1]", ")[:1]"]
    assert "torch.ones" in both[0].definition
    assert "torch.exp" in both[1].definition
    assert both[0].title == both[1].title == "Too much"


def test_a_definition_that_several_exercises_share_has_the_name_of_each(several: Library) -> None:
    for name in ("center", "weigh"):
        assert f"def {name}(x):" in found(several, f"{name}/same").definition


def test_several_exercises_have_common_mistakes_in_one_line(several: Library) -> None:
    own = {"last", "halved"}  # the engine's table adds others
    slugs = {
        name: [v.slug for v in several.of(name, "mistake") if v.slug in own]
        for name in several.unit_of
    }
    assert (slugs["center"], slugs["weigh"]) == (["halved"], ["last", "halved"])
    assert slugs["staircase"] == ["last", "halved"]


# --- the kit's own table --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Library:
    return load_library(load_course(REAL))


def test_no_title_stands_in_more_than_four_exercises_outside_the_table(own: Library) -> None:
    exercises = defaultdict(set)
    for variant in own.variants:
        if variant.kind == "mistake" and not variant.common:
            exercises[variant.title].add(variant.exercise)
    assert {title for title, names in exercises.items() if len(names) > 4} == set()


def test_every_mistake_of_the_table_is_used_in_three_exercises_or_more(own: Library) -> None:
    text = (ROOT / "solutions" / "mistakes" / "common.py").read_text("utf-8")
    calls = [node.value for node in ast.parse(text).body if isinstance(node, ast.Expr)]
    slugs = {
        call.args[0].value
        for call in calls
        if isinstance(call, ast.Call) and isinstance(call.args[0], ast.Constant)
    }
    exercises = defaultdict(set)
    for variant in own.variants:
        exercises[variant.common].add(variant.exercise)
    assert len(slugs) > 100
    assert {slug for slug in slugs if len(exercises[str(slug)]) < 3} == set()
