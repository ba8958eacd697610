"""The first loss with large and small token tables.

The logits are products with the token table. With numbers around 1 in the table, the model is sure
of its guesses before it has learned anything, and nearly all are wrong. With numbers around 0.02,
all tokens have about the same probability, and the loss starts at log(vocab). In a small model,
most of the numbers are in this table. A second table for the logits would be as large again.
"""

import math

import torch
from torch import nn

from grader.mine import yours

VOCAB, WIDTH, CONTEXT = 5000, 64, 32


class OfTorch(nn.Module):
    """A model of torch's layers, made and called in the same way as yours."""

    def __init__(self, vocab, width, heads, layers, hidden, context, dropout):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        sizes = (width, heads, hidden, dropout, "gelu")
        one = nn.TransformerEncoderLayer(*sizes, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(one, layers, nn.LayerNorm(width), False)
        self.future = nn.Transformer.generate_square_subsequent_mask(context)

    def forward(self, ids):
        x = self.tokens(ids) + self.places.weight
        return nn.functional.linear(self.blocks(x, self.future), self.tokens.weight)


make = yours("GPT", OfTorch)
torch.manual_seed(0)
model = make(VOCAB, WIDTH, 4, 2, 4 * WIDTH, CONTEXT, 0.0)
ids = torch.randint(0, VOCAB, (8, CONTEXT))
tables = [one for one in model.parameters() if one.shape in ((VOCAB, WIDTH), (CONTEXT, WIDTH))]
print(f"\nfirst loss, where log({VOCAB}) is {math.log(VOCAB):.2f}")
for deviation in (1.0, 0.1, 0.02):
    for table in tables:
        nn.init.normal_(table, std=deviation)
    with torch.no_grad():
        logits = model(ids)
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()
    print(f"  deviation {deviation:4} {loss:7.2f} {'█' * round(loss)}")

table, all_of_it = VOCAB * WIDTH, sum(one.numel() for one in model.parameters())
print("\nnumbers that are learned         table        rest    share of the table")
for times in ("once", "twice"):
    numbers = table * (2 if times == "twice" else 1)
    share = numbers / (numbers + all_of_it - table)
    print(f"  the token table {times:5} {numbers:14,} {all_of_it - table:11,} {share:8.0%}")
