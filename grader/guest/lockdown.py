"""The lock-down: a forked jail gives up its rights before it receives a submission.

Each *layer* is a restriction that the kernel may or may not offer. The warm process makes a `Plan`
once and rehearses it in a child. Every later jail applies the same layers, or ends.

The order of the layers matters. Namespaces and the new root come first, while mounts are allowed.
Landlock comes next, while the process may still open the folders above Python's. Then the process
becomes another user. The filter of system calls comes later, since it would refuse all these steps.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grader.guest import interpreter
from grader.guest.syscalls import filter_program
from grader.wire.frames import open_to_others

# From linux/prctl.h, sched.h, mount.h and capability.h.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP = 1, 4, 8, 22
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 24, 38, 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x4000, 0x40000, 2
CAP_DAC_READ_SEARCH, CAP_LAST = 2, 63
CAPABILITY_VERSION = 0x20080522

# The first user id of jails; a jail's uid depends on its pid. Lower ids may belong to containers
# (systemd) or to people (sssd).
FIRST_UID = 2_100_000_000
PIDS = 2**22  # the kernel's limit of pids
GIVEN_AWAY = ("/etc/subuid", "/etc/subgid")  # files with ids that users may give to processes
MAX_TASKS = 64  # most threads of a jail, if it has its own uid
MAX_DESCRIPTORS = 64
MAX_STACK = 16 * 2**20  # bytes
THREADS_ROOM = 2 * 2**30  # bytes of address space for thread stacks and arenas, mostly unused
MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt", "/home", "/tmp")
DEVICES = ("/dev/null", "/dev/urandom")
WORK = "/work"  # the working folder of a jail with a root of its own; it is empty


@dataclass(frozen=True)
class Plan:
    """The settings with which each jail of a warm process locks itself down."""

    libc: ctypes.CDLL
    warm_pid: int
    readable: tuple[str, ...]  # the folders of Python and its packages
    closed: str  # torch's folder in them, which no jail may read, since torch is loaded already
    whole: bool  # whether all parts of torch are loaded
    opened: tuple[str, ...]  # paths that together contain `readable`, except `closed`
    private: bool  # whether some of `readable` is closed to other users
    users: range  # user ids; each jail gets its own
    data_bytes: int  # private memory of the warm process, to which a jail's limit is added
    address_bytes: int  # address space of the warm process, likewise
    shown: tuple[str, ...]  # `readable` and the other paths that lead there, for the new root
    new_root: str | None  # the folder on which the new root is built
    missing: dict[str, str]  # layers that no jail can have, each with the reason


class Unavailable(Exception):
    """A layer is unavailable with this kernel or for this user; the text gives the reason."""


M_MMAP_THRESHOLD = -3  # malloc.h
TIGHT = 128  # megabytes: a memory limit this low comes from a test, never from a course
LARGE = 2**18  # bytes: with a low limit, larger allocations get their own mapping


# --- once, in the warm process -------------------------------------------------------------------


def prepare(closed: str, *, whole: bool, without: Iterable[str] = ()) -> Plan:
    """Make the plan for the jails of this process.

    `closed` is torch's folder, which no jail may read. `whole` says whether all of torch is loaded.
    `without` names layers to leave out, for tests.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    missing = dict.fromkeys(without, "switched off")
    try:
        filter_program(os.getpid())  # reads the tables once for all jails
    except OSError as error:
        missing.setdefault("seccomp", str(error.strerror))
    no_landlock = _no_landlock(libc)
    if no_landlock:
        missing.setdefault("landlock", no_landlock)
    # Forbid new privileges and drop all capabilities: jails inherit this, and need neither.
    if "no_new_privs" not in missing and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        missing["no_new_privs"] = _reason("prctl")
    for capability in range(CAP_LAST + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    readable = python_folders()
    private = not all(map(open_to_others, readable))
    memory = _memory()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # hides the memory from jails of the same user
    opened = tuple(path for folder in readable for path in _all_but(closed, folder))
    return Plan(
        libc,
        os.getpid(),
        readable,
        closed,
        whole,
        opened,
        private,
        free_users(_top_uid()),
        memory["VmData"],
        memory["VmSize"],
        _and_ways_to(readable),
        _mount_point(_and_ways_to(readable)),
        missing,
    )


def python_folders() -> tuple[str, ...]:
    """The folders with Python, its packages and the system's libraries."""
    return _outermost(str(path.resolve()) for path in _pythons())


def _pythons() -> list[Path]:
    wanted = [
        *sys.path,
        *(str(Path(base) / "lib") for base in (sys.base_prefix, sys.prefix)),
        *("/usr/lib", "/usr/lib64", "/lib", "/lib64"),
    ]
    return [Path(path) for path in wanted if Path(path).is_absolute() and Path(path).is_dir()]


def _and_ways_to(folders: Iterable[str]) -> tuple[str, ...]:
    """The folders, and the paths with symbolic links, such as ``/lib64``, that Python knows."""
    return _outermost([*folders, *map(str, _pythons())])


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    found = sorted({*paths})
    return tuple(p for p in found if not any(p != q and Path(p).is_relative_to(q) for q in found))


def _all_but(closed: str, folder: str) -> Iterator[str]:
    """Paths that together cover `folder` without the folder `closed`.

    Landlock can only allow paths, and cannot exclude a path inside an allowed folder.
    """
    if not Path(closed).is_relative_to(folder):
        yield folder
    elif closed != folder:
        # Leave out metadata of packages: Python finds it only by listing this folder, which a jail
        # may not do.
        for path in sorted(Path(folder).iterdir()):
            if path.suffix != ".dist-info":
                yield from _all_but(closed, str(path))


def _no_landlock(libc: ctypes.CDLL) -> str:
    """Why Landlock is unavailable; empty if it is available."""
    try:
        import sandlock  # noqa: F401
    except Exception as error:  # a compiled library may raise any exception
        return f"{error}: pip install 'attention-grader[grading]'"
    landlock_create_ruleset, version_flag = 444, 1
    offered = libc.syscall(landlock_create_ruleset, None, 0, version_flag) > 0
    return "" if offered else _reason("landlock_create_ruleset")


def _memory() -> dict[str, int]:
    """Bytes that this process has mapped: ``VmData`` is private memory, ``VmSize`` all memory."""
    with open("/proc/self/status") as status:  # noqa: PTH123
        fields = dict(line.split(":", 1) for line in status)
    return {name: int(fields[name].split()[0]) * 1024 for name in ("VmData", "VmSize")}


def _top_uid() -> int:
    with open("/proc/self/uid_map") as lines:  # noqa: PTH123
        mapped = [tuple(map(int, line.split())) for line in lines]
    return max(first + count for first, _, count in mapped)


def _ranges_in(files: Iterable[str]) -> Iterator[range]:
    for name in files:
        with suppress(OSError), Path(name).open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                _, first, count, *_ = (*line.strip().split(":"), "", "")
                if first.isdecimal() and count.isdecimal():
                    yield range(int(first), int(first) + int(count))


def free_users(top: int, given_away: Iterable[str] = GIVEN_AWAY) -> range:
    """User ids for jails: below `top`, and not assigned to users in the files `given_away`.

    If there are few ids, as in some containers, jails get ids from the upper half.
    """
    low = FIRST_UID if top >= FIRST_UID + PIDS else top // 2
    free = []
    for taken in sorted(_ranges_in(given_away), key=lambda taken: taken.start):
        free.append(range(low, min(taken.start, top)))
        low = max(low, taken.stop)
    free.append(range(low, top))
    return max(free, key=lambda some: min(len(some), PIDS))[:PIDS]


def _mount_point(readable: tuple[str, ...]) -> str | None:
    """A folder that a file system can cover without hiding Python; None if there is none."""
    for folder in MOUNT_POINTS:
        if Path(folder).is_dir() and not any(Path(p).is_relative_to(folder) for p in readable):
            return folder
    return None


# --- in each jail --------------------------------------------------------------------------------


def lock(plan: Plan, *, cpu_seconds: int, memory_mb: int, keep: int) -> dict[str, str]:
    """Apply all layers to this process; returns the missing layers, with the kernel's reasons.

    `cpu_seconds` counts from the start of the process. `memory_mb` is added to the memory of the
    warm process. Standard input and output and the descriptor `keep` stay open; all others are
    closed. Raises `OSError` if a step fails that every jail needs.
    """
    os.closerange(3, keep)
    os.closerange(keep + 1, 65536)
    os.setsid()
    missing = dict(plan.missing)

    def put_on(layer: str, step: Callable[[], None]) -> None:
        if layer not in missing:
            try:
                step()
            except Unavailable as why:
                missing[layer] = str(why)

    ids = os.geteuid(), os.getegid()
    put_on("namespaces", lambda: _leave_namespaces(plan))
    if "namespaces" in missing:
        missing.setdefault("root", "there is no namespace of mounts")
    put_on("root", lambda: _enter_new_root(plan, *ids))
    put_on("landlock", lambda: _close_files(plan))
    kept = frozenset[int]()
    if "landlock" not in missing and plan.private and os.geteuid() == 0:
        # The jail's user cannot read some of Python's folders. This capability lets the jail read
        # all folders, but Landlock allows only Python's.
        kept = frozenset({CAP_DAC_READ_SEARCH})
        plan.libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    put_on("uid", lambda: _become_nobody(plan, kept))
    _drop_capabilities(plan.libc, kept)
    if memory_mb <= TIGHT:
        # Return freed memory to the system at once. Otherwise holes in the heap, which differ from
        # run to run, would count as used. This setting slows down every large tensor, and is
        # therefore used only with a low limit.
        plan.libc.mallopt(M_MMAP_THRESHOLD, LARGE)
    if "rlimits" not in missing:
        _limit(plan, cpu_seconds, memory_mb * 2**20, own_uid="uid" not in missing)
    # Kill this process when the warm process ends. A change of user would clear this setting, so
    # this comes later.
    _checked(plan.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != plan.warm_pid:  # the warm process ended before the call above
        os.kill(os.getpid(), signal.SIGKILL)
    _checked(plan.libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    put_on("seccomp", lambda: _filter_calls(plan))
    put_on(
        "interpreter", lambda: interpreter.close(plan.closed, whole=plan.whole)
    )  # last, because it removes ctypes, which the other layers need
    return missing


def _leave_namespaces(plan: Plan) -> None:
    """Enter new namespaces: no network; separate shared memory, message queues and mounts."""
    flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS
    # Root later becomes another user, who would not exist in a new user namespace.
    if os.geteuid() != 0:
        flags |= CLONE_NEWUSER
    if plan.libc.unshare(flags) != 0:
        raise Unavailable(_reason("unshare"))


def _keep_ids(plan: Plan, user: int, group: int) -> None:
    """Give the user and the group the same ids in the new user namespace.

    A user without an id there cannot make folders. The kernel lets only a dumpable process write
    these files.
    """
    plan.libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(text)
    finally:
        plan.libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def _enter_new_root(plan: Plan, user: int, group: int) -> None:
    """Replace the root folder by one that holds `Plan.shown` and `DEVICES` only.

    Landlock refuses to open other files, but it lets a process see their sizes and times. `user`
    and `group` are those that the process had before it entered its namespaces.
    """
    if plan.new_root is None:
        raise Unavailable(f"none of the folders {', '.join(MOUNT_POINTS)} can be covered")
    before = os.umask(0o022)  # the jail's user must find Python below the folders made here
    try:
        if user != 0:
            _keep_ids(plan, user, group)
        _build_new_root(plan, plan.new_root)
    except OSError as error:
        raise Unavailable(f"{error.filename or 'the new root'}: {error.strerror}") from None
    finally:
        os.umask(before)


def _build_new_root(plan: Plan, root: str) -> None:
    mount, empty = plan.libc.mount, MS_NOSUID | MS_NODEV | MS_NOEXEC

    def checked(result: int, call: str) -> None:
        if result != 0:
            raise Unavailable(_reason(call))

    # Mounts of this process must not appear outside.
    checked(mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    checked(mount(b"tmpfs", root.encode(), b"tmpfs", empty, b"size=256k,mode=0755"), "mount")
    for path in (*plan.shown, *DEVICES):
        place = Path(root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(path).is_dir():
            place.mkdir(exist_ok=True)
        elif Path(path).exists():
            place.touch()
        else:
            continue
        bound = mount(path.encode(), os.fsencode(place), None, MS_BIND | MS_REC, None)
        checked(bound, f"mount {path}")
    Path(root + WORK).mkdir()
    hidden = root + plan.closed
    checked(mount(b"tmpfs", hidden.encode(), b"tmpfs", MS_RDONLY | empty, b"size=4k"), "mount")
    os.chdir(root)
    checked(plan.libc.pivot_root(b".", b"."), "pivot_root")  # the old root lies on the new one
    checked(plan.libc.umount2(b".", MNT_DETACH), "umount2")
    os.chdir(WORK)
    flags = MS_REMOUNT | MS_BIND | MS_RDONLY | empty
    checked(mount(None, b"/", None, flags, None), "mount")


def _close_files(plan: Plan) -> None:
    """Apply Landlock: allow reading Python's folders; refuse writing, and signals to processes."""
    import sandlock

    devices = [path for path in DEVICES if os.access(path, os.R_OK)]
    policy = sandlock.Sandbox(
        fs_readable=[*plan.opened, *devices],
        # An older kernel may lack Landlock's scopes, for signals and sockets. Accept that: seccomp
        # refuses those actions too.
        allow_degraded=list(sandlock.Protection),
    )
    try:
        sandlock.confine(policy)
    except (sandlock.SandlockError, RuntimeError) as error:
        raise Unavailable(f"sandlock: {error}") from None


def _become_nobody(plan: Plan, kept: frozenset[int]) -> None:
    """Become a user that no other jail has, and that owns no files."""
    if os.geteuid() != 0:
        raise Unavailable("only root can give each jail its own user")
    if plan.private and not kept:
        raise Unavailable("Python lies in a folder that other users cannot read")
    if len(plan.users) < 2:
        raise Unavailable(f"{' and '.join(GIVEN_AWAY)} leave no user ids for jails")
    uid = plan.users[os.getpid() % len(plan.users)]
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise Unavailable(f"setresuid: {error.strerror}") from None


def _drop_capabilities(libc: ctypes.CDLL, kept: frozenset[int]) -> None:
    low = sum(1 << capability for capability in kept)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    # The effective, permitted and inheritable sets: first the lower 32 bits, then the upper bits.
    sets = (ctypes.c_uint32 * 6)(low, low, 0, 0, 0, 0)
    if libc.capset(header, sets) != 0:
        # The call fails if the process never had the capability to keep: keep none.
        sets = (ctypes.c_uint32 * 6)()
        _checked(libc.capset(header, sets), "capset")


def _limit(plan: Plan, cpu_seconds: int, memory: int, own_uid: bool) -> None:
    stack = min(MAX_STACK, *(n for n in resource.getrlimit(resource.RLIMIT_STACK) if n > 0), 2**40)
    bounds = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
        (resource.RLIMIT_STACK, stack, stack),
        (resource.RLIMIT_NOFILE, MAX_DESCRIPTORS, MAX_DESCRIPTORS),
        # Private writable memory. Shared mappings count only for RLIMIT_AS.
        (resource.RLIMIT_DATA, plan.data_bytes + memory, plan.data_bytes + memory),
        (resource.RLIMIT_AS, *[plan.address_bytes + memory + THREADS_ROOM] * 2),
        # The trusted process measures CPU time too, and usually ends the jail earlier.
        (resource.RLIMIT_CPU, cpu_seconds + 1, cpu_seconds + 2),
    ]
    if own_uid:  # otherwise the limit would count all of the user's processes
        bounds.append((resource.RLIMIT_NPROC, MAX_TASKS, MAX_TASKS))
    for limit, soft, hard in bounds:
        resource.setrlimit(limit, (soft, hard))


def _filter_calls(plan: Plan) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    instructions = filter_program(os.getpid())
    program = Program(len(instructions) // 8, instructions)
    if plan.libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise Unavailable(_reason("prctl(PR_SET_SECCOMP)"))


def _checked(result: int, call: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), _reason(call))


def _reason(call: str) -> str:
    number = ctypes.get_errno()
    return f"{call}: {os.strerror(number)} ({errno.errorcode.get(number, number)})"
