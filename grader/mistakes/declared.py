"""What a file of the library declares: mistakes, accepted answers, common mistakes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from grader.course.statements import COMPUTES

VariantKind = Literal["mistake", "accepted"]
# What is replaced, and by what. A string occurs in the reference once; a pattern at least once, and
# every match is replaced.
Change = Mapping[str | re.Pattern[str], str]
Anything = TypeVar("Anything")


@dataclass(frozen=True)
class Variant:
    """One known answer to an exercise."""

    exercise: str
    slug: str
    kind: VariantKind
    title: str
    hint: str
    definition: str  # Python text that defines the exercise's name
    change: Change = field(default_factory=dict)
    # Other mistakes of the exercise that no test can tell from this one, each with the reason.
    same_as: Mapping[str, str] = field(default_factory=dict)
    common: str = ""  # its slug in the table of common mistakes, if it is one
    breaks: tuple[str, ...] = (COMPUTES,)  # the rules of the statement that it does not keep

    @property
    def id(self) -> str:
        """``causal_mask/hides-itself``."""
        return f"{self.exercise}/{self.slug}"


class BadVariant(Exception):
    """A variant that is not of the declared form; the text says which, and why."""

    def __init__(self, text: str, line: int | None = None) -> None:
        """`line` is that of the file which declares it, where one is to blame."""
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Common:
    """A mistake of the common table: its words, and the changes that may make it."""

    slug: str
    title: str
    hint: str
    changes: Sequence[Change]
    same_as: Mapping[str, str]
    breaks: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Entry:
    """What a call of `mistake` or `accepted` said."""

    exercise: str
    slug: str
    kind: VariantKind
    title: str
    hint: str
    change: Change
    same_as: Mapping[str, str]
    common: str = ""
    name: str = ""  # of the definition below it
    but: Sequence[str] | None = None  # it stands for all common mistakes that fit, but these
    breaks: tuple[str, ...] = ()
    line: int = 0


ENTRIES: list[Entry] = []
COMMONS: list[Common] = []


def mistake(
    exercise: str | Sequence[str],
    slug: str = "",
    title: str = "",
    *,
    hint: str = "",
    change: Change | None = None,
    same_as: Mapping[str, str] | None = None,
    common: str = "",
    breaks: Sequence[str] = (),
) -> Callable[[Anything], Anything]:
    """A wrong answer. The title says what is wrong, in a line; the hint asks, and does not tell.

    It is one of the exercise, or of each of several: a change that fits all their references.
    `change` replaces parts of the reference's text; without it, this decorates a definition.
    `same_as` names mistakes that no test can tell from this one. `common` names a mistake of the
    common table, which provides whatever is not given here. `breaks` are the rules of the
    statement that the answer does not keep, by their keys; by default it computes something else.
    """
    stated = {} if change is None else _stated(change)
    return _noted(
        exercise,
        Entry(
            "",
            slug,
            "mistake",
            title,
            hint,
            stated,
            same_as or {},
            common,
            breaks=tuple(breaks),
        ),
    )


def common_mistakes(exercise: str | Sequence[str], *slugs: str, but: Sequence[str] = ()) -> None:
    """Mistakes of an exercise, or of several, that are as the common table has them.

    Without slugs, all that fit its reference, `but` those that are no mistakes there; one that the
    exercise brings itself is not added again.
    """
    if slugs and but:
        raise BadVariant(f"{exercise}: `but` leaves out some of all, not of those that are named")
    for slug in slugs:
        mistake(exercise, common=slug)
    if not slugs:
        _noted(exercise, Entry("", "", "mistake", "", "", {}, {}, but=tuple(but)))


def accepted(
    exercise: str | Sequence[str], slug: str, title: str, *, change: Change | None = None
) -> Callable[[Anything], Anything]:
    """A right answer, of one exercise or of several, that looks different: it gets full points."""
    stated = {} if change is None else _stated(change)
    return _noted(exercise, Entry("", slug, "accepted", title, "", stated, {}))


def common(
    slug: str,
    title: str,
    *,
    hint: str,
    change: Change | Sequence[Change] | None = None,
    same_as: Mapping[str, str] | None = None,
    breaks: Sequence[str] = (),
) -> None:
    """A mistake that people make in many exercises: a row of the common table.

    Of several changes an exercise gets the first that fits its reference. Without a change, every
    exercise brings its own. `breaks` is as in `mistake`.
    """
    several = isinstance(change, list | tuple) and change
    changes = map(_stated, change if several else [change]) if change is not None else ()
    COMMONS.append(Common(slug, title, hint, tuple(changes), same_as or {}, tuple(breaks), _line()))


def _stated(change: Any) -> Change:
    """A change as it was given; raises `BadVariant` for what is none."""
    parts = change.items() if isinstance(change, Mapping) else ()
    if parts and all(isinstance(a, str | re.Pattern) and isinstance(b, str) for a, b in parts):
        return dict(parts)
    raise BadVariant(f"change={change!r} is no change: name what is replaced, and by what")


def _line() -> int:
    """The line of the library's file that is running."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_lineno


def _noted(exercise: str | Sequence[str], said: Entry) -> Callable[[Anything], Anything]:
    """Note what was said of an exercise, or of each of several; and of the definition below it."""
    said, start = replace(said, line=_line()), len(ENTRIES)
    for name in [exercise] if isinstance(exercise, str) else exercise:
        ENTRIES.append(replace(said, exercise=name))
    places = range(start, len(ENTRIES))

    def decorate(definition: Anything) -> Anything:
        for place in places:
            name = str(getattr(definition, "__name__", ""))
            ENTRIES[place] = replace(ENTRIES[place], name=name)
        return definition

    return decorate
