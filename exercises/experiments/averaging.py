"""Published figures: sums and means of three tokens, seed 42.

Two public notebooks on self-attention print these figures. This script draws the same tokens, and
passes them to your functions.
"""

import torch

from grader.mine import figures, yours

alone = "published figures"
sums = yours("prefix_sum_matrix", None, alone)
means = yours("running_mean_matrix", None, alone)
running_mean = yours("running_mean_loop", None, alone)

torch.manual_seed(42)
tokens = torch.randint(0, 10, (3, 2)).float()
figures(
    "torch.randint(0, 10, (3, 2)) after torch.manual_seed(42)",
    [[2, 7], [6, 4], [6, 5]],
    tokens,
    "torch's",
)
figures(
    "a matrix of ones, times these tokens", [[14, 16]] * 3, torch.ones(3, 3) @ tokens, "torch's"
)
figures("sums of the past", [[2, 7], [8, 11], [14, 16]], sums(3) @ tokens if sums else None)
thirds = [[1, 0, 0], [0.5, 0.5, 0], [0.3333, 0.3333, 0.3333]]
figures("the matrix of means", thirds, means(3) if means else None)
made = running_mean(tokens[None])[0] if running_mean else None
figures("means of the past", [[2, 7], [4, 5.5], [4.6667, 5.3333]], made)
