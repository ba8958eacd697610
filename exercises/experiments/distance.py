"""Scores of rotated words depend on distance, not on position.

One query and one key are put at different positions. In each column, their distance is the same. If
both are rotated, their score is the same down each column. If a table of positions is added
instead, as in GPT, the score also depends on the position. A pattern that was learned at one
position may then fail at another.
"""

import torch

from grader.mine import yours

WIDTH = 8


def of_torch(x, positions):
    """Rotations by torch.linalg.matrix_exp: a turn is the exponential of a matrix."""
    turn = torch.zeros(WIDTH, WIDTH, dtype=torch.float64)
    for pair in range(0, WIDTH, 2):
        turn[pair, pair + 1] = 10000 ** (-pair / WIDTH)
    turns = torch.linalg.matrix_exp(positions[:, None, None] * (turn - turn.T))
    return torch.einsum("td,tde->te", x, turns)


rope = yours("apply_rope", of_torch, "torch.linalg.matrix_exp")
torch.manual_seed(0)
query, key = torch.randn(2, 1, WIDTH, dtype=torch.float64)
table = torch.randn(128, WIDTH, dtype=torch.float64)
ways = {
    "rotated": lambda x, position: rope(x, torch.tensor([position])),
    "a table of positions added": lambda x, position: x + table[position],
}

apart = (0, 1, 2, 4, 8, 16)
for title, way in ways.items():
    print(f"\n{title}: the score, by the steps from key to query")
    print(f"{'the key is at':>14}" + "".join(f"{steps:9}" for steps in apart))
    for place in (0, 3, 30, 100):
        scores = [(way(query, place + steps) @ way(key, place).T).item() for steps in apart]
        print(f"{place:14}" + "".join(f"{score:9.3f}" for score in scores))
lengths = [rope(query, torch.tensor([place])).norm().item() for place in (0, 1, 100)]
print(f"\nlength of the query at 0, 1 and 100: {', '.join(f'{one:.3f}' for one in lengths)}")
