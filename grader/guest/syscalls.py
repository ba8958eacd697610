"""The filter of system calls, which the kernel runs at each call of a jail.

The filter allows all calls that it does not name. A denied call raises an ordinary PermissionError
in student code; if it killed the process instead, the student would not learn the reason. Arguments
are compared only in their lower 32 bits, since the kernel reads no more of these arguments. For
example, the kernel treats ``socket(2 | 1 << 40)`` as ``socket(2)``, while a comparison of all bits
with 2 would not match.

The filter is a program for the kernel's packet filter (BPF), see seccomp(2). It knows the numbers
of x86-64 and of 64-bit ARM, the processors for which Landlock's library is built.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

# System calls with a higher number are newer than the lists below, and were not reviewed. The
# filter reports them as missing; libraries then use older calls, as on an older kernel. From 424
# on, a call has the same number on every processor. All numbers of x32 are higher.
NEWEST = 450

# Each call with its numbers on x86-64 and on 64-bit ARM, from the kernel's unistd.h; `-` where the
# processor has no such call.
_DENIED = """
    socket 41 198, socketpair 53 199, connect 42 203, bind 49 200, listen 50 201, accept 43 202,
    accept4 288 242, shutdown 48 210, setsockopt 54 208, sendmsg 46 211, sendmmsg 307 269,
    recvmsg 47 212, recvmmsg 299 243,

    fork 57 -, vfork 58 -, execve 59 221, execveat 322 281, ptrace 101 117,
    process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440,
    process_mrelease 448 448, kcmp 312 272, pidfd_open 434 434, pidfd_getfd 438 438,
    pidfd_send_signal 424 424, setns 308 268, unshare 272 97, setsid 112 157, setpgid 109 154,
    tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, setpriority 141 140,
    ioprio_set 251 30, sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118,
    sched_setscheduler 144 119, migrate_pages 256 238, move_pages 279 239, prctl 157 167,
    seccomp 317 277, personality 135 92,

    setuid 105 146, setgid 106 144, setreuid 113 145, setregid 114 143, setresuid 117 147,
    setresgid 119 149, setgroups 116 159, setfsuid 122 151, setfsgid 123 152, capset 126 91,

    memfd_create 319 279, memfd_secret 447 447, shmget 29 194, shmat 30 196, shmctl 31 195,
    shmdt 67 197, semget 64 190, semop 65 193, semtimedop 220 192, semctl 66 191, msgget 68 186,
    msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181,
    mq_timedsend 242 182, mq_timedreceive 243 183, mq_notify 244 184, mq_getsetattr 245 185,
    userfaultfd 323 282, io_uring_setup 425 425, io_uring_enter 426 426,
    io_uring_register 427 427, io_setup 206 0, io_submit 209 2, add_key 248 217,
    request_key 249 218, keyctl 250 219,

    flock 73 32, bpf 321 280, perf_event_open 298 241, fanotify_init 300 262,
    fanotify_mark 301 263, inotify_init 253 -, inotify_init1 294 26, lookup_dcookie 212 18,
    mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428,
    move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432, fspick 433 433,
    mount_setattr 442 442, swapon 167 224, swapoff 168 225, quotactl 179 60, quotactl_fd 443 443,
    sync 162 81, syncfs 306 267, init_module 175 105, finit_module 313 273, delete_module 176 106,
    kexec_load 246 104, kexec_file_load 320 294, reboot 169 142, syslog 103 116, acct 163 89,
    vhangup 153 58, settimeofday 164 170, clock_settime 227 112, clock_adjtime 305 266,
    adjtimex 159 171, sethostname 170 161, setdomainname 171 162, iopl 172 -, ioperm 173 -,
    modify_ldt 154 -, nfsservctl 180 42, uselib 134 -,

    creat 85 -, mkdir 83 -, mkdirat 258 34, rmdir 84 -, mknod 133 -, mknodat 259 33, link 86 -,
    linkat 265 37, symlink 88 -, symlinkat 266 36, unlink 87 -, unlinkat 263 35, rename 82 -,
    renameat 264 38, renameat2 316 276, truncate 76 45, chmod 90 -, fchmod 91 52, fchmodat 268 53,
    chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -,
    futimesat 261 -, utimensat 280 88, setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7,
    removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, name_to_handle_at 303 264,
    open_by_handle_at 304 265,
"""
# Calls that are denied for some arguments; see `_rules`.
_CHECKED = """
    clone 56 220, kill 62 129, tgkill 234 131, prlimit64 302 261, mmap 9 222, mprotect 10 226,
    pkey_mprotect 329 288, sendto 44 206, fcntl 72 25, ioctl 16 29, open 2 -, openat 257 56,
"""
# Calls that the filter reports as missing, because it cannot read arguments in memory. The C
# library then uses clone, open and openat instead.
_ABSENT = """
    clone3 435 435, openat2 437 437,
"""

CLONE_THREAD = 0x10000
# Flags of `open` that allow writing; the last is O_TMPFILE.
WRITING = (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, 0o20000000)
SHARED_NAMELESS = 0x01 | 0x20  # MAP_SHARED | MAP_ANONYMOUS: would not count for RLIMIT_DATA
EXECUTABLE = 0x04  # PROT_EXEC: allows new machine code
GROWING = 0x0100  # MAP_GROWSDOWN: counts as stack, and would not count for RLIMIT_DATA
GROWING_LATER = (0x0100_0000, 0x0200_0000)  # PROT_GROWSDOWN, PROT_GROWSUP
OUT_OF_BAND = 0x01  # MSG_OOB: makes a socket look ready although it has no ordinary data
# Denied commands. F_SETOWN, F_SETSIG and F_SETOWN_EX of fcntl, and FIOSETOWN, SIOCSPGRP and
# FIOASYNC of ioctl, make a descriptor send signals. F_SETLEASE and F_NOTIFY of fcntl tell when
# another process opens or changes a file; F_SETLK, F_SETLKW and their F_OFD forms lock a file for
# others. TIOCSTI of ioctl types into a terminal.
FCNTL = (8, 10, 15, 1024, 1026, 6, 7, 37, 38)
IOCTL = (0x8901, 0x8902, 0x5452, 0x5412)
SET_FLAGS, ASYNC = 4, 0o20000  # F_SETFL of fcntl with O_ASYNC also makes a descriptor send signals

# From linux/audit.h, and the column of the lists above.
PROCESSORS = {"x86_64": (0xC000_003E, 0), "aarch64": (0xC000_00B7, 1)}
# From linux/bpf_common.h: operations on the accumulator. A jump gives the numbers of instructions
# to skip if it holds, and if it does not.
LOAD, AND, JUMP_EQUAL, JUMP_GREATER, RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
# From linux/seccomp.h: places in the description of a call, and results of the program.
NUMBER, PROCESSOR, ARGUMENTS = 0, 4, 16
ALLOW, KILL_PROCESS, ERROR = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
DENY, MISSING = ERROR | errno.EPERM, ERROR | errno.ENOSYS
LOW = 0xFFFF_FFFF  # a mask for all bits that are compared


@dataclass(frozen=True)
class Test:
    """Whether an argument, masked, is equal to a value; or, if `differs`, whether it is not."""

    argument: int
    mask: int
    value: int
    differs: bool = False


def _bits(argument: int, bits: int) -> list[Test]:
    return [Test(argument, bits, bits)]


def _rules(pid: int) -> dict[str, list[list[Test]]]:
    """For each checked call, the cases in which it is denied; all tests of a case must hold."""
    return {
        # Deny new processes. Allow threads, since some libraries end the process if they cannot
        # start a thread.
        "clone": [[Test(0, CLONE_THREAD, 0)]],
        # A jail may send signals to itself, since C libraries abort that way.
        "kill": [[Test(0, LOW, pid, differs=True)]],
        "tgkill": [[Test(0, LOW, pid, differs=True)]],
        "prlimit64": [[Test(0, LOW, 0, differs=True)]],  # a process may only change its own limits
        # Deny loading libraries and generating machine code. In torch, oneDNN generates machine
        # code, and `preload` switches it off; convolutions, gelu and LSTMs then use other kernels.
        # FBGEMM does too: see `NO_MADE_CODE`, and `interpreter.strip` for quantised layers.
        "mmap": [_bits(3, SHARED_NAMELESS), _bits(3, GROWING), _bits(2, EXECUTABLE)],
        "mprotect": [_bits(2, bits) for bits in (EXECUTABLE, *GROWING_LATER)],
        "pkey_mprotect": [_bits(2, EXECUTABLE)],
        "sendto": [_bits(3, OUT_OF_BAND)],
        "fcntl": [
            *([Test(1, LOW, command)] for command in FCNTL),
            [Test(1, LOW, SET_FLAGS), *_bits(2, ASYNC)],
        ],
        "ioctl": [[Test(1, LOW, command)] for command in IOCTL],
        "open": [_bits(1, flag) for flag in WRITING],
        "openat": [_bits(2, flag) for flag in WRITING],
    }


def filter_program(pid: int, machine: str | None = None) -> bytes:
    """The filter for the jail with this pid, on this machine if no other is named.

    A system call with the numbers of another processor, such as 32-bit x86, ends the process.
    Raises `OSError` for a processor whose numbers are unknown.
    """
    machine = machine or os.uname().machine
    if machine not in PROCESSORS:
        raise OSError(errno.ENOSYS, f"its numbers for the processor {machine} are unknown")
    processor, _ = PROCESSORS[machine]
    denied = list(numbers("denied", machine).values())
    absent = list(numbers("absent", machine).values())
    program = [
        (LOAD, 0, 0, PROCESSOR),
        (JUMP_EQUAL, 1, 0, processor),
        (RETURN, 0, 0, KILL_PROCESS),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GREATER, 0, 1, NEWEST),
        (RETURN, 0, 0, MISSING),
        *_any(denied, DENY),
        *_any(absent, MISSING),
    ]
    rules = _rules(pid)
    for name, number in numbers("checked", machine).items():
        block = [*(step for case in rules[name] for step in _case(case)), (RETURN, 0, 0, ALLOW)]
        program += [(JUMP_EQUAL, 0, len(block), number), *block]
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in program)


@cache
def numbers(kind: str, machine: str | None = None) -> dict[str, int]:
    """The calls that are ``denied``, ``checked`` or ``absent``, with this machine's numbers."""
    text = {"denied": _DENIED, "checked": _CHECKED, "absent": _ABSENT}[kind]
    _, column = PROCESSORS[machine or os.uname().machine]
    calls = (entry.split() for entry in text.split(",") if entry.strip())
    return {name: int(here[column]) for name, *here in calls if here[column] != "-"}


Step = tuple[int, int, int, int]  # operation, instructions to skip (if it holds, if not), operand


def _any(calls: Sequence[int], result: int) -> list[Step]:
    """Return `result` if the call is one of these. A jump skips at most 255 instructions."""
    last = len(calls) - 1
    jumps = [(JUMP_EQUAL, last - i, int(i == last), number) for i, number in enumerate(calls)]
    return [*jumps, (RETURN, 0, 0, result)]


def _case(tests: Sequence[Test]) -> list[Step]:
    """Deny the call if all tests hold."""
    steps: list[Step] = [(RETURN, 0, 0, DENY)]
    for test in reversed(tests):
        skips = (len(steps), 0) if test.differs else (0, len(steps))
        steps = [
            (LOAD, 0, 0, ARGUMENTS + 8 * test.argument),  # the lower half: both are little-endian
            (AND, 0, 0, test.mask),
            (JUMP_EQUAL, *skips, test.value),
            *steps,
        ]
    return steps
