"""`grader.check`, `grader.hint` and `grader.heatmap`: what a notebook asks for, and what it shows.

`asking` finds what is to be checked, and checks it; `hints` finds the next hint; `shown` and
`heatmaps` are what comes back, as text and as HTML.
"""

from grader.notebook.asking import check
from grader.notebook.heatmaps import heatmap
from grader.notebook.hints import Hint, hint, unsolved
from grader.notebook.shown import Checked

__all__ = ["Checked", "Hint", "check", "heatmap", "hint", "unsolved"]
