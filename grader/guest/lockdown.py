"""The lock-down: what a forked jail takes from itself before it sees a submission.

Each *layer* is something that the kernel may or may not offer. The warm process makes a `Plan`
once and rehearses it in a child; every jail after that puts on the same layers or ends. The order
matters: namespaces and mounts while they are still allowed, Landlock while the folders above
Python can still be passed, then the user, then the filter of system calls, which would refuse all
of the former.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grader.guest import interpreter
from grader.wire.frames import open_to_others

# From linux/prctl.h, sched.h, mount.h and capability.h.
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP = 1, 4, 8, 22
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 24, 38, 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
CAP_DAC_READ_SEARCH, CAP_LAST = 2, 63
CAPABILITY_VERSION = 0x20080522

# A jail's uid is this plus its pid, where so many uids exist: above what systemd gives to
# containers, and sssd to people.
FIRST_UID = 2_100_000_000
PIDS = 2**22  # the kernel has no higher one
GIVEN_AWAY = ("/etc/subuid", "/etc/subgid")  # ranges that users may put processes into
MAX_TASKS = 64  # threads of one jail, where it has a uid of its own
MAX_DESCRIPTORS = 64
MAX_STACK = 16 * 2**20  # bytes
THREADS_ROOM = 2 * 2**30  # bytes of address space for thread stacks and arenas, mostly untouched
MOUNT_POINTS = ("/mnt", "/media", "/srv", "/opt", "/home", "/tmp")


@dataclass(frozen=True)
class Plan:
    """What each jail of one warm process does to itself."""

    libc: ctypes.CDLL
    warm_pid: int
    readable: tuple[str, ...]  # where Python and its packages lie
    closed: str  # a folder there that no jail may read: torch's, which is loaded
    whole: bool  # whether all of torch is that an answer may ask for
    opened: tuple[str, ...]  # what is left of `readable`
    private: bool  # whether other users are kept out of there
    users: range  # of which each jail becomes one
    data_bytes: int  # of the warm process: limits are counted from here
    address_bytes: int
    filter: bytes  # of system calls
    work_folder: str | None  # where an empty file system goes, to stand in
    missing: dict[str, str]  # layers that no jail can have, and why


class Unavailable(Exception):
    """A layer that this kernel, or this user, cannot have; the text says why."""


M_MMAP_THRESHOLD = -3  # malloc.h
TIGHT = 128  # megabytes: a limit that a test sets, and no course
LARGE = 2**18  # bytes of what gets a mapping of its own


# --- once, in the warm process -------------------------------------------------------------------


def prepare(closed: str, *, whole: bool, without: Iterable[str] = ()) -> Plan:
    """Make the plan. `without` names layers to leave out, for tests of what happens then.

    `closed` is a folder among those of Python's packages that no jail may read: torch's, of which
    the `whole` may be loaded.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    missing = dict.fromkeys(without, "switched off")
    program = b""
    try:
        program = filter_program()
    except OSError as error:
        missing.setdefault("seccomp", error.strerror or str(error))
    no_landlock = _no_landlock(libc)
    if no_landlock:
        missing.setdefault("landlock", no_landlock)
    # Inherited by every jail, and of no use here.
    if "no_new_privs" not in missing and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        missing["no_new_privs"] = _reason("prctl")
    for capability in range(CAP_LAST + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    readable = python_folders()
    private = not all(map(open_to_others, readable))
    memory = _memory()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # no jail of the same user may look into this process
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
        program,
        _work_folder(readable),
        missing,
    )


def python_folders() -> tuple[str, ...]:
    """The folders that hold Python, its packages and the system's libraries."""
    wanted = [
        *(path for path in sys.path if Path(path).is_dir()),
        *(str(Path(base) / "lib") for base in (sys.base_prefix, sys.prefix)),
        *("/usr/lib", "/usr/lib64", "/lib", "/lib64"),
    ]
    found = sorted({str(Path(path).resolve()) for path in wanted if Path(path).is_dir()})
    return tuple(p for p in found if not any(p != q and Path(p).is_relative_to(q) for q in found))


def _all_but(closed: str, folder: str) -> Iterator[str]:
    """A folder; or what is in it, if what is closed lies there too. Landlock only ever allows."""
    if not Path(closed).is_relative_to(folder):
        yield folder
    elif closed != folder:
        # What is known of a package is found by listing its folder, which is not allowed: leave it.
        for path in sorted(Path(folder).iterdir()):
            if path.suffix != ".dist-info":
                yield from _all_but(closed, str(path))


def _no_landlock(libc: ctypes.CDLL) -> str:
    """Why the kernel offers no Landlock; empty if it does."""
    try:
        import sandlock  # noqa: F401
    except Exception as error:  # a compiled library: it may fail in ways of its own
        return f"{error}: pip install sandlock"
    landlock_create_ruleset, version_flag = 444, 1
    offered = libc.syscall(landlock_create_ruleset, None, 0, version_flag) > 0
    return "" if offered else _reason("landlock_create_ruleset")


def _memory() -> dict[str, int]:
    """Bytes that this process has mapped, by the kernel's own names."""
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
    """Users below `top` that jails can become: none that these files let others become.

    A container may have few users: then they are among the upper half of those.
    """
    low = FIRST_UID if top >= FIRST_UID + PIDS else top // 2
    free = []
    for taken in sorted(_ranges_in(given_away), key=lambda taken: taken.start):
        free.append(range(low, min(taken.start, top)))
        low = max(low, taken.stop)
    free.append(range(low, top))
    return max(free, key=lambda some: min(len(some), PIDS))[:PIDS]


def _work_folder(readable: tuple[str, ...]) -> str | None:
    """A folder that an empty file system may cover without hiding Python."""
    for folder in MOUNT_POINTS:
        if Path(folder).is_dir() and not any(Path(p).is_relative_to(folder) for p in readable):
            return folder
    return None


# --- in each jail --------------------------------------------------------------------------------


def lock(plan: Plan, *, cpu_seconds: int, memory_mb: int, keep: int) -> dict[str, str]:
    """Put on all layers; returns those that are missing, with the kernel's reason.

    CPU time counts from the start of the process, and memory above what the warm process has.
    `keep` is the one descriptor, besides standard input and output, that stays open. Raises
    `OSError` when something fails without which there is no jail at all.
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

    put_on("namespaces", lambda: _leave_namespaces(plan))
    put_on("landlock", lambda: _close_files(plan))
    kept = frozenset[int]()
    if "landlock" not in missing and plan.private and os.geteuid() == 0:
        # Python itself lies where others may not read, and Landlock allows nothing else.
        kept = frozenset({CAP_DAC_READ_SEARCH})
        plan.libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    put_on("uid", lambda: _become_nobody(plan, kept))
    _drop_capabilities(plan.libc, kept)
    if memory_mb <= TIGHT:
        # What is freed goes back at once: holes in a heap count as used, and differ from run to
        # run. It makes every large tensor dearer, so it is for tests that ask for little memory.
        plan.libc.mallopt(M_MMAP_THRESHOLD, LARGE)
    if "rlimits" not in missing:
        _limit(plan, cpu_seconds, memory_mb * 2**20, own_uid="uid" not in missing)
    # After the change of user, which clears it.
    _checked(plan.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != plan.warm_pid:  # it ended too early for that signal
        os.kill(os.getpid(), signal.SIGKILL)
    _checked(plan.libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")
    put_on("seccomp", lambda: _filter_calls(plan))
    put_on(
        "interpreter", lambda: interpreter.close(plan.closed, whole=plan.whole)
    )  # last: it takes ctypes away
    return missing


def _leave_namespaces(plan: Plan) -> None:
    """No network, no shared memory or queues of others, no view of later mounts."""
    apart = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS
    # Root may want to become another user later, whom a namespace of users would not know.
    if plan.libc.unshare(apart if os.geteuid() == 0 else apart | CLONE_NEWUSER) != 0:
        raise Unavailable(_reason("unshare"))
    if plan.work_folder is None:
        return
    # An empty file system that takes nothing: the private working folder.
    folder = plan.work_folder.encode()
    flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
    options = b"size=4k,nr_inodes=2,mode=0555"
    if (
        plan.libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) == 0
        and plan.libc.mount(b"tmpfs", folder, b"tmpfs", flags, options) == 0
    ):
        os.chdir(folder)


def _close_files(plan: Plan) -> None:
    """Landlock: read Python and its packages, write nothing, signal nobody outside."""
    import sandlock

    devices = [path for path in ("/dev/null", "/dev/urandom") if os.access(path, os.R_OK)]
    policy = sandlock.Sandbox(
        fs_readable=[*plan.opened, *devices],
        # An older kernel may lack scopes; files are what matters here, the rest is seccomp's too.
        allow_degraded=list(sandlock.Protection),
    )
    try:
        sandlock.confine(policy)
    except (sandlock.SandlockError, RuntimeError) as error:
        raise Unavailable(f"sandlock: {error}") from None


def _become_nobody(plan: Plan, kept: frozenset[int]) -> None:
    """A user of this jail alone, so that neither files nor other jails are its own."""
    if os.geteuid() != 0:
        raise Unavailable("only root can give each jail a user of its own")
    if plan.private and not kept:
        raise Unavailable("Python lies in a folder that other users cannot read")
    if len(plan.users) < 2:
        raise Unavailable(f"no other user is left here, after those in {' and '.join(GIVEN_AWAY)}")
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
    # Effective, permitted, inheritable: the lower 32 capabilities, then the upper.
    sets = (ctypes.c_uint32 * 6)(low, low, 0, 0, 0, 0)
    if libc.capset(header, sets) != 0:
        # What was never permitted cannot be kept either.
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
        # What a program writes to; shared mappings escape it, and meet the one below.
        (resource.RLIMIT_DATA, plan.data_bytes + memory, plan.data_bytes + memory),
        (resource.RLIMIT_AS, *[plan.address_bytes + memory + THREADS_ROOM] * 2),
        # The trusted side counts CPU time as well, and earlier: this is the backstop.
        (resource.RLIMIT_CPU, cpu_seconds + 1, cpu_seconds + 2),
    ]
    if own_uid:  # otherwise it would count, and stop, what others run
        bounds.append((resource.RLIMIT_NPROC, MAX_TASKS, MAX_TASKS))
    for limit, soft, hard in bounds:
        resource.setrlimit(limit, (soft, hard))


def _filter_calls(plan: Plan) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))

    instructions = with_pid(plan.filter, os.getpid())
    program = Program(len(instructions) // 8, instructions)
    if plan.libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise Unavailable(_reason("prctl(PR_SET_SECCOMP)"))


def _checked(result: int, call: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), _reason(call))


def _reason(call: str) -> str:
    number = ctypes.get_errno()
    return f"{call}: {os.strerror(number)} ({errno.errorcode.get(number, number)})"


# --- the filter of system calls ------------------------------------------------------------------
#
# Which system calls a jail may not make, compiled into a filter for the kernel.
#
# Default allow, with whole calls denied: a denied call is an ordinary PermissionError to the
# student, where a killed process would tell nothing. An argument is only ever compared by the
# bits that the kernel looks at: ``socket(2 | 1 << 40)`` is a socket to the kernel, and no equal
# of 2 to a filter.


# Numbers are the same on every architecture from 424 on. What is newer than this list was not
# thought about, so it does not exist: libraries fall back, as they do on an older kernel.
NEWEST = 450

_NAMES = """
    socket socketpair connect bind listen accept accept4 shutdown setsockopt
    sendmsg sendmmsg recvmsg recvmmsg

    fork vfork execve execveat ptrace process_vm_readv process_vm_writev process_madvise
    process_mrelease kcmp pidfd_open pidfd_getfd pidfd_send_signal setns unshare setsid setpgid
    tkill rt_sigqueueinfo rt_tgsigqueueinfo
    setpriority ioprio_set sched_setaffinity sched_setattr sched_setparam sched_setscheduler
    migrate_pages move_pages prctl seccomp personality

    setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset

    memfd_create memfd_secret shmget shmat shmctl shmdt semget semop semtimedop semctl
    msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify
    mq_getsetattr userfaultfd io_uring_setup io_uring_enter io_uring_register
    io_setup io_submit add_key request_key keyctl

    bpf perf_event_open fanotify_init fanotify_mark inotify_init inotify_init1 lookup_dcookie
    mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick
    mount_setattr swapon swapoff quotactl quotactl_fd sync syncfs
    init_module finit_module delete_module kexec_load kexec_file_load reboot syslog acct vhangup
    settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
    iopl ioperm modify_ldt nfsservctl uselib

    creat mkdir mkdirat rmdir mknod mknodat link linkat symlink symlinkat unlink unlinkat
    rename renameat renameat2 truncate chmod fchmod fchmodat chown fchown lchown fchownat
    utime utimes futimesat utimensat setxattr lsetxattr fsetxattr removexattr lremovexattr
    fremovexattr name_to_handle_at open_by_handle_at
"""
DENIED = tuple(_NAMES.split())

# A signal may go to oneself: C libraries abort so. The jail puts its own pid in.
TO_ONESELF = ("kill", "tgkill")
OWN_PID = 0x7E57_C0DE

# These tell a caller to do it another way: glibc then clones, and opens, by the calls below.
ABSENT = ("clone3", "openat2")

CLONE_THREAD = 0x10000
# Write-only, read-write, create, truncate, a nameless file: each by its own bits.
WRITING = tuple(
    (flag, flag) for flag in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, 0o20000000)
)
FLAGS_OF_OPEN = {"open": 1, "openat": 2}
SHARED_NAMELESS = 0x01 | 0x20  # MAP_SHARED | MAP_ANONYMOUS: memory that no limit on data counts
EXECUTABLE = 0x04  # PROT_EXEC: machine code that was not there when torch was loaded
MAPPING = ("mmap", "mprotect", "pkey_mprotect")  # their third argument says what for
GROWING = 0x0100  # MAP_GROWSDOWN: memory that counts as stack, and as no data
GROWING_LATER = (0x0100_0000, 0x0200_0000)  # PROT_GROWSDOWN, PROT_GROWSUP
OUT_OF_BAND = 0x01  # MSG_OOB: a byte that makes a socket look ready, and is not there
LOW = 0xFFFF_FFFF  # the bits of an int
# A descriptor that sends signals to whom its owner names: fcntl F_SETOWN, F_SETSIG, F_SETOWN_EX,
# ioctl FIOSETOWN, SIOCSPGRP; and a terminal that is typed into by program: TIOCSTI.
COMMANDS = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902, 0x5412)}


def filter_program() -> bytes:
    """The filter as instructions for the kernel, for `with_pid`; raise `OSError` if there is none.

    Needs the system's libseccomp. It knows the architecture: calls under another one's numbers
    (32 bits, x32) end the process.
    """
    try:
        import pyseccomp as sc
    except (ImportError, RuntimeError, OSError) as error:
        raise OSError(errno.ENOSYS, f"{error}: install the system's libseccomp2") from None

    rules = sc.SyscallFilter(sc.ALLOW)
    rules.set_attr(sc.Attr.ACT_BADARCH, sc.KILL_PROCESS)
    denied, absent = sc.ERRNO(errno.EPERM), sc.ERRNO(errno.ENOSYS)
    for name in DENIED:
        rules.add_rule(denied, _number(name))
    for name in ABSENT:
        rules.add_rule(absent, _number(name))
    # Threads, yes (a library that cannot start one ends the process); processes, no.
    rules.add_rule(denied, _number("clone"), sc.Arg(0, sc.MASKED_EQ, CLONE_THREAD, 0))
    for name in TO_ONESELF:
        rules.add_rule(denied, _number(name), sc.Arg(0, sc.NE, OWN_PID))
    # One's own limits only.
    rules.add_rule(denied, _number("prlimit64"), sc.Arg(0, sc.NE, 0))
    rules.add_rule(
        denied, _number("mmap"), sc.Arg(3, sc.MASKED_EQ, SHARED_NAMELESS, SHARED_NAMELESS)
    )
    rules.add_rule(denied, _number("mmap"), sc.Arg(3, sc.MASKED_EQ, GROWING, GROWING))
    # No library is loaded any more, and no code made: of torch only oneDNN does that, which
    # `preload` switches off (convolutions, gelu and LSTMs then take torch's own kernels).
    for name in MAPPING:
        rules.add_rule(denied, _number(name), sc.Arg(2, sc.MASKED_EQ, EXECUTABLE, EXECUTABLE))
    for flag in GROWING_LATER:
        rules.add_rule(denied, _number("mprotect"), sc.Arg(2, sc.MASKED_EQ, flag, flag))
    rules.add_rule(denied, _number("sendto"), sc.Arg(3, sc.MASKED_EQ, OUT_OF_BAND, OUT_OF_BAND))
    for name, commands in COMMANDS.items():
        for command in commands:
            rules.add_rule(denied, _number(name), sc.Arg(1, sc.MASKED_EQ, LOW, command))
    for name, position in FLAGS_OF_OPEN.items():
        for mask, value in WRITING:
            rules.add_rule(denied, _number(name), sc.Arg(position, sc.MASKED_EQ, mask, value))
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return _without_newer(absent) + file.read()


def with_pid(program: bytes, pid: int) -> bytes:
    """The filter for one process."""
    return program.replace(struct.pack("=I", OWN_PID), struct.pack("=I", pid))


def _number(name: str) -> int:
    import pyseccomp as sc

    # A call that this architecture never had resolves to a number below zero, which is skipped.
    number: int = sc.resolve_syscall(sc.Arch.NATIVE, name)
    if number == -1:
        raise OSError(errno.ENOSYS, f"libseccomp does not know {name}: it is too old")
    return number


def _without_newer(action: int) -> bytes:
    """Instructions that go first: load the number; above the newest known, answer `action`."""
    load, jump_greater, answer = 0x20, 0x25, 0x06
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in ((load, 0, 0, 0), (jump_greater, 0, 1, NEWEST), (answer, 0, 0, action))
    )
