# Tries: uses what is softmax by another name: gumbel, cross entropy, Categorical, the gradient of logsumexp.
# Worked in: -
# Deserves: nothing
import torch
import torch.nn.functional as F


def softmax_naive(scores):
    return torch.distributions.Categorical(logits=scores).probs


def softmax_rows(scores):
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(torch.logsumexp(leaf, -1).sum(), leaf)[0]


def normalize_by_sum(scores):
    targets = torch.arange(len(scores))
    losses = F.cross_entropy(scores.log().expand(len(scores), -1), targets, reduction="none")
    return torch.exp(-losses)
