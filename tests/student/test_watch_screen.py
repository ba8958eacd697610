"""`grader watch` on a full screen: what there is to see, small and large, on dark and on light."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course.course import Course, load_course
from grader.student.progress import record_progress
from grader.student.resetting import reset_exercises, undo
from grader.student.watch.dialogs import search
from grader.student.watch.drawing import DARK, LIGHT
from grader.student.watch.words import KEYS
from tests.support.places import ROOT
from tests.support.statements import state_weigh
from tests.support.watching import Desk, app_of, contrast, copied, fake, play, save, with_stubs

SIZES = [(80, 24), (120, 40), (60, 20)]
THEMES = [DARK, LIGHT]
sized = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
themed = pytest.mark.parametrize("theme", THEMES)
STUB = "raise NotImplementedError"
READABLE, SEEN = 4.5, 3.0  # what WCAG asks for: of text, and of what is no text


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A copy of the tiny course, whose third exercise has a statement in the form."""
    return state_weigh(copied(tmp_path, first_run=False))


# --- the statement -------------------------------------------------------------------------------


@sized
@themed
def test_sentence_rules_and_example_come_first(
    course: Course, size: tuple[int, int], theme: str
) -> None:
    save(course, "wrong", "weigh")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ weigh", "weigh (3 of 3 in basics.py, 3 points)", "Turn each row of")
        assert "def weigh(scores" in desk.text
        await desk.press("2", "1")
        await desk.sees("weights[i, j] = exp(", "large: Scores may be as large as")
        assert desk.text.index("Turn each row") < desk.text.index("Rules:")
        await desk.press("end")
        await desk.sees("large: Scores may be as large as", "Example: one")
        assert desk.text.index("Rules:") < desk.text.index("Example:")

    play(course, scenario, start="weigh", size=size, theme=theme)


def test_at_80_by_24_the_rest_is_on_a_key(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub", ">>> weigh(torch.zeros(1, 2))")
        assert "Vaswani" not in desk.text
        lines = desk.text.splitlines()
        signature = next(n for n, line in enumerate(lines) if "def weigh(scores)" in line)
        assert "Turn each row" in lines[signature + 1], "it takes one line"
        await desk.press("end")
        await desk.sees("d shows the rest: Why, Takes, Returns, Source.")
        await desk.press("d", "end")
        await desk.sees("Takes:", "Returns:", "Vaswani et al. 2017")
        await desk.press("home")
        await desk.sees("scores: Float[Tensor, 'queries keys']")
        await desk.press("d")
        await desk.sees("still the stub")
        assert "Float[Tensor" not in desk.text

    play(course, scenario, start="weigh")


def test_a_tall_screen_shows_all_of_it_unless_d_was_pressed(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub", "Vaswani et al. 2017", "Softmax by hand")
        await desk.press("d")
        assert "Vaswani" not in desk.text

    play(course, scenario, start="weigh", size=(120, 40))


def test_statement_and_code_are_coloured_and_rules_have_their_keys_in_bold(course: Course) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub", ">>> weigh(torch.zeros(1, 2))")
        prose = desk.colours("unchanged")
        assert desk.colours("def") != prose
        assert desk.colours("exp(scores[i, j])") != prose
        assert any("large" in text for text in bold(desk))

    play(course, scenario, start="weigh")


def bold(desk: Desk) -> set[str]:
    kinds = re.findall(r"\.([\w-]+) \{ fill: #\w{6};font-weight: bold", desk.svg)
    return {
        text
        for kind in kinds
        for text in re.findall(rf'<text class="{kind}"[^>]*>([^<]*)<', desk.svg)
    }


# --- contrast ------------------------------------------------------------------------------------


@sized
@themed
def test_all_text_stands_out_from_its_ground(
    course: Course, size: tuple[int, int], theme: str
) -> None:
    record_progress(course.folder, solved=["center"], hints={"center": 2})
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center", "(it was solved before)")
        for key in ("1", "2", "h"):
            await desk.press(key)
            found = {text: n for text, n in desk.contrasts.items() if text != "·"}
            faint = {
                text: n
                for text, n in found.items()
                if n < (SEEN if all("─" <= sign <= "▟" for sign in text) else READABLE)
            }
            assert faint == {}
            assert any("center (1 of 3 in basics.py" in text for text in found), "the title too"

    play(course, scenario, start="center", size=size, theme=theme)


@sized
@themed
def test_a_scroll_bar_stands_out_from_its_ground(
    course: Course, size: tuple[int, int], theme: str
) -> None:
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center")
        await desk.press("2")
        page = desk.app.theme_variables["background"]
        assert max(contrast(ground, page) for ground in desk.grounds) >= SEEN

    play(course, scenario, start="center", size=size, theme=theme)


@themed
def test_the_list_can_be_read(course: Course, theme: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        await desk.press("l")
        found = {
            part: min(n for text, n in desk.contrasts.items() if part in text)
            for part in ("basics: Functions of", "staircase", "Subtract the mean", "Enter: go to")
        }
        assert {part: n for part, n in found.items() if n < READABLE} == {}

    play(course, scenario, start="center", theme=theme)


def test_a_terminal_that_says_it_is_light_gets_a_light_screen_and_t_turns_it(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEXTUAL_THEME", raising=False)
    for ground, theme in (("0;15", LIGHT), ("15;0", DARK), ("", DARK)):
        monkeypatch.setenv("COLORFGBG", ground)
        assert app_of(course, None, fake(course)).theme == theme

    async def scenario(desk: Desk) -> None:
        await desk.sees("still the stub")
        dark = desk.colours("def")
        await desk.press("t")
        assert desk.app.theme == LIGHT
        assert desk.colours("def") != dark

    play(course, scenario)


# --- pictures ------------------------------------------------------------------------------------


@sized
@themed
def test_wrong_cells_are_red_and_small_matrices_are_numbers_where_they_fit(
    course: Course, size: tuple[int, int], theme: str
) -> None:
    save(course, "numbers")

    async def scenario(desk: Desk) -> None:
        await desk.sees("✗ center")
        await desk.press("2", "end")
        fits = size[0] >= 80
        await desk.sees("expected", "yours", "-.33✗" if fits else "differs")
        red = desk.colours("-.33✗" if fits else "✗")
        assert len(red) == 1
        assert red != desk.colours("yours")

    play(course, scenario, start="center", size=size, theme=theme)


def test_the_picture_stands_beside_the_mistake_that_it_shows(course: Course) -> None:
    save(course, "wrong")

    async def scenario(desk: Desk) -> None:
        await desk.sees("The mean is added", "✗ It is right", "expected", "not so")
        assert desk.text.count("expected") == desk.text.count("✗ It is right") == 1
        places = [desk.text.index(part) for part in ("mean is added", "expected", "✗ It is right")]
        assert places == sorted(places)

    play(course, scenario, start="center")


# --- the keys ------------------------------------------------------------------------------------

OPEN = {
    "nothing": [],
    "the statement": ["1"],
    "the verdict": ["2"],
    "the hints": ["h"],
    "all of the statement": ["d"],
    "the hints, after the verdict": ["2", "h"],
}
SHOWS = {  # what is seen after a key
    "n": "weigh (3 of 3 in basics.py",
    "p": "center (1 of 3 in basics.py",
    "h": "Is it a staircase?",
    "l": "type to filter",
    "s": "Running your lines of staircase",
    "v": "A solution of staircase",
    "j": "Projection (1 of 1 in layers.py",
    "r": "Put the untouched stub of staircase back?",
    "u": "Your lines of staircase are back",
    "o": "basics.py opens in your editor",
    "a": "could not be checked",
    "?": "go to the other exercise whose answer",
}


@pytest.fixture
def all_keys(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course at whose second exercise every key does something."""
    with_stubs(course)
    toml = course.folder / "course.toml"
    hints = f"hints = {['Is it a staircase?'] * 20}\n"
    text = toml.read_text("utf-8").replace('title = "One more', f'{hints}title = "One more')
    toml.write_text(text, "utf-8")
    save(course, "right", "staircase")
    save(course, "call", "weigh")
    record_progress(course.folder, solved=["staircase"])
    reset_exercises(course, "staircase")
    undo(course, "staircase")
    reset_exercises(course, "staircase")
    editor = tmp_path / "code"
    editor.write_text("#!/bin/sh\n", "utf-8")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    return load_course(course.folder)


@pytest.mark.parametrize("pane", OPEN)
def test_each_key_that_is_shown_works_whichever_pane_is_open(all_keys: Course, pane: str) -> None:
    names = {key.word: key.key for key in KEYS}

    async def scenario(desk: Desk) -> None:
        board = desk.app.board
        layers = all_keys.stub_file("layers")
        layers.write_text(layers.read_text("utf-8").replace(STUB, "pass"), "utf-8")
        await desk.sees("You changed Projection. j goes there.")
        foot = " ".join(desk.text.splitlines()[-2:])
        shown = re.findall(r"(\S) ([a-z]+)", foot)
        assert {word: key for key, word in shown} == names
        for key in [*SHOWS, "d"]:
            board.current, board._elsewhere = "staircase", "Projection"
            await desk.press(*OPEN[pane])
            whole = "One more in each row" in desk.text
            await desk.press("question_mark" if key == "?" else key)
            if key == "d":
                assert ("One more in each row" in desk.text) is not whole
            else:
                await desk.sees(SHOWS[key])
            while len(desk.app.screen_stack) > 1:
                await desk.press("escape")
            if pane in ("all of the statement", "nothing") and key != "d":
                await desk.press(*OPEN[pane])  # back
        await desk.press("q")
        assert desk.app.return_code == 0

    play(all_keys, scenario, start="staircase")


@pytest.mark.parametrize("key", ["l", "r", "v", "question_mark"])
def test_a_dialog_shows_its_own_keys_alone(all_keys: Course, key: str) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.sees("staircase (2 of 3", "n next")
        await desk.press(key)
        assert len(desk.app.screen_stack) > 1
        assert "n next" not in desk.text
        assert re.search("Enter|y yes", desk.text.splitlines()[-2] + desk.text)

    play(all_keys, scenario, start="staircase")


# --- the list ------------------------------------------------------------------------------------


@sized
def test_the_list_marks_the_best_match_and_says_where_enter_goes(
    course: Course, size: tuple[int, int]
) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.press("l")
        await desk.sees("Enter: go to center")
        await desk.press(*"basics")
        await desk.sees("Enter: go to center")
        await desk.press("ctrl+u", *"we")
        await desk.sees("Enter: go to weigh")
        await desk.press("up")
        await desk.press("enter")
        assert desk.current == "weigh"

    play(course, scenario, start="center", size=size)


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("softmax_rows", "softmax_rows"),
        ("softmax", "softmax_naive"),
        ("Split Heads", "split_heads"),
        ("causalattention", "CausalAttention"),
        ("rope", "apply_rope"),
        ("sofmax naive", "softmax_naive"),
        ("nothing like it", ""),
        ("", ""),
    ],
)
def test_the_best_match_is_the_exact_one_or_else_the_nearest(typed: str, best: str) -> None:
    assert search(load_course(ROOT / "exercises"), typed)[1] == best
