# Tries: returns views of its input, which are right; and a view that it overwrites later.
# Worked in: -
# Deserves: split_heads 2
import torch

last = None


def split_heads(x, num_heads):
    batch, tokens, d_out = x.shape
    if d_out % num_heads:
        raise ValueError("d_out does not divide")
    return x.view(batch, tokens, num_heads, d_out // num_heads).transpose(1, 2)


def softmax_naive(scores):
    global last
    if last is not None:
        last.copy_(torch.exp(last) / torch.exp(last).sum())
    last = scores.detach().view(-1)
    return last
