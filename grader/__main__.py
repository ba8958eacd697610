"""The entry point of ``grader``, as a script or as ``python -I -m grader``.

It imports the program, runs the command, and exits without a traceback on Ctrl-C.

With ``python -m``, Python searches the working directory first for modules, and the working
directory may be a submission. Therefore this module removes the working directory from the path
before all imports but `sys`, and ``grader/__init__.py`` imports nothing. This cannot protect
against a folder ``grader`` in the working directory, or against the few modules that Python loads
before this module.
"""

import sys


def main() -> None:
    """Run the program, and exit with its code.

    Ctrl-C during an import exits at once: an interrupted compiled module may crash or raise any
    exception, and torch may ignore that a module failed. At other times Ctrl-C raises
    `KeyboardInterrupt`. The exit code is 130 even if another exception replaces this exception.
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
