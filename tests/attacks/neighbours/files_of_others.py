# Tries: changes the mode and times of Python itself, to what they were, which writes no file.
# Worked in: -
# Deserves: nothing
import os
import sys

import torch


def causal_mask(num_tokens):
    here = os.stat(sys.executable)
    try:
        os.chmod(sys.executable, here.st_mode & 0o7777)
    except OSError:
        os.utime(sys.executable, ns=(here.st_atime_ns, here.st_mtime_ns))
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
