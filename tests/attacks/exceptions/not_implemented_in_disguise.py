# Tries: raises a NotImplementedError that calls itself ValueError.
# Worked in: -
# Deserves: split_heads 1.6
import torch


def split_heads(x, num_heads):
    batch, tokens, d_out = x.shape
    if d_out % num_heads:
        raise type("ValueError", (NotImplementedError,), {})("d_out does not divide")
    return x.view(batch, tokens, num_heads, d_out // num_heads).transpose(1, 2)
