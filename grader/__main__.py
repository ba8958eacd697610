"""The program ``grader``, by its script or as a module of Python.

It loads the rest, runs the command, and ends quietly where Ctrl-C comes meanwhile.

As a module, Python looks for others in the working directory first, which may be a hand-in. So that
place goes before anything else is imported, and the package itself imports nothing. What this
cannot reach comes earlier: a folder ``grader`` there, and the few modules that Python loads to get
here.
"""

import sys


def main() -> None:
    """Run the program; exits with its code.

    Ctrl-C while the program loads ends it at once: a compiled module that is broken off while it
    sets itself up may raise any exception, or crash. Commands load torch later, so the signal
    itself is noted, whatever exception it becomes.
    """
    import os
    import signal

    loaded = interrupted = False

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupted
        if not loaded:
            os._exit(130)
        interrupted = True
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    from grader.cli import main as run

    loaded = True
    try:
        run()
    except (Exception, KeyboardInterrupt):
        if interrupted:
            sys.exit(130)
        raise


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
