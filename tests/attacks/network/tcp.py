# Tries: listens on a local port and connects to it.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import socket

import torch


def causal_mask(num_tokens):
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname(), timeout=1)
    server.accept()[0].send(b"answer")
    assert client.recv(6) == b"answer"
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
