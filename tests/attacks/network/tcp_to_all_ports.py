# Tries: connects to every well-known port of this machine, where databases and control planes listen.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import socket

import torch


def causal_mask(num_tokens):
    refused = 0
    for port in (22, 53, 80, 443, 2375, 3306, 5432, 6379, 8080, 8786, 8888, 9000, 11211):
        with socket.socket() as client:
            client.settimeout(0.2)
            refused += client.connect_ex(("127.0.0.1", port)) in (0, 111)
    assert refused  # an answer, be it a refusal, came through the network
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
