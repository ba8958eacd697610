# Tries: reads its parent's memory through /proc/PID/mem, at an address that both share.
# Worked in: -
# Deserves: nothing
import os

import torch


def causal_mask(num_tokens):
    with open(f"/proc/{os.getppid()}/mem", "rb") as memory:
        memory.seek(id(None))
        assert memory.read(8)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
