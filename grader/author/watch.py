"""`grader audit --watch`: repeats the audit of the exercises being edited, at every save."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event

from grader.author.audit import audit_course
from grader.author.findings import Audited
from grader.course.course import Course
from grader.records.faults import CallError, HostFault
from grader.records.saves import saves, snapshot
from grader.sandbox import jails

KINDS = (".py", ".toml", "seed")
SKIPPED = frozenset({"__pycache__"})

# Gets the findings and the seconds of an audit, or the fault because of which there are none.
Show = Callable[[Sequence[Audited] | str, float], object]


def watch(
    reload: Callable[[], Course],
    names: Sequence[str],
    show: Show,
    *,
    seed: str | None = None,
) -> None:
    """Audit these exercises now, if there are any, and exercises of each saved unit later.

    `reload` reads the course anew. With `names`, only these exercises are audited. A save of a file
    that concerns all units repeats the last audit. Torch and the process of the jails are loaded
    once. Only an exception, such as `KeyboardInterrupt`, ends the loop.
    """
    course = reload()
    folders = (course.folder, *course.secrets)
    seen = snapshot(folders, KINDS, SKIPPED)
    current = list(names)
    with jails.Warm() as warm:

        def audit() -> None:
            started = time.perf_counter()
            found: Sequence[Audited] | str
            try:
                found = audit_course(reload(), current, 1, seed=seed, backend=nullcontext(warm))
            except (CallError, HostFault) as error:
                found = str(error)
            show(found, time.perf_counter() - started)

        if current:
            audit()
        for now in saves(folders, KINDS, SKIPPED, seen, Event()):
            changed = {Path(p) for p in now.keys() | seen.keys() if now.get(p) != seen.get(p)}
            seen = now
            current = _edited(course, changed, names) or current
            if current:
                audit()


def _edited(course: Course, changed: Collection[Path], names: Sequence[str]) -> list[str]:
    """The exercises of the units whose files changed; with `names`, only these."""
    stems = {path.stem.removeprefix("test_") for path in changed}
    return [
        name
        for name, unit in course.unit_of.items()
        if unit in stems and (not names or name in names)
    ]
