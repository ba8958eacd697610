# Tries: returns right values in eight bits.
# Worked in: -
# Deserves: nothing
import torch


def softmax_rows(scores):
    weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
    return torch.quantize_per_tensor(weights, 1 / 255, 0, torch.quint8)
