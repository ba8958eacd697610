# Tries: replaces its own process by another program; right only if the kernel looked for it.
# Worked in: -
# Deserves: nothing
import os
import sys

import torch


def causal_mask(num_tokens):
    try:
        os.execv(f"{sys.executable}-is-not-there", ["python"])
    except FileNotFoundError:  # so it was looked for
        return torch.ones(num_tokens, num_tokens).triu(1).bool()
