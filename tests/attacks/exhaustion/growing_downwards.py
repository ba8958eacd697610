# Tries: fills memory that the kernel counts as stack, which no limit on data bounds.
# Worked in: -
# Deserves: nothing
import ctypes

import torch


def causal_mask(num_tokens):
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for _ in range(5):
        at = libc.mmap(None, 128 * 2**20, 3, 0x02 | 0x20 | 0x100, -1, 0)
        if at in (None, 2**64 - 1):
            raise MemoryError("no such memory")
        ctypes.memset(at, 1, 128 * 2**20)
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
