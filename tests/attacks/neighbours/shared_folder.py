# Tries: leaves a message for another student's process in /dev/shm.
# Worked in: -
# Deserves: nothing
import os

import torch


def causal_mask(num_tokens):
    path = f"/dev/shm/attack-{os.urandom(8).hex()}"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    os.unlink(path)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
