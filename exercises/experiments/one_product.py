"""Why W_query and W_key are two matrices, and not their product.

Scores are x (W_query W_keyᵀ) xᵀ, so one matrix in place of two would be enough. But one matrix has
far more numbers than two narrow matrices. The product of the narrow matrices has a rank of at most
d_out, and a head needs no more. Two matrices also give short keys, which are cheaper to store for
later tokens than whole tokens.
"""

import torch

from grader.mine import yours

project = yours("project_qkv", None, "torch.linalg.multi_dot")

print(f"\n{'d_in':>6} {'d_out':>6} {'two matrices':>14} {'one matrix':>12}")
for d_in, d_out in ((3, 2), (64, 16), (768, 64), (4096, 128)):
    print(f"{d_in:6} {d_out:6} {2 * d_in * d_out:14,} {d_in * d_in:12,}")

torch.manual_seed(0)
x, W_query, W_key = torch.randn(6, 64), torch.randn(64, 16) / 8, torch.randn(64, 16) / 8
if project:
    queries, keys, _ = project(x, W_query, W_key, W_key)
    scores = queries @ keys.T
else:
    scores = torch.linalg.multi_dot([x, W_query, W_key.T, x.T])
product = W_query @ W_key.T
largest = (scores - x @ product @ x.T).abs().max().item()
drawn = torch.randn(64, 64)
print(f"\nthe scores of both ways differ by {largest:.0e} at most: they are the same")
print(f"rank of the product of (64, 16) and (16, 64): {torch.linalg.matrix_rank(product)}")
print(f"rank of one matrix (64, 64), drawn at random: {torch.linalg.matrix_rank(drawn)}")
print("to store of each past token: a key of 16 numbers, or all 64 numbers of the token")
