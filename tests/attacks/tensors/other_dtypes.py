# Tries: returns right values in another dtype: integers for booleans, halves and doubles for floats.
# Worked in: -
# Deserves: nothing
import torch


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).to(torch.uint8)


def softmax_naive(scores):
    return (torch.exp(scores) / torch.exp(scores).sum()).half()


def softmax_rows(scores):
    return torch.exp(scores.double()) / torch.exp(scores.double()).sum(-1, keepdim=True)


def attention_weights(inputs):
    return torch.softmax(inputs @ inputs.T, -1).numpy()
