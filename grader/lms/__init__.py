"""Systems around us: where submissions come from, where grades go, and what runs us.

All that concerns one system stands in one module here (otter has three, GitHub two): how its
downloads are recognised and read, how grades are written for it, how it calls us, and what its
bundle holds. `SYSTEMS` is the table of them, and the commands read it: a new system is a new module
and one line here (see README.md). Points are none of its business: it hands a submission to
`grading`. It knows no command.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from grader.intake.downloads import Downloads
from grader.lms.system import System

# The module of each system, in the order of the help. Names in a download may fit several of these:
# the last one is meant. So what fits almost any name, as Canvas' pattern does, stands first.
MODULES = (
    "sheets",
    "canvas",
    "moodle",
    "gradescope",
    "nbgrader",
    "otter",
    "classroom",
)

# Those that are here: a student's repository on GitHub holds the module that its workflow runs.
SYSTEMS: tuple[System, ...] = tuple(
    import_module(f"{__name__}.{module}").SYSTEM
    for module in MODULES
    if find_spec(f"{__name__}.{module}") is not None
)

# The downloads that are recognised, in the order in which to try.
DOWNLOADS: tuple[Downloads, ...] = tuple(
    system.downloads for system in reversed(SYSTEMS) if system.downloads is not None
)
