"""The program ``grader``, by its script or as a module of Python.

It loads the rest, and ends quietly if Ctrl-C comes meanwhile.

As a module, Python looks for others in the working directory first, which may be a hand-in. So that
place goes before anything else is imported, and the package itself imports nothing. What this
cannot reach comes earlier: a folder ``grader`` there, and the few modules that Python loads to get
here.
"""

import sys


def main() -> None:
    """Run the program; exits with its code."""
    try:
        from grader.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
