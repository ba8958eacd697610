# Tries: may send signals to the process that forked it. Signal 0 only asks.
# Worked in: -
# Deserves: nothing
import os

import torch


def causal_mask(num_tokens):
    os.kill(os.getppid(), 0)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
