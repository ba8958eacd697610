# Tries: sleeps for thirty years, which costs no CPU time; another answer is right.
# Worked in: otter
# Deserves: causal_mask 1
import time

import torch


def softmax_rows(scores):
    time.sleep(1e9)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
