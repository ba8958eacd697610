"""From paths to submissions: which files belong to whom, read as text and never run.

A submission is a ``.py`` file, a notebook, a folder of those, or a zip of such a folder. Its text
goes to the student's process as it is; nothing here parses Python, and nothing is written to disk.
What students hand in is not trusted: names, sizes, links and archives are limited (`limits`), and
what cannot be read is one line for its author, never an exception that stops a class.
"""

from grader.intake.submissions import Submission, find_submissions, read_submission

__all__ = ["Submission", "find_submissions", "read_submission"]
