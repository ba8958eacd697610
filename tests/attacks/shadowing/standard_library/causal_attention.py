import random
from typing import Any

import torch


def causal_mask(num_tokens: Any):
    random.random()
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
