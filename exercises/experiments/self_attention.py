"""Published figures: layers drawn under seeds 42, 123 and 789.

Public notebooks print these figures. Your layers give the same figures if they draw the matrices of
queries, keys and values in this order, by torch.rand or by nn.Linear. (The causal head draws the
key's matrix before the query's.) No test requires this order: any order is right.
"""

import torch
from torch import nn
from torch.nn import functional

from grader.mine import figures, yours

alone = "published figures"
project = yours("project_qkv", None, alone)
first = yours("SelfAttention_v1", None, alone)
second = yours("SelfAttention_v2", None, alone)

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
torch.manual_seed(123)
W_query, W_key, W_value = (torch.rand(3, 2) for _ in range(3))
figures(
    "W_query, drawn first by torch.rand(3, 2) under seed 123",
    [[0.2961, 0.5166], [0.2517, 0.6886], [0.0740, 0.8665]],
    W_query,
    "torch's",
)
queries = project(inputs, W_query, W_key, W_value)[0] if project else None
figures("the query of the second word", [0.4306, 1.4551], queries[1] if project else None)


def drawn(layer, seed, *sizes):
    """A layer's result for the six words, if made under this seed; None if `layer` is None."""
    torch.manual_seed(seed)
    return layer(*sizes)(inputs) if layer else None


figures(
    "SelfAttention_v1(3, 2), made under seed 123",
    [
        [0.2996, 0.8053],
        [0.3061, 0.8210],
        [0.3058, 0.8203],
        [0.2948, 0.7939],
        [0.2927, 0.7891],
        [0.2990, 0.8040],
    ],
    drawn(first, 123, 3, 2),
)
figures(
    "SelfAttention_v1(3, 3), made under seed 123",
    [
        [0.6692, 1.0276, 1.1106],
        [0.6864, 1.0577, 1.1389],
        [0.6860, 1.0570, 1.1383],
        [0.6738, 1.0361, 1.1180],
        [0.6711, 1.0307, 1.1139],
        [0.6783, 1.0441, 1.1252],
    ],
    drawn(first, 123, 3, 3),
)
figures(
    "SelfAttention_v2(3, 2), made under seed 789",
    [
        [-0.0739, 0.0713],
        [-0.0748, 0.0703],
        [-0.0749, 0.0702],
        [-0.0760, 0.0685],
        [-0.0763, 0.0679],
        [-0.0754, 0.0693],
    ],
    drawn(second, 789, 3, 2),
)
torch.manual_seed(42)
x = torch.randn(4, 8, 32)
key, query = nn.Linear(32, 16, bias=False), nn.Linear(32, 16, bias=False)
weights = functional.scaled_dot_product_attention(
    query(x), key(x), torch.eye(8).expand(4, 8, 8), is_causal=True, scale=1.0
)
figures(
    "causal weights, no root: seed 42, torch.randn(4, 8, 32), key(32, 16), query",
    [
        [1.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
        [0.1905, 0.8095, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
        [0.3742, 0.0568, 0.5690, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
        [0.1288, 0.3380, 0.1376, 0.3956, 0.0000, 0.0000, 0.0000, 0.0000],
        [0.4311, 0.0841, 0.0582, 0.3049, 0.1217, 0.0000, 0.0000, 0.0000],
        [0.0537, 0.3205, 0.0694, 0.2404, 0.2568, 0.0592, 0.0000, 0.0000],
        [0.3396, 0.0149, 0.5165, 0.0180, 0.0658, 0.0080, 0.0373, 0.0000],
        [0.0165, 0.0375, 0.0144, 0.1120, 0.0332, 0.4069, 0.3136, 0.0660],
    ],
    weights[0],
    "torch's",
)
