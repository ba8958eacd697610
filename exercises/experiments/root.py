"""The size of scores with and without the root, as d_k grows.

A score adds up d_k products. Each has variance 1 where queries and keys have mean 0, variance 1 and
are independent, so the sum has variance d_k. The norm of all scores, over the root of how many
there are, is their typical size.
"""

import torch
from torch.nn import functional

from grader.mine import yours

torch.manual_seed(0)
scaled_scores = yours("scaled_scores", None, "the other size, divided")

print(f"\n{'d_k':>5}   typical size of a score: without the root, with it")
for d_k in (1, 4, 16, 64, 256, 1024):
    queries, keys = torch.randn(100, d_k), torch.randn(100, d_k)
    raw = functional.linear(queries, keys).norm().item() / 100
    size = scaled_scores(queries, keys).norm().item() / 100 if scaled_scores else raw / d_k**0.5
    print(f"{d_k:5}   {raw:6.2f} {'█' * round(raw)}")
    print(f"{'':5}   {size:6.2f} {'█' * round(size)}")
