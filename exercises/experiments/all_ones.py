"""Ones and zeros in a matrix decide which tokens are added up.

Row t of the product is the sum of the tokens for which row t of the matrix has a 1. A row of ones
adds up all tokens, so a matrix of ones gives the same sum in every row. A 0 leaves a token out. A
row with only one 1 looks up a single token.
"""

import torch

from grader.mine import yours

tokens = torch.tensor([[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]])
matrix = yours("prefix_sum_matrix", None, "torch.cumsum, without a matrix")

sums = {
    "all ones": torch.ones(3, 3) @ tokens,
    "your triangle" if matrix else "the past": matrix(3) @ tokens if matrix else tokens.cumsum(0),
    "only one 1": torch.tensor([[0.0, 1.0, 0.0]]) @ tokens,
}
print(f"\nthe tokens      {tokens.tolist()}")
for name, rows in sums.items():
    print(f"{name:15} {rows.tolist()}")
