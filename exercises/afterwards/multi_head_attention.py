"""Two heads read one sentence: one looks for words of the same kind, one for near words.

Compare the rows of "dog" in both heads. Each head has its own softmax, so the
heads can choose different words.
"""

import torch

import grader
from grader.mine import split_heads

words = ["the", "cat", "saw", "the", "big", "dog"]
kinds = torch.eye(4)[[0, 1, 2, 0, 3, 1]]  # article, noun, verb, article, adjective, noun
angles = torch.arange(6) * 0.5
# points on a circle: neighbours are similar
places = torch.stack([angles.cos(), angles.sin()], dim=-1)

# Each word has eight features: four encode its kind, two its place, and two are zero.
features = torch.cat([3 * kinds, 4 * places, torch.zeros(6, 2)], dim=-1)
heads = split_heads(features[None], 2)[0]  # used as queries and as keys

for queries, title in zip(heads, ("head 0: same kind", "head 1: nearby"), strict=True):
    scores = queries @ queries.mT / queries.shape[-1] ** 0.5
    future = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    grader.heatmap(weights, tokens=words, title=title, rows="queries", columns="keys").show()
