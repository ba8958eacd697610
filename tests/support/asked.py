"""Right answers to exercises of the real course, about which tests ask questions."""

LOOP = """
import torch

def running_mean_loop(x):
    rows = []
    for t in range(x.shape[1]):
        part = x[:, : t + 1]  # shape (batch, t + 1, channels)
        rows.append(part.mean(dim=1))
    return torch.stack(rows, dim=1)
"""

FUSED = """
import torch

def running_mean_matrix(time):
    return torch.ones(time, time).tril() / torch.ones(time, time).tril().sum(dim=-1, keepdim=True)
"""

STABLE = """
import torch

def _shifted(scores, dim):
    largest = scores.amax(dim=dim, keepdim=True)  # size 1 along dim
    return scores - largest

def softmax_stable(scores, dim=-1):
    exps = torch.exp(_shifted(scores, dim))
    return exps / exps.sum(dim=dim, keepdim=True)

def causal_mask(num_tokens):
    foreign = torch.ones(num_tokens, num_tokens)
    return foreign.triu(diagonal=1).bool()
"""

HEAD = """
import torch
from torch import nn

class CausalHead(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()
        self.key = nn.Linear(d_in, head_size, bias=False)
        self.query = nn.Linear(d_in, head_size, bias=False)
        self.value = nn.Linear(d_in, head_size, bias=False)
        self.scaled = scaled

    def forward(self, x):
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1)
        if self.scaled:
            scores = scores / k.shape[-1] ** 0.5
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ v
"""

STEP = """
def adamw_step(parameter, gradient, momentum, square, step, lr, betas, eps, weight_decay):
    first, second = betas
    mean = first * momentum + (1 - first) * gradient
    power = second * square + (1 - second) * gradient**2
    move = mean / (1 - first**step) / ((power / (1 - second**step)) ** 0.5 + eps)
    return parameter - lr * weight_decay * parameter - lr * move, mean, power
"""

MERGE = """
import torch

def merge_states(first, second):
    new = torch.maximum(first[0], second[0])
    shift = new.masked_fill(new == -torch.inf, 0.0)
    one, other = torch.exp(first[0] - shift), torch.exp(second[0] - shift)
    total = first[1] * one + second[1] * other
    return new, total, first[2] * one[..., None] + second[2] * other[..., None]
"""

GENERATE = """
import torch

def generate(model, ids, new_tokens, context_length):
    for _ in range(new_tokens):
        logits = model(ids[:, -context_length:]).detach()
        likeliest = logits[:, -1].argmax(dim=-1)
        ids = torch.cat([ids, likeliest[:, None]], dim=1)
    return ids
"""
