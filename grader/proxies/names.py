"""Names in a student's module: what they mean, and the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

# Spellings by role; a fused projection is several roles in one.
NameAliases = tuple[tuple[str, tuple[str, ...]], ...]

# head_1, head1, heads.1, 1_head and head1_q count the same, as far as the number goes.
NUMBER = re.compile(r"_?[0-9]{1,9}(?=_|$)")
# What counts layers comes last: up_0, up_1. In head_1_q, the number is part of another name.
LAST_NUMBER = re.compile(r"_?[0-9]{1,9}$")
# Words that people add to a name without changing what it means.
NOISE = re.compile(r"weights?|bias|projection|proj|layer|linear|lin|matrix|mat|params?|\d+|_")


def bare(path: str) -> str:
    """A path without the numbers that count heads and layers."""
    return ".".join(NUMBER.sub("", step) for step in path.split("."))


def numbers(path: str) -> list[int]:
    """The numbers in a path that count heads and layers, in order."""
    found = (re.findall(r"[0-9]{1,9}(?=_|$)", step) for step in path.split("."))
    return [int(number) for step in found for number in step]


def stem(step: str) -> str:
    """A step of a path without the number at its end."""
    return LAST_NUMBER.sub("", step)


def last_number(step: str) -> int | None:
    """The number at the end of a step, if there is one."""
    digits = LAST_NUMBER.search(step)
    return int(digits.group().lstrip("_")) if digits else None


@lru_cache(maxsize=4096)
def plain(name: str) -> str:
    """A name in one spelling: small letters, and no underscores."""
    return name.lower().replace("_", "")


@lru_cache(maxsize=4096)
def core(name: str) -> str:
    """A name without the words that say nothing of what it is for."""
    return NOISE.sub("", name.lower()) or name.lower()


def spellings(names: Sequence[str], aliases: NameAliases) -> dict[str, str]:
    """Each spelling of these names, and the name that it means."""
    known = {plain(name): name for name in names if name}
    for name, others in aliases:
        if name in names:
            known |= {plain(other): name for other in others}
    return known


def meant(path: str, spelled: Mapping[str, str]) -> str | None:
    """The name that a path means, its last step first."""
    steps = reversed(path.split("."))
    return next((spelled[plain(step)] for step in steps if plain(step) in spelled), None)
