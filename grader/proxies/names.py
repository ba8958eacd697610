"""Interprets the names in a student's module: their meanings, and the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

# Pairs of a role and its spellings; a fused projection has several roles, separated by spaces.
NameAliases = tuple[tuple[str, tuple[str, ...]], ...]

# The number in head_1, head1, heads.1, 1_head or head1_q.
NUMBER = re.compile(r"_?[0-9]{1,9}(?=_|$)")
# A layer's number comes last in a name, as in up_0; the number in head_1_q does not.
LAST_NUMBER = re.compile(r"_?[0-9]{1,9}$")
# Words that people add to a name without changing what it means.
NOISE = re.compile(r"weights?|bias|projection|proj|layer|linear|lin|matrix|mat|params?|\d+|_")


def bare(path: str) -> str:
    """A path without the numbers of heads and layers."""
    return ".".join(NUMBER.sub("", step) for step in path.split("."))


def numbers(path: str) -> list[int]:
    """The numbers of heads and layers in a path, in order."""
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
    """A name in lower case, without underscores."""
    return name.lower().replace("_", "")


@lru_cache(maxsize=4096)
def core(name: str) -> str:
    """A name without general words such as ``weight`` or ``layer``."""
    return NOISE.sub("", name.lower()) or name.lower()


def spellings(names: Sequence[str], aliases: NameAliases) -> dict[str, str]:
    """Map each spelling of these names to the name that it means."""
    known = {plain(name): name for name in names if name}
    for name, others in aliases:
        if name in names:
            known |= {plain(other): name for other in others}
    return known


def meant(path: str, spelled: Mapping[str, str]) -> str | None:
    """The name that a path means, judging by the last step with a known meaning."""
    steps = reversed(path.split("."))
    return next((spelled[plain(step)] for step in steps if plain(step) in spelled), None)
