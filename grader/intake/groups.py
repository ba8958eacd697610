"""Groups on the roster: who gets the grade of a submission that one member made for all.

A submission is a group's if its name is the group's name, or if one member made it. Several
members may submit the same text. If they submit different texts, it is unclear which of them
counts, and no member gets a grade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.intake.names import shown
from grader.intake.roster import Roster
from grader.intake.submission import Submission
from grader.records.rows import Person, called, listed

TEAMS = "the members of a group share one grade"
NO_TEAMS = "if the roster's groups are not teams that submit together, rename that column"


@dataclass(frozen=True)
class Share:
    """A submission, and the group for which it may count."""

    submission: Submission
    members: Mapping[str, Person]  # the students who submitted it, by key
    group: tuple[str, ...]  # the keys of the group on the roster; empty if there is none
    by: str  # the key of the member who submitted it; empty if it has the group's name


@dataclass(frozen=True)
class Settled:
    """Who gets the grade of each submission."""

    members: Sequence[Mapping[str, Person]]  # in the order of the submissions; empty for none
    notices: tuple[str, ...]
    conflicts: Mapping[str, str]  # the reason, for each member of a group in conflict


def settle_groups(shares: Sequence[Share], roster: Roster) -> Settled:
    """Choose one submission for each group of the roster, and give its grade to all members."""
    members = [share.members for share in shares]
    notices: list[str] = []
    conflicts: dict[str, str] = {}
    of_group: dict[tuple[str, ...], list[int]] = {}
    for number, share in enumerate(shares):
        if share.group:
            of_group.setdefault(share.group, []).append(number)
    for group, numbers in of_group.items():
        # A text that can be read comes first, then the group's own name, then what is not late.
        numbers.sort(key=lambda n: (not _text(shares[n]), shares[n].by != "", _late(shares[n])))
        first, *others = numbers
        chosen = shares[first]
        submitters = dict(chosen.members)
        differing = [first]
        for number in others:
            other = shares[number]
            if _text(other) and _text(other) != _text(chosen):
                differing.append(number)
                if not other.by:
                    members[number] = {key: roster.keys[key] for key in group}
                continue
            submitters |= other.members
            members[number] = {}
            same = "has the same text as" if _text(other) else "cannot be read, so it counts as"
            notices.append(f"{_named(other, roster)} {same} {_named(chosen, roster)}: {TEAMS}")
        members[first] = {key: submitters.get(key, roster.keys[key]) for key in group}
        if chosen.by and len(differing) > 1:
            # Two submissions of the same name are a conflict anyway, which names their places.
            if len({shares[n].submission.student for n in differing}) == len(differing):
                conflicts |= dict.fromkeys(group, _conflict([shares[n] for n in differing], roster))
        elif chosen.by and (rest := [key for key in group if key not in submitters]):
            get = "gets" if len(rest) == 1 else "get"
            names = listed([_person(key, roster) for key in rest], "and")
            notices.append(
                f"{_named(chosen, roster)} submitted for a group: {names} {get} the same grade"
            )
    return Settled(members, tuple(notices), conflicts)


def _text(share: Share) -> tuple[str, ...]:
    """The text of a submission, whatever its files are called; empty if none can be read."""
    texts = ("\n".join(source.cells) for source in share.submission.sources)
    return tuple(sorted(text.strip() for text in texts))


def _late(share: Share) -> tuple[bool, str]:
    return share.submission.late, share.submission.student


def _conflict(shares: Sequence[Share], roster: Roster) -> str:
    names = listed([_named(share, roster) for share in shares], "and")
    return f"{names} are of one group, with different texts: keep only one; {NO_TEAMS}"


def _named(share: Share, roster: Roster) -> str:
    """``'jane' (s1 Jane Doe)``."""
    name = share.submission.student
    return f"'{name}' ({_person(share.by, roster)})" if share.by else f"'{name}'"


def _person(key: str, roster: Roster) -> str:
    return called(key, shown(roster.keys[key].name))
