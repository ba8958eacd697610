# Tries: computes the right values in the backward pass of its own function, run by another thread.
# Worked in: -
# Deserves: nothing
import torch


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        ctx.save_for_backward(scores)
        return scores.sum()

    @staticmethod
    def backward(ctx, upstream):
        return torch.softmax(ctx.saved_tensors[0], -1)


def softmax_rows(scores):
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        Own.apply(leaf).backward()
    return leaf.grad
