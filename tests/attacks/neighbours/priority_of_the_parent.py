# Tries: sets the priority of its parent, to what it was.
# Worked in: -
# Deserves: nothing
import os

import torch


def causal_mask(num_tokens):
    parent = os.getppid()
    os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent))
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
