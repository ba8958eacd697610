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

    Ctrl-C during an import ends it at once: a compiled module that is broken off may raise any
    exception or crash, and torch goes on without it. Else the signal is noted, whatever becomes of
    it.
    """
    import os
    import signal
    from types import FrameType

    interrupted = False

    def interrupt(_number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                os._exit(130)
            frame = frame.f_back
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
