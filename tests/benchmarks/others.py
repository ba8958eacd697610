"""Other tools grade one exercise by eight plain checks: a cold ``pytest``, and ``otter run``.

Their checks are those of `causal_mask` in their plainest form: no kit, no wall, no diagnosis.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

EXERCISE, UNIT = "causal_mask", "causal_attention"
SIZES = (5, 1, 8, 2, 13, 16)
PLAIN = f"""
import pytest, torch
from {UNIT} import causal_mask

def test_it_is_a_square_of_booleans():
    mask = causal_mask(5)
    assert mask.dtype == torch.bool and mask.shape == (5, 5)

def test_of_three_tokens():
    expected = [[False, True, True], [False, False, True], [False, False, False]]
    assert torch.equal(causal_mask(3), torch.tensor(expected))

@pytest.mark.parametrize("tokens", {SIZES})
def test_of_other_numbers_of_tokens(tokens):
    expected = torch.tensor([[k > q for k in range(tokens)] for q in range(tokens)])
    assert torch.equal(causal_mask(tokens), expected)
"""
OTTERS = """
from otter.test_files import test_case
import torch

OK_FORMAT = False
name = "causal_mask"
points = 8

@test_case()
def test_it_is_a_square_of_booleans(causal_mask):
    mask = causal_mask(5)
    assert mask.dtype == torch.bool and mask.shape == (5, 5)

@test_case()
def test_of_three_tokens(causal_mask):
    expected = [[False, True, True], [False, False, True], [False, False, False]]
    assert torch.equal(causal_mask(3), torch.tensor(expected))
""" + "".join(
    f"""
@test_case()
def test_of_{tokens}_tokens(causal_mask):
    expected = torch.tensor([[k > q for k in range({tokens})] for q in range({tokens})])
    assert torch.equal(causal_mask({tokens}), expected)
"""
    for tokens in SIZES
)


def seconds_of_pytest(folder: Path, answer: str) -> float:
    """A new Python, torch, pytest without plugins, and the checks."""
    (folder / f"{UNIT}.py").write_text(answer, "utf-8")
    (folder / "test_plain.py").write_text(PLAIN, "utf-8")
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return _seconds([sys.executable, "-m", "pytest", "-q"], folder, alone)


def seconds_of_otter(folder: Path, answer: str) -> float | None:
    """Otter alone, on a notebook, or None where it is not installed."""
    if importlib.util.find_spec("otter") is None:
        return None
    with zipfile.ZipFile(folder / "autograder.zip", "w") as archive:
        archive.writestr(f"tests/{EXERCISE}.py", OTTERS)
        archive.writestr("otter_config.json", "{}")
    cell = {"cell_type": "code", "id": "a", "source": answer, "metadata": {}, "outputs": []}
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [{**cell, "execution_count": None}],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    }
    (folder / "ada.ipynb").write_text(json.dumps(notebook), "utf-8")
    command = [sys.executable, "-m", "otter", "run", "-a", "autograder.zip", "ada.ipynb"]
    seconds = _seconds(command, folder)
    tests = json.loads((folder / "results.json").read_text("utf-8"))["tests"]
    assert sum(test.get("score", 0) for test in tests) == 8, tests
    return seconds


def _seconds(
    command: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started
