# Tries: calls softmax under vmap, grad, functional_call and checkpointing.
# Worked in: -
# Deserves: nothing
import torch
from torch.utils.checkpoint import checkpoint


def softmax_naive(scores):
    return checkpoint(torch.softmax, scores, 0, use_reentrant=False)


def softmax_rows(scores):
    return torch.func.vmap(lambda row: torch.softmax(row, 0))(scores)


def softmax_stable(scores, dim=-1):
    return torch.func.functional_call(torch.nn.Softmax(dim), {}, scores)
