# Tries: talks to itself over IPv6.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import socket

import torch


def causal_mask(num_tokens):
    server = socket.socket(socket.AF_INET6)
    server.bind(("::1", 0))
    server.listen()
    client = socket.create_connection(server.getsockname()[:2], timeout=1)
    assert client.send(b"question") == 8
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
