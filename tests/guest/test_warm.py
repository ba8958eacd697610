"""The warm process: what others may do to it while it loads."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
from pathlib import Path

import pytest

from grader.guest import warm
from grader.guest.lockdown import Plan
from grader.sandbox.jails import LAYERS

PLAN = Plan(
    libc=ctypes.CDLL(None),
    warm_pid=0,
    readable=(),
    closed="",
    whole=True,
    opened=(),
    private=False,
    users=range(0),
    data_bytes=0,
    address_bytes=0,
    shown=(),
    new_root=None,
    missing={},
)


def test_a_rehearsal_that_others_killed_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed_once(*_: object, **__: object) -> dict[str, str]:
        if not (mark := tmp_path / "killed").exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"landlock": "this kernel has none"}

    monkeypatch.setattr(warm, "_locked", killed_once)
    assert warm.rehearsed(PLAN).missing == {"landlock": "this kernel has none"}


def test_a_rehearsal_that_is_killed_each_time_lets_no_jail_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(warm, "_locked", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    assert warm.rehearsed(PLAN).missing == {"process": "it was killed in each rehearsal"}


def test_a_jail_whose_warm_process_has_ended_ends_as_all_its_jails_do() -> None:
    """By a signal, which costs nobody anything, and not by a report of what it lacks."""
    orphaned = dataclasses.replace(PLAN, missing=dict.fromkeys(LAYERS, "switched off"))
    assert warm.rehearsed(orphaned).missing == {"process": "it was killed in each rehearsal"}
