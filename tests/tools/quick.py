"""Checks that a change is likely to break, in under a minute: ``make quick``.

They are lint, types, and the tests of the rooms that differ from a commit. Tests that do not fit
into the time are left out and counted. CI runs all.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 60
ALWAYS = ("tests/test_house.py", "tests/test_readme.py")
LEAST = 20  # seconds for tests, however long the rest took
# Rooms whose tests are in another room's folder.
ELSEWHERE = {"testing": "proxies", "mistakes": "grading"}
ENDING = 8  # seconds kept for the tests that are at work when the time is over


def main() -> None:
    """Check, test, and exit with 1 where something failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.quick", description=__doc__)
    parser.add_argument("since", nargs="?", default="HEAD", help="a commit (HEAD)")
    since = parser.parse_args().since
    until = time.time() + SECONDS - ENDING
    chosen = tests_of(changed(since))
    print("tests:", " ".join(chosen), flush=True)
    checks = [
        ["ruff", "format", "--check", "--quiet", "."],
        ["ruff", "check", "--quiet", "."],
        ["mypy"],
        ["pytest", "-q", "-x", "-n", "auto", "--dist", "loadfile", "-p", __spec__.name, *chosen],
    ]
    failed = [
        check[0]
        for check in checks
        if subprocess.run(
            [sys.executable, "-m", *check, *_limit(check, until)], cwd=ROOT
        ).returncode
    ]
    raise SystemExit(f"failed: {', '.join(failed)}" if failed else 0)


def _limit(check: list[str], until: float) -> list[str]:
    least = time.time() + LEAST
    return ["--quick-until", str(max(until, least))] if check[0] == "pytest" else []


def changed(since: str) -> list[str]:
    """Files that differ from a commit, new files too."""
    differing = ["git", "diff", "--name-only", since]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    return [
        line
        for command in (differing, new)
        for line in subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    ]


def tests_of(files: list[str]) -> list[str]:
    """The tests of these files: a room has a folder of tests with its name."""
    chosen = dict.fromkeys(ALWAYS)
    for file in files:
        path = Path(file)
        if path.parts[0] == "tests" and path.name.startswith("test_"):
            chosen[file] = None
        elif path.parts[0] == "grader" and len(path.parts) > 2:
            chosen[f"tests/{ELSEWHERE.get(path.parts[1], path.parts[1])}"] = None
        elif path.parts[0] in ("exercises", "solutions"):
            chosen["tests/test_course_content.py"] = None
        elif path.suffix == ".md":
            chosen["tests/docs"] = None
    return [place for place in chosen if (ROOT / place).exists()]


# --- as a plugin of pytest ------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option: a time after which no test begins."""
    parser.addoption("--quick-until", type=float, help="seconds since 1970")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the test if the time is over."""
    until = item.config.getoption("--quick-until")
    if until is not None and time.time() > until:
        pytest.skip("no time left")


if __name__ == "__main__":
    main()
