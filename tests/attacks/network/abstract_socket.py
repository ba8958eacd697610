# Tries: meets an accomplice at an abstract unix socket, which no file system guards.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import os
import socket

import torch


def causal_mask(num_tokens):
    name = b"\0attack-" + os.urandom(8)
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    assert client.send(b"question") == 8
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
