"""Disturbs gradings at random moments, resumes them, and compares the final gradebooks.

``make soak``, or ``python -m tests.benchmarks.soak [--times 20] [PART…]``. It takes an hour. Parts:
``grader``, ``worker``, ``warm process`` and ``jail`` kill a process; ``full disk`` lets no file
grow; ``ctrl-c`` interrupts, with one job and with two; ``idle`` compares a class in which some
answers never end with the class without them.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grader.author.practice import write_class
from grader.course.course import Course, load_course
from grader.release.texts import write_text
from tests.support.places import REAL
from tests.support.victims import Grading, Victim, results

KILLED: tuple[Victim, ...] = ("grader", "worker", "warm process", "jail")
OFTEN = 8  # kills in the time of an undisturbed run, once there was one
PARTS = ("ctrl-c, 1 job", "ctrl-c, 2 jobs", *KILLED, "full disk", "idle")
UNIT = "self_attention"  # the units that the disturbed class is graded in
STUDENTS = 8
OPTIONS = ("--only", UNIT)
HONEST, IDLE = 40, 10
# The endless first line of every answer.
NEVER = {
    "sleeps": "__import__('time').sleep(1e9)",
    "stops": f"__import__('os').kill(__import__('os').getpid(), {int(signal.SIGSTOP)})",
    "loops": "while True: pass",
    "waits": "__import__('threading').Event().wait()",
}


def main() -> None:
    """Print the tables; exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="; ".join(PARTS))
    parser.add_argument("--times", type=int, default=20, help="for each victim and interrupt (20)")
    parser.add_argument("--seed", type=int, default=8, help="of the random moments")
    given = parser.parse_args()
    parts = given.parts or PARTS
    if unknown := sorted({*parts} - {*PARTS}):
        parser.error(f"no such part: {unknown[0]}; there is: {'; '.join(PARTS)}")
    # A shell's background job ignores Ctrl-C; the gradings would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    well = True
    with tempfile.TemporaryDirectory() as name:
        folder, course = Path(name), load_course(REAL)
        if disturbances := [part for part in parts if part != "idle"]:
            calm = undisturbed(folder, course)
            print(f"undisturbed: {STUDENTS} submissions of {UNIT} in {calm.seconds:.0f} s")
            print(
                f"{'':16}{'times':>7}{'runs':>6}{'gradebooks':>12}{'equal':>7}  ended by",
                flush=True,
            )
            for part in disturbances:
                draw = random.Random(f"{given.seed} {part}")
                well &= disturb(calm, folder, draw, part, given.times)
        if "idle" in parts:
            well &= beside_idle(folder, course)
    raise SystemExit(not well)


# --- disturbed -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calm:
    """A grading that nobody disturbed."""

    students: Path
    out: Path
    seconds: float
    size: int  # of its database


def undisturbed(folder: Path, course: Course) -> Calm:
    """What all others are compared with."""
    submitted, out = folder / "class" / "submissions.zip", folder / "undisturbed"
    write_class(folder / "class", course, STUDENTS)
    began = time.perf_counter()
    code, told = grading(submitted, out, *OPTIONS).finish()
    assert code == 0, told
    return Calm(submitted, out, time.perf_counter() - began, (out / "grades.db").stat().st_size)


def disturb(calm: Calm, folder: Path, draw: random.Random, part: str, times: int) -> bool:
    """Print a line of the table; whether all came out as if nobody had disturbed it."""
    done = runs = gradebooks = equal = 0
    ends: Counter[str] = Counter()
    while done < times:
        out = folder / f"{part} {gradebooks}"
        code = -1
        while code != 0:
            code, told, count = run(calm, out, draw, part if done < times else "")
            done, runs = done + count, runs + 1
            if count:
                ends[ending(code, told)] += 1
            elif code != 0:
                raise SystemExit(f"{part}: ended by {code} though nobody disturbed it: {told}")
        gradebooks += 1
        others = differences(out, calm.out)
        equal += not others
        if others:
            print(f"  {out.name}: other {', '.join(others)}", flush=True)
    ended = ", ".join(f"{code} ({count})" for code, count in sorted(ends.items()))
    print(f"{part:16}{done:7}{runs:6}{gradebooks:12}{equal:7}  {ended}", flush=True)
    return equal == gradebooks and (not part.startswith("ctrl-c") or {*ends} == {"130"})


def run(calm: Calm, out: Path, draw: random.Random, part: str) -> tuple[int, str, int]:
    """The exit code of a run, its standard error, and how often it was disturbed."""
    jobs = "2" if part in ("worker", "ctrl-c, 2 jobs") else "1"
    before = None
    if part == "full disk":  # no file may be larger than a part of the database
        room = draw.randrange(calm.size)
        before = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))
    disturbed = grading(calm.students, out, *OPTIONS, "--jobs", jobs, before=before)
    if part == "full disk":
        code, told = disturbed.finish()
        return code, told, int(code != 0)
    count, longest = 0, calm.seconds
    if part == "jail":  # before, what the warm process forks is another program that it asks
        disturbed.wait_for(grades=1)
    while part and disturbed.process.poll() is None:
        time.sleep(draw.uniform(0, longest))
        if part.startswith("ctrl-c"):
            count += disturbed.press_ctrl_c()
            break  # who presses it again while a run ends disturbs nothing more
        count += disturbed.kill(next(name for name in KILLED if name == part))
        longest = calm.seconds / OFTEN
    code, told = disturbed.finish()
    return code, told, count


def grading(
    students: Path, out: Path, *options: str, before: Callable[[], None] | None = None
) -> Grading:
    """A grading of the course with a cache of its own, so that it finds out all by itself."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache_of(out))}
    return Grading(students, out, *options, course=REAL, before=before, environment=environment)


def cache_of(out: Path) -> Path:
    """The cache of the gradings into a folder."""
    return out.with_name(f"{out.name} cache")


def ending(code: int, told: str) -> str:
    """The exit code as a shell gives it, and words that no command may print."""
    return f"{code if code >= 0 else 128 - code}{', traceback' if 'Traceback' in told else ''}"


def differences(out: Path, calm: Path) -> list[str]:
    """The differences in a gradebook that was disturbed: bytes, students, kept rows.

    A killed grading may keep fewer rows. Only rows that the calm grading lacks count.
    """
    (table, grades), (calm_table, calm_grades) = results(out), results(calm)
    others = ["gradebook.csv"] if table != calm_table else []
    if len(grades) != len(calm_grades):
        others.append(f"number of grades: {len(grades)}")
    for grade, other in zip(grades, calm_grades, strict=False):
        for key in sorted({*grade, *other}):
            if grade.get(key) != other.get(key):
                others.append(f"{key} of {grade['student']}: {grade.get(key)} for {other.get(key)}")
    rows = len(sheet_of(out) - sheet_of(calm))
    return others + ([f"rows of the sheet: {rows}"] if rows else [])


def sheet_of(out: Path) -> set[tuple[object, ...]]:
    """The rows of the sheet in the cache."""
    (kept,) = cache_of(out).rglob("*.db")
    with closing(sqlite3.connect(kept)) as connection:
        return {*connection.execute("SELECT kind, name, test, label, digest FROM rows")}


# --- beside those that never end -----------------------------------------------------------------


def beside_idle(folder: Path, course: Course) -> bool:
    """Print what ten that sleep, stop or loop cost a class of forty; whether that is bounded."""
    write_class(folder / "honest", course, HONEST)
    submitted = folder / "honest" / "submissions.zip"
    never = folder / "never"
    for number in range(IDLE):
        endless = [*NEVER.values()][number % len(NEVER)]
        for unit, reference in course.reference_files().items():
            write_text(
                never / f"never_{number}" / f"{unit}.py", unending(reference, course, endless)
            )
    alone, wall, cpu = timed(submitted, folder / "alone")
    both, wall_of_both, cpu_of_both = timed(submitted, folder / "both", str(never))
    rows = {
        f"{len(alone)} honest alone": (wall, cpu),
        f"with {IDLE} that sleep, stop, loop or wait": (wall_of_both, cpu_of_both),
    }
    print(f"{'':40}{'wall':>8}{'CPU':>8}")
    for what, (seconds, used) in rows.items():
        print(f"{what:40}{seconds:6.0f} s{used:6.0f} s")
    for number, does in enumerate(NEVER):
        longest = max(both[f"never_{k}"]["seconds"] for k in range(number, IDLE, len(NEVER)))
        print(f"  {f'each that {does}':38}{longest:6.1f} s at most")
    equal = all(
        {**both[name], "seconds": 0} == {**grade, "seconds": 0} for name, grade in alone.items()
    )
    print(f"grades of the honest are {'the same' if equal else 'OTHERS'}", flush=True)
    return equal


def timed(submitted: Path, out: Path, *more: str) -> tuple[dict[str, Any], float, float]:
    """Grades by student of a batch with two jobs; its seconds, and those of processors."""
    wall, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    code, told = grading(submitted, out, *more, "--jobs", "2").finish()
    assert code == 0, told
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    grades = {grade["student"]: grade for grade in map(json.loads, lines)}
    return grades, time.perf_counter() - wall, cpu


def unending(reference: Path, course: Course, endless: str) -> str:
    """A unit's references, each with an endless loop at its beginning."""
    tree = ast.parse(reference.read_text("utf-8"))
    for node in tree.body:
        if getattr(node, "name", None) not in course.unit_of:
            continue
        methods = node.body if isinstance(node, ast.ClassDef) else [node]
        for method in methods:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                method.body[:0] = ast.parse(endless).body
    return ast.unparse(tree)


if __name__ == "__main__":
    main()
