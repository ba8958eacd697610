"""`grader watch` as it is typed: in a terminal, in a pipe, and ended by Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.places import TINY
from tests.support.watching import DEADLINE, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
GRADER = Path(sys.executable).with_name("grader")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the tiny course, in which somebody has worked before."""
    shutil.copytree(TINY, tmp_path / "tiny")
    folder = tmp_path / "tiny" / "exercises"
    (folder / "progress.txt").touch()
    return folder


def solve(folder: Path) -> None:
    shutil.copy(TINY / "solutions" / "basics.py", folder / "basics.py")


@contextmanager
def in_a_terminal(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int, Callable[[], str]]]:
    """The full screen in a terminal of its own: the process, the keyboard, and what was drawn."""
    import fcntl
    import pty
    import struct
    import termios
    import threading

    keyboard, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    drawn = bytearray()

    def read() -> None:
        try:
            while part := os.read(keyboard, 4096):
                drawn.extend(part)
        except OSError:  # the other end is closed
            pass

    process = subprocess.Popen(
        [GRADER, "watch", "center", "--course", folder],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(terminal)
    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield process, keyboard, lambda: drawn.decode(errors="replace")
    finally:
        process.kill()
        process.wait()
        reader.join(DEADLINE)
        os.close(keyboard)


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "Ctrl-C"])
@pytest.mark.parametrize("loaded", [True, False], ids=["at rest", "while torch is loaded"])
def test_a_screen_is_drawn_and_left_by_a_key(folder: Path, key: bytes, loaded: bool) -> None:
    solve(folder)
    with in_a_terminal(folder) as (process, keyboard, drawn):
        until(lambda: ("goes on to" if loaded else "Loading torch") in drawn())
        os.write(keyboard, key)
        assert process.wait(DEADLINE) == 0
        until(lambda: "\x1b[?1049l" in drawn())  # the terminal shows again what it showed before
        assert "Traceback" not in drawn()


def test_plain_checks_at_a_save_and_ctrl_c_ends_it(folder: Path) -> None:
    with subprocess.Popen(
        [GRADER, "watch", "--plain", "center", "--course", folder],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background job ignores Ctrl-C, and hands that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("Not solved yet: center" in line for line in lines)
        assert any("Write your lines" in line for line in lines)
        solve(folder)
        assert any("Solved: center" in line for line in lines)
        assert any("Try it" in line for line in lines)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
