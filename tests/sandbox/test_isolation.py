"""The lock-down, layer by layer, seen from inside a jail; and the bar that grading has to reach.

Each layer is looked at alone: what two of them keep out is kept out twice. So Python has ctypes
and threads here; what the layer `interpreter` takes from it is in `test_interpreter.py`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import socket
import tempfile
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import wire
from grader.course.course import Course
from grader.grading.desk import Desk
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.guest import lockdown, syscalls
from grader.intake import Submission
from grader.records.faults import CallError, HostFault
from grader.sandbox.jails import LAYERS, MEANING, WITHOUT, Jail, Warm, shortfall
from grader.sandbox.session import Limits, Session
from grader.wire import payload
from grader.wire.frames import NO_MADE_CODE, Ready, open_to_others
from tests.conftest import Grader
from tests.support.places import ROOT, TINY
from tests.support.seats import process_of, warm_of

LIMITS = Limits(test_seconds=20, submission_seconds=60, memory_mb=256)
SWITCHABLE = LAYERS[1:]

INSIDE = """
import ctypes, errno, os, resource, socket, threading
import torch

libc = ctypes.CDLL(None, use_errno=True)

def call(number, *arguments):
    ctypes.set_errno(0)
    given = [ctypes.c_long(argument) for argument in arguments] + [ctypes.c_long(0)] * 6
    result = libc.syscall(ctypes.c_long(number), *given[:6])
    return [result, ctypes.get_errno()]

def calls(numbers):
    return [call(number)[1] for number in numbers]

def opened(paths):
    found = []
    for path in paths:
        try:
            open(path).close()
            found.append(path)
        except OSError:
            pass
    return found

def seen(paths):
    found = []
    for path in paths:
        for look in (os.stat, os.readlink, os.chdir):
            try:
                look(path)
                found.append(path)
            except OSError:
                pass
    return found

def command(name, number, argument):
    import fcntl
    read, write = os.pipe()
    try:
        getattr(fcntl, name)(read, number, argument)
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        os.close(read)
        os.close(write)
    return "done"

def written(folder):
    try:
        with open(folder + "/hello", "w") as file:
            file.write("")
    except OSError as error:
        return errno.errorcode[error.errno]
    return "written"

def signalled(pid):
    try:
        os.kill(pid, 0)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "signalled"

def parent():
    return os.getppid()

def user():
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    sets = (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    return [list(os.getresuid()), list(os.getresgid()), os.getgroups(), list(sets)]

def connected(port):
    with socket.socket() as own:
        return own.connect_ex(("127.0.0.1", port))

def folder():
    return [os.getcwd(), os.listdir(".")]

def limits():
    names = ("DATA", "AS", "FSIZE", "NOFILE", "CORE", "NPROC", "CPU", "STACK")
    return {name: list(resource.getrlimit(getattr(resource, "RLIMIT_" + name))) for name in names}

def threads(count):
    found = []
    started = [threading.Thread(target=lambda: found.append(1)) for _ in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    x = torch.ones(3, 3, requires_grad=True)
    (x @ x).sum().backward()
    return len(found)

def environment():
    return dict(os.environ)

def shared(key, make):
    return libc.shmget(key, 4096, 0o1666 if make else 0o666)

def imported(names):
    import importlib
    return [importlib.import_module(name).__name__ for name in names]
"""


class Inside:
    """Functions of `INSIDE`, called in one jail."""

    def __init__(self, warm: Warm) -> None:
        names = [line[4:].split("(")[0] for line in INSIDE.splitlines() if line.startswith("def ")]
        opening = wire.Open(
            (wire.SourceText("inside.py", (INSIDE,)),),
            tuple(wire.Wanted(name, "inside", "") for name in names),
        )
        self.session = Session(warm.open, opening, LIMITS)
        self.session.begin_case(1)

    def __call__(self, function: str, *arguments: Any) -> Any:
        packed = [payload.pack_input(argument) for argument in arguments]
        (outcome,) = self.session.run(wire.Invoke(function, packed, [], 1))
        assert isinstance(outcome, wire.Returned), outcome
        return payload.unpack(outcome.value)

    @property
    def pid(self) -> int:
        """The jail's process."""
        assert isinstance(self.session._channel, Jail)
        return self.session._channel._pid


@contextmanager
def two_jails(warm: Warm) -> Iterator[tuple[Inside, Inside]]:
    jails = Inside(warm), Inside(warm)
    try:
        yield jails
    finally:
        for jail in jails:
            jail.session.close()


@contextmanager
def warm_without(*layers: str) -> Iterator[Warm]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WITHOUT, ",".join(("interpreter", *layers)))
        warm = Warm()
    with warm:
        yield warm


def inside_with(warm: Warm, *layers: str) -> Iterator[Inside]:
    for layer in layers:
        if layer in warm.ready.missing:
            pytest.skip(f"{layer}: {warm.ready.missing[layer]}")
    inside = Inside(warm)
    yield inside
    inside.session.close()


@pytest.fixture(scope="module", name="bare")
def _bare() -> Iterator[Warm]:
    """Jails with all of the kernel's layers."""
    with warm_without() as warm:
        yield warm


@pytest.fixture
def locked(bare: Warm) -> Iterator[Inside]:
    """A jail with all of the kernel's layers."""
    yield from inside_with(bare)


@pytest.fixture(scope="module")
def only_seccomp() -> Iterator[Inside]:
    with warm_without("namespaces", "landlock", "uid") as warm:
        yield from inside_with(warm, "seccomp")


@pytest.fixture(scope="module")
def only_files_and_user() -> Iterator[Inside]:
    with warm_without("namespaces", "seccomp", "rlimits") as warm:
        yield from inside_with(warm, "landlock")


@pytest.fixture(scope="module")
def only_namespaces() -> Iterator[Inside]:
    with warm_without("root", "landlock", "uid", "seccomp") as warm:
        yield from inside_with(warm, "namespaces")


@pytest.fixture(scope="module")
def only_root() -> Iterator[Inside]:
    with warm_without("landlock", "uid", "seccomp") as warm:
        yield from inside_with(warm, "root")


# --- system calls --------------------------------------------------------------------------------


KINDS = ("denied", "checked", "absent")


def number(name: str) -> int:
    return next(here[name] for kind in KINDS if name in (here := syscalls.numbers(kind)))


@pytest.mark.parametrize(
    ("machine", "header"),
    [("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"), ("aarch64", "asm-generic/unistd.h")],
)
def test_each_number_is_the_one_in_the_kernels_header(machine: str, header: str) -> None:
    path = Path("/usr/include", header)
    if not path.is_file():
        pytest.skip("the kernel's headers are not installed")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)$", path.read_text("ascii"), re.M)
    kernel = {name: int(value) for name, value in defined}
    listed = {name for kind in KINDS for name in syscalls.numbers(kind, "x86_64")}
    here = {name: n for kind in KINDS for name, n in syscalls.numbers(kind, machine).items()}
    assert here == {name: kernel[name] for name in listed & kernel.keys()}


def test_every_denied_call_is_an_ordinary_permission_error(only_seccomp: Inside) -> None:
    denied = syscalls.numbers("denied")
    answers = dict(zip(denied, only_seccomp("calls", [*denied.values()]), strict=True))
    assert {name for name, answer in answers.items() if answer != errno.EPERM} == set()
    assert len(denied) > 100


@pytest.mark.parametrize("family", [2, 2 | 1 << 40, 1, 10])
def test_no_socket_is_made_whatever_its_high_bits_say(only_seccomp: Inside, family: int) -> None:
    assert only_seccomp("call", number("socket"), family, 1, 0)[1] == errno.EPERM


@pytest.mark.parametrize(
    "flags", [0, 17, 0x00000100 | 17, 0x10000 << 32], ids=["none", "fork", "vm", "high bits"]
)
def test_no_process_is_cloned(only_seccomp: Inside, flags: int) -> None:
    assert only_seccomp("call", number("clone"), flags)[1] == errno.EPERM


@pytest.mark.parametrize("name", ["clone3", "openat2"])
def test_calls_with_their_arguments_in_memory_do_not_exist(only_seccomp: Inside, name: str) -> None:
    assert only_seccomp("call", number(name))[1] == errno.ENOSYS


@pytest.mark.parametrize("distance", [1, 2, 50, 10_000, 0x4000_0000 - syscalls.NEWEST])
def test_calls_that_nobody_thought_about_do_not_exist(only_seccomp: Inside, distance: int) -> None:
    assert only_seccomp("call", syscalls.NEWEST + distance)[1] == errno.ENOSYS


def test_nothing_is_opened_for_writing_even_by_root(only_seccomp: Inside, tmp_path: Path) -> None:
    assert only_seccomp("written", str(tmp_path)) == "EPERM"
    assert list(tmp_path.iterdir()) == []


def test_only_ones_own_limits_can_be_read_or_set(only_seccomp: Inside) -> None:
    prlimit = number("prlimit64")
    assert only_seccomp("call", prlimit, only_seccomp("parent"), 1)[1] == errno.EPERM
    assert only_seccomp("call", prlimit, 0, 1)[1] == 0


def test_no_other_process_is_signalled(only_seccomp: Inside) -> None:
    for pid in (1, -1, 0, only_seccomp("parent")):
        assert only_seccomp("signalled", pid) == "EPERM"


@pytest.mark.parametrize(
    ("name", "number", "argument"),
    [
        ("fcntl", fcntl.F_SETLEASE, fcntl.F_RDLCK),
        ("fcntl", fcntl.F_NOTIFY, fcntl.DN_MODIFY),
        ("fcntl", fcntl.F_SETOWN, 1),
        ("fcntl", fcntl.F_SETFL, os.O_ASYNC),
        ("fcntl", fcntl.F_SETLK, 0),
        ("ioctl", termios.FIOASYNC, 1),
    ],
)
def test_no_descriptor_tells_or_hinders_other_processes(
    only_seccomp: Inside, name: str, number: int, argument: int
) -> None:
    assert only_seccomp("command", name, number, argument) == "EPERM"


def test_threads_and_gradients_work_under_every_layer(locked: Inside) -> None:
    assert locked("threads", 8) == 8


# --- files and users -----------------------------------------------------------------------------


def test_landlock_leaves_python_readable_and_nothing_else(
    only_files_and_user: Inside, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("seven")
    secrets = [
        *map(str, (ROOT / "solutions").rglob("*.py")),
        str(ROOT / "solutions" / "seed"),
        str(secret),
        "/etc/passwd",
        "/proc/self/status",
        "/proc/1/environ",
    ]
    assert only_files_and_user("opened", secrets) == []
    python = json.__file__
    assert only_files_and_user("opened", [python]) == [python]


def test_landlock_lets_nothing_be_written_or_signalled(
    only_files_and_user: Inside, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    for folder in (tmp_path, Path("/dev/shm"), Path("/tmp")):
        assert only_files_and_user("written", str(folder)) == "EACCES"
    assert only_files_and_user("signalled", only_files_and_user("parent")) == "EPERM"


def test_each_jail_is_a_user_of_its_own_without_rights(bare: Warm) -> None:
    if "uid" in bare.ready.missing:
        pytest.skip(bare.ready.missing["uid"])
    with two_jails(bare) as jails:
        users = [jail("user") for jail in jails]
    (first, groups, more, sets), (second, *_) = users
    assert len({*first, *second}) == 2
    assert 0 not in (*first, *second, *groups)
    assert more == []
    # At most the right to read what Landlock allows, where Python lies in a private folder.
    read_search = 1 << 2
    assert sets[3:] == [0, 0, 0]
    assert set(sets[:3]) <= {0, read_search}


def test_python_can_still_import_what_it_has_not_loaded_yet(locked: Inside) -> None:
    late = ["zoneinfo", "xml.dom.minidom", "wsgiref.headers", "colorsys", "rich.markdown"]
    assert locked("imported", late) == late


def test_no_machine_code_comes_to_what_was_there_when_torch_was_loaded(
    only_seccomp: Inside,
) -> None:
    page, nowhere, private = 4096, -1, 0x22  # MAP_PRIVATE | MAP_ANONYMOUS
    executable, harmless = 0x5, 0x3  # with PROT_EXEC, and without
    for protection, expected in ((executable, errno.EPERM), (harmless, 0)):
        arguments = (0, page, protection, private, nowhere)
        assert only_seccomp("call", number("mmap"), *arguments)[1] == expected
    assert only_seccomp("call", number("mprotect"), 0, page, executable)[1] == errno.EPERM
    assert only_seccomp("call", number("pkey_mprotect"), 0, page, 0x4 | 1 << 40)[1] == errno.EPERM


def test_landlock_closes_torchs_own_files(only_files_and_user: Inside) -> None:
    import torch

    files = sorted(map(str, (Path(torch.__file__).parent / "ao").rglob("*.py")))
    assert len(files) > 100
    assert only_files_and_user("opened", files) == []


# --- neighbours ----------------------------------------------------------------------------------

PTRACE_ATTACH, PTRACE_SEIZE, SIGNAL_0, NOFILE, PRIO_PROCESS = 16, 0x4206, 0, 7, 0
TOWARDS: dict[str, Callable[[int], tuple[Any, ...]]] = {
    "a signal": lambda pid: ("kill", pid, SIGNAL_0),
    "a signal to a thread": lambda pid: ("tgkill", pid, pid, SIGNAL_0),
    "ptrace": lambda pid: ("ptrace", PTRACE_ATTACH, pid),
    "ptrace, the newer way": lambda pid: ("ptrace", PTRACE_SEIZE, pid),
    "writing into its memory": lambda pid: ("process_vm_writev", pid, 0, 1, 0, 1),
    "reading its memory": lambda pid: ("process_vm_readv", pid, 0, 1, 0, 1),
    "a handle": lambda pid: ("pidfd_open", pid),
    "its limits": lambda pid: ("prlimit64", pid, NOFILE),
    "its priority": lambda pid: ("setpriority", PRIO_PROCESS, pid, 19),
    "its processors": lambda pid: ("sched_setaffinity", pid, 8, 0),
    "its memory's place": lambda pid: ("migrate_pages", pid, 8, 0, 0),
    "its namespaces": lambda pid: ("setns", pid, 0),
}  # fmt: skip


@pytest.mark.parametrize("how", TOWARDS)
def test_no_jail_reaches_another_or_the_warm_process_or_the_grader(bare: Warm, how: str) -> None:
    with two_jails(bare) as (attacker, victim):
        for pid in (victim.pid, process_of(bare).pid, os.getpid()):
            name, *arguments = TOWARDS[how](pid)
            result, error = attacker("call", number(name), *arguments)
            assert (result, error) == (-1, errno.EPERM)
        assert victim("threads", 1) == 1


def test_without_a_filter_users_and_landlock_still_keep_jails_apart() -> None:
    with warm_without("seccomp", "namespaces") as warm:
        if {"landlock", "uid"} & warm.ready.missing.keys():
            pytest.skip("this machine lacks one of them")
        with two_jails(warm) as (attacker, victim):
            files = ("mem", "environ", "maps", "cwd", "fd", "status")
            for pid in (victim.pid, process_of(warm).pid, os.getpid()):
                assert attacker("signalled", pid) == "EPERM"
                assert attacker("opened", [f"/proc/{pid}/{file}" for file in files]) == []
                for way in ("ptrace", "its priority", "its processors"):
                    name, *arguments = TOWARDS[way](pid)
                    assert attacker("call", number(name), *arguments)[0] == -1
            assert victim("threads", 1) == 1


def test_shared_memory_of_one_jail_is_not_there_for_another(only_namespaces: Inside) -> None:
    key, make = 0x5EED, True
    assert only_namespaces("shared", key, make) >= 0
    assert ctypes.CDLL(None).shmget(key, 4096, 0o666) == -1  # nor for anyone outside


# --- namespaces, limits, environment -------------------------------------------------------------


def test_the_network_of_the_machine_is_out_of_reach(only_namespaces: Inside) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert only_namespaces("connected", port) == errno.ENETUNREACH
        with socket.create_connection(("127.0.0.1", port)):
            pass  # from here it answers


def test_the_working_folder_is_empty_and_takes_nothing(only_root: Inside) -> None:
    folder, entries = only_root("folder")
    assert entries == []
    assert only_root("written", folder) in ("EROFS", "EACCES", "EPERM")
    assert only_root("written", "/") in ("EROFS", "EACCES", "EPERM")


def test_no_other_file_can_be_seen_not_even_its_size(only_root: Inside, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.write_text("seven")
    (tmp_path / "link").symlink_to(hidden)
    others = [
        *map(str, (ROOT / "solutions", ROOT / "solutions" / "seed", hidden, tmp_path / "link")),
        *("/etc/passwd", "/proc", "/proc/1", "/dev/shm", "/etc", "/var", torch.__file__),
    ]
    assert only_root("seen", others) == []
    there = [json.__file__, "/dev/null", "/dev/urandom", str(Path(json.__file__).parent)]
    assert {*only_root("seen", there)} == {*there}


def test_memory_files_descriptors_and_time_are_limited(locked: Inside) -> None:
    limits = locked("limits")
    unlimited = resource.RLIM_INFINITY
    assert all(unlimited not in (limits[name]) for name in ("DATA", "AS", "CPU", "STACK"))
    assert limits["FSIZE"] == limits["CORE"] == [0, 0]
    assert limits["NOFILE"] == [64, 64]


def test_the_environment_is_empty(locked: Inside) -> None:
    assert set(locked("environment")) <= {"LC_CTYPE", *NO_MADE_CODE}


# --- the bar -------------------------------------------------------------------------------------


def machine(*missing: str, readable: tuple[str, ...] = ("/usr/lib",)) -> Warm:
    """What a warm process would say on a machine without these layers."""
    ready = Ready(dict.fromkeys(missing, "no such thing"), list(readable), "")
    warm = Warm.__new__(Warm)  # nothing is started
    warm._ready = ready
    return warm


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that everybody may read, in a folder that everybody may enter."""
    path = tmp_path / "secret"
    path.write_text("seven")
    path.chmod(0o644)
    return path


@pytest.mark.parametrize(
    "missing", [(), ("uid",), ("namespaces",), ("uid", "namespaces", "rlimits", "no_new_privs")]
)
def test_landlock_and_a_filter_are_enough(missing: tuple[str, ...], secret: Path) -> None:
    assert shortfall(machine(*missing), [secret]) is None


@pytest.mark.parametrize("missing", [("seccomp",), ("landlock", "uid"), SWITCHABLE])
def test_less_is_not_enough_and_says_why(missing: tuple[str, ...], secret: Path) -> None:
    assert "no such thing" in str(shortfall(machine(*missing), [secret]))


ALL = 2**32 - 1  # users outside of a container
FIRST = 2_100_000_000
PIDS = 2**22
GIVEN_AWAY = {
    "nothing": (ALL, "", range(FIRST, FIRST + PIDS)),
    "as a distribution gives": (ALL, "ada:100000:65536\n", range(FIRST, FIRST + PIDS)),
    "where jails would begin": (
        ALL, f"ada:{FIRST}:65536\n", range(FIRST + 65536, FIRST + 65536 + PIDS),
    ),
    "just behind": (
        ALL, f"ada:{FIRST + PIDS - 1}:10", range(FIRST + PIDS + 9, FIRST + 2 * PIDS + 9),
    ),
    "one within another": (
        ALL, f"bob:{FIRST + 10}:20\nada:{FIRST}:1000\n", range(FIRST + 1000, FIRST + 1000 + PIDS),
    ),
    "lines that say nothing": (
        ALL, f"# no line\nada:{FIRST}\nada:x:{FIRST}\n::\n\n", range(FIRST, FIRST + PIDS),
    ),
    "few users": (65536, "", range(32768, 65536)),
    "few users, and some of them": (65536, "ada:60000:5000\n", range(32768, 60000)),
    "few users, and most of them": (65536, "ada:40000:25536\n", range(32768, 40000)),
    "few users, and all of them": (65536, "ada:1000:64536\n", range(0)),
    "the only user": (1, "", range(1)),
}  # fmt: skip


@pytest.mark.parametrize(("top", "text", "free"), GIVEN_AWAY.values(), ids=GIVEN_AWAY.keys())
def test_jails_become_no_user_that_somebody_else_may_become(
    tmp_path: Path, top: int, text: str, free: range
) -> None:
    (tmp_path / "subgid").write_text(text, "utf-8")
    assert lockdown.free_users(top, [str(tmp_path / "no subuid"), str(tmp_path / "subgid")]) == free


def test_a_jails_user_is_one_of_those(locked: Inside) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give each jail a user of its own")
    users, groups, others, _ = locked("user")
    assert len({*users, *groups}) == 1
    assert others == []
    top = sum(map(int, Path("/proc/self/uid_map").read_text("utf-8").split()[::2]))
    assert users[0] in lockdown.free_users(top)


def test_a_user_of_its_own_is_enough_if_other_users_cannot_read_the_secrets(
    tmp_path: Path,
) -> None:
    solutions = tmp_path / "solutions"
    solutions.mkdir(mode=0o700)
    assert shortfall(machine("landlock"), [solutions, tmp_path / "not there yet"]) is None


def test_a_secret_that_others_can_read_is_told_with_the_command_to_close_it() -> None:
    told = shortfall(machine("landlock"), [Path("/usr/lib")])
    assert told is not None
    assert "chmod o-rwx /usr/lib" in told


@pytest.mark.parametrize(
    ("folder", "file", "readable"),
    [(0o755, 0o644, True), (0o711, 0o644, True), (0o700, 0o644, False), (0o755, 0o640, False)],
)
def test_a_file_is_open_to_others_if_its_modes_and_those_above_say_so(
    folder: int, file: int, readable: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        inside = Path(name)
        (inside / "softmax.py").touch()
        (inside / "softmax.py").chmod(file)
        inside.chmod(folder)
        assert open_to_others(inside / "softmax.py") is readable
        assert open_to_others(inside) is (folder != 0o700)


def test_a_secret_among_the_packages_is_within_reach(secret: Path) -> None:
    told = shortfall(machine(readable=(str(secret.parent.resolve()),)), [secret])
    assert told is not None
    assert "move it elsewhere" in told


Switch = Callable[..., None]


@pytest.fixture
def switch_off(monkeypatch: pytest.MonkeyPatch) -> Switch:
    """The test hook: leave layers out of every jail."""
    return lambda *layers: monkeypatch.setenv(WITHOUT, " ".join(layers))


@pytest.fixture
def handed_in(tmp_path: Path, right: str) -> Path:
    path = tmp_path / "ada.py"
    path.write_text(right, "utf-8")
    return path


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_grading_below_the_bar_is_refused_in_one_line_and_nothing_is_written(
    cold_grader: Grader, switch_off: Switch, handed_in: Path, tmp_path: Path, jobs: str
) -> None:
    switch_off("seccomp")
    other = tmp_path / "bob.py"
    other.write_text("", "utf-8")
    out = tmp_path / "grades"
    ran = cold_grader("grade", handed_in, other, "--course", TINY, "--out", out, "--jobs", jobs)
    assert ran.code == 2
    assert "there is no filter of system calls (switched off)" in ran.err
    assert "--isolation=weak" in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not out.exists()


def test_weak_isolation_grades_all_the_same_and_each_grade_says_so(
    cold_grader: Grader, switch_off: Switch, handed_in: Path, tmp_path: Path
) -> None:
    switch_off("seccomp", "landlock")
    out = tmp_path / "grades"
    weak = ("--course", TINY, "--out", out, "--isolation=weak")
    assert cold_grader("grade", handed_in, *weak).code == 0
    (line,) = (out / "results.jsonl").read_text().splitlines()
    stored = json.loads(line)
    assert "weak" in stored["isolation"]
    assert not {"seccomp", "landlock"} & set(stored["isolation"])
    assert stored["total"] == stored["max"]


def test_a_strong_machine_stores_its_layers_and_no_weakness(desk: Desk, right: str) -> None:
    source = wire.SourceText("ada.py", (right,))
    stored = grade_submission(desk, Submission("ada", (source,))).isolation
    assert stored == desk.backend.layers
    assert set(stored) <= set(MEANING)


def test_a_layer_that_nobody_knows_is_a_mistake_of_the_caller(switch_off: Switch) -> None:
    switch_off("moat")
    with pytest.raises(CallError, match="takes names of layers: no_new_privs"):
        Warm()


def test_a_jail_that_cannot_be_locked_like_the_others_is_no_ones_zero(
    tiny: Course, right: str
) -> None:
    files = tiny.tests_of()
    with Order(tiny, "bar", files, isolation="weak").desk() as desk:
        pid = process_of(warm_of(desk)).pid
        few = 2**30
        resource.prlimit(pid, resource.RLIMIT_AS, (few, few))  # a jail may not raise it again
        with pytest.raises(HostFault, match="could not be locked"):
            Inside(warm_of(desk))
        source = wire.SourceText("ada.py", (right,))
        graded = grade_submission(desk, Submission("ada", (source,)))
    assert graded.status == "grader_error"
    assert "process" in str(graded.message)


def test_doctor_names_each_missing_layer_with_the_reason(
    cold_grader: Grader, switch_off: Switch
) -> None:
    switch_off("landlock", "seccomp")
    ran = cold_grader("doctor", "--course", TINY, "--json")
    found = {finding["name"]: finding for finding in json.loads(ran.out)}
    assert set(MEANING) <= found.keys()
    assert found["landlock"] == {
        "topic": "isolation",
        "name": "landlock",
        "state": "absent",
        "text": "none: switched off",
    }
    assert found["all in all"]["state"] == "bad"
    assert ran.code == 1
