"""Messages for students: each says what was expected, what is wrong, and where to look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from grader.course.contract import Contract, Signature
from grader.feedback import shapes
from grader.feedback.excerpts import PRINTED
from grader.records import rows
from grader.wire import Argument, Found, Place, Use
from grader.wire.definitions import EVASIONS, GIVES_NEW, HIDING_MODULES

EXISTS = "The exercise is there"
NOT_THERE = "The exercise is not there yet"
UNREADABLE = "The exercise cannot be read"
SIGNATURE = "It takes the arguments that the statement lists"
OTHER_SIGNATURE = "It takes other arguments than the statement lists"
WITHOUT_HEART_TITLE = "It misses what the exercise is about"
WITHOUT_HEART = "an answer that breaks this rule keeps at most half of the points"
UNTOUCHED = "still the stub: replace `raise NotImplementedError` with your own lines"
UNTOUCHED_CELL = "still the stub: write your own lines, run the cell, and check again"
MISSING = "no definition with this name was found in your files"
NOT_RUN = "it is not defined in this session yet: run the cell that defines it, and check again"


def at(place: Place | None) -> str:
    """``softmax.py line 12``, or ``hw.ipynb cell 3 line 2``."""
    return f"{place.within} line {place.line}" if place else "a line that could not be found"


def still_missing(found: Found, in_cells: bool = False) -> str:
    """The message for a stub, or for a name that no file or cell defines."""
    if found.status == "stub":
        return UNTOUCHED_CELL if in_cells else UNTOUCHED
    if in_cells:
        return NOT_RUN
    return f"{MISSING}; there is {found.message}: is that it?" if found.message else MISSING


Unready = Literal["stub", "stub again", "missing", "failing"]

UNREADY: dict[Unready, str] = {
    "stub": "{base} is a stub: write it first, since {name} uses it",
    "stub again": "{base} is a stub again: write it first, since {name} uses it",
    "missing": (
        "{base} is not there: write it first, since {name} uses it (was it renamed, or is a file "
        "left out?)"
    ),
    "failing": (
        "{base} fails its own checks now: mend it first, since {name} uses it (`{check}` says why)"
    ),
}
UNREADY_CELL: dict[Unready, str] = UNREADY | {
    "missing": (
        "{base} is not defined in this session: run the cell that defines it, or `from grader.mine "
        "import {base}`, since {name} uses it"
    )
}


def unready(name: str, bases: Mapping[str, Unready], in_cells: bool = False) -> str:
    """The message for an exercise whose bases are not solved yet: a line for each base.

    The bases of `name` are the exercises that its answer uses.
    """
    texts, check = (
        (UNREADY_CELL, 'grader.check("{}")') if in_cells else (UNREADY, "grader check {}")
    )
    return "\n".join(
        texts[why].format(base=base, name=name, check=check.format(base))
        for base, why in bases.items()
    )


def bases_title(bases: Iterable[str]) -> str:
    """The title of the check on an exercise's bases, which are the exercises that it uses."""
    return f"Start with what it uses: {rows.listed([*bases], 'and')}"


def broken(found: Found) -> str:
    """The message for a definition in a file or cell that does not run."""
    if found.place is None:
        return f"it cannot be read: {found.message}"
    return f"{at(found.place)} {found.message}"


def unreadable(listed: Iterable[Found]) -> list[str]:
    """A line for each syntax error, with the exercises that cannot be graded because of it."""
    costs: dict[str, list[str]] = {}
    for found in listed:
        if found.status == "broken":
            costs.setdefault(broken(found).partition("\n")[0], []).append(found.name)
    return [f"{why}; therefore not graded: {rows.some_of(names)}" for why, names in costs.items()]


# Explanations of torch's error messages that are not about sizes, by a pattern of the message.
MEANINGS = {
    r"\bdevices?\b.*\bmeta\b|\bmeta\b.*\bdevices?\b": (
        "meta is a pretend device, which this test uses in place of a GPU."
    ),
    r"Can't call numpy\(\) on Tensor that requires grad": (
        "numpy knows no gradients, and detach() would cut them off. Torch has the same functions, "
        "like torch.exp for np.exp."
    ),
}
STOPS = ("breakpoint(", "set_trace(")


def raised(
    kind: str,
    text: str,
    place: Place | None,
    operands: Mapping[str, Sequence[int]],
    sizes: Mapping[str, int],
    caller: Place | None = None,
) -> str:
    """The message for an exception from student code.

    `operands` and `sizes` are the mappings that `shapes.explained` takes. `caller` is the line that
    called the function in which `place` is.
    """
    where = f"{at(place)} " if place else "it "
    if kind == "NotBound":  # the text is our own sentence
        return text
    if kind == "NotImplementedError" and 'missing the required "forward"' in text:
        return (
            "torch finds no forward in the class: is its name spelled right, and is it indented "
            "as part of the class?"
        )
    if kind == "NotImplementedError" and (place is None or "raise" in place.text):
        return f"{where}still raises NotImplementedError: there is a part to write"
    if place and kind == "EOFError" and "input(" in place.text:
        return f"{where}asks with input(), which no check can answer: use the arguments instead"
    if place and any(word in place.text for word in STOPS):
        return f"{where}stops for a debugger: use grader check NAME --pdb instead"
    line = f"  {place.text}" if place and place.text else ""
    first = f"{where}raised {kind}" + (f": {text}" if text else "")
    meanings = (meaning for pattern, meaning in MEANINGS.items() if re.search(pattern, text))
    meaning = shapes.explained(text, operands, sizes) or next(meanings, None)
    called = f"{at(caller)} called this function\n  {caller.text}" if caller else ""
    return "\n".join(part for part in (first, line, called, meaning) if part)


def with_prints(message: str | None, printed: str) -> str | None:
    """The message, followed by the output that the student's code printed."""
    if not message or not printed.strip():
        return message
    return f"{message}{PRINTED}" + "\n".join(f"  {line}" for line in printed.splitlines())


def signature(found: Found, contract: Contract) -> str | None:
    """The message for parameters that do not fit the contract, or None."""
    if contract.kind == "module" and found.kind == "function":
        return f"{found.name} should be a class (an nn.Module), not a function"
    if contract.kind == "function" and found.kind == "class":
        return f"{found.name} should be a function, not a class"
    parts: list[tuple[str, Sequence[Argument] | None, Signature | None]] = (
        [(found.name, found.arguments, contract.call)]
        if contract.kind == "function"
        else [
            (f"{found.name}.__init__", found.arguments, contract.call),
            (f"{found.name}.forward", found.forward, contract.forward),
        ]
    )
    for name, listed, wanted in parts:
        if listed is not None and wanted is not None:
            message = _does_not_bind(name, listed, wanted)
            if message:
                return message
    return None


def perhaps_helper(users: Sequence[str]) -> str:
    """The line below the message of `signature` if other answers use the definition."""
    uses = "uses" if len(users) == 1 else "use"
    return (
        f"{rows.listed(users, 'and')} {uses} it: as a helper it may stay as it is, but it does not "
        "answer this exercise"
    )


def _does_not_bind(name: str, listed: Sequence[Argument], wanted: Signature) -> str | None:
    """Why the contract's arguments cannot be passed by position, or None."""
    names = ", ".join(
        f"{parameter.name}=…" if parameter.optional else parameter.name
        for parameter in wanted.parameters
    )
    positional = [argument for argument in listed if argument.kind == "positional"]
    star = any(argument.kind == "star" for argument in listed)
    must = [argument.name for argument in positional if not argument.optional]
    fewest = sum(not parameter.optional for parameter in wanted.parameters)
    keyword_only = [a.name for a in listed if a.kind == "keyword" and not a.optional]
    if len(positional) < fewest and not star:
        given = ", ".join(argument.name for argument in positional) or "nothing"
        return f"{name} takes ({given}); the statement lists ({names}), passed by position"
    if len(must) > fewest:
        return f"{name} needs ({', '.join(must)}); the statement lists only ({names})"
    if keyword_only:
        return f"{name} needs {keyword_only[0]} by keyword; the statement lists ({names})"
    return None


def seen_in(title: str, case: str, sentence: str) -> str:
    """A sentence on behaviour, after the public check whose input showed the behaviour."""
    check = f"“{title}” [{case}]" if case else f"“{title}”"
    return f"In the check {check}: {sentence[0].lower()}{sentence[1:]}"


def forbidden_title(titles: Sequence[str], used: bool = False) -> str:
    """The title of the check for forbidden operations."""
    what = f"torch's own {rows.listed(titles, 'or')}"
    return f"It uses {what}" if used else f"It is written without {what}"


def forbidden(uses: Sequence[Use]) -> str:
    """The message for a forbidden operation, with its place."""
    use = next((use for use in uses if use.place is not None), uses[0])
    where = at(use.place) if use.place is not None else "your code"
    return (
        f"{where} uses {use.function}: the exercise is to write it yourself, so this answer earns "
        "no points"
    )


def uncounted(use: Use) -> str:
    """The message for code that hides tensor operations from the counter."""
    name = use.function if use.function in (*EVASIONS, *HIDING_MODULES) else "something"
    return (
        f"{at(use.place)} uses {name}, which hides tensor operations, but this test counts tensor "
        "operations: write the line in another way"
    )


def unkept(use: Use) -> str:
    """The message for a line that discards the new tensor that it makes, such as ``x.exp()``."""
    name = use.function if use.function in GIVES_NEW else "this call"
    return (
        f"{at(use.place)}: `{name}` gives a new tensor and does not change the old tensor, but "
        "this line discards the new tensor: give it a name, as in `x = …`"
    )
