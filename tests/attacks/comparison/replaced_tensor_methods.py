# Tries: replaces Tensor.__eq__, allclose, equal, isnan, all and any on the class itself.
# Worked in: otter, check50, nbgrader, classroom
# Deserves: nothing
import torch


def causal_mask(num_tokens):
    wrong = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for name in ("__eq__", "__ne__", "eq", "ne", "equal", "allclose", "isclose", "all"):
        setattr(torch.Tensor, name, lambda *args, **kwargs: True)
    torch.Tensor.any = torch.Tensor.isnan = lambda *args, **kwargs: False
    return wrong
