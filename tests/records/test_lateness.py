"""Rules for late submissions: what they say, and what they subtract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.records.lateness import (
    WHOLE,
    Policy,
    RuleError,
    lateness,
    rule_of,
    span_of,
    spoken,
)

DUE = datetime(2026, 12, 1, 22, 59, tzinfo=UTC)
HOUR, DAY = 3600, 86400


@pytest.mark.parametrize(
    ("rule", "seconds", "share"),
    [
        ("10% a day, 3 days", 1, 1000),
        ("10% a day, 3 days", DAY, 1000),
        ("10% a day, 3 days", DAY + 1, 2000),
        ("10% a day, 3 days", 3 * DAY, 3000),
        ("10% a day, 3 days", 3 * DAY + 1, WHOLE),
        ("2.5 % per hour, at most 50%", 3 * HOUR, 750),
        ("2.5 % per hour, at most 50%", 3 * DAY, 5000),
        ("20%", 5, 2000),
        ("20%", 50 * DAY, 2000),
        ("10%, 50% after 2 days, 7 days", 2 * DAY, 1000),
        ("10%, 50% after 2 days, 7 days", 2 * DAY + 1, 5000),
        ("10%, 50% after 2 days, 7 days", 8 * DAY, WHOLE),
        ("40% a day", 3 * DAY, WHOLE),
        ("5% a week", 8 * DAY, 1000),
        ("", DAY, 0),
        ("100% after 1 hour", HOUR, 0),
    ],
)
def test_a_rule_says_which_share_is_lost(rule: str, seconds: int, share: int) -> None:
    assert rule_of(rule).share(seconds) == share


@pytest.mark.parametrize(
    "text",
    ["10", "ten percent", "10% a fortnight", "3 days", "110%", "0%", "10% a day, 20% a day",
     "10%, 20%", "10% a day, 3 days, 4 days", "10% after", "-5%", "10% a day; 3 days"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RuleError, match=r"%|minutes"):
        rule_of(text)


def test_spans_are_numbers_of_minutes_hours_days_or_weeks() -> None:
    spans = ("30 minutes", "1 hour", "2 days", "1 week")
    assert [span_of(text) for text in spans] == [1800, HOUR, 2 * DAY, 7 * DAY]
    assert [spoken(n) for n in (30, HOUR, DAY + 2 * HOUR, 90 * 60)] == [
        "1 minute", "1 hour", "1 day 2 hours", "1 hour 30 minutes",
    ]  # fmt: skip


def late(policy: Policy, after: float, **known: object) -> tuple[int | None, int] | None:
    """Seconds and share of a submission so many hours after the due time."""
    found = lateness(policy, DUE + timedelta(hours=after), False, known.get("extended"))  # type: ignore[arg-type]
    return (found.seconds, found.share) if found else None


def test_within_the_grace_nothing_is_late_and_after_it_all_of_the_time_counts() -> None:
    policy = Policy(DUE, "us", "10% an hour", grace=1800)
    assert late(policy, 0.5) is None
    assert late(policy, 0.51) == (1836, 1000)
    assert late(policy, -1) is None


def test_an_extension_moves_the_due_time_and_the_last_moment() -> None:
    policy = Policy(DUE, "us", "10% a day", until=DUE + timedelta(days=2))
    longer = DUE + timedelta(days=5)
    assert late(policy, 49) == (49 * HOUR, WHOLE)
    assert late(policy, 49, extended=longer) is None
    assert late(policy, 121, extended=longer) == (HOUR, WHOLE)
    assert late(policy, 30, extended=DUE - timedelta(days=1)) == (30 * HOUR, 2000)


def test_the_learning_platform_subtracts_by_its_own_rule_and_we_only_report() -> None:
    assert late(Policy(DUE, "lms"), 26) == (26 * HOUR, 0)


def test_a_mark_without_a_time_costs_only_a_fixed_share() -> None:
    fixed, growing = Policy(DUE, "us", "20%"), Policy(DUE, "us", "10% a day")
    assert getattr(lateness(fixed, None, True, None), "share", None) == 2000
    unknown = lateness(growing, None, True, None)
    assert unknown is not None
    assert (unknown.seconds, unknown.share) == (None, 0)
    assert "no points are lost" in unknown.words
    assert lateness(fixed, None, True, DUE + timedelta(days=1)) is None
    assert lateness(fixed, None, False, None) is None


@given(st.integers(1, 30 * DAY), st.integers(1, 30 * DAY))
def test_who_submits_later_never_loses_less(one: int, other: int) -> None:
    for text in ("10% a day, 3 days", "2% an hour, at most 60%", "10%, 50% after 2 days, 7 days"):
        rule = rule_of(text)
        first, second = sorted((one, other))
        assert 0 <= rule.share(first) <= rule.share(second) <= WHOLE
