"""Makes the parts of the documentation that the code knows, when the documentation is built.

``docs/conf.py`` puts each of `PARTS` into the page that has the comment ``<!-- made by the build:
NAME -->``, and writes a page for each exercise. These read only what students have: the exercises'
part of the course, and nothing from ``solutions/``.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import typer
from msgspec import inspect as types

from grader.author.schema import schema
from grader.cli import app, commands
from grader.course.collection import rules_left_out
from grader.course.course import Course, load_course
from grader.course.file import CourseFile, Exercise, Overlay
from grader.course.statements import statement
from grader.records.grade import Grade
from grader.records.rows import counted
from grader.release.notebooks import paragraphs
from tests.support.places import REAL
from tests.tools import reference

# --- commands ------------------------------------------------------------------------------------

EXAMPLE = "Example: "


def command_reference() -> str:
    """Each command below its heading: its help, its parameters and its examples."""
    commands.load(commands.offered())
    lines: list[str] = []
    heading = ""
    for name, command in typer.main.get_group(app).commands.items():
        if command.hidden:
            continue
        whose = getattr(command, "rich_help_panel", None)
        if isinstance(whose, str) and whose != heading:
            heading = whose
            lines += [f"## {heading}", ""]
        lines += _command(f"grader {name}", command)
    return "\n".join(lines)


def _command(path: str, command: Any) -> Iterator[str]:
    yield from (f"### `{path}`", "")
    for paragraph in (command.help or "").split("\n\n"):
        yield from (_plain(paragraph), "")
    if below := getattr(command, "commands", {}):
        for name, one in below.items():
            yield from _command(f"{path} {name}", one)
        return
    context = command.context_class(command, info_name=path, terminal_width=1000)
    yield from ("```text", " ".join([path, *command.collect_usage_pieces(context)]), "```", "")
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            yield from (f"`{record[0]}`", f": {_plain(record[1])}", "")
    formatter = context.make_formatter()
    command.format_epilog(context, formatter)
    texts = [" ".join(part.split()) for part in formatter.getvalue().strip().split("\n\n")]
    examples = [f"$ {text.removeprefix(EXAMPLE)}" for text in texts if text.startswith(EXAMPLE)]
    if examples:
        yield from ("```console", *examples, "```", "")
    yield from (f"{_plain(text)}\n" for text in texts if not text.startswith(EXAMPLE))


def _plain(text: str) -> str:
    """Plain text as Markdown, in which nothing but code between backticks is markup."""
    parts = re.split(r"(``.*?``|`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_\[\]<>|#])", r"\\\1", part)
        for part in parts
    )


# --- files ---------------------------------------------------------------------------------------


def tables_of_course() -> str:
    """The tables of ``course.toml``, and of a private course, each with its keys."""
    files = {"The file": CourseFile, "The file of a private course": Overlay}
    return "\n".join(_sections(files, toml=True))


def objects_of_results() -> str:
    """The objects in a line of ``results.jsonl``, each with its keys."""
    return "\n".join(_sections({"A line": Grade}, toml=False))


def _sections(files: Mapping[str, type], *, toml: bool) -> Iterator[str]:
    """A section for each struct, with a definition for each key."""
    waiting = [(title, "", types.type_info(kind)) for title, kind in files.items()]
    seen: set[type] = set()
    while waiting:
        heading, path, struct = waiting.pop(0)
        assert isinstance(struct, types.StructType)
        yield from (f"## {heading}", "", _plain(inspect.getdoc(struct.cls) or ""), "")
        for field in struct.fields:
            about, kind = _described(field.type)
            words = _words(kind)
            below, suffix = _struct_in(kind)
            if below is not None:
                key = f"{path}.{field.encode_name}{suffix}".removeprefix(".")
                place = f"`{_header(key) if toml else key}`"
                words = f"{'tables' if suffix else 'table'} {place}" if toml else place
                if below.cls not in seen:
                    seen.add(below.cls)
                    waiting.append((place, key.removesuffix("[]") if toml else key, below))
            yield from (f"`{field.encode_name}` ({words}{_default(field)})", f": {about}", "")


def _header(key: str) -> str:
    """The line of TOML that begins a table: ``[limits]``, or ``[[unit]]`` for one of several."""
    return f"[[{key.removesuffix('[]')}]]" if key.endswith("[]") else f"[{key}]"


def _described(kind: types.Type) -> tuple[str, types.Type]:
    """The description of a key, and its type."""
    about = ""
    while isinstance(kind, types.Metadata):
        about = (kind.extra_json_schema or {}).get("description", about)
        kind = kind.type
    struct, _ = _struct_in(kind)
    return _plain(about or (inspect.getdoc(struct.cls) if struct else None) or ""), kind


def _struct_in(kind: types.Type) -> tuple[types.StructType | None, str]:
    """The struct that a key holds, if any; and the end of its path: one of several, or by name."""
    match kind:
        case types.StructType():
            return kind, ""
        case types.VarTupleType(item_type=types.StructType() as struct):
            return struct, "[]"
        case types.DictType(value_type=types.StructType() as struct):
            return struct, ".NAME"
        case types.UnionType(types=several):
            return next(filter(lambda found: found[0], map(_struct_in, several)), (None, ""))
    return None, ""


def _words(kind: types.Type) -> str:
    match kind:
        case types.Metadata(type=inner):
            return _words(inner)
        case types.UnionType(types=several):
            some = (_words(one) for one in several if not isinstance(one, types.NoneType))
            return " or ".join(some)
        case types.LiteralType(values=values):
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case types.VarTupleType(item_type=inner):
            return f"list of {_words(inner)}"
        case types.DictType(value_type=inner):
            return f"by name: {_words(inner)}"
    return WORDS[type(kind)]


WORDS: Mapping[type[types.Type], str] = {
    types.StrType: "text",
    types.BoolType: "true or false",
    types.IntType: "whole number",
    types.FloatType: "number",
    types.DateTimeType: "time",
    types.StructType: "table",
}


def _default(field: types.Field) -> str:
    if field.required:
        return ", required"
    plain = isinstance(field.default, str | bool | int | float) and field.default != ""
    return f", default `{json.dumps(field.default)}`" if plain else ""


# --- exercises -----------------------------------------------------------------------------------


def list_of_exercises() -> str:
    """Each unit with its exercises, linked to their pages."""
    course = load_course(REAL)
    lines: list[str] = []
    for number, unit in enumerate(course.units, start=1):
        lines += [
            f"## {number}. {unit.title}",
            "",
            "| exercise | title | points |",
            "|---|---|---|",
        ]
        for one in unit.exercise:
            lines.append(f"| [`{one.name}`]({one.name}.md) | {one.title} | {one.points:g} |")
        lines.append("")
    return "\n".join([*lines, "```{toctree}", ":hidden:", *course.exercises, "```", ""])


def written() -> dict[str, str]:
    """The texts of whole files, by their paths in ``docs/reference``: schema, and exercises."""
    pages = {f"exercises/{name}.md": text for name, text in _exercises().items()}
    return {SCHEMA: schema("results"), **pages}


def _exercises() -> dict[str, str]:
    course = load_course(REAL)
    unchecked = rules_left_out(course)
    return {
        name: "\n".join(_exercise(course, exercise, unchecked[name]))
        for name, exercise in course.exercises.items()
    }


def _exercise(course: Course, exercise: Exercise, unchecked: Collection[str]) -> Iterator[str]:
    name, unit = exercise.name, course.unit_of[exercise.name]
    stated = statement(course, name)
    (title,) = (one.title for one in course.units if one.name == unit)
    yield from (f"# {name}", "", f"*{exercise.title}.* Unit `{unit}`: {title}.", "")
    yield f"- {counted(exercise.points, 'point')}, in `{unit}.py`"
    if exercise.requires:
        links = ", ".join(f"[`{one}`]({one}.md)" for one in exercise.requires)
        yield f"- Builds on {links}"
    if exercise.forbidden:
        groups = ", ".join(course.file.operations[one].title for one in exercise.forbidden)
        yield f"- Operations that are off limits: {groups}"
    if exercise.experiments:
        scripts = ", ".join(f"`grader try {one}`" for one in exercise.experiments)
        yield f"- An experiment that shows why: {scripts}"
    yield from ("", "```python", stated.signature, "```", "", "## Statement", "")
    for paragraph in paragraphs(stated.marked(unchecked)):
        yield from (paragraph, "")
    yield from ("## Hints", "")
    for number, hint in enumerate(exercise.hints, start=1):
        yield from (
            "<details>",
            f"<summary>Hint {number}</summary>",
            "",
            hint,
            "",
            "</details>",
            "",
        )


# --- all of them ---------------------------------------------------------------------------------

SCHEMA = "results.schema.json"
PARTS: Mapping[str, Callable[[], str]] = {
    "commands": command_reference,
    "tables of course.toml": tables_of_course,
    "objects of results.jsonl": objects_of_results,
    "schema of results.jsonl": lambda: f"[{SCHEMA}]({SCHEMA}).",
    "exercises": list_of_exercises,
    "draws": reference.draws,
    "proxies": reference.proxies,
    "rungs": reference.rungs,
    "assertions": reference.assertions,
    "widths": reference.widths,
    "examples of mistakes": reference.examples_of_mistakes,
    "declarations": reference.declarations,
}


def fill_in(text: str) -> str:
    """The text of a page, with its parts in the places of their comments."""
    return re.sub(r"<!-- made by the build: (.*?) -->", lambda found: PARTS[found[1]](), text)
