# Tries: aborts in C, and sends itself SIGKILL and a real-time signal; another answer is right.
# Worked in: -
# Deserves: causal_mask 1
import os
import signal

import torch


def softmax_naive(scores):
    os.abort()


def softmax_rows(scores):
    os.kill(os.getpid(), signal.SIGKILL)


def softmax_stable(scores, dim=-1):
    os.kill(os.getpid(), 40)


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
