"""Softmax saturates as d_k grows, unless scores are scaled.

Random queries look at eight random keys. The largest weight says how hard the choice is; the
gradient says how much that weight still moves with its score. A soft choice can be learned, a hard
one is stuck.
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
        # The function divides by the root; a factor of the root on the queries undoes that.
        scaled = (queries * factor).requires_grad_()
        weights = attention(scaled, keys, torch.eye(8))  # values of torch.eye show the weights
        largest = weights.amax(dim=-1)
        (gradient,) = torch.autograd.grad(largest.sum(), scaled)
        # From the gradient for a query to that for a score.
        slope = (gradient.norm(dim=-1) * d_k**0.5 / keys.norm(dim=-1).mean()).median().item()
        size = largest.mean().item()
        bar = "█" * round(24 * size)
        print(f"{d_k:5}  {name:8} {size:.2f} {bar:27} {slope:.4f}")
