"""What surrounds the code: workflows and forms of the forge, and pages that name other files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from grader.sandbox.jails import LAYERS
from tests.support.places import ROOT

FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (FORGE / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_do_little_and_pins_what_it_uses(path: Path) -> None:
    workflow = read(path)
    allowed = [
        workflow["permissions"],
        *(j.get("permissions", {}) for j in workflow["jobs"].values()),
    ]
    assert {pair for one in allowed for pair in one.items()} <= {
        ("contents", "read"),
        ("id-token", "write"),
    }
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.search(r"@(release/)?v\d+$", one) for one in used)


def test_only_the_job_that_publishes_can_prove_who_it_is_and_it_runs_no_code_of_ours() -> None:
    jobs = read(FORGE / "workflows" / "release.yml")["jobs"]
    (name,) = (n for n, job in jobs.items() if "id-token" in job.get("permissions", {}))
    assert all("run" not in step for step in jobs[name]["steps"])
    assert set(jobs[name]["needs"]) == jobs.keys() - {name}


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_has_a_name_and_fields_that_can_be_told_apart(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(ids) == len(set(ids)) > 0
    assert all(field["attributes"]["label"] for field in fields)


def test_the_settings_of_the_development_container_can_be_read() -> None:
    settings = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    assert settings["postCreateCommand"] == "make setup"


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/accessibility.md", "docs/operations"])
def test_pages_name_tests_that_exist(page: str) -> None:
    place = ROOT / page
    for path in [place] if place.is_file() else place.glob("*.md"):
        for name in re.findall(r"`(tests/[\w/.]+)`", path.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{path.name}: {name}"


def test_the_page_on_containers_says_of_each_layer_whether_it_is_kept() -> None:
    text = (ROOT / "docs" / "operations" / "containers.md").read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", "".join(rows))) == sorted(LAYERS)
