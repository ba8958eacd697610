"""Published figures: two heads as a list, and in one product.

A public notebook prints these figures, under seed 123. Your layers give the same figures if they
make their nn.Linear in this order: query, key and value of each head in turn, and out_proj last. No
test requires this order: any order is right.
"""

import torch

from grader.mine import figures, yours

alone = "published figures"
wrapper = yours("MultiHeadAttentionWrapper", None, alone)
attention = yours("MultiHeadAttention", None, alone)

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


def drawn(layer):
    """A layer's result for the sentence, if made under seed 123; None if `layer` is None."""
    torch.manual_seed(123)
    return layer(3, 2, 6, 0.0, 2)(torch.stack((inputs, inputs)))[0] if layer else None


figures(
    "MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2); columns 0, 1 are CausalAttention's",
    [
        [-0.4519, 0.2216, 0.4772, 0.1063],
        [-0.5874, 0.0058, 0.5891, 0.3257],
        [-0.6300, -0.0632, 0.6202, 0.3860],
        [-0.5675, -0.0843, 0.5478, 0.3589],
        [-0.5526, -0.0981, 0.5321, 0.3428],
        [-0.5299, -0.1081, 0.5077, 0.3493],
    ],
    drawn(wrapper),
)
figures(
    "MultiHeadAttention(3, 2, 6, 0.0, 2)",
    [
        [0.3190, 0.4858],
        [0.2943, 0.3897],
        [0.2856, 0.3593],
        [0.2693, 0.3873],
        [0.2639, 0.3928],
        [0.2575, 0.4028],
    ],
    drawn(attention),
)
