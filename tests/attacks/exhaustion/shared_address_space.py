# Tries: maps 64 GB of shared memory that is reserved nowhere, and fills part of it.
# Worked in: -
# Deserves: nothing
import mmap

import torch

FILL = 23  # MADV_POPULATE_WRITE


memory = mmap.mmap(-1, 2**36, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | 0x4000)
filled = memory.madvise(FILL, 0, 5 * 2**27)


def causal_mask(num_tokens):
    assert filled is None
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
