"""Your weights of a running mean, and the running mean of ten throws of a die.

Read the rows from top to bottom. Each new throw has a smaller share than the
last. The throws jump, but the mean changes less and less.
"""

import torch

import grader
from grader.mine import running_mean_matmul, running_mean_matrix

weights = running_mean_matrix(6)
grader.heatmap(weights, title="weights", rows="the mean at", columns="takes from").show()

torch.manual_seed(205)
throws = torch.randint(1, 7, (1, 10, 1)).float()  # (batch, time, channels)
means = running_mean_matmul(throws)

print("\nthrow      mean so far             share of this throw")
for t in range(10):
    throw, mean = throws[0, t].item(), means[0, t].item()
    print(f"{'█' * round(throw):10} {mean:.2f} {'█' * round(3 * mean):18} 1/{t + 1}")
