# Tries: takes memory until it is refused, catches that, and holds on to all of it.
# Worked in: -
# Deserves: nothing
import torch

hoard = []


def causal_mask(num_tokens):
    size = 2**30
    while len(hoard) < 200:
        try:
            hoard.append(torch.zeros(size, dtype=torch.uint8))
        except (MemoryError, RuntimeError):
            size //= 2
            assert size > 2**12
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
