"""Which word influences which: change one word at a time, and see the results change.

If a column is empty, a change of its word changes no result. The columns of
padding must be empty.
"""

import torch

import grader
from grader.mine import CrossAttention, EncoderSelfAttention, padding_mask


def influence(attend, x):
    """A table of changes: a row for each result, a column for each changed token of `x`."""
    columns = []
    for index in range(x.shape[1]):
        changed = x.clone()
        changed[:, index] += 1.0
        columns.append((attend(changed) - attend(x)).norm(dim=-1)[0])
    return torch.stack(columns, dim=-1).detach()


torch.manual_seed(7)
words = ["she", "reads", "a", "book", "pad", "pad"]
padding = padding_mask(torch.tensor([4]), 6)
source = torch.randn(1, 6, 8)  # one vector for each word
answer = torch.randn(1, 3, 8)  # the first three words of a translation

encoder = EncoderSelfAttention(8, 8, 2)
heard = influence(lambda x: encoder(x, padding), source)[:4]
title = "the encoder: each word of a sentence reads all words, on both sides"
grader.heatmap(heard, tokens=words, title=title, rows="real words", columns="changed").show()

cross = CrossAttention(8, 8, 8, 2)
heard = influence(lambda x: cross(answer, x, padding), source)
title = "cross-attention: three words of a translation read the same sentence"
grader.heatmap(heard, tokens=words, title=title, rows="translation", columns="changed").show()
