"""The texts with which the tests of an exercise call it: inputs, arguments, results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from grader.author.scaffold.facts import Facts
from grader.author.scaffold.kinds import code_of_argument, literal
from grader.author.scaffold.source import defaults_of, methods
from grader.author.scaffold.trial import (
    Case,
    Key,
    Trial,
    expressions,
    fields_drawn,
    names_of_sizes,
    specs_drawn,
)
from grader.course.contract import Parameter
from grader.wire.payload import fields_of

REFERENCE = "reference."  # before a dataclass in a test
FIXTURES = ("student", "reference", "make", "theirs", "ours", "torch", "pytest", "rung")


@dataclass(frozen=True)
class Calls:
    """The texts with which the tests of one exercise call it."""

    trial: Trial
    facts: Facts

    # --- names and values ------------------------------------------------------------------------

    @cached_property
    def sizes(self) -> list[str]:
        """The sizes that a test with several cases varies."""
        return names_of_sizes(self.trial.contract)

    @cached_property
    def varying(self) -> dict[Key, str]:
        """The other parameters that such a test varies, with their names in the test."""
        found: dict[Key, str] = {}
        for key, values in self.trial.domains.items():
            if len(values) > 1:
                name = self.free(key[1])
                found[key] = f"made_with_{name}" if name in [*found.values(), *self.sizes] else name
        return found

    def cases(self) -> list[Case]:
        """The cases of the value test: three sizes, and each value of the other parameters."""
        domains = self.trial.domains
        count = max([3, *(len(domains[key]) for key in self.varying)])
        found = []
        for number in range(count if self.sizes or self.varying else 1):
            sized = self.trial.cases[number % len(self.trial.cases)]
            # Parameters of the same values, such as two weights, must differ from one another.
            values = {
                key: domains[key][(number + place) % len(domains[key])]
                for place, key in enumerate(self.varying)
            }
            whole = replace(sized, values=values)
            found.append(whole if self.trial.takes(whole) else replace(sized, values={}))
        return found

    def parametrised(self, cases: Sequence[Case]) -> tuple[str, str]:
        """The decorator for these cases, and the names of its parameters as arguments."""
        names = [*self.sizes, *self.varying.values()]
        if not names:
            return "", ""
        rows = dict.fromkeys(
            tuple(
                [repr(case.sizes[name]) for name in self.sizes]
                + [literal(case.values.get(key, self._first(key))) for key in self.varying]
            )
            for case in cases
        )
        many = len(names) > 1
        shown = [f"({', '.join(row)})" if many else row[0] for row in rows]
        listed = f"({', '.join(_quoted(names))})" if many else _quoted(names)[0]
        decorator = f"@pytest.mark.parametrize({listed}, [{', '.join(shown)}])\n"
        return decorator, "".join(f", {name}" for name in names)

    def _first(self, key: Key) -> Any:
        return self.trial.domains[key][0]

    def free(self, name: str) -> str:
        """The name of a variable in a test, other than those that the test has."""
        return f"{name}_" if name in FIXTURES else name

    # --- texts -----------------------------------------------------------------------------------

    def fields(
        self, case: Case | None, *, double: bool = False, optional: bool = True
    ) -> dict[str, str]:
        """The fields of a test's template.

        Without a case, sizes and values are the test's parameters. With `double`, numbers are
        float64. Without `optional`, optional arguments are left out.
        """
        named = {name: name if case is None else repr(case.sizes[name]) for name in self.sizes}
        lines, given = [], {}
        for function, signature in self.trial.signatures:
            own = self.needed(function, signature.parameters, case, optional=optional)
            for parameter in own:
                if specs_drawn(parameter):
                    lines.append(self._drawn((function, parameter.name), parameter, named, double))
            texts = [self.text((function, p.name), p, named, case) for p in own]
            given[function] = ", ".join(texts)
        return {"inputs": indented(lines), **self.called(given, double=double)}

    def called(self, given: Mapping[str, str], *, double: bool = False) -> dict[str, str]:
        """The fields about the calls, with the arguments of each function as text."""
        name = self.trial.name
        if not self.trial.is_module:
            given_text = given[name]
            return {
                "made": "",
                "their_call": f"student.{name}",
                "our_call": f"reference.{name}",
                "arguments": given_text,
                "theirs": f"student.{name}({given_text})",
                "ours": f"reference.{name}({given_text})",
            }
        made, called = given["__init__"], given["forward"]
        lines = [f"theirs, ours = student.{name}({made}), reference.{name}({made})"]
        if self.trial.evaluates:
            lines += ["theirs.eval()", "ours.eval()"]
        lines.append("adopt(theirs, ours)")
        more = ".double()" if double else ""
        return {
            "made": indented(lines),
            "their_call": "theirs",
            "our_call": "ours",
            "arguments": called,
            "theirs": f"theirs{more}({called})",
            "ours": f"ours{more}({called})",
        }

    def needed(
        self,
        function: str,
        parameters: Sequence[Parameter],
        case: Case | None,
        *,
        optional: bool = True,
    ) -> Sequence[Parameter]:
        """The parameters to pass: all up to the last that must be said."""
        if not optional:
            return [one for one in parameters if not one.optional]
        defaults = defaults_of(dict(methods(self.trial.definition))[function])
        last = 0
        for number, one in enumerate(parameters, start=1):
            key = (function, one.name)
            needed = not one.optional or specs_drawn(one) or self.trial.is_size(one)
            if needed or (key in self.varying and case is None):
                last = number
            else:
                value = case.values.get(key, self._first(key)) if case else self._first(key)
                last = number if value != defaults[one.name] else last
        return parameters[:last]

    def text(
        self, key: Key, parameter: Parameter, named: Mapping[str, str], case: Case | None
    ) -> str:
        """An argument of a call: a variable, a size or a value."""
        if specs_drawn(parameter):
            return self.free(parameter.name)
        if self.trial.is_size(parameter):
            return named[parameter.name]
        if case is None and key in self.varying:
            return self.varying[key]
        return literal((case.values if case else {}).get(key, self._first(key)), REFERENCE)

    def _drawn(self, key: Key, parameter: Parameter, named: Mapping[str, str], double: bool) -> str:
        dtype = "dtype=torch.float64" if double else ""
        drawn = []
        for spec, kind in zip(specs_drawn(parameter), self.trial.kinds[key], strict=True):
            texts: dict[str, str] = {}
            for place, text in enumerate(expressions(spec), start=1):
                name = text if text.isidentifier() and text not in texts else f"size_{place}"
                texts[name] = _filled(text, named)
            sizes = ", ".join(f"{name}={text}" for name, text in texts.items())
            drawn.append(code_of_argument(spec, kind, sizes, dtype, named))
        value = drawn[0] if parameter.kind == "tensor" else f"({', '.join(drawn)},)"
        if parameter.kind == "dataclass":
            name, fields = fields_of(self._first(key)) or ("", {})
            texts = {one: literal(part, REFERENCE) for one, part in fields.items()}
            texts |= dict(zip(fields_drawn(parameter), drawn, strict=True))
            value = f"{REFERENCE}{name}({', '.join(f'{k}={v}' for k, v in texts.items())})"
        return f"{self.free(parameter.name)} = {value}"


def _quoted(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def indented(lines: Sequence[str]) -> str:
    """The lines of a test's body."""
    return "".join(f"    {line}\n" for line in lines)


def _filled(expression: str, named: Mapping[str, str]) -> str:
    """An expression of sizes with the text of each size; a number alone stays as it is."""
    for name, text in named.items():
        expression = re.sub(rf"\b{name}\b", text, expression)
    return expression
