# Tries: returns functions, generators, classes, modules, coroutines and files in place of tensors.
# Worked in: -
# Deserves: nothing
import torch


def causal_mask(num_tokens):
    return causal_mask


def softmax_naive(scores):
    return (weight for weight in scores)


async def softmax_rows(scores):
    return torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)


def attention_weights(inputs):
    return torch


def context_vector(inputs, query_index):
    return open("/dev/null")


class SelfAttention_v1:
    def __new__(cls, d_in, d_out):
        return torch.nn.Linear

    def forward(self, x):
        return x
