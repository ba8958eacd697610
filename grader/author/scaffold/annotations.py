"""Derives the annotations that a reference lacks, and writes them into its text."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from grader.author.scaffold import inputs, kinds, trial
from grader.author.scaffold.example import example_values
from grader.author.scaffold.layout import signature_of
from grader.author.scaffold.source import Source, defaults_of, function_of, methods
from grader.course.contract import Contract, ContractError, compile_contract
from grader.course.forms import Unsupported, form_of, specs_of
from grader.course.tensors import Make
from grader.records.faults import CallError

# The names of the dimensions of an argument, by their number.
NAMES = {
    1: ("items",),
    2: ("rows", "columns"),
    3: ("batch", "rows", "columns"),
    4: ("batch", "channels", "rows", "columns"),
}
Given = Mapping[str, Mapping[str, Any]]


def annotated(
    source: Source, example: str, package: str = ""
) -> tuple[Source, Any, Contract, Given]:
    """A reference whose parameters and result are annotated, so that it has a contract.

    Annotations with named dimensions stay. Others are derived from the `example` call or the
    docstring, and those of the result by running the reference. Also returns the definition, its
    contract, and the values of the example. Raises `CallError` if too little is known.
    """
    names = source.namespace(package)
    given = example_values(example, source.name, names)
    dimensions = _Dimensions(given.get("__init__", {}))
    texts = {
        function: dict(_parameters(source, definition, given.get(function, {}), dimensions))
        for function, definition in methods(names[source.name])
    }
    source = _written(source, texts)
    names = source.namespace(package)
    contract = _contract(source, names)
    function, definition = methods(names[source.name])[-1]
    if not _is_said(_hint(definition, "return")):
        tried = inputs.find_inputs(source.name, names[source.name], contract, given)
        source = _written(source, {function: {"return": _returns(tried)}})
        names = source.namespace(package)
        contract = _contract(source, names)
    return source, names[source.name], contract, given


def _contract(source: Source, names: Mapping[str, Any]) -> Contract:
    try:
        return compile_contract(source.name, names[source.name])
    except ContractError as error:  # its line is one of the text that was run, not of the file
        told = str(error).partition(f"{source.name}: ")[2] or str(error)
        raise CallError(f"{source.path}: {source.name}: {told}") from None


def _hint(function: Any, name: str) -> Any:
    """A resolved annotation; None if there is none, or if it cannot be resolved."""
    try:
        return typing.get_type_hints(function).get(name)
    except Exception:
        return function.__annotations__.get(name)


def _is_said(hint: Any) -> bool:
    """Whether an annotation says enough: all but nothing, and tensors or arrays of any shape."""
    if hint in (None, tuple, list, dict, set, typing.Any):
        return False
    try:
        return all(spec.dimensions is not None for spec in specs_of(form_of(hint)))
    except Unsupported:
        return True  # the contract says what is wrong


# --- parameters ----------------------------------------------------------------------------------


class _Dimensions:
    """Names the dimensions of tensors: equal sizes in the example are the same dimension.

    A size with which a module is made gives its name to the dimensions of that size.
    """

    def __init__(self, made_with: Mapping[str, Any]) -> None:
        sizes = {name: value for name, value in made_with.items() if type(value) is int}
        self._named = {value: name for name, value in reversed(sizes.items()) if value > 1}

    def of(self, shape: Sequence[int], parameter: str) -> str:
        """The dimensions of a parameter's tensor, as an annotation writes them."""
        own = NAMES.get(len(shape), tuple(f"axis{axis}" for axis in range(len(shape))))
        return " ".join(
            self._name(size, one, parameter) for size, one in zip(shape, own, strict=True)
        )

    def _name(self, size: int, one: str, parameter: str) -> str:
        if size <= 1:
            return str(size)
        if size not in self._named:
            taken = one in self._named.values()
            self._named[size] = f"{parameter}_{one}" if taken else one
        return self._named[size]


def _parameters(
    source: Source, function: Any, given: Mapping[str, Any], dimensions: _Dimensions
) -> Iterator[tuple[str, str]]:
    """The annotations that a function's parameters lack, by name."""
    defaults = defaults_of(function)
    for parameter in inspect.signature(function).parameters.values():
        name = parameter.name
        if name == "self" or _is_said(_hint(function, name)):
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise CallError(
                f"{source.path}: {source.name} takes {parameter}: tests pass arguments by "
                "position, so list the parameters by name"
            )
        value = given.get(name, defaults.get(name))
        documented = _documented(source.docstring, name, _hint(function, name) is np.ndarray)
        if documented and (value is None or isinstance(value, Tensor)):
            yield name, documented
        elif value is not None and not (isinstance(value, int | float) and name in defaults):
            tensors = iter([dimensions.of(one.shape, name) for one in trial.tensors_in(value)])
            text = kinds.annotation_of(value, tensors)
            yield name, f"{text} | None" if defaults.get(name, value) is None else text
        elif defaults.get(name) is not None:
            yield name, type(defaults[name]).__name__
        else:
            raise CallError(
                f"{source.path}: {source.name}: nothing says which shape or type {name} has; show "
                f'it with --example "{source.name}(torch.randn(2, 5), …)"'
            )


# ``x : Tensor of shape (batch, tokens)`` or ``x: (batch, tokens), int``.
_SHAPE = r"^\s*{}\b[^\n(]*(?:\n[^\n(]*)?\(([\w\s,.]+)\)"


def _documented(docstring: str, name: str, array: bool) -> str:
    """The annotation of a tensor or array whose shape a docstring names; else ""."""
    found = re.search(_SHAPE.format(re.escape(name)), docstring, re.MULTILINE)
    if found is None:
        return ""
    labels = [label.strip().lower() for label in found[1].split(",") if label.strip()]
    if not all(label.isidentifier() or label.isdecimal() for label in labels):
        return ""
    words = found[0].lower()
    family = "Int" if re.search(r"\b(int|int64|long)\b", words) else "Float"
    family = "Bool" if re.search(r"\bbool", words) else family
    container = "np.ndarray" if array or "array" in words else "Tensor"
    return f'{family}[{container}, "{" ".join(labels)}"]'


# --- results -------------------------------------------------------------------------------------


def _returns(tried: trial.Trial) -> str:
    """The annotation of the result, whose sizes are expressed by those of the arguments."""
    ints = [key for key, values in tried.domains.items() if type(values[0]) is int]
    usual = {key[1]: tried.domains[key][0] for key in ints}
    runs = [({**usual, **case.sizes}, tried.run(case)) for case in tried.cases]
    # Other numbers show whether sizes depend on them.
    for case in tried.cases:
        with suppress(trial.Refused):
            again = tried.arguments(case, Make("trial", tried.name, f"{case} again"))
            runs.append(({**usual, **case.sizes}, tried.call(again)))
    certain = len(runs)
    # An int may be the size of a dimension of the result, which another value then shows.
    for case, key in itertools.product(tried.cases, ints):
        for value in tried.domains[key][1:]:
            other = replace(case, values={key: value})
            runs.append(({**usual, **case.sizes, key[1]: value}, tried.run(other)))
    for some in (runs, [(sizes, _one_of_each(result)) for sizes, result in runs], runs[:certain]):
        if texts := _fitted(some):
            return kinds.annotation_of(some[0][1], iter(texts))
    return kinds.annotation_of(runs[0][1], iter(()))


def _one_of_each(result: Any) -> Any:
    """The first item of a list, whose length may depend on an int, if all have the same shape."""
    shapes = {one.shape for one in trial.tensors_in(result)}
    return result[:1] if isinstance(result, list) and len(shapes) == 1 else result


def _fitted(runs: Sequence[tuple[Mapping[str, int], Any]]) -> list[str] | None:
    """The dimensions of each tensor in the results; None if no expressions fit all runs."""
    known = [sizes for sizes, _ in runs]
    shapes = [[list(one.shape) for one in trial.tensors_in(result)] for _, result in runs]
    texts = []
    try:
        for some in zip(*shapes, strict=True):
            fits = [_expression(sizes, known) for sizes in zip(*some, strict=True)]
            texts.append(" ".join(fits))
    except ValueError:  # other numbers of tensors or of dimensions, or no expression
        return None
    return texts


def _expression(sizes: Sequence[int], known: Sequence[Mapping[str, int]]) -> str:
    """The simplest expression that gives a dimension's size in all runs; else `ValueError`."""
    for text in _expressions([*known[0]], sizes[0]):
        with suppress(ZeroDivisionError):
            if [eval(text, {}, dict(one)) for one in known] == list(sizes):
                return text
    raise ValueError(sizes)


def _expressions(names: Sequence[str], constant: int) -> Iterator[str]:
    yield from names
    yield str(constant)
    for form in ("{}+1", "{}-1", "2*{}", "{}//2"):
        yield from (form.format(name) for name in names)
    for form in ("{}*{}", "{}+{}", "{}-{}", "{}//{}", "{}-{}+1", "{}+{}-1"):
        yield from (form.format(a, b) for a in names for b in names if a != b)


# --- writing -------------------------------------------------------------------------------------


def _written(source: Source, texts: Mapping[str, Mapping[str, str]]) -> Source:
    """The source with these annotations, by function and parameter, and with their imports."""
    text = source.text
    for function, own in texts.items():
        node = function_of(ast.parse(text).body[0], function)  # type: ignore[arg-type]
        if node is None or not own:
            continue
        text = _with_signature(text, node, own)
    if text == source.text:
        return source
    families = sorted({*re.findall(r"\b(Float|Int|Bool|U?Int\d+)\[(?:Tensor|np\.)", text)})
    imports = [*source.imports]
    bound = {name for line in imports for name in re.findall(r"\w+", line.partition("import")[2])}
    imports += [f"from jaxtyping import {one}" for one in families if one not in bound]
    if "np" not in bound and "np.ndarray" in text:
        imports.append("import numpy as np")
    if "Tensor" not in bound and re.search(r"\bTensor\b", text):
        imports.append("from torch import Tensor")
    if "nn.Module" in text and "nn" not in bound:
        imports.append("from torch import nn")
    return replace(source, text=text, imports=tuple(imports))


def _with_signature(text: str, node: ast.FunctionDef, own: Mapping[str, str]) -> str:
    """The text with another signature; the lines of the body stay as they are."""
    lines = text.splitlines()
    first = node.body[0].lineno
    if first == node.lineno:  # the body is in the signature's line
        raise CallError(f"line {node.lineno} of {node.name} has a body: write it in a line below")
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if argument.arg in own:
            argument.annotation = ast.parse(own[argument.arg], mode="eval").body
    if "return" in own:
        node.returns = ast.parse(own["return"], mode="eval").body
    signature = signature_of(node, " " * node.col_offset)
    return "\n".join([*lines[: node.lineno - 1], *signature, *lines[_end(lines, node) :]])


def _end(lines: Sequence[str], node: ast.FunctionDef) -> int:
    """The number of the last line of a function's signature."""
    for number in range(node.lineno, node.body[0].lineno):
        if lines[number - 1].split("#")[0].rstrip().endswith(":"):
            rest = "\n".join(lines[node.lineno - 1 : number])
            try:
                ast.parse(f"{inspect.cleandoc(rest)}\n    pass")
            except SyntaxError:
                continue
            return number
    return node.body[0].lineno - 1
