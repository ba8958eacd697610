"""Published figures: weights of five scores, and of one word.

Public notebooks on self-attention print these figures. The six scores compare the word "journey"
with each word of "Your journey starts with one step".
"""

import torch

from grader.mine import figures, yours

alone = "published figures"
by_sum = yours("normalize_by_sum", None, alone)
naive = yours("softmax_naive", None, alone)

five = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
figures(
    "softmax of 0.1, -0.2, 0.3, -0.2, 0.5",
    [0.1925, 0.1426, 0.2351, 0.1426, 0.2872],
    naive(five) if naive else None,
)
journey = torch.tensor([0.95440, 1.49500, 1.47540, 0.84340, 0.70700, 1.08650])
figures("scores of journey", [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865], journey, "typed in")
figures(
    "weights of journey: each score divided by the sum of the scores",
    [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656],
    by_sum(journey) if by_sum else None,
)
figures(
    "weights of journey: the softmax of the scores",
    [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581],
    naive(journey) if naive else None,
)
