"""A model that adds up what it sees, and what it writes with windows of other lengths."""

import torch
from torch import nn

from grader.mine import generate


class AddsUp(nn.Module):
    """The likeliest next id is the sum of all that it sees, without the tens."""

    def forward(self, ids):
        return nn.functional.one_hot(ids.cumsum(dim=1) % 10, 10).float()


for context_length in (1, 2, 3, 4):
    text = generate(AddsUp(), torch.tensor([[1, 1]]), 24, context_length)
    print(f"it sees {context_length}:", *text[0].tolist())
