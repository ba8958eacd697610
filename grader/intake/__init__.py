"""Finds submissions under paths, and reads their files as text without running them.

A submission is a ``.py`` file, a notebook, a folder of those, or a zip of such a folder. Many
arrive together as the download of a whole assignment (`downloads`; the caller passes the systems to
recognise). This room neither parses Python nor writes to disk; the student's process gets the text
unchanged.

Students' files are not trusted. Names, sizes and links are limited (`names`, `files`, `archives`).
An unreadable file becomes a one-line problem for its author, never an exception that stops a class.
"""

from grader.intake.arrivals import Arrivals, find_submissions, read_submission, take_in
from grader.intake.files import Submission
from grader.intake.roster import NO_ROSTER, Roster, read_roster

__all__ = [
    "NO_ROSTER",
    "Arrivals",
    "Roster",
    "Submission",
    "find_submissions",
    "read_roster",
    "read_submission",
    "take_in",
]
