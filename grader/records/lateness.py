"""Late submissions: how late they are, and which share of the points a rule subtracts.

A rule is a text in ``course.toml``, such as ``10% a day, 3 days``. Its parts, between commas:

- ``10% a day``: so much for each started day (or hour, or week) after the due time.
- ``20%``: so much for any late submission. ``50% after 2 days``: so much from then on.
- ``3 days``: a submission that is later still earns nothing.
- ``at most 40%``: no more is subtracted within that time.

A percentage is a share of the points that the student would have without it. A day has 24 hours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Literal

import msgspec

SECONDS = {"minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
WHOLE = 10_000  # a share of 100 %, in hundredths of a percent

_UNIT = r"(?P<unit>minute|hour|day|week)s?"
_SPAN = re.compile(rf"(?P<count>\d{{1,4}}) ?{_UNIT}")
_PERCENT = r"(?P<percent>\d{1,3}(\.\d{1,2})?) ?%"
_EACH = re.compile(rf"{_PERCENT} (an?|per|each|every) {_UNIT}")
_STEP = re.compile(rf"{_PERCENT}( after (?P<after>.+))?")
_MOST = re.compile(rf"at most {_PERCENT}")

RULE = (
    'write a rule such as "10% a day, 3 days", "5% an hour, at most 50%", "20%" or '
    '"10%, 50% after 2 days, 7 days"'
)
Counts = Literal["last", "last in time", "best"]


@dataclass(frozen=True)
class Rule:
    """A rule for late submissions; shares are in hundredths of a percent."""

    steps: Sequence[tuple[int, int]] = ()  # from so many seconds on, the share
    every: int = 0  # seconds; 0 if the share does not grow with time
    each: int = 0  # the share for each started interval of `every` seconds
    limit: int | None = None  # seconds after which a submission earns nothing
    most: int = WHOLE

    @property
    def fixed(self) -> int | None:
        """The share for any late submission; None if the share depends on the time."""
        one = len(self.steps) == 1 and self.steps[0][0] == 0
        return min(self.steps[0][1], self.most) if one and self.limit is None else None

    def share(self, seconds: int) -> int:
        """The share that a submission loses, which came so many seconds after the due time."""
        if seconds <= 0:
            return 0
        if self.limit is not None and seconds > self.limit:
            return WHOLE
        grown = self.each * -(-seconds // self.every) if self.every else 0
        steps = [share for after, share in self.steps if seconds > after]
        return min(max([grown, *steps]), self.most)


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rule of an assignment for late submissions, as the gradebook keeps it."""

    due: datetime
    by: Literal["us", "lms"] = "lms"  # who subtracts points
    rule: str = ""
    grace: int = 0  # seconds after the due time in which a submission is not yet late
    until: datetime | None = None  # the last moment at which a submission earns points
    counts: Counts = "last"


@dataclass(frozen=True)
class Lateness:
    """How late a submission is, and the share of the points that it loses."""

    seconds: int | None  # after the due time; None if only the system's mark is known
    share: int  # in hundredths of a percent
    words: str  # for the student


class RuleError(ValueError):
    """A rule or a span of time that cannot be read; its text says what to write."""


@lru_cache
def rule_of(text: str) -> Rule:
    """Read a rule; raise `RuleError` if the text is not one. The empty text subtracts nothing."""
    steps: list[tuple[int, int]] = []
    every, each, limit, most = 0, 0, None, WHOLE
    for part in filter(None, (" ".join(one.split()).lower() for one in text.split(","))):
        if match := _EACH.fullmatch(part):
            if every:
                raise RuleError(f"{part!r} is a second share that grows with time: {RULE}")
            every, each = SECONDS[match["unit"]], _share(match["percent"])
        elif match := _MOST.fullmatch(part):
            most = _share(match["percent"])
        elif _SPAN.fullmatch(part):
            if limit is not None:
                raise RuleError(f"{part!r} is a second limit: {RULE}")
            limit = span_of(part)
        elif match := _STEP.fullmatch(part):
            after = span_of(match["after"]) if match["after"] else 0
            if any(after == at for at, _ in steps):
                raise RuleError(f"{part!r} is a second share from the same time on: {RULE}")
            steps.append((after, _share(match["percent"])))
        else:
            raise RuleError(f"{part!r} is no part of a rule: {RULE}")
    if text.strip() and not (every or steps):
        raise RuleError(f"{text!r} has no percentage: {RULE}")
    return Rule(tuple(sorted(steps)), every, each, limit, most)


def span_of(text: str) -> int:
    """The seconds of a text such as ``30 minutes``; raises `RuleError` if it is none."""
    match = _SPAN.fullmatch(" ".join(text.split()).lower())
    if match is None:
        raise RuleError(f"{text!r} is no time: write a number and minutes, hours, days or weeks")
    return int(match["count"]) * SECONDS[match["unit"]]


def _share(percent: str) -> int:
    share = round(float(percent) * 100)
    if not 0 < share <= WHOLE:
        raise RuleError(f"{percent}% is no share from above 0% to 100%")
    return share


def lateness(
    policy: Policy, submitted: datetime | None, marked: bool, extended: datetime | None
) -> Lateness | None:
    """How late a submission is; None if it is in time, or if nothing is known.

    `marked` says that the system marks it as late, and `extended` is the student's own due time.
    """
    rule = rule_of(policy.rule) if policy.by == "us" else Rule()
    if submitted is None:
        if not marked or extended is not None:
            return None
        share = rule.fixed or 0
        unknown = "" if share or policy.by == "lms" else ", at an unknown time: no points are lost"
        return Lateness(None, share, f"submitted late{unknown}")
    due, until = policy.due, policy.until
    if extended is not None:
        due = max(due, extended)
        until = max(until, extended) if until is not None else None
    seconds = int((submitted - due).total_seconds())
    if seconds <= policy.grace:
        return None
    closed = policy.by == "us" and until is not None and submitted > until
    share = WHOLE if closed else rule.share(seconds)
    return Lateness(seconds, share, f"submitted {spoken(seconds)} late")


def spoken(seconds: int) -> str:
    """A span in words, to the minute: ``2 days 3 hours``, ``5 minutes``."""
    minutes = -(-seconds // 60)
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    parts = [(days, "day"), (hours, "hour")] if days else [(hours, "hour"), (rest, "minute")]
    words = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in parts if count]
    return " ".join(words) or "0 minutes"


def percent(share: int) -> str:
    """A share as people write it: ``12.5 %``."""
    return f"{share / 100:g} %"
