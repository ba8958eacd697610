"""GELU and ReLU: values and slopes, above and below 0.

Below 0, the slope of ReLU is 0, so no gradient reaches the layers before it. The slope of GELU has
no jump at 0. A little below 0, GELU still passes a gradient; far below 0, the gradient is nearly 0.
The last lines show a feature of 1,000 tokens, shifted so that most of its values are negative.
"""

import torch
from torch.nn import functional

from grader.mine import yours

gelu = yours("gelu", functional.gelu)
bends = {"ReLU": torch.relu, "GELU": gelu}


def slopes(bend, x):
    """The derivative of the function `bend` at each number in `x`."""
    x = x.clone().requires_grad_()
    return torch.autograd.grad(bend(x).sum(), x)[0]


points = torch.tensor([-3.0, -2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0, 3.0])
columns = [column for bend in bends.values() for column in (bend(points), slopes(bend, points))]
print(f"\n{'x':>6}{'ReLU':>10}{'slope':>8}{'GELU':>10}{'slope':>8}")
for x, *row in zip(points.tolist(), *(column.tolist() for column in columns), strict=True):
    relu, relu_slope, of_gelu, slope = row
    print(f"{x:6.1f}{relu:10.3f}{relu_slope:8.3f}{of_gelu:10.3f}{slope:8.3f}")

torch.manual_seed(0)
pushed = torch.randn(1000) - 1.5  # a feature of 1000 tokens
print("\n1000 values of a feature, with mean -1.5: how many get a gradient of exactly 0?")
for name, bend in bends.items():
    silent = int((slopes(bend, pushed) == 0).sum())
    print(f"  {name} {silent:5} {'█' * round(silent / 25)}".rstrip())
