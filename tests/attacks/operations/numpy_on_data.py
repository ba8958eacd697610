# Tries: computes in NumPy, which no trace sees: right values, and no gradient.
# Worked in: -
# Deserves: softmax_naive 1.8
import numpy as np
import torch


def softmax_naive(scores):
    exp = np.exp(scores.detach().numpy())
    return torch.from_numpy(exp / exp.sum())
