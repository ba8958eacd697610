"""The cost of one more token: multiplications, and numbers in the cache.

With a cache, the bars hardly grow. Without a cache, the layer computes the whole
text again for each token.
"""

import torch
from torch.utils.flop_counter import FlopCounterMode

from grader.mine import CachedAttention, GroupedQueryAttention, LatentAttention

torch.manual_seed(0)
text = torch.randn(1, 32, 64)
attention = CachedAttention(64, 64, 8)

print("\none more token, in thousands of multiplications")
for tokens in (2, 8, 16, 24, 32):
    _, past = attention(text[:, : tokens - 1])
    with FlopCounterMode(display=False) as cached:
        _, cache = attention(text[:, tokens - 1 : tokens], past)
    with FlopCounterMode(display=False) as anew:
        attention(text[:, :tokens])
    for name, counter in (("cached", cached), ("anew", anew)):
        thousands = counter.get_total_flops() / 2000  # FLOPs count a multiply-add as two
        print(f"token {tokens:>2}, {name:>6}  {'█' * round(thousands / 14)} {thousands:.0f}")

print("\nnumbers stored for a token, and weights of the layer (8 heads of 8 features)")
layers = (
    ("keys for every head", sum(part[0, :, 0].numel() for part in cache), attention),
    ("keys for 2 groups", 2 * 2 * 8, GroupedQueryAttention(64, 64, 8, 2)),
    ("keys for all heads", 2 * 1 * 8, GroupedQueryAttention(64, 64, 8, 1)),
    ("a latent of 16", 16, LatentAttention(64, 64, 8, 16)),
)
for name, kept, layer in layers:
    weights = sum(parameter.numel() for parameter in layer.parameters())
    print(f"{name:>20}  {'█' * (kept // 4)} {kept}, {weights:,} weights")
