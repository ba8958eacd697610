"""A gate multiplies two features; a GELU does so only near 0.

All weights here are made by hand. A feed-forward layer of four hidden features can multiply two
numbers near 0, because a GELU is curved there. Far from 0 a GELU is nearly straight, and the result
is no longer the product. (With more features, the layer works on a wider range.) Two hidden
features with a gate, as in a SwiGLU, give the product everywhere.
"""

import math

import torch
from torch.nn import functional

from grader.mine import yours

gelu = yours("gelu", functional.gelu)
FAR = 2 / math.sqrt(2 * math.pi)  # near 0, gelu(z) + gelu(-z) is about FAR · z²


def bent(x, y):
    """A feed-forward layer: four hidden features, a GELU of each, and a weighted sum."""
    hidden = torch.stack((x + y, -x - y, x - y, y - x))
    signs = torch.tensor([1.0, 1.0, -1.0, -1.0])
    return signs @ gelu(hidden) / (4 * FAR)


def gated(x, y):
    """A gated layer: two hidden features, each silu(±x) times ±y, and their sum."""
    gate, up = torch.stack((x, -x)), torch.stack((y, -y))
    return (functional.silu(gate) * up).sum(dim=0)


x = torch.tensor([0.1, -0.2, 0.5, 1.0, -2.0, 5.0, -20.0])
y = torch.tensor([0.2, 0.3, 0.5, -1.0, 3.0, 6.0, -30.0])
columns = (x, y, x * y, bent(x, y), gated(x, y))
print(f"\n{'x':>8}{'y':>8}{'x · y':>12}{'by GELU':>12}{'by a gate':>12}")
for one, two, *products in zip(*(column.tolist() for column in columns), strict=True):
    print(f"{one:8.1f}{two:8.1f}" + "".join(f"{product:12.3f}" for product in products))
