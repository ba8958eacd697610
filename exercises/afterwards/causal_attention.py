"""Your causal weights, a search for leaks, and what dropout does to the weights.

Above the diagonal, all weights must be 0. Without the word "step", only the row
of "step" may change. With dropout, rows sum to one only on average.
"""

import torch

import grader
from grader.mine import CausalAttention, apply_dropout, causal_mask, masked_softmax

torch.manual_seed(0)
words = ["Your", "journey", "starts", "with", "one", "step"]
weights = masked_softmax(torch.randn(6, 6), causal_mask(6))
grader.heatmap(weights, tokens=words, title="weights", rows="queries", columns="keys").show()

attention = CausalAttention(3, 3, 6, 0.5).eval()
sentence = torch.randn(1, 6, 3)
without_step = sentence.clone()
without_step[0, -1] = 0.0
changes = (attention(without_step) - attention(sentence)).abs().amax(dim=-1)[0].tolist()

keep = torch.rand(1000, 6, 6) >= 0.5
sums = apply_dropout(weights.expand(1000, 6, 6), keep, 0.5).sum(dim=-1)  # (1000, 6)
print("\n         change without step   sums of a row after dropout   mean of 1000 sums")
for i, word in enumerate(words):
    first = "  ".join(f"{total:.2f}" for total in sums[:4, i].tolist())
    print(f"{word:8} {changes[i]:12.4f}           {first}        {sums[:, i].mean():.2f}")
