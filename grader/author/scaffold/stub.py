"""Writes the stub of an exercise: the signature and the statement."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence

from torch import Tensor

from grader.author.scaffold.calls import Calls
from grader.author.scaffold.example import WEIGHT, Example
from grader.author.scaffold.kinds import literal, said
from grader.author.scaffold.ladder import BATCH, DTYPE, GRADIENTS, LARGE, UNCHANGED, WEIGHTS
from grader.author.scaffold.layout import signature_of
from grader.author.scaffold.source import Source
from grader.author.scaffold.trial import Key, specs_drawn
from grader.author.texts import template
from grader.author.wording import TODO
from grader.course.contract import Parameter
from grader.course.forms import NUMBERS, Form, TensorSpec, specs_of, wanted
from grader.course.statements import EMPTY_LINE
from grader.records.rows import listed

WIDTH = 96  # of a line of a statement
STAYING = (
    "tensor",
    "tuple",
    "list",
    "set",
    "dictionary",
    "dataclass",
)  # kinds that a function could change
SLOTS = {
    "sentence": f"{TODO}: write one sentence that says what {{name}} computes.",
    "formula": f"{TODO}: write the formula in plain text",
    "why": f"Why: {TODO}: say why this is worth knowing, in a sentence or two.",
    "rule": f"{TODO}: Write further rules of right answers here, or delete this line.",
    "example": f"Example: {TODO}: show a call and its result.",
    "source": f"Source: {TODO}: name the paper or book and its section, https://…",
}
SENTENCES = {
    WEIGHTS: "It learns {weights}, and nothing else; their names are free.",
    DTYPE: "float64 in, float64 out, in full precision.",
    UNCHANGED: "{arguments}.",
    BATCH: "Each row of the batch is computed by itself, whatever the other rows are.",
    GRADIENTS: "Gradients flow back to {inputs}.",
    LARGE: "Numbers of a thousand give the right result too, without overflow.",
}


def stub_of(
    source: Source,
    calls: Calls,
    example: Example | None,
    edges: Example | None,
    rules: Collection[str],
) -> str:
    """The stub of a reference, with slots for what only a person can write."""
    shown = [SLOTS["example"] if example is None else _shown(calls, example)]
    shown += [] if edges is None else [_shown(calls, edges, AT_EDGES)]
    statement = _statement(source, calls, "\n\n".join(shown), rules)
    node = source.node
    if isinstance(node, ast.FunctionDef):
        return "\n".join([*signature_of(node), *_quoted(statement, "    "), f"    {UNSOLVED}"])
    lines = [f"class {node.name}({', '.join(map(ast.unparse, node.bases))}):"]
    lines += _quoted(statement, "    ")
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name in ("__init__", "forward"):
            first = ["        super().__init__()"] if part.name == "__init__" else []
            lines += ["", *signature_of(part, "    "), *first, f"        {UNSOLVED}"]
    return "\n".join(lines)


UNSOLVED = "raise NotImplementedError"


def _quoted(statement: str, indent: str) -> list[str]:
    raw = "r" if "\\" in statement else ""
    text = f'{raw}"""{statement.replace(chr(34) * 3, chr(39) * 3)}\n"""'
    return textwrap.indent(text, indent).splitlines()


def _statement(source: Source, calls: Calls, example: str, rules: Collection[str]) -> str:
    trial, (called, signature) = calls.trial, calls.trial.signatures[-1]
    made = ""
    if trial.is_module:
        entries = _entries(source, calls, "__init__", trial.contract.call.parameters)
        made = f"Made with:\n{entries}\n\n"
    keys = {
        "arguments": _all_stay(
            [f"`{one.name}`" for one in signature.parameters if one.kind in STAYING]
        ),
        "weights": listed(calls.facts.weights or ["nothing"], "and"),
        "inputs": " and ".join(f"`{name}`" for name in calls.facts.gradients) or "the weights",
    }
    ruled = [f"{key}: {SENTENCES[key].format(**keys)}" for key in SENTENCES if key in rules]
    text = template(
        "exercise/statement.txt",
        sentence=_filled(_summary(source) or SLOTS["sentence"].format(name=source.name)),
        formula=SLOTS["formula"],
        why=SLOTS["why"],
        made=made,
        takes=_entries(source, calls, called, signature.parameters),
        returns=_filled(f"{_result(signature.returns)}: the result.", "    "),
        rules="\n".join(_filled(rule, "    ", "        ") for rule in (*ruled, SLOTS["rule"])),
        example=example,
        source=SLOTS["source"],
    )
    return text.strip()


def _all_stay(names: Sequence[str]) -> str:
    if not names:
        return "Weights stay as they were"
    return f"{' and '.join(names)} {'stays as it was' if len(names) == 1 else 'stay as they were'}"


def _summary(source: Source) -> str:
    """The first paragraph of the reference's docstring, as a sentence."""
    text = " ".join(source.docstring.split("\n\n")[0].split())
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _filled(text: str, indent: str = "", more: str | None = None) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if more is None else more,
        break_long_words=False,
        break_on_hyphens=False,
    )


# --- arguments and results -----------------------------------------------------------------------


def _entries(source: Source, calls: Calls, function: str, parameters: Sequence[Parameter]) -> str:
    entries = (
        f"{one.name}: {_argument(source, calls, (function, one.name), one)}" for one in parameters
    )
    return "\n".join(_filled(entry, "    ", "        ") for entry in entries)


def _argument(source: Source, calls: Calls, key: Key, parameter: Parameter) -> str:
    described = _described(source.docstring, parameter.name)
    trial = calls.trial
    if specs_drawn(parameter):
        kinds = trial.kinds[key]
        several = map(said, specs_drawn(parameter))
        fields = parameter.kind == "dataclass"
        shapes = _result(parameter.form) if fields else " and ".join(several)
        text = f"{shapes}, {described or kinds[0].words()}"
    elif trial.is_size(parameter):
        text = f"int, {described or 'the size of a dimension'}"
    else:
        values = " or ".join(repr(value) for value in trial.domains[key])
        kind = type(trial.domains[key][0]).__name__
        text = f"{kind}, {described or f'such as {values}'}"
    return f"{text}{', or None' if parameter.nullable else ''}."


def _described(docstring: str, name: str) -> str:
    """The description of a parameter in a docstring in NumPy's or Google's style."""
    found = re.search(
        rf"^ *{re.escape(name)} *(?:\([^)\n]*\))? *:.*\n((?: {{4,}}\S.*\n?)+)", docstring, re.M
    )
    if found is None:
        return ""
    text = " ".join(found[1].split()).rstrip(".")
    return text[:1].lower() + text[1:]


def _result(returns: Form) -> str:
    if isinstance(returns, TensorSpec):
        return said(returns)
    if returns.kind == "dataclass":
        fields = zip(returns.fields, returns.parts, strict=True)
        told = [f"`{field}` {_result(part)}" for field, part in fields]
        return f"{returns.name} with {listed(told, 'and')}"
    if returns.kind == "tuple":
        return " and ".join(map(_result, returns.parts))
    if returns.kind in ("list", "dictionary") and any(specs_of(returns)):
        return f"{wanted(returns)} of {_result(returns.parts[-1])}"
    return returns.kind if returns.kind in NUMBERS else wanted(returns)


# --- the example ---------------------------------------------------------------------------------


AT_EDGES = "The result for equal numbers, and for numbers at an edge:"


def _shown(calls: Calls, example: Example, title: str = "") -> str:
    """The example as a doctest."""
    trial = calls.trial
    given: dict[str, str] = {}
    for function, signature in trial.signatures:
        own = calls.needed(function, signature.parameters, example.case)
        given[function] = ", ".join(literal(example.arguments[function, p.name]) for p in own)
    if not trial.is_module:
        title = title or "Example: a small input."
        lines = [f">>> {trial.name}({given[trial.name]})"]
    else:
        title = title or f"Example: all weights are {WEIGHT}."
        more = ".eval()" if trial.evaluates else ""
        lines = [
            f">>> layer = {trial.name}({given['__init__']}){more}",
            ">>> for weight in layer.parameters():",
            f"...     _ = torch.nn.init.constant_(weight.requires_grad_(False), {WEIGHT})",
            f">>> layer({given['forward']})",
        ]
    return "\n".join([title, "", *lines, *_printed(example.result)])


def _printed(result: object) -> Iterator[str]:
    text = repr(result.detach() if isinstance(result, Tensor) else result)
    for line in text.splitlines():
        yield line or EMPTY_LINE
