# Tries: fills shared anonymous memory a quarter more than its limit, which a limit on data does not count.
# Worked in: -
# Deserves: nothing
import mmap

import torch

FILL = 23  # MADV_POPULATE_WRITE


memory = mmap.mmap(-1, 5 * 2**27, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
filled = memory.madvise(FILL, 0, 5 * 2**27)


def causal_mask(num_tokens):
    assert filled is None
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
