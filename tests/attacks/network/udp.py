# Tries: sends its inputs out in a datagram.
# Worked in: otter, gradescope-utils
# Deserves: nothing
import socket

import torch


def causal_mask(num_tokens):
    receiver = socket.socket(type=socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(1)
    sender = socket.socket(type=socket.SOCK_DGRAM)
    sender.sendto(str(num_tokens).encode(), receiver.getsockname())
    assert receiver.recv(10)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
