"""Your attention with and without the scale, for heads that get wider.

Compare both halves of the picture, and the variances. Without the scale, the
variance grows with d_k, and one of eight keys gets nearly all the weight.
"""

import torch

import grader
from grader.mine import scaled_dot_product_attention, scaled_scores

torch.manual_seed(0)
print(" d_k           variance of the scores   largest weight, on average")
for d_k in (4, 64, 1024):
    queries, keys = torch.randn(1000, d_k), torch.randn(8, d_k)
    for name, factor in (("scaled", 1.0), ("not scaled", d_k**0.5)):
        variance = scaled_scores(queries * factor, keys).var().item()
        # With values of torch.eye, the result is the weights; a factor of √d_k undoes the scale.
        weights = scaled_dot_product_attention(queries * factor, keys, torch.eye(8))
        largest = weights.amax(dim=-1).mean().item()
        bar = "█" * round(30 * largest)
        print(f"{d_k:4}  {name:10} {variance:12.2f}            {largest:.2f} {bar}")

print()
queries, keys = torch.randn(2, 8, 64)
scaled = scaled_dot_product_attention(queries, keys, torch.eye(8))
raw = scaled_dot_product_attention(queries * 64**0.5, keys, torch.eye(8))
title = "weights for d_k = 64: scaled on the left, not scaled on the right"
both = torch.cat([scaled, torch.zeros(8, 2), raw], dim=-1)
grader.heatmap(both, title=title, rows="queries", columns="keys, twice").show()
