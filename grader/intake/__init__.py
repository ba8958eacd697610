"""Finds submissions under paths, and reads their files as text without running them.

A submission is a ``.py`` file, a notebook, a folder of such files, or a zip of such a folder. A
learning system packs all submissions of an assignment into a download, which `downloads` reads; the
caller passes the systems to recognise. This room neither parses Python nor writes to disk.

Students' files are not trusted. Names, sizes and links are limited (`names`, `files`, `archives`).
The author of an unreadable file gets a line about it; the other submissions are graded as usual.
"""

from grader.intake.arrivals import Arrivals, find_submissions, read_submission, take_in
from grader.intake.roster import NO_ROSTER, Roster, read_roster
from grader.intake.submission import Submission
from grader.intake.times import NO_TIMES, Times, read_times

__all__ = [
    "NO_ROSTER",
    "NO_TIMES",
    "Arrivals",
    "Roster",
    "Submission",
    "Times",
    "find_submissions",
    "read_roster",
    "read_submission",
    "read_times",
    "take_in",
]
