# Tries: makes gradients out of finite differences, one entry after another, in float64.
# Worked in: -
# Deserves: nothing
import torch


def attended(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v


def attention_backward(queries, keys, values, grad_output):
    inputs, step, found = [t.double() for t in (queries, keys, values)], 1e-6, []
    for number, one in enumerate(inputs):
        gradient = torch.zeros_like(one)
        for place in range(one.numel()):
            ends = []
            for sign in (step, -step):
                moved = [t.clone() for t in inputs]
                moved[number].view(-1)[place] += sign
                ends.append((attended(*moved) * grad_output).sum())
            gradient.view(-1)[place] = (ends[0] - ends[1]) / (2 * step)
        found.append(gradient.to(queries.dtype))
    return tuple(found)
