"""A workflow that makes GitHub run the public checks at every push to a student's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping

from grader.course.course import Course
from grader.course.file import Unit
from grader.release import texts

WORKFLOW = ".github/workflows/checks.yml"

ON_GITHUB = """
## On GitHub

If this folder is a repository on GitHub, its workflow runs these checks again at every push. Commit
and push whenever you have solved something, or want to show where you are stuck:

```console
git add --all
git commit -m "one more exercise"
git push
```

Then open the tab "Actions" on the repository's page. The newest line is your push. It has a step
for each unit: a green one is solved, and a red one shows what is not right yet. The results are for
learning only: anyone who can push can also change the checks. Marks come from other tests, which
are not in this repository.
"""

# A wrong unit does not stop the next. An answer may print lines such as ``::error::``, which GitHub
# would obey as commands; it obeys none until it reads the token again.
STEP = """\
      - name: {title}
        if: ${{{{ !cancelled() && steps.install.outcome == 'success' }}}}
        run: |
          token=$(python -c "import secrets; print(secrets.token_hex(16))")
          echo "::stop-commands::$token"
          status=0
          grader check {names} || status=$?
          echo "::$token::"
          exit $status
"""


def workflow_texts(course: Course) -> Mapping[str, str]:
    """The files that a student's folder needs on GitHub, by path: the workflow, and the README."""
    steps = "".join(
        STEP.format(title=json.dumps(unit.title), names=_names(course, unit))
        for unit in course.units
        if course.asked_in(unit.name)
    )
    return {
        WORKFLOW: texts.template("checks.yml", steps=steps.rstrip("\n")),
        "README.md": texts.readme(course) + ON_GITHUB,
    }


def _names(course: Course, unit: Unit) -> str:
    """The unit's name, or the names of its exercises if only some of them are assigned."""
    asked = course.asked_in(unit.name)
    return unit.name if len(asked) == len(unit.exercise) else " ".join(asked)
