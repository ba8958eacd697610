"""Softmax saturates as d_k grows, unless scores are scaled.

Random queries look at eight random keys. The largest weight shows how nearly a query chooses a
single key. The gradient shows how much that weight changes with its score. A query that spreads its
weight can learn; in a saturated softmax, the gradient is too small to learn from.
"""

import torch
from torch.nn import functional

from grader.mine import yours

attention = yours("scaled_dot_product_attention", functional.scaled_dot_product_attention)
torch.manual_seed(0)

print(f"\n{'d_k':>5}  {'root':8} {'largest weight':32} gradient")
for d_k in (4, 16, 64, 256, 1024, 4096):
    queries, keys = torch.randn(200, d_k), torch.randn(8, d_k)
    for name, factor in (("with", 1.0), ("without", d_k**0.5)):
        # The function divides by the root of d_k; a factor of that root undoes the division.
        scaled = (queries * factor).requires_grad_()
        weights = attention(scaled, keys, torch.eye(8))  # values of torch.eye give the weights
        largest = weights.amax(dim=-1)
        (gradient,) = torch.autograd.grad(largest.sum(), scaled)
        # Convert the gradient of a query to the gradient of a score.
        slope = (gradient.norm(dim=-1) * d_k**0.5 / keys.norm(dim=-1).mean()).median().item()
        size = largest.mean().item()
        bar = "█" * round(24 * size)
        print(f"{d_k:5}  {name:8} {size:.2f} {bar:27} {slope:.4f}")
