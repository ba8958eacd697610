# Tries: reads /proc/PID/environ of its parents, where seeds and tokens lie.
# Worked in: otter, check50
# Deserves: nothing
import os
import re
from pathlib import Path

import torch


def causal_mask(num_tokens):
    parent = os.getppid()
    grader = re.search(r"PPid:\s+(\d+)", Path(f"/proc/{parent}/status").read_text())[1]
    assert b"PATH=" in Path(f"/proc/{grader}/environ").read_bytes()
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
