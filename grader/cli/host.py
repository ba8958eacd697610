"""What other systems run: Gradescope's script, and a workflow of GitHub Classroom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.app import app

host = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What other systems run.")
app.add_typer(host, name="host", hidden=True)


@host.command("gradescope", epilog="Example: grader host gradescope /autograder")
def host_gradescope(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Gradescope's folder.")],
) -> None:
    """Grade the submission that Gradescope put below ROOT.

    Where that fails on our side no results are written: Gradescope then says that the autograder
    failed, and gives no score. A score of zero would say that the student had.
    """
    from grader.hosts.gradescope import grade_submission

    grade_submission(root)


@host.command("classroom", epilog="Example: grader host classroom softmax")
def host_classroom(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="A unit of the course.")],
) -> None:
    """Check one unit in a workflow on GitHub.

    The results say whether it is right, and not the exit code.
    """
    from grader.hosts.classroom import check_unit

    check_unit(unit)
