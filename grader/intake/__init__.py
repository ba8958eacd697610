"""From paths to submissions: which files belong to whom, read as text and never run.

A submission is a ``.py`` file, a notebook, a folder of those, or a zip of such a folder; many come
as the download of a whole assignment (`downloads`; which systems make those, the caller says).
Their text goes to the student's process as it is; nothing here parses Python, and nothing is
written to disk.
What students hand in is not trusted: names, sizes and links are limited (`names`, `files`,
`archives`), and what cannot be read is one line for its author, never an exception that stops a
class.
"""

from grader.intake.arrivals import Arrivals, find_submissions, read_submission, take_in
from grader.intake.files import Submission
from grader.intake.roster import NOBODY, Roster, read_roster

__all__ = [
    "NOBODY",
    "Arrivals",
    "Roster",
    "Submission",
    "find_submissions",
    "read_roster",
    "read_submission",
    "take_in",
]
