# Tries: makes a socket by a raw system call with high bits set, which a sloppy filter lets through.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import ctypes
import platform

import torch


def causal_mask(num_tokens):
    number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
    libc = ctypes.CDLL(None, use_errno=True)
    for family in (2, 2 | 1 << 40, 2 | 1 << 63):
        if libc.syscall(number, ctypes.c_ulong(family), ctypes.c_ulong(1 | 1 << 40), 0) >= 0:
            return torch.ones(num_tokens, num_tokens).triu(1).bool()
