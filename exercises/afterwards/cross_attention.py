"""Who hears whom: change one word at a time, and see which results change.

An empty column belongs to a word whose change reaches no result. Padding must
have such columns.
"""

import torch

import grader
from grader.mine import CrossAttention, EncoderSelfAttention, padding_mask


def influence(attend, x):
    """A table of changes: of each result (a row) when one token of x (a column) changes."""
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
title = "the encoder: each word of a sentence hears the others, on both sides"
grader.heatmap(heard, tokens=words, title=title, rows="real words", columns="changed").show()

cross = CrossAttention(8, 8, 8, 2)
heard = influence(lambda x: cross(answer, x, padding), source)
title = "cross-attention: three words of a translation hear the same sentence"
grader.heatmap(heard, tokens=words, title=title, rows="translation", columns="changed").show()
