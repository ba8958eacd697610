# Tries: raises BaseException and one derived from it; another answer is right.
# Worked in: otter
# Deserves: causal_mask 1
import torch


class Worse(BaseException):
    pass


def softmax_rows(scores):
    raise Worse


def softmax_naive(scores):
    raise BaseException("not even an Exception")


def causal_mask(num_tokens):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
