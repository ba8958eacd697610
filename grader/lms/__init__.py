"""Other systems: they send submissions, receive grades, or run the grader.

One module describes one system; otter has three modules, and Classroom 50 two. A module reads the
system's downloads, writes grades and a bundle for the system, and defines the command by which the
system runs the grader. The commands read the table `SYSTEMS`. To add a system, add a module and one
line here (see README.md). This room computes no points, and imports no command.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from grader.intake.downloads import Downloads
from grader.lms.system import System

# The module of each system, in the order of the help. If the names in a download fit several
# systems, the last of these systems counts. Canvas comes early, since its pattern fits most names.
MODULES = (
    "sheets",
    "canvas",
    "moodle",
    "gradescope",
    "nbgrader",
    "otter",
    "classroom50",
)

# Classroom 50's autograder holds only the module that runs there.
SYSTEMS: tuple[System, ...] = tuple(
    import_module(f"{__name__}.{module}").SYSTEM
    for module in MODULES
    if find_spec(f"{__name__}.{module}") is not None
)

# The recognised downloads, in the order in which to try them.
DOWNLOADS: tuple[Downloads, ...] = tuple(
    system.downloads for system in reversed(SYSTEMS) if system.downloads is not None
)
