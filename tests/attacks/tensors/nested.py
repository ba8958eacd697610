# Tries: returns nested, named, mkldnn and batched tensors.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    return torch.nested.nested_tensor([torch.exp(scores) / torch.exp(scores).sum()])


def softmax_rows(scores):
    return (torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)).to_mkldnn()


def attention_weights(inputs):
    weights = torch.softmax(inputs @ inputs.T, -1)
    return torch._C._functorch._add_batch_dim(weights[None], 0, 1)
