"""Finds submissions that look alike: pairs for a person to read, never a verdict.

Submissions are compared by runs of `RUN` tokens. All names that a student chose count as equal, and
comments and layout are ignored. The method is Winnowing (Schleimer, Wilkerson and Aiken, Local
Algorithms for Document Fingerprinting, SIGMOD 2003), but it keeps all runs instead of a selection,
since the texts are short.

In a course all students write the same small functions. Therefore a run's weight is the logarithm
of its rarity. The weight is zero if more than half of the submissions contain the run, or if the
stubs do. Submissions with exactly the same code are always listed, as a group, even if the code is
short and common.

A regular expression splits the text into tokens in linear time; the text is not parsed.
"""

from __future__ import annotations

import hashlib
import keyword
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from grader.intake import Submission

RUN = 20  # tokens: about two lines
LEAST = 40  # a pair must share the weight of this many runs that no third submission has
ALIKE = 0.4  # the least part of the smaller submission's weight that a pair must share
MOST_PAIRS = 50
MOST_TEXT = 200_000  # characters; the rest of a submission is not compared
FACTOR = np.uint64(6364136223846793005)  # any large odd number
BLOCK = 4096  # runs in one matrix product

# To keep the time linear, a string that is never closed ends with its line or with the text.
TOKEN = re.compile(
    r"""(?P<string>[rRbBuUfF]{0,2}(?:
            \"{3}(?:[^\\]|\\(?:.|\Z))*?(?:\"{3}|\Z) | '{3}(?:[^\\]|\\(?:.|\Z))*?(?:'{3}|\Z)
          | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'? ))
      | (?P<comment>\#[^\n]*) | (?P<name>[^\W\d]\w*) | (?P<number>\d[\w.]*) | (?P<sign>[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)

Runs = NDArray[np.uint64]


@dataclass(frozen=True)
class Passage:
    """Some lines of a file or of a notebook's cell."""

    part: str  # the file's name, with the cell
    first: int  # the number of the first line
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        """The file and the lines: ``softmax.py lines 3–40``."""
        return f"{self.part} lines {self.first}–{self.first + len(self.lines) - 1}"


@dataclass(frozen=True)
class Resemblance:
    """Two submissions that are alike, or a group with exactly the same code."""

    one: str
    others: tuple[str, ...]  # more than one only in a group
    share: float  # the shared weight, as a share of the smaller submission's weight
    # What to read side by side in `one` and in the first of `others`; None in an anonymous report.
    passages: tuple[Passage, Passage] | None


@dataclass(frozen=True)
class _Text:
    """A submission's text as runs of tokens: `RUN` successive tokens make a run."""

    name: str
    runs: Runs  # a hash of the run that begins at each token
    lines: NDArray[np.int32]  # the line of each token
    # For each file or cell: its first token's index, its name, its text.
    parts: tuple[tuple[int, str, str], ...]
    code: bytes | None  # a hash of the exact code; None if all of the code comes from the stubs


@dataclass(frozen=True)
class _Scale:
    """The weights of all runs."""

    runs: Runs  # the runs of all submissions, sorted
    counts: NDArray[np.intp]  # the number of submissions that have the run
    weights: NDArray[np.float32]
    pair: float  # the weight of a run that exactly two submissions have


def similar(submissions: Iterable[Submission], stubs: Sequence[str]) -> list[Resemblance]:
    """Find groups of submissions with the same code, and then pairs, the most similar first.

    Only the first submission of a group is compared with the submissions outside the group.
    """
    given = [token for stub in stubs for token, _, _ in _tokens(stub)]
    stub_runs = cache(lambda length: _runs(given, length))
    texts = [_read(one, stub_runs) for one in submissions]
    groups: dict[object, list[int]] = {}
    for place, text in enumerate(texts):
        groups.setdefault(text.code or place, []).append(place)
    same = [
        Resemblance(
            texts[first].name,
            tuple(texts[k].name for k in others),
            1.0,
            (_whole(texts[first]), _whole(texts[others[0]])),
        )
        for first, *others in groups.values()
        if others
    ]
    return same + _pairs(texts, [first for first, *_ in groups.values()], stub_runs(RUN))


def _pairs(texts: Sequence[_Text], chosen: Sequence[int], stubs: Runs) -> list[Resemblance]:
    """The most similar pairs of texts; `chosen` are the indices of the texts to compare."""
    if not any(len(text.runs) for text in texts):
        return []
    scale = _scale(texts, stubs)
    texts = [texts[place] for place in chosen]
    own = [np.searchsorted(scale.runs, np.unique(text.runs)) for text in texts]
    whole = [scale.weights[places].sum() for places in own]
    shared = _shared(own, scale)
    alike = [
        (float(shared[i, j] / min(whole[i], whole[j])), i, j)
        for i, j in zip(*np.nonzero(np.triu(shared, 1) >= LEAST * scale.pair), strict=True)
    ]
    ranked = sorted((pair for pair in alike if pair[0] >= ALIKE), key=lambda p: (-p[0], *p[1:]))
    return [
        Resemblance(
            texts[i].name, (texts[j].name,), round(share, 3), _passages(texts[i], texts[j], scale)
        )
        for share, i, j in ranked[:MOST_PAIRS]
    ]


# --- text ----------------------------------------------------------------------------------------


def _read(submission: Submission, stubs: Callable[[int], Runs]) -> _Text:
    """Read a submission; `stubs(length)` gives the runs of a length in the stubs."""
    tokens: list[str] = []
    lines: list[int] = []
    parts: list[tuple[int, str, str]] = []
    code = hashlib.blake2b(digest_size=16)
    left = MOST_TEXT
    for source in submission.sources:
        for number, cell in enumerate(source.cells, start=1):
            whole = len(source.cells) == 1
            part = source.name if whole else f"{source.name} cell {number}"
            parts.append((len(tokens), part, cell))
            for token, word, line in _tokens(cell[:left]):
                tokens.append(token)
                lines.append(line)
                code.update(_bytes(f"{word}\0"))
            code.update(_bytes(cell[left:]))
            left -= len(cell[:left])
    length = max(min(RUN, len(tokens)), 1)
    own = not np.isin(_runs(tokens, length), stubs(length)).all()
    return _Text(
        submission.student,
        _runs(tokens),
        np.array(lines, np.int32),
        tuple(parts),
        code.digest() if own else None,
    )


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """For each token of a text: the token to compare, the token as written, and its line."""
    line, seen = 1, 0
    before = last = ""
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup, match[0]
        if kind == "comment":
            continue
        line += text.count("\n", seen, match.start())
        seen = match.start()
        if kind == "string":
            token = '"'
        elif kind == "name" and not keyword.iskeyword(word):
            # Names of attributes are mostly torch's, and are kept, except attributes of `self`.
            token = word if last == "." and before != "self" else "name"
        else:
            token = word
        yield token, word, line
        before, last = last, word


def _runs(tokens: Sequence[str], length: int = RUN) -> Runs:
    """A hash of the run that begins at each token: a polynomial modulo 2**64."""
    numbers = {token: _number(token) for token in set(tokens)}
    sequence = np.array([numbers[token] for token in tokens], np.uint64)
    runs = np.zeros(max(len(sequence) - length + 1, 0), np.uint64)
    for place in range(length):
        runs = runs * FACTOR + sequence[place : place + len(runs)]
    return runs


def _number(token: str) -> int:
    """A hash of a token; unlike `hash`, it is the same in every process."""
    return int.from_bytes(hashlib.blake2b(_bytes(token), digest_size=8).digest())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# --- pairs ---------------------------------------------------------------------------------------


def _scale(texts: Sequence[_Text], stubs: Runs) -> _Scale:
    runs, counts = np.unique(np.concatenate([np.unique(t.runs) for t in texts]), return_counts=True)
    usual = max(len(texts) / 2, 2) + 1
    weights = np.log(np.maximum(usual / counts, 1)).astype(np.float32)
    weights[np.isin(runs, stubs)] = 0
    return _Scale(runs, counts, weights, math.log(usual / 2))


def _shared(own: Sequence[NDArray[np.intp]], scale: _Scale) -> NDArray[np.float32]:
    """The shared weight of each pair of submissions; `own` has the runs of each, as indices."""
    total = np.zeros((len(own), len(own)), np.float32)
    counted = (scale.counts > 1) & (scale.weights > 0)
    column = np.cumsum(counted) - 1
    roots = np.sqrt(scale.weights[counted])
    columns = [column[places[counted[places]]] for places in own]
    for start in range(0, len(roots), BLOCK):
        block = np.zeros((len(own), min(BLOCK, len(roots) - start)), np.float32)
        for row, mine in enumerate(columns):
            first, last = np.searchsorted(mine, (start, start + BLOCK))
            block[row, mine[first:last] - start] = roots[mine[first:last]]
        total += block @ block.T
    return total


def _passages(one: _Text, other: _Text, scale: _Scale) -> tuple[Passage, Passage]:
    """The lines, in each text, of the shared passage with the largest weight.

    A passage is a sequence of runs that are successive in both texts.
    """
    runs, here, there = np.intersect1d(one.runs, other.runs, return_indices=True)
    order = np.argsort(here)
    here, there = here[order], there[order]
    begins = np.flatnonzero((np.diff(here, prepend=-2) != 1) | (np.diff(there, prepend=-2) != 1))
    weights = scale.weights[np.searchsorted(scale.runs, runs[order])]
    heaviest = int(np.argmax(np.add.reduceat(weights, begins)))
    start = int(begins[heaviest])
    end = int(begins[heaviest + 1]) if heaviest + 1 < len(begins) else len(here)
    return _passage(one, here[start], end - start), _passage(other, there[start], end - start)


def _whole(text: _Text) -> Passage:
    """The lines of the first file with code, from its first token to its last."""
    return _passage(text, 0, len(text.lines) - RUN + 1)


def _passage(text: _Text, start: int, length: int) -> Passage:
    """The lines of the runs from `start` on, cut where their file or cell ends."""
    part = max(k for k, (first, _, _) in enumerate(text.parts) if first <= start)
    _, name, whole = text.parts[part]
    after = text.parts[part + 1][0] if part + 1 < len(text.parts) else len(text.lines)
    last = min(start + length + RUN - 2, after - 1)
    first_line, last_line = int(text.lines[start]), int(text.lines[last])
    return Passage(name, first_line, tuple(whole.split("\n")[first_line - 1 : last_line]))
