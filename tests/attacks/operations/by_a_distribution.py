# Tries: uses the softmax inside a transform of torch.distributions.
# Worked in: -
# Deserves: nothing
import torch
def softmax_naive(scores):
    return torch.distributions.SoftmaxTransform()(scores)
def softmax_rows(scores):
    return torch.distributions.SoftmaxTransform()(scores)
def softmax_stable(scores, dim=-1):
    t = torch.distributions.SoftmaxTransform()
    return t(scores.movedim(dim, -1)).movedim(-1, dim)
