"""Times: read from texts, written in UTC, and shown in a course's zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo

from grader.records.faults import CallError

MOODLE = "%A, %d %B %Y, %I:%M %p"  # Moodle's form in English
# Other names of zones are refused: each may mean several zones, and which of them Python knows
# depends on the computer.
_UTC = re.compile(r"(?i) ?(utc|gmt)$")


def read_time(text: str, zone: tzinfo | None) -> datetime:
    """The time in a text, in UTC; a text without an offset is in the course's zone.

    Raises `CallError` if the text is no time, or if neither it nor the course names a zone.
    """
    found = _parsed(" ".join(text.split()))
    if found is None:
        raise CallError(f"{text!r} is no time: write a date and a time, as in 2026-12-04 23:59")
    if found.tzinfo is None:
        if zone is None:
            raise CallError(
                f'{text!r} has no zone: set `zone` in course.toml (zone = "Europe/Berlin"), or '
                "write an offset: 2026-12-04 23:59+01:00"
            )
        found = found.replace(tzinfo=zone)
    moment = sensible(found)
    if moment is None:
        raise CallError(f"{text!r} is no time at which somebody can have submitted")
    return moment


def _parsed(text: str) -> datetime | None:
    if ":" not in text:  # a date alone would mean its first minute, which surprises people
        return None
    utc = _UTC.search(text)
    plain = text[: utc.start()] if utc is not None else text
    for read in (datetime.fromisoformat, lambda text: datetime.strptime(text, MOODLE)):
        try:
            found = read(plain)
        except ValueError:
            continue
        if utc is None:
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else None
    return None


def sensible(moment: datetime) -> datetime | None:
    """The time in UTC, to the second; None if no student can have submitted then."""
    try:
        found = moment.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError, OSError):  # year 1 fails in some zones
        return None
    return found if 2000 <= found.year < 2100 else None


def written_time(moment: datetime) -> str:
    """A time as the gradebook stores it: ISO 8601 in UTC, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def shown_time(moment: datetime, zone: tzinfo | None) -> str:
    """A time for people, in a zone or in UTC: ``2026-12-01 23:59 CET``."""
    return f"{moment.astimezone(zone or UTC):%Y-%m-%d %H:%M %Z}"
