"""Stops a build without the course that a wheel carries; an editable build needs none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RECORDED = Path("grader", "bundle", "exercises", "recorded")


class CarriedCourse(BuildHookInterface[Any]):
    """Called by hatchling before it builds."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Refuse with one line, which installers show as it is."""
        if version != "editable" and not any(Path(self.root, RECORDED).glob("*.sqlite")):
            sys.exit(
                "there are no recordings in grader/bundle: run `make dist`, which records first"
            )
