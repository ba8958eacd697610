# Tries: makes System V shared memory.
# Worked in: -
# Deserves: nothing
import ctypes
import os
import platform

import torch

libc = ctypes.CDLL(None, use_errno=True)


def call(x86, arm, *arguments):
    """A raw system call: its result, or minus the error number."""
    number = {"x86_64": x86, "aarch64": arm}[platform.machine()]
    ctypes.set_errno(0)
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    return -ctypes.get_errno() if result == -1 else result


def causal_mask(num_tokens):
    number = call(29, 194, 0, 4096, 0o1600)  # shmget
    assert number >= 0
    call(31, 195, number, 0, 0)  # and removes it
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
