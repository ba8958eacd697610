"""Functions that declare mistakes, accepted answers and common mistakes in a library's file."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from grader.course.statements import COMPUTES

VariantKind = Literal["mistake", "accepted", "pair"]
# Maps old text to new text. An old string must occur once in the reference. A pattern must match at
# least once, and every match is replaced.
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
    # The exercise's mistakes that no test can distinguish from this mistake, with the reasons.
    same_as: Mapping[str, str] = field(default_factory=dict)
    common: str = ""  # the slug of a common mistake, if the variant comes from the common table
    breaks: tuple[str, ...] = (COMPUTES,)  # keys of the statement's rules that the variant breaks
    place: str = ""  # file and line, for authors

    @property
    def id(self) -> str:
        """``causal_mask/hides-itself``."""
        return f"{self.exercise}/{self.slug}"


class BadVariant(Exception):
    """Raised for an invalid variant; the text gives the reason."""

    def __init__(self, text: str, line: int | None = None) -> None:
        """`line` is the line of the declaration, if it is known."""
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Common:
    """A row of the table of common mistakes: the texts, and the changes that make the mistake."""

    slug: str
    title: str
    hint: str
    changes: Sequence[Change]
    same_as: Mapping[str, str]
    breaks: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Entry:
    """The arguments of a call of `mistake` or `accepted`."""

    exercise: str
    slug: str
    kind: VariantKind
    title: str
    hint: str
    change: Change
    same_as: Mapping[str, str]
    common: str = ""
    name: str = ""  # the name of the decorated definition
    but: Sequence[str] | None = None  # if given, the entry means all common mistakes except these
    breaks: tuple[str, ...] = ()
    together: tuple[str, ...] = ()  # if given, the entry makes these mistakes at once
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
    together: Sequence[str] = (),
) -> Callable[[Anything], Anything]:
    """Declare a wrong answer to an exercise, or to several exercises that the change fits.

    The title says in a line what is wrong; the hint asks a question and does not give the answer.
    `change` replaces parts of the reference's text. Without a change, the call decorates a
    definition. `same_as` names mistakes that no test can distinguish from this mistake. `common`
    names a mistake of the common table, which provides the arguments that are missing here.
    `breaks` are the keys of the statement's rules that the answer breaks; the default is the rule
    that the result is right (`COMPUTES`).

    `together` are the slugs of two mistakes, or of three, that people often make at once. They must
    be declared above. The entry takes its title, hint and rules from them, and makes all their
    changes, unless it has a change or definition of its own. Such a pair is named only if no single
    mistake fits.
    """
    if isinstance(breaks, str):
        raise BadVariant(f"breaks={breaks!r} is text: write breaks=({breaks!r},)")
    if isinstance(together, str) or len(together) == 1:
        raise BadVariant(f"together={together!r} is no pair: name two mistakes or more")
    return _add(
        exercise,
        Entry(
            "",
            slug,
            "pair" if together else "mistake",
            title,
            hint,
            {} if change is None else _checked(change),
            same_as or {},
            common,
            breaks=tuple(breaks),
            together=tuple(together),
        ),
    )


def common_mistakes(exercise: str | Sequence[str], *slugs: str, but: Sequence[str] = ()) -> None:
    """Declare common mistakes of an exercise, or of several, as the common table describes them.

    Without slugs, the exercise gets all common mistakes whose changes fit its reference, except
    those in `but` and those that the exercise declares itself.
    """
    if slugs and but:
        raise BadVariant(f"{exercise}: give either slugs or `but`, not both")
    for slug in slugs:
        mistake(exercise, common=slug)
    if not slugs:
        _add(exercise, Entry("", "", "mistake", "", "", {}, {}, but=tuple(but)))


def accepted(
    exercise: str | Sequence[str], slug: str, title: str, *, change: Change | None = None
) -> Callable[[Anything], Anything]:
    """Declare a right answer in another form, which must get full points."""
    changed = {} if change is None else _checked(change)
    return _add(exercise, Entry("", slug, "accepted", title, "", changed, {}))


def common(
    slug: str,
    title: str,
    *,
    hint: str,
    change: Change | Sequence[Change] | None = None,
    same_as: Mapping[str, str] | None = None,
    breaks: Sequence[str] = (),
) -> None:
    """Declare a row of the common table: a mistake that people make in many exercises.

    Of several changes, an exercise uses the first that fits its reference. Without a change, every
    exercise provides its own change or definition. `breaks` is as in `mistake`.
    """
    several = isinstance(change, list | tuple) and change
    changes = map(_checked, change if several else [change]) if change is not None else ()
    COMMONS.append(Common(slug, title, hint, tuple(changes), same_as or {}, tuple(breaks), _line()))


def _checked(change: Any) -> Change:
    """The change as a dict; raises `BadVariant` if it is no change."""
    parts = change.items() if isinstance(change, Mapping) else ()
    if parts and all(isinstance(a, str | re.Pattern) and isinstance(b, str) for a, b in parts):
        return dict(parts)
    raise BadVariant(f"change={change!r} is no change: map old text to new text")


def _line() -> int:
    """The line that is running in the library's file, found in the callers' frames."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_lineno


def _add(exercise: str | Sequence[str], entry: Entry) -> Callable[[Anything], Anything]:
    """Add the entry for each exercise; return a decorator that adds the definition's name."""
    entry, start = replace(entry, line=_line()), len(ENTRIES)
    for name in [exercise] if isinstance(exercise, str) else exercise:
        ENTRIES.append(replace(entry, exercise=name))
    places = range(start, len(ENTRIES))

    def decorate(definition: Anything) -> Anything:
        for place in places:
            name = str(getattr(definition, "__name__", ""))
            ENTRIES[place] = replace(ENTRIES[place], name=name)
        return definition

    return decorate
