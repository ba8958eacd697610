# Tries: returns right values as an nn.Parameter, and a buffer of the module as a result.
# Worked in: -
# Deserves: causal_mask 1
import torch
from torch import nn


def causal_mask(num_tokens):
    mask = torch.ones(num_tokens, num_tokens).triu(1).bool()
    return nn.Parameter(mask, requires_grad=False)
