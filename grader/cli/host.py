"""`grader host`: a command for each system that runs the grader."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from grader.cli.app import app, declare
from grader.lms import SYSTEMS
from grader.lms.system import Host

host = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run by other systems.")
app.add_typer(host, name="host", hidden=True)


def _add(name: str, called: Host) -> None:
    def command(argument: Any) -> None:
        called.run(argument)

    about = typer.Argument(metavar=called.argument, help=called.about)
    declare(command, {"argument": Annotated[called.kind, about]})
    example = f"Example: grader host {name} {called.example}"
    host.command(name, help=called.help, epilog=example)(command)


for _system in SYSTEMS:
    if _system.host is not None:
        _add(_system.name, _system.host)
