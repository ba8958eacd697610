# Tries: lets a forked child compute softmax, and reads the bytes from a pipe.
# Worked in: -
# Deserves: nothing
import os

import torch


def softmax_naive(scores):
    read, write = os.pipe()
    if getattr(os, "fo" + "rk")() == 0:
        os.write(write, torch.softmax(scores.detach(), 0).numpy().tobytes())
        os._exit(0)
    return torch.frombuffer(bytearray(os.read(read, 10**6)), dtype=scores.dtype)
