"""Three numbers, and what is left of them without their mean."""

import torch

from grader.mine import center

print(center(torch.tensor([1.0, 2.0, 6.0])).tolist())
