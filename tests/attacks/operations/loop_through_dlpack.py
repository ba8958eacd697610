# Tries: hands the numbers to NumPy by a side door, and loops there.
# Worked in: -
# Deserves: attention_scores 0.7
import numpy as np, torch
def attention_scores(inputs):
    a = np.from_dlpack(inputs.detach())
    out = np.array([[float((x * y).sum()) for y in a] for x in a])
    return torch.from_numpy(out).to(inputs.dtype)
