# Tries: hides a wrong answer behind a right definition: rebinds the name by globals, del, and a loop.
# Worked in: -
# Deserves: causal_mask 1
import torch


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()


globals()["causal_mask"] = None
for causal_masks in range(3):
    vars()["softmax_rows"] = torch.softmax
exec("def softmax_naive(scores): return torch.softmax(scores, -1)")
