"""Each idea of the five notebooks, and its place in the course: `exercises/ideas.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.afterwards import afterwards
from grader.course.course import Course

Ideas = Mapping[str, Mapping[str, Sequence[str]]]  # places by idea, by notebook
NOTEBOOKS = ("000", "001", "002", "003", "004")


@dataclass(frozen=True)
class Place:
    """Where an idea is: an exercise, or what a command shows."""

    command: str  # "after", "look" or "try"; empty for an exercise
    name: str
    words: str = ""  # of the text after an exercise

    @property
    def shown(self) -> str:
        """As the table says it."""
        return f"`grader {self.command} {self.name}`" if self.command else f"`{self.name}`"

    def exists(self, course: Course) -> bool:
        """Whether the course has it, and says what it should."""
        if not self.command:
            return self.name in course.exercises
        if self.command == "try":
            return any(self.name in names for names in course.experiments.values())
        if self.command == "look":
            return course.look_file(self.name).is_file()
        found = afterwards(course, self.name) if self.name in course.exercises else None
        text = " ".join(paragraph for _, paragraph in found.sections) if found else ""
        return self.command == "after" and bool(self.words) and self.words in text


def place(text: str) -> Place:
    """A place as it is written in the file."""
    before, _, words = text.partition(": ")
    command, _, name = before.rpartition(" ")
    return Place(command, name, words)


def read_ideas(folder: Path) -> Ideas:
    """The table of a course's folder."""
    ideas: Ideas = tomllib.loads((folder / "ideas.toml").read_text("utf-8"))
    return ideas


def problems(ideas: Ideas, course: Course) -> Iterator[str]:
    """What is wrong with a table: a notebook without a row, an idea without a place."""
    for notebook in NOTEBOOKS:
        if not any(title.startswith(notebook) and rows for title, rows in ideas.items()):
            yield f"{notebook} has no row"
    for title, rows in ideas.items():
        for idea, places in rows.items():
            if not places:
                yield f"{title}: {idea} has no place"
            for text in places:
                if not place(text).exists(course):
                    yield f"{title}: {idea}: there is no {text}"


def table(ideas: Ideas) -> str:
    """One row an idea, by notebook."""
    rows = ["| notebook | idea | place |", "|---|---|---|"]
    for title, of in ideas.items():
        for number, (idea, places) in enumerate(of.items()):
            shown = ", ".join(place(text).shown for text in places)
            rows.append(f"| {title if not number else ''} | {idea} | {shown} |")
    return "\n".join(rows) + "\n"
