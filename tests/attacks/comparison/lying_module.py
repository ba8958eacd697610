# Tries: answers a module that lies about its parameters, its mode and its calls.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import torch
from torch import nn


class SelfAttention_v1(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.Parameter(torch.zeros(d_in, d_out)) for _ in range(3)
        )

    named_parameters = parameters = state_dict = lambda self, *args, **kwargs: {}
    train = eval = double = to = load_state_dict = lambda self, *args, **kwargs: self
    __eq__ = lambda self, other: True
    __hash__ = nn.Module.__hash__

    def __call__(self, x):
        return type("Same", (torch.Tensor,), {"__eq__": lambda a, b: True})(x @ self.W_query)

    def forward(self, x):
        return x @ self.W_value
