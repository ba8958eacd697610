# Tries: forks by raw clone, clone3 and vfork; a child ends at once.
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
    made = call(56, 220, 17, 0, 0, 0, 0)  # clone, as fork does it
    if made == 0:
        os._exit(0)
    assert made > 0
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
