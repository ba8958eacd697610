"""Editors get schemas of the files that authors write, and programs the schema of results."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from grader.author.courses import write_course
from grader.author.schema import Schema
from tests.conftest import Grader
from tests.support.places import REAL, ROOT, TINY

FILES = {
    "course": (REAL / "course.toml", TINY / "exercises" / "course.toml"),
    "audit": (ROOT / "solutions" / "mistakes" / "audit.toml",),
}
WITH_ALL = """
name = "a"
title = "A"
seed = "s"
unit = []
zone = "Europe/Berlin"

[[assignment]]
name = "ps1"
exercises = ["u"]
due = 2026-12-01T23:59:00
counts = "best"
"""


def validator(grader: Grader, name: str) -> Draft202012Validator:
    schema = json.loads(grader("schema", name).out)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def decoded(text: str) -> Any:
    """The content of a TOML file as JSON, in which times are text."""
    return json.loads(json.dumps(tomllib.loads(text), default=str))


@pytest.mark.parametrize("name", FILES)
def test_a_schema_allows_what_the_kit_reads(cold_grader: Grader, name: str) -> None:
    for path in FILES[name]:
        validator(cold_grader, name).validate(decoded(path.read_text("utf-8")))


@pytest.mark.parametrize("text", [WITH_ALL, 'overlay = "../exercises"\n[limits]\nmemory_mb = 256'])
def test_a_course_may_have_assignments_or_lie_over_another(cold_grader: Grader, text: str) -> None:
    validator(cold_grader, "course").validate(decoded(text))


@pytest.mark.parametrize("wrong", ["hint = []", "points = 1", 'overlay = "x"'])
def test_a_schema_refuses_a_key_that_the_kit_does_not_know(cold_grader: Grader, wrong: str) -> None:
    assert not validator(cold_grader, "course").is_valid(decoded(f"{wrong}\n{WITH_ALL}"))


def test_the_lines_of_a_grading_are_as_the_schema_of_results_says(
    grader: Grader, right: str, tmp_path: Path
) -> None:
    class_ = tmp_path / "class"
    class_.mkdir()
    (class_ / "ada.py").write_text(right, "utf-8")
    (class_ / "bob.py").write_text(right.replace("x.mean()", "x.sum()"), "utf-8")
    (class_ / "cleo.py").write_text("def center(x):\n    return x[", "utf-8")
    ran = grader("grade", class_, "--out", tmp_path / "out", "--course", TINY)
    assert ran.code == 0, ran.err
    whole = json.loads(grader("schema", "results").out)
    for table in whole["$defs"].values():
        table["additionalProperties"] = False  # every key that is written has a description
    lines = (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 3
    for line in lines:
        Draft202012Validator(whole).validate(json.loads(line))


def test_every_key_and_table_has_a_description(cold_grader: Grader) -> None:
    for name in get_args(Schema):
        tables = json.loads(cold_grader("schema", name).out)["$defs"]
        for title, table in tables.items():
            assert table["description"], title
            for key, value in table["properties"].items():
                inner = [value, value.get("items", {}), *value.get("anyOf", ())]
                refers = any("$ref" in part or "$ref" in part.get("items", {}) for part in inner)
                assert value.get("description") or refers, f"{title}.{key}"


def test_the_kits_course_and_a_new_course_carry_the_schemas_that_the_command_gives(
    cold_grader: Grader, tmp_path: Path
) -> None:
    write_course(tmp_path / "new")
    for root in (ROOT, tmp_path / "new"):
        for name, folder in {"course": "exercises", "audit": "solutions/mistakes"}.items():
            path = root / folder / f"{name}.schema.json"
            assert path.read_text("utf-8") == cold_grader("schema", name).out
            first = (root / folder / f"{name}.toml").read_text("utf-8").partition("\n")[0]
            assert first == f"#:schema ./{path.name}"
