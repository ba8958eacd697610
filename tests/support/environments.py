"""Environments to install a bundle into, where nothing can be downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path

# pip builds with installed packages only, and asks no index.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


def make_environment(folder: Path) -> Path:
    """An environment with all packages of ours except the kit; the folder of its programs.

    They are links, and not on a path of ours behind its own: jails look into one place only.
    """
    venv.create(folder, symlinks=True)
    theirs = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder)})
    shutil.copytree(
        sysconfig.get_path("purelib"),
        theirs["purelib"],
        dirs_exist_ok=True,
        symlinks=True,
        copy_function=_link,
        ignore=shutil.ignore_patterns("*attention_grader*"),
    )
    return Path(theirs["scripts"])


def run(
    *command: str | Path, place: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program in a place, without what is set for Python in this process."""
    known = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        list(map(str, command)),
        cwd=place,
        env={**known, **OFFLINE, **environment},
        capture_output=True,
        text=True,
    )


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
