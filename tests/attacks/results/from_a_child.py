# Tries: forks a child that writes the results after the grader wrote them.
# Worked in: gradescope-utils, classroom, otter
# Deserves: nothing
import os
import time

import torch


def causal_mask(num_tokens):
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
