"""Which system calls a jail may not make, compiled into a filter for the kernel.

Default allow, with whole calls denied: a denied call is an ordinary PermissionError to the student,
where a killed process would tell nothing. An argument is only ever compared by the bits that the
kernel looks at: ``socket(2 | 1 << 40)`` is a socket to the kernel, and no equal of 2 to a filter.
"""

from __future__ import annotations

import errno
import os
import struct

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


def program() -> bytes:
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
