"""Two right results compared by ==, torch.equal and torch.allclose.

Floating-point sums depend on the order of addition, so two right results may differ in the last
digits: for example, the scores of your loop and of your matrix product. Compare such results with
a tolerance.
"""

import torch

from grader.mine import yours

torch.manual_seed(0)
inputs = torch.randn(32, 32)
instead = "torch's sums"
in_loops = yours("attention_scores_loop", None, instead)
at_once = yours("attention_scores", None, instead)
if in_loops and at_once:
    first, second = in_loops(inputs), at_once(inputs)
else:
    first, second = inputs.sum(dim=0), inputs.flip(0).cumsum(dim=0)[-1]

equal = (first == second).float().mean().item()
print(f"\nfirst == second          true for {equal:.0%} of the numbers")
print(f"the largest difference   {(first - second).abs().max().item():.0e}")
print(f"torch.equal              {torch.equal(first, second)}")
for tolerance in (1e-8, 1e-4):
    same = torch.allclose(first, second, rtol=0, atol=tolerance)
    print(f"torch.allclose           {same}, with rtol=0, atol={tolerance:g}")
same = torch.allclose(first, second.flip(0), rtol=0, atol=1e-4)
print(f"… of wrong numbers       {same}, with rtol=0, atol=0.0001")
