"""Attention is communication on a directed graph of words.

A mask leaves an arrow for each pair of words that it does not hide. In a decoder, a word gets
arrows from its past; in an encoder, from all words. Any other graph works as well. Each line of the
output changes one word, and lists the words whose results change. These are the words to which the
changed word has an arrow: in one layer, a change travels along one arrow.
"""

import torch
from torch import nn
from torch.nn import functional

from grader.mine import yours


def of_torch(queries, keys, values, mask):
    """Torch's function, whose mask is True where a query may look."""
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=~mask)


attention = yours("scaled_dot_product_attention", of_torch)
future = yours("causal_mask", lambda n: nn.Transformer.generate_square_subsequent_mask(n).isinf())

words = ("The", "cat", "sat", "on", "it")
size = len(words)
star = torch.ones(size, size, dtype=torch.bool)  # every word looks at itself and at "sat"
star.fill_diagonal_(False)
star[:, words.index("sat")] = False
graphs = {
    "decoder: the past": future(size),
    "encoder: everyone": torch.zeros(size, size, dtype=torch.bool),
    "a star around sat": star,
}
torch.manual_seed(0)
x = torch.randn(size, 8)
for title, hidden in graphs.items():
    print(f"\n{title}")
    before = attention(x, x, x, hidden)
    for index, word in enumerate(words):
        other = x.clone()
        other[index] += 1
        changed = (attention(other, other, other, hidden) - before).abs().amax(dim=-1) > 1e-6
        heard = [one for one, yes in zip(words, changed.tolist(), strict=True) if yes]
        print(f"  {word:>4} → {', '.join(heard)}")
