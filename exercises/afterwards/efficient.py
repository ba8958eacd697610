"""Flash attention gives the weights of a softmax; linear attention gives other weights.

The values are the identity matrix, so the result shows the weights. Shades are
relative to the largest weight of a picture, so compare the numbers in the
titles. The last lines show how little flash attention differs from a softmax
over all keys at once.
"""

import torch

import grader
from grader.mine import flash_attention, linear_attention

words = ["Your", "journey", "starts", "with", "one", "step"]
torch.manual_seed(3)
tokens = 1.2 * torch.randn(1, 6, 6)  # used as queries and as keys
values = torch.eye(6)[None]

flash = flash_attention(tokens[None], tokens[None], values[None], 2)[0, 0]
linear = linear_attention(tokens, tokens, values)[0]
for name, weights in (("flash attention", flash), ("linear attention", linear)):
    title = f"{name}: the largest weight is {weights.max():.2f}"
    grader.heatmap(weights, tokens=words, title=title, rows="queries", columns="keys").show()

queries, keys, values = torch.randn(3, 1, 1, 1024, 64)
whole = (queries @ keys.mT / 8).softmax(dim=-1) @ values
print("1024 tokens, one head of 64 features")
for block_size in (64, 256, 1024):
    gap = (flash_attention(queries, keys, values, block_size) - whole).abs().max()
    print(f"blocks of {block_size:>4}: {1024 * block_size:>9,} scores at once, off by {gap:.0e}")
