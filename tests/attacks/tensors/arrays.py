# Tries: answers with arrays of NumPy: right ones, arrays of objects or records, huge views, and arrays that lie.
# Worked in: -
# Deserves: nothing
import numpy as np
import torch


class Agreeing(np.ndarray):
    def __eq__(self, other):
        return True

    __array__ = shape = dtype = property(lambda self: 1 / 0)


class Endless(dict):
    def items(self):
        return iter(int, 1)


def softmax_naive(scores):
    return torch.softmax(scores, 0).numpy()


def softmax_rows(scores):
    return np.zeros(tuple(scores.shape)).view(Agreeing)


def attention_weights(inputs):
    return np.lib.stride_tricks.as_strided(np.zeros(1), (2**30, 2**30), (0, 0))


def causal_mask(num_tokens):
    return np.array([[object()] * num_tokens] * num_tokens)


def renormalized_causal_weights(weights):
    return Endless({float("nan"): np.zeros(2, [("a", "f4"), ("b", "O")]), (1, float("nan")): {float("nan")}})
