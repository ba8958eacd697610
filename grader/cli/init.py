"""`grader init`: writes the course that an install carries, for students without a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.app import STUDENTS, app
from grader.release.courses import write_course


@app.command(rich_help_panel=STUDENTS, epilog="Example: grader init attention/")
def init(
    to: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder to make.")] = Path(
        "attention"
    ),
) -> None:
    """Write the course that came with this install into a new folder."""
    write_course(to)
    print(f"the course is in {to}. Next: cd {to}, then: grader")
