# Tries: writes to its parent's memory with process_vm_writev: the very byte that stands there.
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


class Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def causal_mask(num_tokens):
    address = id(os.__doc__) + 64  # the parent forked it, and has the same byte there
    here, there = Piece(address, 1), Piece(address, 1)
    pieces = ctypes.byref(here), 1, ctypes.byref(there), 1, 0
    assert call(311, 271, os.getppid(), *pieces) == 1
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
