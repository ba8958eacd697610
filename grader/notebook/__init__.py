"""`grader.check` and `grader.heatmap`: what a notebook asks for, and what it shows.

`asking` finds what is to be checked, and checks it; `shown` and `heatmaps` are what comes back, as
text and as HTML.
"""

from grader.notebook.asking import check
from grader.notebook.heatmaps import heatmap
from grader.notebook.shown import Checked

__all__ = ["Checked", "check", "heatmap"]
