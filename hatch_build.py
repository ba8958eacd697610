"""Stops a build without the course that a wheel carries, and writes the long description."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RECORDED = Path("grader", "bundle", "exercises", "recorded")


class CarriedCourse(BuildHookInterface[Any]):
    """Called by hatchling before it builds. An editable build needs no course."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Refuse with one line, which installers show as it is."""
        if version != "editable" and not any(Path(self.root, RECORDED).glob("*.sqlite")):
            sys.exit(
                "there are no recordings in grader/bundle: run `make dist`, which records first"
            )


class LongDescription(MetadataHookInterface):
    """Called by hatchling for the text on a package index: README.md, with paths for links.

    A link to a file of the repository would lead nowhere there, and a picture would be missing.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Put in the text as `readme`."""
        text = Path(self.root, "README.md").read_text("utf-8")
        text = re.sub(r"^!\[.*?\]\(.*?\)\n\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"\[([^]]*)\]\((?!https?:)(.*?)\)", r"\1 (`\2`)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
