# Tries: returns right values in sparse layouts.
# Worked in: -
# Deserves: nothing
import torch


def softmax_rows(scores):
    return (torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)).to_sparse()


def attention_weights(inputs):
    return torch.softmax(inputs @ inputs.T, -1).to_sparse_csr()


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool().to_sparse()
