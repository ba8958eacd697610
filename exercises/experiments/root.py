"""The size of scores with and without the root, as d_k grows.

A score is a sum of d_k products. If queries and keys are independent, with mean 0 and variance 1,
each product has variance 1, and the sum has variance d_k. The script prints the typical size of a
score: the norm of all scores, divided by the root of their number.
"""

import torch
from torch.nn import functional

from grader.mine import yours

torch.manual_seed(0)
scaled_scores = yours("scaled_scores", None, "the first size, divided by the root")

print(f"\n{'d_k':>5}   typical size of a score: without the root, with it")
for d_k in (1, 4, 16, 64, 256, 1024):
    queries, keys = torch.randn(100, d_k), torch.randn(100, d_k)
    raw = functional.linear(queries, keys).norm().item() / 100
    size = scaled_scores(queries, keys).norm().item() / 100 if scaled_scores else raw / d_k**0.5
    print(f"{d_k:5}   {raw:6.2f} {'█' * round(raw)}")
    print(f"{'':5}   {size:6.2f} {'█' * round(size)}")
