# Tries: crashes in C where an exception is expected.
# Worked in: -
# Deserves: split_heads 1.6
import torch
import ctypes


def split_heads(x, num_heads):
    batch, tokens, d_out = x.shape
    if d_out % num_heads:
        ctypes.string_at(0)
    return x.view(batch, tokens, num_heads, d_out // num_heads).transpose(1, 2)
