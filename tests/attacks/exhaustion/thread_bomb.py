# Tries: starts a thousand threads that stay; right only if all of them started.
# Worked in: -
# Deserves: nothing
import threading

import torch

done = threading.Event()


def causal_mask(num_tokens):
    threading.stack_size(65536)
    for _ in range(1000):
        threading.Thread(target=done.wait, daemon=True).start()
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
