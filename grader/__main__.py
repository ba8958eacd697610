"""``grader`` where its script is not on the path: started as a module of Python.

Python then looks for modules in the working directory first, which may be a hand-in. So that place
goes before anything else is imported, and the package itself imports nothing. What this cannot
reach comes earlier: a folder ``grader`` there, and the few modules that Python loads to get here.
"""

import sys

if not sys.flags.safe_path:
    del sys.path[0]

from grader.cli import main

main()
