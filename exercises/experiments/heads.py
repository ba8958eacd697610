"""Each head has its own weights: two heads find more than one head.

The first three features of a word encode its kind, the last three its position. A single head
looks for both at once, so each word mostly finds itself. Two heads have two softmaxes: the first
head finds words of the same kind, and the second head finds words nearby.
"""

import torch
from torch import nn
from torch.nn import functional

from grader.mine import yours

words = ("cats", "chase", "mice", "and", "dogs", "bark")
kinds = {"noun": [4.0, 0.0, 0.0], "verb": [0.0, 4.0, 0.0], "other": [0.0, 0.0, 4.0]}
of_words = ("noun", "verb", "noun", "other", "noun", "verb")
angles = torch.arange(6) * 0.5
where = 4 * torch.stack((angles.cos(), angles.sin(), 0 * angles), dim=1)
x = torch.cat((torch.tensor([kinds[kind] for kind in of_words]), where), dim=1)[None]


def of_torch(x, heads):
    """The weights that torch's layer reports, with identity matrices as projections."""
    layer = nn.MultiheadAttention(6, heads, bias=False, batch_first=True)
    layer.in_proj_weight.data = torch.eye(6).repeat(3, 1)
    return layer(x, x, x, average_attn_weights=False)[1].detach()


split = yours("split_heads", None, "nn.MultiheadAttention")


def weights(x, heads):
    """A table of weights for each head."""
    if not split:
        return of_torch(x, heads)
    parts = split(x, heads)
    eye = torch.eye(6).expand(1, heads, 6, 6)  # values with which the result is the weights
    return functional.scaled_dot_product_attention(parts, parts, eye)


one, two = weights(x, 1), weights(x, 2)
tables = {
    "one head": one[0, 0],
    "two heads, the first": two[0, 0],
    "two heads, the second": two[0, 1],
}
for title, table in tables.items():
    print(f"\n{title:24}" + "".join(f"{word:>7}" for word in words))
    for word, row in zip(words, table.tolist(), strict=True):
        print(f"{word:>24}" + "".join(f"{weight:7.2f}" for weight in row))
