"""Published figures: causal weights in two ways, and dropout.

A public notebook prints these figures. The queries and keys of six words come from two layers,
nn.Linear(3, 2, bias=False), made under seed 789: first the layer of the queries, then that of the
keys. Scores are divided by the root of 2. Torch chooses the entries to drop, under seed 123.
"""

import torch
from torch import nn
from torch.nn import functional

from grader.mine import figures, yours

alone = "published figures"
causal_mask = yours("causal_mask", None, alone)
masked_softmax = yours("masked_softmax", None, alone)
renormalized = yours("renormalized_causal_weights", None, alone)
dropped = yours("apply_dropout", None, alone)

inputs = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
torch.manual_seed(789)
query, key = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
queries, keys = query(inputs).detach(), key(inputs).detach()
weights = functional.scaled_dot_product_attention(queries, keys, torch.eye(6))
figures(
    "weights without a mask",
    [
        [0.1921, 0.1646, 0.1652, 0.1550, 0.1721, 0.1510],
        [0.2041, 0.1659, 0.1662, 0.1496, 0.1665, 0.1477],
        [0.2036, 0.1659, 0.1662, 0.1498, 0.1664, 0.1480],
        [0.1869, 0.1667, 0.1668, 0.1571, 0.1661, 0.1564],
        [0.1830, 0.1669, 0.1670, 0.1588, 0.1658, 0.1585],
        [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
    ],
    weights,
    "torch's",
)
causal = [
    [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.5517, 0.4483, 0.0000, 0.0000, 0.0000, 0.0000],
    [0.3800, 0.3097, 0.3103, 0.0000, 0.0000, 0.0000],
    [0.2758, 0.2460, 0.2462, 0.2319, 0.0000, 0.0000],
    [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0000],
    [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]
# Logarithms of weights may replace scores: softmax ignores a constant added to a whole row.
made = masked_softmax(weights.log(), causal_mask(6)) if masked_softmax and causal_mask else None
figures("a mask before the softmax (causal_mask and masked_softmax)", causal, made)
made = renormalized(weights) if renormalized else None
figures("zeros after the softmax, divided by sums (renormalized_causal_weights)", causal, made)

torch.manual_seed(123)
ones = torch.ones(6, 6)
keep = nn.Dropout(0.5)(ones) > 0
figures(
    "nn.Dropout(0.5) of ones, seed 123 (apply_dropout with the entries torch keeps)",
    [
        [2, 2, 0, 2, 2, 0],
        [0, 0, 0, 2, 0, 2],
        [2, 2, 2, 2, 0, 2],
        [0, 2, 2, 0, 0, 2],
        [0, 2, 0, 2, 0, 2],
        [0, 2, 2, 2, 2, 0],
    ],
    dropped(ones, keep, 0.5) if dropped else None,
)
