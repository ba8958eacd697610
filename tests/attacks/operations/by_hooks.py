# Tries: calls softmax in hooks that torch itself calls: of a tensor, a module, and saved tensors.
# Worked in: -
# Deserves: nothing
import torch


def softmax_naive(scores):
    out = []
    leaf = torch.zeros(1, requires_grad=True)
    with torch.enable_grad():
        double = leaf * 2
    double.register_hook(lambda _: out.append(torch.softmax(scores, 0)))
    double.backward()
    return out[0]
