"""Ctrl-C ends the program quietly, whatever it was loading, and all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.support.places import ROOT

INTERRUPT = "__import__('os').kill(__import__('os').getpid(), 2)"
# An extension that is broken off while it sets itself up says something else than that.
OTHERWISE = f"""try:
    {INTERRUPT}
except KeyboardInterrupt:
    raise ImportError("cannot set up") from None
"""
SWALLOWED = f"try:\n    {INTERRUPT}\nexcept KeyboardInterrupt:\n    pass\n"


@pytest.mark.parametrize("library", ["typer", "torch"])
@pytest.mark.parametrize(
    "loads", [INTERRUPT, OTHERWISE, SWALLOWED], ids=["as it is", "as another", "swallowed"]
)
def test_ctrl_c_while_a_library_is_loaded_ends_with_130_and_no_traceback(
    tmp_path: Path, library: str, loads: str
) -> None:
    (tmp_path / f"{library}.py").write_text(loads, "utf-8")
    ran = subprocess.run(
        [Path(sys.executable).with_name("grader"), "check", "softmax_naive"],
        env={"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        # A shell's background job ignores Ctrl-C, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (ran.returncode, ran.stderr) == (130, "")


def of_workers(started: psutil.Process) -> bool:
    return "multiprocessing.forkserver" in " ".join(started.cmdline())


def of_jails(started: psutil.Process) -> bool:
    return "grader.guest.warm" in started.cmdline()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is forked")
@pytest.mark.parametrize("mother", [of_workers, of_jails], ids=["of workers", "of jails"])
@pytest.mark.parametrize("has_torch", [False, True], ids=["while it starts", "while torch loads"])
def test_ctrl_c_while_what_all_is_forked_from_is_loading_leaves_nothing(
    tmp_path: Path, mother: Callable[[psutil.Process], bool], has_torch: bool
) -> None:
    with subprocess.Popen(
        [
            *(Path(sys.executable).with_name("grader"), "grade", ROOT / "tests/submissions/ada"),
            *("--out", tmp_path / "out", "--jobs", "2", "--no-pages", "--only", "causal_mask"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as grading:
        family = psutil.Process(grading.pid)
        while not any(mother(one) and loads(one, has_torch) for one in family.children()):
            assert grading.poll() is None
        started = family.children(recursive=True)
        os.killpg(grading.pid, signal.SIGINT)  # as a terminal does
        _, errors = grading.communicate()
    assert grading.returncode == 130
    assert "Traceback" not in errors
    assert not psutil.wait_procs(started, timeout=30)[1]


def loads(process: psutil.Process, has_torch: bool) -> bool:
    """Whether a process has come to torch, if that is asked."""
    return not has_torch or any("libtorch" in map.path for map in process.memory_maps())
