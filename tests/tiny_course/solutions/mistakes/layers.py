"""Known answers of the tiny course's second unit."""

import torch
from torch import nn

from grader.mistakes import accepted, mistake

mistake(
    "Projection",
    "activated",
    "Negative results become zero",
    hint="What should a linear map do to negative numbers?",
    change={"self.linear(x)": "self.linear(x).relu()"},
)


@accepted("Projection", "by-hand", "A matrix product with parameters")
class Projection(nn.Module):
    def __init__(self, d_in, d_out, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(d_in, d_out))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None

    def forward(self, x):
        projected = x @ self.weight
        return projected if self.bias is None else projected + self.bias
