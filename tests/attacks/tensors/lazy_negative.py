# Tries: returns the imaginary part of a conjugate: right numbers whose minus signs are only promised.
# Worked in: -
# Deserves: softmax_rows 2, causal_mask 1
import torch


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()


def softmax_rows(scores):
    weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
    return torch.complex(weights, -weights).conj().imag
