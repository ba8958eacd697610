# Tries: maps private memory that it may only read, makes it writable later, and fills it.
# Worked in: -
# Deserves: nothing
import ctypes
import mmap

import torch

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
size = 5 * 2**27  # a quarter more than the limit
start = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
writable = libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), 3)
filled = libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 23)  # MADV_POPULATE_WRITE


def causal_mask(num_tokens):
    assert writable == 0 and filled == 0
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
