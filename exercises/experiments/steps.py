"""A valley that is steep in one direction: plain steps and AdamW.

The height is (1000 x² + y²) / 2, and the gradient is (1000 x, y). A plain step is a rate times the
gradient. In the steep direction, x, only rates below 0.002 lead down. At such a rate, y hardly
changes. AdamW divides a step by the size of the gradients: x and y shrink at the same speed,
however steep the valley is.
"""

import torch

from grader.mine import yours

MARKS = (1, 10, 50, 100)
STEEP = torch.tensor([1000.0, 1.0], dtype=torch.float64)
RECORDED = [0.98, 0.802, 0.18, -0.008]  # results of the kit's own answer, equal for x and y

adamw_step = yours("adamw_step", None, "recorded numbers")


def plain(rate):
    """Return a function that takes a plain step against the gradient."""
    return lambda _, point, *means: (point - rate * STEEP * point, *means)


def adamw(rate):
    """Return a function that takes a step of AdamW without weight decay."""
    return lambda step, point, *means: adamw_step(
        point, STEEP * point, *means, step, rate, (0.9, 0.999), 1e-8, 0.0
    )


ways = {"plain, 0.0019": plain(0.0019), "plain, 0.0021": plain(0.0021)}
if adamw_step:
    ways["AdamW, 0.02"] = adamw(0.02)

start = torch.ones(2, dtype=torch.float64)
rows = []
for name, way in ways.items():
    point, momentum, square = start, 0 * start, 0 * start
    for step in range(1, MARKS[-1] + 1):
        point, momentum, square = way(step, point, momentum, square)
        if step in MARKS:
            rows.append((name, step, *point.tolist()))
if not adamw_step:
    rows += [("AdamW, 0.02", *row) for row in zip(MARKS, RECORDED, RECORDED, strict=True)]

print(f"\n{'way and rate':16}{'steps':>8}{'x, steep':>14}{'y, flat':>12}")
for name, step, x, y in rows:
    print(f"{name:16}{step:8}{x:14,.3f}{y:12.3f}")
