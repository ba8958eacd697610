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

    An import that Ctrl-C breaks off may raise any exception, so the signal itself is noted.
    """
    import signal

    interrupted = False

    def interrupt(_number: int, _frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        from grader.cli import main as run

        run()
    except (Exception, KeyboardInterrupt):
        if interrupted:
            sys.exit(130)
        raise


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    main()
