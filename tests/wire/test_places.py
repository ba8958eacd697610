"""Places in a submission: where a line is, by file and by cell."""

from __future__ import annotations

import pytest

from grader.feedback.sentences import at
from grader.wire import KERNEL, Place, SourceText, lines_around
from grader.wire.source import read_file

SOURCES = (
    SourceText("deep/softmax.py", ("one\r\ntwo\rthree",)),
    SourceText("hw.ipynb", ("import torch\r", "\ndef f(x):\n    return x")),
)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Place("deep/softmax.py", 2), "deep/softmax.py line 2"),
        (Place("hw.ipynb", 3, cell=2), "hw.ipynb cell 2 line 3"),
        (Place(KERNEL, 3, cell=2), "cell [2] line 3"),
        (None, "a line that could not be found"),
    ],
)
def test_a_sentence_names_the_file_the_cell_and_the_line(place: Place | None, words: str) -> None:
    assert at(place) == words


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (Place("deep/softmax.py", 3), ["one", "two", "three"]),
        (Place("hw.ipynb", 2, cell=1), ["import torch", ""]),
        (Place("hw.ipynb", 1, cell=2), ["", "def f(x):", "    return x"]),
    ],
)
def test_the_lines_around_a_place_are_those_of_its_file_or_cell(
    place: Place, lines: list[str]
) -> None:
    assert lines_around(place, SOURCES) == lines


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_each_line_is_found_again_by_the_place_that_is_told(source: SourceText) -> None:
    file = read_file(source)
    for count, line in enumerate(file.lines, start=1):
        place = file.place(count)
        assert lines_around(place, SOURCES)[place.line - 1] == line
        assert place.text == line.strip()


@pytest.mark.parametrize(
    "forged",
    [
        Place("softmax.py", 1),
        Place("hw.ipynb cell 2", 1),
        Place("hw.ipynb", 1, cell=3),
        Place("hw.ipynb", 1, cell=-1),
        Place("hw.ipynb", 1, cell=10**9),
        Place("hw.ipynb", 4, cell=2),
        Place("hw.ipynb", 0, cell=2),
        Place("deep/softmax.py", 2, cell=2),
    ],
)
def test_around_a_place_that_is_in_no_file_there_are_no_lines(forged: Place) -> None:
    assert lines_around(forged, SOURCES) == []
