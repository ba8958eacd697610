"""Workers: the verdicts of jails, on computers without fork, and a spare for what goes wrong."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import importlib
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import BaseTorchFunctionMode

from grader.course.course import Course, load_course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_exercises
from grader.grading.order import Order
from grader.guest.cleanup import Untouched
from grader.intake import Submission, find_submissions
from grader.records.faults import CallError, HostFault
from grader.records.grade import ExerciseResult
from grader.sandbox import jails
from grader.sandbox.jails import Warm, shortfall
from grader.sandbox.session import Limits, StudentLost
from grader.unsandboxed import worker
from grader.unsandboxed.worker import Workers
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support import seats
from tests.support.places import REAL, ROOT, SAMPLES, TINY

STUDENTS = (
    "references", "bob_four_classes", "cleo_notebook", "dana_mistakes", "eve_syntax_error",
)  # fmt: skip
PLENTY = Limits(test_seconds=30.0)
RIGHT = "def center(x):\n    return x - x.mean()\n"
PID = "import os\n\ndef center(x):\n    return x * 0 + os.getpid()\n"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers() as workers:
        yield workers


def center(x: Float[Tensor, " tokens"]) -> Float[Tensor, " tokens"]:
    return x - x.mean()


@pytest.fixture
def untouched() -> Untouched:
    importlib.import_module("torch._dynamo")  # it replaces parts of torch, and some calls load it
    return Untouched()


Ask = Callable[..., Any]


@pytest.fixture
def ask(workers: Workers) -> Ask:
    """What a submission's ``center`` makes of 1, 2, 6; its session is closed again."""

    def asked(source: str, limits: Limits = PLENTY, **options: Any) -> Any:
        seat = seats.open_seat(workers.open, source, center, limits=limits, **options)
        try:
            return seat.student().center(torch.tensor([1.0, 2.0, 6.0])).tolist()
        finally:
            seat.session.close()

    return asked


def pid_of(ask: Ask) -> int:
    return int(ask(PID)[0])


# --- the same verdicts as in jails ---------------------------------------------------------------


def _submission(course: Course, student: str) -> Submission:
    if student != "references":
        (found,) = (s for s in find_submissions([SAMPLES], course) if s.student == student)
        return found
    files = [f"{unit.name}.py" for unit in course.units]
    texts = [(course.solutions / name).read_text("utf-8") for name in files]
    sources = (SourceText(name, (text,)) for name, text in zip(files, texts, strict=True))
    return Submission(student, tuple(sources))


Results = dict[str, dict[str, ExerciseResult]]


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(REAL)


@pytest.fixture(scope="module")
def both(course: Course, warm: Warm, workers: Workers) -> tuple[Results, Results]:
    """The results of all public checks, in jails and in workers."""
    files = dict.fromkeys(course.check_files(), False)

    def checked(desk: Desk) -> Results:
        found: Results = {}
        for student in STUDENTS:
            with desk.seat(_submission(course, student)) as seat:
                results = grade_exercises(desk, seat)
            found[student] = {result.name: result for result in results}
        return found

    order = Order(course, course.seed, files, isolation="weak", keeps_sheet=True)
    with sharing(warm), order.desk() as desk:
        in_jails = checked(desk)
    kept = nullcontext(workers)  # other tests want them, too
    with dataclasses.replace(order, backend=kept).desk() as desk:
        assert desk.isolation == ("weak",)
        return in_jails, checked(desk)


def _breaks_a_rule(result: ExerciseResult) -> bool:
    return any(test.name == "operations" and test.status == "failed" for test in result.tests)


@pytest.mark.parametrize("student", STUDENTS)
def test_every_public_check_gives_the_verdict_that_it_gives_in_a_jail(
    student: str, course: Course, both: tuple[Results, Results]
) -> None:
    jailed, worked = (results[student] for results in both)
    assert list(jailed) == list(worked) == list(course.exercises)
    for name, expected in jailed.items():
        found = worked[name]
        assert found.solved == expected.solved, name
        if _breaks_a_rule(expected):
            operations = [[t for t in r.tests if t.name == "operations"] for r in (found, expected)]
            assert [t.status for t in operations[0]] == ["failed"], name
            assert operations[0][0].message == operations[1][0].message
        else:
            assert [(t.name, t.status, t.message, t.mistake) for t in found.tests] == [
                (t.name, t.status, t.message, t.mistake) for t in expected.tests
            ], name


def test_the_references_pass_and_the_mistakes_do_not(both: tuple[Results, Results]) -> None:
    _, worked = both
    assert all(result.solved for result in worked["references"].values())
    assert not all(result.solved for result in worked["dana_mistakes"].values())
    assert any(_breaks_a_rule(result) for result in worked["dana_mistakes"].values())


def test_what_one_exercise_forbids_is_still_there_for_the_next(ask: Ask) -> None:
    softmax = "import torch\n\ndef center(x):\n    return torch.softmax(x, dim=0)\n"
    assert sum(ask(softmax, watch=["softmax"])) == pytest.approx(1.0)
    assert sum(ask(softmax)) == pytest.approx(1.0)


# --- a spare for what goes wrong -----------------------------------------------------------------


def test_after_an_endless_loop_the_spare_answers_and_it_was_there_before(
    ask: Ask, workers: Workers
) -> None:
    busy = pid_of(ask)
    before = workers.pids
    with pytest.raises(StudentLost, match="does a loop never end") as lost:
        ask("def center(x):\n    while True:\n        pass\n", Limits(test_seconds=0.5))
    assert lost.value.status == "timeout"
    answers = pid_of(ask)
    assert answers != busy
    assert answers in before
    assert busy not in workers.pids
    assert len(workers.pids) == 2  # and a new spare is on its way


def test_one_that_sleeps_for_good_is_lost_by_the_clock_on_the_wall(ask: Ask) -> None:
    with pytest.raises(StudentLost, match="does a loop never end") as lost:
        ask("import time\ndef center(x):\n    time.sleep(600)\n", Limits(test_seconds=0.5))
    assert lost.value.status == "timeout"
    assert ask(RIGHT) == [-2.0, -1.0, 3.0]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("import os\ndef center(x):\n    os._exit(0)\n", "ended its own process"),
        ("import ctypes\ndef center(x):\n    ctypes.string_at(0)\n", "a crash inside a library"),
    ],
    ids=["exit", "crash"],
)
def test_a_process_that_ends_is_told_and_replaced(source: str, text: str, ask: Ask) -> None:
    with pytest.raises(StudentLost, match=text) as lost:
        ask(source)
    assert lost.value.status == "crashed"
    assert ask(RIGHT) == [-2.0, -1.0, 3.0]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not count it")
def test_too_much_memory_is_an_ordinary_error(ask: Ask) -> None:
    with pytest.raises(Exception, match="more memory than"):
        ask("import torch\ndef center(x):\n    return torch.zeros(2**30).cumsum(0)\n")
    assert ask(RIGHT) == [-2.0, -1.0, 3.0]


# --- what a submission leaves ---------------------------------------------------------------------

CHANGES = {
    "prints": "import os\nprint('here')\nos.write(1, b'there' * 1000)\nos.write(2, b'there')",
    "input": "try:\n    input()\nexcept EOFError:\n    pass",
    "dtype": "torch.set_default_dtype(torch.float64)",
    "device": "torch.set_default_device('meta')",
    "gradients": "torch.set_grad_enabled(False)",
    "folder": "import os, tempfile\nos.chdir(tempfile.mkdtemp())",
    "environment": "import os\nos.environ.clear()",
    "path": "import sys\nsys.path.clear()\nsys.meta_path = []",
    "streams": "import sys\nsys.stdout = sys.stderr = None",
    "warnings": "import warnings\nwarnings.simplefilter('error')",
    "print options": "torch.set_printoptions(precision=1)",
}
SEEN = """
import os, sys, torch, warnings
from torch import nn

def center(x):
    print("still heard")
    with warnings.catch_warnings(record=True):
        warnings.warn("no error")
    y = nn.Linear(3, 3)(x) * 0 + torch.ones_like(x)
    state = [os.getcwd(), sorted(os.environ), sys.path, len(sys.meta_path), torch.is_grad_enabled()]
    state += [str(torch.zeros(1)), str(torch.get_default_dtype()), str(torch.get_default_device())]
    state += [len(sys.modules["torch.nn.modules.module"]._global_forward_hooks), sum([1, 2])]
    raise RuntimeError(repr(state))
"""


def _with(statements: str) -> str:
    lines = "".join(f"    {line}\n" for line in statements.splitlines())
    return f"import torch\n\ndef center(x):\n{lines}    return x\n"


def _seen(ask: Ask) -> str:
    with pytest.raises(Exception, match="float32") as raised:
        ask(SEEN)
    return str(raised.value)


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_submission_changes_is_put_back_for_the_next(change: str, ask: Ask) -> None:
    before, process = _seen(ask), pid_of(ask)
    ask(_with(CHANGES[change]))
    assert _seen(ask) == before
    assert pid_of(ask) == process


def test_a_process_in_which_torch_was_changed_serves_no_other(ask: Ask) -> None:
    before, process = _seen(ask), pid_of(ask)
    ask(_with("torch.ones_like = None"))
    assert _seen(ask) == before
    assert pid_of(ask) != process


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (torch, "softmax"),
        (torch, "new"),
        (torch.Tensor, "mean"),
        (nn.Module, "__call__"),
        (nn.functional, "linear"),
        (builtins, "sum"),
        (math, "exp"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_was_replaced_is_noticed(
    where: Any, name: str, untouched: Untouched, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert untouched.restore() == ""
    monkeypatch.setattr(where, name, 7, raising=False)
    assert f".{name} was changed" in untouched.restore()


def test_what_goes_on_is_noticed(untouched: Untouched) -> None:
    hook = nn.modules.module.register_module_forward_hook(lambda *_: None)
    assert "hook" in untouched.restore()
    hook.remove()
    with BaseTorchFunctionMode():
        assert "mode" in untouched.restore()
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    assert "thread" in untouched.restore()
    done.set()
    thread.join()
    assert untouched.restore() == ""


def test_what_python_and_imports_add_is_nothing(untouched: Untouched) -> None:
    copy.deepcopy(nn.Bilinear(1, 1, 1))
    assert nn.Bilinear.__annotations__ is not None
    torch.something = type(torch)("torch.something")  # type: ignore[attr-defined]
    assert untouched.restore() == ""
    del torch.something  # type: ignore[attr-defined]


def test_a_fork_that_student_code_makes_gives_no_second_answer(ask: Ask) -> None:
    assert ask("import os\n\ndef center(x):\n    os.fork()\n    return x\n") == [1.0, 2.0, 6.0]
    assert ask(RIGHT) == [-2.0, -1.0, 3.0]


def test_files_of_the_same_names_are_those_of_the_running_submission(workers: Workers) -> None:
    course = load_course(TINY / "exercises")
    # Time enough for a busy machine, by the clock on the wall.
    limits = msgspec.structs.replace(course.file.limits, test_seconds=3.0)
    course = dataclasses.replace(course, file=msgspec.structs.replace(course.file, limits=limits))
    files = dict.fromkeys(course.check_files(), False)
    main = "from .helpers import offset\n\ndef center(x):\n    return x - offset(x)\n"
    with Order(
        course, course.seed, files, backend=nullcontext(workers), isolation="weak"
    ).desk() as desk:
        for body, solved in (("x.mean()", True), ("x.sum()", False), ("x.mean()", True)):
            helpers = f"def offset(x):\n    return {body}\n"
            sources = SourceText("basics.py", (main,)), SourceText("helpers.py", (helpers,))
            with desk.seat(Submission("someone", sources), ["center"]) as seat:
                (result,) = grade_exercises(desk, seat, ["center"])
            assert result.solved is solved


def test_a_file_beside_the_kit_is_not_imported_for_a_student_s_own(ask: Ask) -> None:
    with pytest.raises(Exception, match="solutions"):
        ask("def center(x):\n    import solutions.softmax\n    return x\n")


def test_two_submissions_can_be_open_at_once(workers: Workers) -> None:
    with ExitStack() as stack:
        pids = set()
        for _ in range(2):
            seat = seats.open_seat(workers.open, PID, center, limits=PLENTY)
            stack.callback(seat.session.close)
            pids.add(int(seat.student().center(torch.ones(3))[0]))
        assert len(pids) == 2
    assert len(workers.pids) == 2


# --- coming and going ----------------------------------------------------------------------------


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_no_process_is_left_when_workers_are_closed() -> None:
    with Workers() as workers:
        seat = seats.open_seat(workers.open, RIGHT, center, limits=PLENTY)
        pids = workers.pids
        assert len(pids) == 2
        assert not any(map(_gone, pids))
    assert all(map(_gone, pids))
    seat.session.close()
    assert workers.pids == frozenset()
    with pytest.raises(HostFault, match="closed"):
        workers.open(PLENTY)


def test_workers_that_nobody_used_close_as_well() -> None:
    with Workers() as workers:
        pids = workers.pids
    assert all(map(_gone, pids))


ORPHANS = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from grader.sandbox.session import Limits
from grader.unsandboxed.worker import Workers
from tests.support import seats
from tests.tiny_course.solutions.basics import center

source = "def center(x):\\n    print(x)\\n    while True:\\n        pass\\n"
workers = Workers()
seat = seats.open_seat(workers.open, source, center, limits=Limits(600.0, 600.0))
print(*workers.pids, flush=True)
seat.student().center(torch.ones(3))
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="how a process of others' ends")
def test_workers_end_with_the_process_that_started_them_even_in_an_endless_loop() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHANS, str(ROOT)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent.stdout as told:
        handles = [os.pidfd_open(int(pid)) for pid in told.readline().split()]
    assert len(handles) == 2
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for handle in handles:
        assert select.select([handle], [], [], 60)[0]
        os.close(handle)


def test_a_worker_that_cannot_start_is_our_fault_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = "import sys; sys.modules['torch'] = None; "
    broken += "import runpy; runpy.run_module('grader.guest.work', run_name='__main__')"
    monkeypatch.setattr(worker, "COMMAND", (sys.executable, "-I", "-c", broken))
    with Workers() as workers, pytest.raises(HostFault, match="could not load torch"):
        workers.open(PLENTY)
    monkeypatch.setattr(worker, "COMMAND", (sys.executable, "-I", "-c", ""))
    with Workers() as workers, pytest.raises(HostFault, match="is the kit installed"):
        workers.open(PLENTY)


@pytest.mark.parametrize(
    ("pages", "limit", "spare"),
    [(10**9, "max", True), (10**9, str(3 * 2**30), True), (10**9, str(2**30), False),
     (1000, "max", False), (None, "max", False)],
    ids=["free", "free in a container", "a small container", "full", "unknown"],
)  # fmt: skip
def test_a_notebook_has_a_spare_where_memory_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pages: int | None, limit: str, spare: bool
) -> None:
    def sysconf(name: str) -> int:
        if pages is None:
            raise ValueError(name)
        return pages if name == "SC_AVPHYS_PAGES" else 4096

    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("1000")
    monkeypatch.setattr(worker, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert worker._memory_is_free() is spare


def test_without_a_spare_there_is_one_process() -> None:
    with Workers(spare=False) as workers:
        for _ in range(2):
            workers.open(PLENTY).close()
            assert len(workers.pids) == 1


def test_a_worker_of_another_version_is_not_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "fingerprint", lambda: "another")
    with Workers() as workers, pytest.raises(HostFault, match="another copy of the kit"):
        workers.open(PLENTY)


# --- which back end ------------------------------------------------------------------------------


def test_workers_isolate_nothing_and_say_so(workers: Workers) -> None:
    assert workers.layers == ()
    assert "jails" in str(shortfall(workers, []))


def test_a_jail_is_taken_wherever_there_can_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(jails, "Warm", lambda *_: made.append("jail"))
    monkeypatch.setattr(worker, "Workers", lambda *_: made.append("worker"))
    for name in ("auto", "jail", "worker"):
        worker.backend(name)
    monkeypatch.setattr(sys, "platform", "darwin")
    worker.backend("auto")
    assert made == ["jail", "jail", "worker", "worker"]
    with pytest.raises(CallError, match="jails need Linux"):
        worker.backend("jail")


# Stands for Windows: what only Unix has is not there, here and in the worker.
HIDE = """
import os, signal, socket, subprocess, sys
for name in ("resource", "fcntl", "sandlock", "pwd", "grp", "termios"):
    sys.modules[name] = None
ONLY_UNIX = {
    os: ("fork", "forkpty", "killpg", "setsid", "getuid", "geteuid",
         "sched_getaffinity", "pidfd_open", "waitid", "wait4", "statvfs"),
    socket: ("AF_UNIX", "socketpair", "send_fds", "recv_fds", "SOCK_SEQPACKET"),
    signal: ("SIGALRM", "setitimer", "pidfd_send_signal", "pthread_sigmask"),
}
for module, names in ONLY_UNIX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
os.environ.setdefault("USERNAME", "someone")
"""
ELSEWHERE = """
import dataclasses, json
from pathlib import Path
from grader.unsandboxed import worker
run = "import runpy; runpy.run_module('grader.guest.work', run_name='__main__')"
worker.COMMAND = (sys.executable, "-I", "-c", HIDE + run)

import msgspec
import grader.cli, grader.student.checking, grader.grading.ladder, grader.run.batch
from grader.cli import commands
commands.load(commands.offered())
import grader.sandbox.jails, grader.author.audit, grader.pytest_plugin
from grader.course.course import load_course
from grader.grading.order import Order
from grader.intake import Submission
from grader.wire import SourceText

course = load_course(Path(sys.argv[1]) / "exercises")
limits = msgspec.structs.replace(course.file.limits, test_seconds=3.0)
course = dataclasses.replace(course, file=msgspec.structs.replace(course.file, limits=limits))
loops = "def center(x):\\n    while True:\\n        pass\\n"
right = (course.solutions / "basics.py").read_text("utf-8")
layers = (course.solutions / "layers.py").read_text("utf-8")
verdicts = []
files = dict.fromkeys(course.check_files(), False)
with Order(course, course.seed, files, backend=worker.Workers(), isolation="weak").desk() as desk:
    for text in (right, right + loops, right):
        sources = SourceText("basics.py", (text,)), SourceText("layers.py", (layers,))
        with desk.seat(Submission("someone", sources)) as seat:
            results = grader.grading.ladder.grade_exercises(desk, seat)
        verdicts.append({r.name: [t.status for t in r.tests] for r in results})
print(json.dumps(verdicts))
"""


def test_a_check_runs_where_there_is_nothing_that_only_unix_has() -> None:
    # By `sys.platform` this stays Linux, for which platformdirs asks for a user's number.
    script = f"import platformdirs\nHIDE = {HIDE!r}\n{HIDE}\n{ELSEWHERE}"
    ran = subprocess.run(
        [sys.executable, "-c", script, str(TINY)], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    first, second, third = json.loads(ran.stdout)
    assert {status for statuses in first.values() for status in statuses} == {"passed"}
    assert "timeout" in second["center"]
    assert second["Projection"] == first["Projection"]
    assert third == first
