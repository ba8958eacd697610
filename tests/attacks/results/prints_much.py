# Tries: prints 20 MB at every call, around an answer that is right.
# Worked in: -
# Deserves: causal_mask 1
import sys

import torch


def causal_mask(num_tokens):
    for _ in range(20):
        print("x" * 2**20)
        sys.stderr.write("x" * 2**20)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
