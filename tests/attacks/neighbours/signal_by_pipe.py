# Tries: asks the kernel to signal its parent when a pipe of its own is ready; the pipe never is.
# Worked in: -
# Deserves: nothing
import fcntl
import os

import torch


def causal_mask(num_tokens):
    read, _ = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETOWN, os.getppid())
    assert fcntl.fcntl(read, fcntl.F_GETOWN) == os.getppid()
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
