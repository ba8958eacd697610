"""Times: read from texts, written in UTC, and shown in a course's zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from grader.records.faults import CallError

FORMS = (  # apart from ISO 8601: nbgrader's form, and Moodle's in English
    "%Y-%m-%d %H:%M:%S.%f %Z",
    "%Y-%m-%d %H:%M:%S %Z",
    "%Y-%m-%d %H:%M %Z",
    "%A, %d %B %Y, %I:%M %p",
)


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
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in FORMS:
        try:
            found = datetime.strptime(text, form)
        except ValueError:
            continue
        return found.replace(tzinfo=UTC) if text.endswith(("UTC", "GMT", "Z")) else found
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
