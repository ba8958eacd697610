"""Nothing that only instructors have stands in a bundle: every file of it is searched."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.course.course import SHEET, load_course
from grader.grading.rows import Key, write_rows
from grader.mistakes import load_library
from grader.records.files import files_in
from tests.support.bundles import release_recorded, waits_for_recordings
from tests.support.places import ROOT

pytestmark = waits_for_recordings

COURSE = load_course(ROOT / "exercises")
LINE = 40  # characters of a line of a test that is worth hiding
STATEMENT = 30  # of a statement of a reference or a mistake
STRING = 12


# --- what is secret ------------------------------------------------------------------------------


def squeezed(text: str) -> str:
    """A text without its white space and its kind of quotes: other layouts hide nothing."""
    return re.sub(r"\s+", "", text).replace("'", '"')


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "bundle" not in path.parts)


def public() -> str:
    """What a student may see anyway: stubs and checks, and the engine."""
    files = [*sources(ROOT / "exercises"), *sources(ROOT / "grader")]
    files += [ROOT / "exercises" / "course.toml", *(ROOT / "exercises").glob("*.md")]
    files += (ROOT / "exercises").rglob("*.txt")  # a book
    return squeezed("\n".join(path.read_text("utf-8") for path in files))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def statements(tree: ast.AST) -> Iterator[str]:
    """Every statement as one line; of one that holds others, its head."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Expr):
            yield ast.unparse(node).splitlines()[0]
        elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            yield ast.unparse(node)


def is_name(text: str) -> bool:
    """Whether it is the path of a weight, such as a recording has; its names are in statements."""
    return re.fullmatch(r"\w+\.(weight|bias)", text) is not None


def hidden_tests() -> Iterator[tuple[Path, ast.FunctionDef | ast.ClassDef]]:
    """The test functions of the hidden graders, and what helps them."""
    for path in COURSE.grader_files():
        for node in functions(path):
            yield path, node


def titles() -> Iterator[str]:
    for _, node in hidden_tests():
        yield node.name
        yield ast.get_docstring(node) or ""


def bodies() -> Iterator[str]:
    for path, node in hidden_tests():
        lines = path.read_text("utf-8").splitlines()
        body = lines[node.body[0].lineno - 1 : node.end_lineno]
        yield from (line.strip() for line in body if len(line.strip()) > LINE)


def constants() -> Iterator[str]:
    for _, node in hidden_tests():
        yield from (text for text in strings(node) if not is_name(text))


def references() -> Iterator[str]:
    for unit in COURSE.units:
        for node in functions(COURSE.solutions / f"{unit.name}.py"):
            yield from long([*statements(node), *strings(node)])


def mistakes() -> Iterator[str]:
    """Statements of known answers, and changes that make one of a reference.

    Titles, hints and slugs of mistakes are no secret: recordings name them by these.
    """
    library = load_library(COURSE)
    variants = [v for name in COURSE.exercises for v in library.of(name, "mistake")]
    told = {text for variant in variants for text in (variant.title, variant.hint, variant.slug)}
    for path in sorted((COURSE.solutions / "mistakes").glob("*.py")):
        for node in functions(path):
            yield from long([*statements(node), *(set(strings(node)) - told)])
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.keyword) and call.arg == "change":
                yield from long(strings(call))


def seed() -> Iterator[str]:
    yield COURSE.hidden_seed()


KINDS = (titles, bodies, constants, references, mistakes, seed)


def long(texts: Iterable[str]) -> Iterator[str]:
    return (text for text in texts if len(text) > STATEMENT)


def secrets() -> dict[str, str]:
    """What is searched for, by itself without white space; what is public anyway is none."""
    known = public()
    candidates = {squeezed(text): text for kind in KINDS for text in kind()}
    return {
        secret: text
        for secret, text in candidates.items()
        if len(secret) >= STRING and secret not in known
    }


# --- where it is searched ------------------------------------------------------------------------


def texts(path: Path) -> Iterator[str]:
    """A file as text; every text in it, where it is JSON or a sheet."""
    data = path.read_bytes()
    if path.name == SHEET:
        yield from decoded([*map(list, keys(path)), *contents(path)])
        return
    if path.suffix in (".json", ".ipynb"):
        yield from decoded(json.loads(data))
        return
    try:
        yield data.decode("utf-8")
    except UnicodeDecodeError:
        yield data.decode("latin-1")


def keys(sheet: Path) -> list[tuple[Any, ...]]:
    """The kind, name, test, label and hidden flag of every row of a sheet."""
    with closing(sqlite3.connect(sheet)) as opened:
        return opened.execute("SELECT kind, name, test, label, hidden FROM rows").fetchall()


def contents(sheet: Path) -> Iterator[Any]:
    """Every value of a sheet, once: many rows share a value."""
    with closing(sqlite3.connect(sheet)) as opened:
        for (value,) in opened.execute("SELECT value FROM contents"):
            yield msgspec.msgpack.decode(zlib.decompress(value))


def decoded(value: object) -> Iterator[str]:
    """Every text in it; a list of lines, as notebooks have them, as one."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        # Of a tensor's bytes only runs that can be text: a search through all takes minutes.
        yield from (run.decode("ascii") for run in re.findall(rb"[\t\n\r -~]{%d,}" % STRING, value))
    elif isinstance(value, list):
        if value and all(isinstance(line, str) for line in value):
            yield "".join(value)
        else:
            for part in value:
                yield from decoded(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield str(key)
            yield from decoded(part)


def leaks(folder: Path, hidden: dict[str, str]) -> list[str]:
    """What of it stands in which file."""
    found = []
    for name in files_in(folder):
        # Each text once, with an end between texts, so that no secret is found across two texts.
        text = squeezed("\0".join(dict.fromkeys(texts(folder / name))))
        found += [f"{name}: {hidden[secret]}" for secret in hidden if secret in text]
    return found


# --- the tests -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hidden() -> dict[str, str]:
    return secrets()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its real recordings."""
    folder = tmp_path_factory.mktemp("release") / "bundle"
    release_recorded(folder)
    return folder


def test_what_is_searched_for_covers_all_that_is_hidden(hidden: dict[str, str]) -> None:
    assert len(hidden) > 2000
    known = public()
    for path, node in hidden_tests():
        lines = path.read_text("utf-8").splitlines()[node.lineno - 1 : node.end_lineno]
        text = squeezed("\n".join(lines))
        has_some = any(secret in text for secret in hidden)
        assert has_some or text in known, f"nothing of {node.name}"  # checks share a few helpers
    for unit in COURSE.units:
        for node in functions(COURSE.solutions / f"{unit.name}.py"):
            own = [text for text in statements(node) if squeezed(text) in hidden]
            # The shortest are two lines that every torch user has written.
            assert own or len(list(statements(node))) < 5, f"nothing of {node.name}"


def test_nothing_hidden_stands_in_a_bundle(bundle: Path, hidden: dict[str, str]) -> None:
    assert leaks(bundle, hidden) == []


def test_every_row_of_a_bundle_is_public_and_names_no_place(bundle: Path) -> None:
    kinds = set()
    sheet = bundle / "exercises" / "recorded" / SHEET
    for kind, _, test, _, hidden in keys(sheet):
        kinds.add(kind)
        assert (hidden, test.partition(" ")[0]) in ((0, "public"), (0, ""))
    for value in contents(sheet):
        raised = [one for one in parts(value) if one.get("type") == "raised"]
        assert not any(one.get("place") or one.get("uses") for one in raised)
    assert kinds == {"asked", "gave", "built", "facts", "exercise"}


def parts(value: Any) -> Iterator[dict[Any, Any]]:
    """Every mapping in it."""
    if isinstance(value, dict):
        yield value
    within = value.values() if isinstance(value, dict) else value
    for part in within if isinstance(value, dict | list) else ():
        yield from parts(part)


def pieces(path: Path) -> list[bytes]:
    """Some of a file's bytes, from every part of it."""
    data = path.read_bytes()
    return [data[start : start + 64] for start in range(0, len(data), 4096)]


def test_no_trained_weights_stand_in_a_bundle(bundle: Path) -> None:
    trained = list((COURSE.solutions / "trained").iterdir())
    assert trained
    for name in files_in(bundle):
        assert name.name not in {path.name for path in trained}
        data = (bundle / name).read_bytes()
        assert not any(piece in data for path in trained for piece in pieces(path)), name


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("exercises/softmax.py", "{}"),
        ("notebooks/softmax.ipynb", '{{"cells": [{{"source": ["x\\n", "{}"]}}]}}'),
        (f"exercises/recorded/{SHEET}", "{}"),
        ("grader/notes.md", "- {}"),
    ],
)
def test_the_search_finds_what_was_planted(
    hidden: dict[str, str], tmp_path: Path, name: str, wrapped: str
) -> None:
    """One secret of each kind, in each kind of file, in another layout."""
    for kind in KINDS:
        secret = next(text for text in kind() if squeezed(text) in hidden)
        planted = tmp_path / kind.__name__ / name
        planted.parent.mkdir(parents=True)
        text = wrapped.format(secret.replace("(", "( ").replace('"', "'")).encode()
        if planted.name == SHEET:
            row = {"text": [text.decode()]}
            write_rows(planted, {Key("facts", "planted"): msgspec.msgpack.encode(row)})
        else:
            planted.write_bytes(text)
        assert leaks(tmp_path / kind.__name__, hidden), f"{kind.__name__}: {secret}"
