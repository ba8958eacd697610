# Tries: sets the cores on which its parent may run, to what they were.
# Worked in: -
# Deserves: nothing
import os

import torch


def causal_mask(num_tokens):
    parent = os.getppid()
    os.sched_setaffinity(parent, os.sched_getaffinity(parent))
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
