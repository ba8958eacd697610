"""Classroom 50 runs this file for each submission, in the student's checkout.

It installs the engine from its own folder, and checks the submission. Students can read this
folder: it holds public checks, and no solution. Only Python's own library is needed here.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

BUNDLE = Path(__file__).resolve().parent
FAILED = "the engine could not be installed, so nothing was checked: look at pip's lines above"


def main() -> int:
    """Return 0 if there is a result, whatever it says."""
    checkout = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        programs = Path(place, "Scripts" if os.name == "nt" else "bin")
        settings = {"PIP_CONSTRAINT": str(BUNDLE / "constraints.txt")}
        if (BUNDLE / "pip.conf").is_file():
            settings["PIP_CONFIG_FILE"] = str(BUNDLE / "pip.conf")
        environment = {**os.environ, **settings, "PYTHONSAFEPATH": "1"}
        # Never in the checkout: a student may have put modules there.
        pip = (str(programs / "python"), "-I", "-m", "pip", "install", "--quiet")
        install = (*pip, "--disable-pip-version-check", str(BUNDLE))
        if subprocess.run(install, cwd=place, env=environment).returncode:
            print(f"::error::{FAILED}")
            return 1
        check = (str(programs / "grader"), "host", "classroom50", str(checkout))
        return subprocess.run(check, cwd=BUNDLE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
