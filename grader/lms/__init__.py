"""Systems around us: where submissions come from, where grades go, and what runs us.

All that concerns one system stands in one module here (otter has three): how its downloads are
recognised and read, how grades are written for it, how it calls us, and what its bundle holds.
`SYSTEMS` is the table of them, and the commands read it: a new system is a new module and one line
here (see README.md). Points are none of its business: it hands a submission to `grading`. It knows
no command.
"""

from __future__ import annotations

from grader.intake.downloads import Downloads
from grader.lms.canvas import CANVAS
from grader.lms.classroom import CLASSROOM
from grader.lms.gradescope import GRADESCOPE
from grader.lms.moodle import MOODLE
from grader.lms.nbgrader import NBGRADER
from grader.lms.otter import OTTER
from grader.lms.sheets import SPREADSHEET
from grader.lms.system import System

# In the order of the help. Names in a download may fit several of these: the last one is meant.
# So what fits almost any name, as Canvas' pattern does, stands first.
SYSTEMS: tuple[System, ...] = (
    SPREADSHEET,
    CANVAS,
    MOODLE,
    GRADESCOPE,
    NBGRADER,
    OTTER,
    CLASSROOM,
)


def downloads() -> tuple[Downloads, ...]:
    """The downloads that are recognised, in the order in which to try."""
    return tuple(system.downloads for system in reversed(SYSTEMS) if system.downloads is not None)
