# Tries: makes a pair of sockets, and an event loop that needs one.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import socket

import torch


def causal_mask(num_tokens):
    one, other = socket.socketpair()
    one.send(b"question")
    assert other.recv(8) == b"question"
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
