"""Ctrl-C ends the program quietly, whatever it was loading."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
