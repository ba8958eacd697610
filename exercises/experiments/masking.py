"""Rows of weights without a mask, with a mask, with a late mask.

Without a mask, every word looks at all words, the next word included. A model that learns to guess
the next word would then only copy it. With a mask before the softmax, each row sums to one. With
zeros after the softmax, most rows sum to less than one, and the hidden scores still decide how much
is missing.
"""

import torch
from torch import nn
from torch.nn import functional

from grader.mine import yours


def of_torch(queries, keys, values, mask=None):
    """Torch's function, whose mask is True where a query may look."""
    allowed = None if mask is None else ~mask
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)


attention = yours("scaled_dot_product_attention", of_torch)
future = yours("causal_mask", lambda n: nn.Transformer.generate_square_subsequent_mask(n).isinf())

words = ("The", "cat", "sat", "down")
torch.manual_seed(0)
queries, keys = torch.randn(2, 4, 16)
eye = torch.eye(4)  # values with which the result is the weights
mask = future(4)
plain = attention(queries, keys, eye)
tables = {
    "without a mask": plain,
    "a mask before the softmax": attention(queries, keys, eye, mask),
    "zeros after the softmax": plain.masked_fill(mask, 0.0),
}
for title, weights in tables.items():
    print(f"\n{title:26}" + "".join(f"{word:>7}" for word in words) + "    sum")
    for word, row in zip(words, weights.tolist(), strict=True):
        print(f"{word:>24}  " + "".join(f"{weight:7.2f}" for weight in (*row, sum(row))))
