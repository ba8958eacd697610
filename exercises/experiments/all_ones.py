"""Ones and zeros decide who is added up: all tokens, or the past.

Row t of the matrix makes row t of the product. A row of ones gives the sum of all tokens, so all
rows of the product with a matrix of ones are the same. A zero leaves a token out, and a row with a
single one looks up one token.
"""

import torch

from grader.mine import yours

tokens = torch.tensor([[2.0, 7.0], [6.0, 4.0], [6.0, 5.0]])
matrix = yours("prefix_sum_matrix", None, "torch.cumsum, without a matrix")

sums = {
    "all ones": torch.ones(3, 3) @ tokens,
    "your triangle" if matrix else "the past": matrix(3) @ tokens if matrix else tokens.cumsum(0),
    "a single one": torch.tensor([[0.0, 1.0, 0.0]]) @ tokens,
}
print(f"\nthe tokens      {tokens.tolist()}")
for name, rows in sums.items():
    print(f"{name:15} {rows.tolist()}")
