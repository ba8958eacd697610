"""No secret of the trusted side is reachable from a jail.

The submissions here do what a curious student would: they walk everything that their process
holds. The last one reads the process's own memory byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import wire
from grader.course.course import find_course, load_course
from grader.grading.desk import Desk
from grader.grading.order import Order
from grader.sandbox.jails import WITHOUT, Warm
from grader.sandbox.session import Limits, Session
from grader.wire import payload
from tests.support.places import ROOT

LIMITS = Limits(test_seconds=60, submission_seconds=120)

PLANTED = "a-string-that-only-the-submission-holds"

WALK = """
import gc, os, sys

def modules():
    return sorted(sys.modules)

def module_files():
    return sorted({str(getattr(m, "__file__", "")) for m in list(sys.modules.values())})

def environment():
    return dict(os.environ)

def arguments():
    return list(sys.orig_argv)

def descriptors():
    return [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{n}")]

def frames():
    frame, seen = sys._getframe(), []
    while frame is not None:
        seen.append([frame.f_code.co_filename, sorted(frame.f_locals), repr(frame.f_locals)])
        frame = frame.f_back
    return seen

def functions():
    return sorted({f.__code__.co_filename for f in gc.get_objects() if type(f) is type(modules)})

def importable(names):
    found = []
    for name in names:
        try:
            __import__(name)
            found.append(name)
        except ImportError:
            pass
    return found
"""

SEARCH = f"""
planted = {PLANTED!r}

def occurrences(first, second):
    # Two halves, so that the whole is in memory only if it was there before.
    first, second = first.encode("latin-1"), second.encode("latin-1")
    count = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            span, rights, _, _, inode = line.split()[:5]
            if not rights.startswith("rw") or "[vvar" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            while start < end:
                memory.seek(start)
                try:
                    block = memory.read(min(2**20, end - start))
                except OSError:
                    break
                if not block:
                    break
                at = block.find(first)
                while at >= 0:
                    count += block[at + len(first):at + len(first) + len(second)] == second
                    at = block.find(first, at + 1)
                # Overlap, so that nothing hides across the edge of two blocks.
                start += len(block) if len(block) < 2**20 else len(block) - 256
    return count
"""


@pytest.fixture(scope="module", params=["its own", "of the same mother as others"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    course = load_course(find_course(ROOT))
    files = {
        course.folder / "checks" / "test_softmax.py": False,
        course.solutions / "graders" / "test_softmax.py": True,
    }
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            # These look at what is there: a lock would only hide it. In a root of its own, a jail
            # has no /proc to look with.
            patch.setenv(WITHOUT, "root landlock uid seccomp interpreter")
            order = Order(course, course.hidden_seed(), files, only=("softmax",), isolation="weak")
            if request.param != "its own":
                mother = stack.enter_context(Warm())
                order = replace(order, backend=Warm(mother.split()))
            desk = stack.enter_context(order.desk())
        yield desk


def ask(desk: Desk, text: str, function: str, *arguments: Any) -> Any:
    """Run a function of a submission in a jail, and return what it returns."""
    names = [line[4:].split("(")[0] for line in text.splitlines() if line.startswith("def ")]
    opening = wire.Open(
        (wire.SourceText("curious.py", (text,)),),
        tuple(wire.Wanted(name, "curious", "") for name in names),
    )
    session = Session(desk.backend.open, opening, LIMITS)
    try:
        session.begin_case(1)
        (outcome,) = session.run(wire.Invoke(function, [payload.pack(a) for a in arguments], [], 1))
        assert isinstance(outcome, wire.Returned), outcome
        return payload.unpack(outcome.value)
    finally:
        session.close()


def test_no_module_of_the_trusted_side_is_loaded(desk: Desk) -> None:
    loaded = set(ask(desk, WALK, "modules"))
    ours = {name for name in loaded if name.startswith(("grader", "solutions", "_solutions"))}
    guest = (
        "interpreter",
        "loader",
        "lockdown",
        "memory",
        "operands",
        "operations",
        "preload",
        "server",
        "sites",
        "syscalls",
        "trace",
        "warm",
    )

    shared = (
        "changes",
        "checks",
        "definitions",
        "frames",
        "ipython",
        "models",
        "payload",
        "source",
    )
    rooms = {"grader", "grader.guest", "grader.wire"}
    rooms |= {f"grader.guest.{name}" for name in guest}
    assert ours <= rooms | {f"grader.wire.{name}" for name in shared}
    assert not any("test_" in name and "torch" not in name for name in loaded)


def test_no_file_of_a_course_is_loaded_or_importable(desk: Desk) -> None:
    files = ask(desk, WALK, "module_files") + ask(desk, WALK, "functions")
    folders = {Path(file).parent.name for file in files}
    assert not folders & {"solutions", "exercises", "graders", "checks", "tests"}
    wanted = ["solutions", "solutions.softmax", "exercises", "exercises.softmax", "tests"]
    assert ask(desk, WALK, "importable", wanted) == []


def test_the_environment_and_the_command_line_are_bare(desk: Desk) -> None:
    assert set(ask(desk, WALK, "environment")) <= {
        "LANG",
        "LC_CTYPE",
        "OMP_NUM_THREADS",
        "PYTHONDONTWRITEBYTECODE",
        "TORCHINDUCTOR_CACHE_DIR",
        "KMP_DUPLICATE_LIB_OK",
        "KMP_INIT_AT_FORK",
        "FBGEMM_NO_ASMJIT",
    }
    assert ask(desk, WALK, "arguments")[1:4] == ["-I", "-m", "grader.guest.warm"]


def test_only_the_jails_own_socket_is_open(desk: Desk) -> None:
    opened = ask(desk, WALK, "descriptors")
    assert sorted(name.partition(":")[0] for name in opened) == [
        "/dev/null",
        "/dev/null",
        "/dev/null",
        "socket",
    ]


def test_the_frames_above_a_call_belong_to_the_guest(desk: Desk) -> None:
    frames = ask(desk, WALK, "frames")
    files = {Path(file).name for file, _, _ in frames if not file.startswith("<")}
    assert files <= {"server.py", "warm.py"}
    shown = " ".join(text for _, _, text in frames)
    assert desk.seed not in shown


def secrets(desk: Desk) -> dict[str, str]:
    """Things that only the trusted side knows, one of each kind, as latin-1 text."""
    hidden = next(test for test in desk.tests["softmax_rows"] if test.hidden)
    x = desk.make("softmax_rows", "secret", "").normal(queries=4, keys=6)
    expected = desk.definitions["softmax_rows"](x)
    reference = (ROOT / "solutions" / "softmax.py").read_text()
    body = max((line.strip() for line in reference.splitlines() if "=" in line), key=len)
    return {
        "the hidden seed": desk.seed,
        "a hidden test's name": hidden.name,
        "a hidden test's title": hidden.title,
        "a line of a reference": body,
        "an expected value": payload.pack_tensor(expected).data[:32].decode("latin-1"),
    }


def test_no_secret_stands_in_the_jails_memory(desk: Desk) -> None:
    for what, secret in secrets(desk).items():
        half = len(secret) // 2
        count = ask(desk, SEARCH, "occurrences", secret[:half], secret[half:])
        assert count == 0, f"{what} was found {count} times"


def test_the_search_finds_what_is_there(desk: Desk) -> None:
    half = len(PLANTED) // 2
    assert ask(desk, SEARCH, "occurrences", PLANTED[:half], PLANTED[half:]) > 0


def test_two_seeds_give_different_inputs(desk: Desk) -> None:
    other = Desk(**{**vars(desk), "seed": "another"})
    one, two = (d.make("softmax_rows", "test", "").normal(queries=4, keys=6) for d in (desk, other))
    assert not torch.equal(one, two)
