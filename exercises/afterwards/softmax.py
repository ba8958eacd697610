"""Your softmax as the scores grow, and your two functions on scores near 1000.

Look at the slope: it says how much the weight of "mat" changes with its score.
In a saturated softmax the slope is nearly zero, and training makes no progress.
"""

import torch

from grader.mine import softmax_naive, softmax_stable

words = ("mat", "sofa", "roof", "moon")  # The cat sat on the …
scores = torch.tensor([2.0, 1.0, 0.5, -1.0])

print(" " * 15 + "".join(f"{word:12}" for word in words) + "slope")
for factor in (0.0, 0.5, 1.0, 2.0, 4.0, 10.0):
    scaled = (factor * scores).requires_grad_()
    weights = softmax_stable(scaled)
    (slopes,) = torch.autograd.grad(weights[0], scaled)
    bars = "".join(f"{'█' * round(10 * weight):12}" for weight in weights.tolist())
    print(f"scores × {factor:<4}  {bars}{slopes[0]:.4f}")

print("\nscores + 1000, naive: ", softmax_naive(scores + 1000))
print("scores + 1000, stable:", softmax_stable(scores + 1000))
print("scores, stable:       ", softmax_stable(scores))
