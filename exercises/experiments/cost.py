"""Twice the tokens, four times the scores: what long texts cost.

The cost of the projections grows with the number of tokens. The table of scores grows with the
square of that number. The last row shows a layer of 4,608 features and 4,096 tokens, a size that
large models have.
"""

import time

import torch
from torch.nn import functional

from grader.mine import yours

attention = yours("scaled_dot_product_attention", functional.scaled_dot_product_attention)
torch.manual_seed(0)
width = 64

print("\n tokens  width      projections       scores  as float32      time")
for tokens, features in ((256, 64), (512, 64), (1024, 64), (2048, 64), (4096, 4608)):
    multiplications = 3 * tokens * features * features
    scores = tokens * tokens
    took = "not run"
    if features == width:
        queries, keys, values = torch.randn(3, tokens, width)
        attention(queries[:8], keys[:8], values[:8])
        start = time.perf_counter()
        attention(queries, keys, values)
        took = f"{1000 * (time.perf_counter() - start):.1f} ms"
    memory = f"{4 * scores / 2**20:,.2f} MiB"
    print(f"{tokens:7,} {features:6,} {multiplications:16,} {scores:12,} {memory:>11} {took:>9}")
print("\nprojections: multiplications for queries, keys and values;\nscores: one for each pair")
print(f"weights of the last layer: {3 * 4608 * 4608:,}, for sentences of any length")
