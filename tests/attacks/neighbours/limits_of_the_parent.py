# Tries: sets a limit of its parent with prlimit, to what it was.
# Worked in: -
# Deserves: nothing
import os
import resource

import torch


def causal_mask(num_tokens):
    parent = os.getppid()
    limits = resource.prlimit(parent, resource.RLIMIT_NPROC)
    resource.prlimit(parent, resource.RLIMIT_NPROC, limits)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
