"""Which isolation is enough to grade with, and what each layer of it is for.

The bar: a filter of system calls, and either Landlock or a user of its own for each jail, such that
no submission can read what decides its grade.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from grader.sandbox.session import Backend
from grader.wire.frames import open_to_others

if TYPE_CHECKING:
    from grader.sandbox.jails import Warm


WITHOUT = "GRADER_WITHOUT_LAYERS"  # names of layers to leave out, to see what happens then

Isolation = Literal["strong", "weak"]

MEANING = {
    "process": "student code runs in a process of its own, forked from one that holds no secret",
    "no_new_privs": "no program it starts could gain rights",
    "rlimits": "memory, CPU time, file size, open files and threads are limited",
    "namespaces": "no network, no shared memory with others, an empty working folder",
    "landlock": "it can read Python and its packages, and nothing else; it can write nothing",
    "uid": "each submission is a user of its own, without rights",
    "seccomp": "no sockets, no programs, no new processes, no signals, no kernel interfaces",
    "interpreter": "no ctypes, no frames or objects of others, no compiler, no more of torch",
}


def shortfall(backend: Backend, secrets: Sequence[Path]) -> str | None:
    """Why submissions could reach `secrets` (files and folders), or None if they cannot."""
    if not backend.layers:
        return "they do not run in jails"
    ready = cast("Warm", backend).ready  # only jails have layers
    missing = ready.missing
    if "seccomp" in missing:
        return f"there is no filter of system calls ({missing['seccomp']})"
    if "landlock" not in missing:
        for secret in secrets:
            for folder in ready.readable:
                if secret.resolve().is_relative_to(folder):
                    return f"{secret} lies in {folder}, which Python needs: move it elsewhere"
        return None
    if "uid" in missing:
        return (
            f"neither Landlock ({missing['landlock']}) nor a user of its own ({missing['uid']}) "
            "keeps a submission from files"
        )
    for secret in secrets:
        if open_to_others(secret):
            return (
                f"without Landlock ({missing['landlock']}) a submission can read {secret}: "
                f"chmod o-rwx {secret}"
            )
    return None
