"""Both pages in a real browser: what loads, sorts, filters, unfolds, and what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from grader.course.course import Course
from grader.grades.gradebook import existing_gradebook
from grader.intake.names import file_stems
from grader.questions.exam import Exam
from grader.questions.question import Question
from grader.report import write_exams, write_pages
from grader.wire import Place
from tests.support.browser import chromium, needs_browser
from tests.support.gradebooks import ANSWER, EXERCISES, HOSTILE, MISTAKE, write_class

pytestmark = needs_browser

FEEDBACK = ("feedback", "bob")
HOSTILE_FEEDBACK = ("feedback", file_stems([HOSTILE])[HOSTILE])
REPORT = ("", "report")
VIVA = ("viva", "bob")
LINES = [Place("basics.py", n, line) for n, line in enumerate(ANSWER.splitlines(), start=1)]
TOLD = ("What if `x`?", "Nothing.", f"It raises ValueError: {HOSTILE}", "Why?")
QUESTIONS = (
    Question("shape", "weigh", TOLD[0], LINES[4:5], "(2, 3)", *TOLD[2:]),
    Question(
        "change", "weigh", TOLD[0], LINES[5:7], *TOLD[1:], ["Nothing.", HOSTILE], LINES[5:6]
    ),
    Question("line", "weigh", "Which?", LINES[4:7], LINES[5].text, "", "Why?",
        [line.text for line in LINES[4:7]]),
)  # fmt: skip


@dataclass
class Seen:
    """A page that is open, and what went on behind it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, tiny: Course) -> Path:
    """The gradebook of a class, with its pages."""
    folder = tmp_path_factory.mktemp("class")
    write_class(folder)
    with existing_gradebook(folder, tiny.name) as book:
        write_pages(book, tiny)
        exam = Exam("bob", QUESTIONS, {"center": HOSTILE})
        write_exams(book, tiny, [exam], folder / "viva", EXERCISES)
    return folder


@dataclass
class Opener:
    """Opens pages of a class, and remembers what they complain of and ask for."""

    browser: Browser
    out: Path
    opened: list[Page] = field(default_factory=list)

    def __call__(
        self,
        what: tuple[str, str],
        *,
        width: int = 1280,
        scheme: Literal["light", "dark"] = "light",
    ) -> Seen:
        page = self.browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.opened.append(page)
        seen = Seen(page)
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        folder, name = what
        page.goto((self.out / folder / f"{name}.html").as_uri())
        return seen


@pytest.fixture
def open_page(browser: Browser, out: Path) -> Iterator[Opener]:
    opener = Opener(browser, out)
    yield opener
    for page in opener.opened:
        page.close()


def cells(page: Page, table: str, column: int) -> list[str]:
    """The text of a column, as far as its rows are shown."""
    rows = page.locator(f"table[data-rows={table}] tbody tr:visible")
    return [row.locator("> *").nth(column).inner_text().split("\n")[0] for row in rows.all()]


# --- loading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 390, 360])
@pytest.mark.parametrize(
    "what", [REPORT, FEEDBACK, HOSTILE_FEEDBACK, VIVA], ids=lambda what: "-".join(what)[:14]
)
def test_a_page_loads_alone_in_silence_and_fits(
    open_page: Opener, what: tuple[str, str], width: int
) -> None:
    seen = open_page(what, width=width)
    assert seen.complaints == []
    assert seen.requests == [seen.page.url]
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert seen.page.evaluate(over) == 0


CUT = """() => [...document.querySelectorAll("svg")].filter((svg) => {
  const own = svg.getBoundingClientRect();
  if (!own.width) return false;  // in what is folded
  for (let at = svg.parentElement; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    const scrolls = ["auto", "scroll"].includes(style.overflowX);
    if (scrolls && at.scrollWidth > at.clientWidth) return false;
    if (own.left < box.left - 1 || own.right > box.right + 1) return true;
  }
  return false;
}).length"""


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("what", [REPORT, FEEDBACK], ids=["report", "feedback"])
def test_no_picture_is_cut_and_the_window_does_not_scroll_sideways(
    open_page: Opener, what: tuple[str, str], width: int
) -> None:
    page = open_page(what, width=width).page
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.locator("svg").count()
    assert page.evaluate(CUT) == 0


def test_on_a_narrow_screen_pictures_stand_below_each_other_in_full(open_page: Opener) -> None:
    page = open_page(FEEDBACK, width=360).page
    figure = page.locator("figure").first
    assert figure.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert page.locator("figure svg").count() == 3
    chart = open_page(REPORT, width=360).page.locator(".histogram")
    ends = chart.locator("text:not(.count):visible")
    boxes = [box for end in ends.all() if (box := end.bounding_box())]
    assert len(boxes) == 6
    assert all(one["x"] + one["width"] < two["x"] for one, two in pairwise(boxes))
    assert all(box["height"] > 9 for box in boxes)


def test_a_hostile_name_is_text_and_changes_nothing(open_page: Opener) -> None:
    page = open_page(REPORT).page
    assert page.title() == "A tiny course: the class"
    names = cells(page, "students", 0)
    assert any("<img src=x onerror=alert(1)>" in name for name in names)
    assert page.locator("img").count() == 0


def test_the_policy_lets_no_script_in(open_page: Opener) -> None:
    seen = open_page(REPORT)
    add = "document.body.append(Object.assign(document.createElement('script'), {text: 'x = 1'}))"
    seen.page.evaluate(add)
    assert seen.page.evaluate("typeof x") == "undefined"
    assert "Content Security Policy" in seen.complaints[0]


@pytest.mark.parametrize("what", [REPORT, FEEDBACK], ids=["report", "feedback"])
def test_pages_are_dark_where_that_is_wanted(open_page: Opener, what: tuple[str, str]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (open_page(what, scheme=s).page.evaluate(ground) for s in ("light", "dark"))
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(22, 23, 26)")


FILLS = """() => {
  const opaque = (color) => !/, 0\\)$|^transparent$/.test(color);
  return [...document.querySelectorAll("figure svg text")].map((text) => {
    let at = text;
    while (!opaque(getComputedStyle(at).backgroundColor)) at = at.parentElement;
    return [getComputedStyle(text).fill, getComputedStyle(at).backgroundColor];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", [REPORT, FEEDBACK], ids=["report", "feedback"])
def test_the_text_of_pictures_differs_from_what_is_behind_it(
    open_page: Opener, what: tuple[str, str], scheme: Literal["light", "dark"]
) -> None:
    pairs = open_page(what, scheme=scheme).page.evaluate(FILLS)
    assert pairs
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 23, 26)"}
    # A number on the darkest cell is white in any scheme.
    inks = [ink for ink, _ in pairs if ink != "rgb(255, 255, 255)" or scheme == "dark"]
    assert inks
    for ink, ground in pairs:
        assert ground == grounds[scheme]
        assert ink != ground or ink == "rgb(255, 255, 255)"
    light = [sum(map(int, ink[4:-1].split(", "))) > 300 for ink in inks]
    assert all(light) if scheme == "dark" else not any(light)


LEAST_CONTRAST = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (channels(color)[3] !== 0) return color;
    }
  };
  let least = 21;
  for (const element of document.querySelectorAll("body *:not(script):not(svg):not(svg *)")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const pair = [luminance(getComputedStyle(element).color), luminance(ground(element))];
    least = Math.min(least, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05));
  }
  return least;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", [REPORT, FEEDBACK, VIVA], ids=["report", "feedback", "viva"])
def test_text_stands_out_from_its_ground(
    open_page: Opener, what: tuple[str, str], scheme: Literal["light", "dark"]
) -> None:
    assert open_page(what, scheme=scheme).page.evaluate(LEAST_CONTRAST) >= 4.5


# --- who does not see, or has no mouse -----------------------------------------------------------


@pytest.mark.parametrize("what", [REPORT, FEEDBACK, VIVA], ids=["report", "feedback", "viva"])
def test_everything_has_a_name_and_headings_skip_no_level(
    open_page: Opener, what: tuple[str, str]
) -> None:
    page = open_page(what).page
    levels = page.eval_on_selector_all(
        "h1, h2, h3, h4", "found => found.map(heading => +heading.tagName[1])"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.locator("html[lang]").count() == 1
    assert page.locator("main").count() == 1
    for entry in page.locator("input").all():
        assert page.locator(f"label[for={entry.get_attribute('id')}]").inner_text()
    unnamed = (
        "svg:not([aria-label]):not([aria-labelledby]), nav:not([aria-label]), table:not(:has(th))"
    )
    assert page.locator(unnamed).count() == 0
    empty = "found => found.filter(one => !one.textContent.trim()).length"
    assert page.eval_on_selector_all("button, a, summary, th", empty) == 0
    ids = page.eval_on_selector_all("[id]", "found => found.map(one => one.id)")
    assert len(ids) == len(set(ids))
    targets = page.eval_on_selector_all("a[href^='#']", "found => found.map(one => one.hash)")
    assert {target[1:] for target in targets} <= set(ids)


def test_what_scrolls_sideways_can_be_reached_with_keys(open_page: Opener) -> None:
    for what in (REPORT, FEEDBACK, VIVA):
        page = open_page(what, width=390).page
        unreachable = (
            "found => found.filter(one => one.scrollWidth > one.clientWidth + 1 && one.tabIndex < 0"
            " && getComputedStyle(one).overflowX === 'auto').length"
        )
        assert page.eval_on_selector_all("body *", unreachable) == 0


def test_the_first_key_leads_past_the_controls(open_page: Opener) -> None:
    page = open_page(REPORT).page
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the content")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_table_is_sorted_with_keys(open_page: Opener) -> None:
    page = open_page(REPORT).page
    button = page.locator("table[data-rows=students] th button", has_text="Total")
    button.focus()
    page.keyboard.press("Enter")
    assert cells(page, "students", 2) == ["4", "2.8", "1", "1", "0.5", "0", "–"]
    page.keyboard.press("Space")
    assert cells(page, "students", 2) == ["0", "0.5", "1", "1", "2.8", "4", "–"]


# --- sorting and filtering -----------------------------------------------------------------------


def test_a_click_on_a_column_sorts_by_it_and_says_so(open_page: Opener) -> None:
    page = open_page(REPORT).page
    assert cells(page, "students", 0)[1:] == [
        "Ada Lovelace ada",
        "Bob Byron bob",
        "dan",
        "eve",
        "finn",
        "Zoë Absent zoe",
    ]
    head = page.locator("table[data-rows=students] th", has_text="Status")
    head.locator("button").click()
    assert cells(page, "students", 1)[0] == "absent"
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("table[data-rows=students] [aria-sort=ascending]").count() == 1
    head.locator("button").click()
    assert cells(page, "students", 1)[-1] == "absent"
    assert head.get_attribute("aria-sort") == "descending"


def test_exercises_are_sorted_by_numbers_with_what_is_not_known_last(open_page: Opener) -> None:
    page = open_page(REPORT).page
    button = page.locator("table[data-rows=exercises] th button", has_text="All points")
    button.click()
    assert cells(page, "exercises", 0) == ["center", "weigh"]
    button.click()
    assert cells(page, "exercises", 0) == ["weigh", "center"]


@pytest.mark.parametrize(
    ("typed", "students"),
    [
        ("byron", ["Bob Byron bob"]),
        ("ABSENT", ["Zoë Absent zoe"]),
        ("late", ["Bob Byron bob"]),
        (MISTAKE, ["Bob Byron bob", "dan", "eve"]),
        ("weigh axis", ["Bob Byron bob", "dan", "eve"]),
        ("nobody is called so", []),
    ],
)
def test_students_are_found_by_name_status_exercise_and_mistake(
    open_page: Opener, typed: str, students: list[str]
) -> None:
    page = open_page(REPORT).page
    page.get_by_label("Filter").fill(typed)
    assert cells(page, "students", 0) == students
    expect(page.get_by_role("status")).to_contain_text(f"{len(students)} of 7 students")
    page.get_by_label("Filter").fill("")
    assert len(cells(page, "students", 0)) == 7


def test_a_mistake_leads_to_those_who_made_it_whatever_is_typed(open_page: Opener) -> None:
    page = open_page(REPORT).page
    page.get_by_label("Filter").fill("axis")
    page.evaluate("location.hash = '#s1'")  # Ada, who is not among them
    row = page.locator("tr:target")
    expect(row).to_be_in_viewport()
    expect(row.locator("a").first).to_have_text("Ada Lovelace")
    link = page.locator("table[data-rows=mistakes] a", has_text="Bob Byron")
    link.click()
    expect(page.locator("tr:target a").first).to_have_text("Bob Byron")
    page.locator("tr:target a").first.click()
    expect(page.locator("h1")).to_have_text("Bob Byron")


# --- code ----------------------------------------------------------------------------------------


def test_submissions_that_are_alike_stand_side_by_side_on_demand(open_page: Opener) -> None:
    page = open_page(REPORT).page
    codes = page.locator("table[data-rows=pairs] .code")
    expect(codes.first).to_be_hidden()
    page.locator("table[data-rows=pairs] summary").first.click()
    left, right = (box for code in codes.all() if (box := code.bounding_box()))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert codes.first.locator(".line").count() == len(ANSWER.splitlines())
    page.get_by_label("Filter").fill("masked_fill")
    expect(page.get_by_role("status")).to_contain_text("0 of 1 pairs")


def test_the_students_lines_are_lines_of_which_one_is_marked(open_page: Opener) -> None:
    page = open_page(FEEDBACK).page
    code = page.locator(".own .code")
    expect(code).to_be_visible()
    tops = [box["y"] for line in code.locator(".line").all() if (box := line.bounding_box())]
    assert len({*tops}) == 4
    (mark,) = code.locator("mark").all_inner_texts()
    assert mark.strip().startswith("hidden = scores.masked_fill(")
    marked, plain = (code.locator(f".line{kind}").first for kind in (".marked", ":not(.marked)"))
    ground = "one => getComputedStyle(one).backgroundColor"
    assert marked.evaluate(ground) != plain.evaluate(ground)


# --- folding and paper ---------------------------------------------------------------------------


def opened(page: Page) -> list[bool]:
    return list(page.eval_on_selector_all("details", "found => found.map(one => one.open)"))


def test_what_is_wrong_is_open_and_the_rest_is_folded(open_page: Opener) -> None:
    page = open_page(FEEDBACK).page
    assert page.locator("details.exercise[open] h3 code").all_inner_texts() == ["weigh"]
    page.get_by_role("button", name="Unfold everything").click()
    assert all(opened(page))
    page.get_by_role("button", name="Fold everything").click()
    assert not any(opened(page))


def test_a_link_to_an_exercise_unfolds_it(open_page: Opener) -> None:
    page = open_page(FEEDBACK).page
    page.evaluate("location.hash = '#center'")
    expect(page.locator("#center")).to_have_attribute("open", "")


def test_on_paper_all_but_what_passed_is_open_and_nothing_is_to_press(open_page: Opener) -> None:
    for what in (REPORT, FEEDBACK):
        page = open_page(what).page
        folded = page.locator("details:not([open])")
        quiet = page.locator("details.quiet:not([open])")
        before = opened(page)
        # The page hears of the paper with the next frame that is drawn: wait for what it does.
        page.emulate_media(media="print")
        expect(folded).to_have_count(quiet.count())
        assert quiet.count()
        assert page.locator(".passed:visible, .rest .tests:visible").count() == 0
        expect(page.locator("input:visible, nav:visible, #unfold:visible")).to_have_count(0)
        loose = "found => found.filter(one => getComputedStyle(one).breakAfter !== 'avoid').length"
        assert page.eval_on_selector_all("h1, h2, thead, summary", loose) == 0
        page.emulate_media(media="screen")
        expect(folded).to_have_count(before.count(False))
        assert opened(page) == before


def test_the_replies_of_an_oral_exam_are_folded_on_a_screen_and_open_on_paper(
    open_page: Opener,
) -> None:
    page = open_page(VIVA).page
    replies = page.locator(".reply b")
    expect(replies).to_have_text(["(2, 3)", "A: Nothing.", f"B: {LINES[5].text.strip()}"])
    expect(page.locator(".reply b:visible")).to_have_count(0)
    page.emulate_media(media="print")
    expect(page.locator(".reply b:visible")).to_have_count(3)
    page.emulate_media(media="screen")
    expect(page.locator(".reply b:visible")).to_have_count(0)
