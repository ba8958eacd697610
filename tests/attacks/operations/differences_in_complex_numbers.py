# Tries: steps along the imaginary axis, where differences are exact to the last digit.
# Worked in: -
# Deserves: attention_backward 4.167
import torch


def attended(q, k, v):
    exp = torch.exp(q @ k.mT / q.shape[-1] ** 0.5)
    return exp / exp.sum(-1, keepdim=True) @ v


def attention_backward(queries, keys, values, grad_output):
    inputs = [t.to(torch.complex128) for t in (queries, keys, values)]
    found = []
    for number, one in enumerate(inputs):
        steps = torch.eye(one.numel(), dtype=one.dtype).view(-1, *one.shape) * 1e-30j
        moved = list(inputs)
        moved[number] = one + steps
        slopes = (attended(*moved).imag * grad_output).sum((-1, -2, -3)) / 1e-30
        found.append(slopes.view(one.shape).to(queries.dtype))
    return tuple(found)
