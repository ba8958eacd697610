# Tries: makes finite differences along every direction at once, by a map over directions.
# Worked in: -
# Deserves: attention_backward 3.611
import torch


def attended(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v


def attention_backward(queries, keys, values, grad_output):
    inputs, step, found = [t.double() for t in (queries, keys, values)], 1e-5, []
    for number, one in enumerate(inputs):

        def slope(direction):
            ahead, behind = list(inputs), list(inputs)
            ahead[number], behind[number] = one + step * direction, one - step * direction
            return ((attended(*ahead) - attended(*behind)) * grad_output).sum() / (2 * step)

        directions = torch.eye(one.numel(), dtype=one.dtype).view(-1, *one.shape)
        found.append(torch.vmap(slope)(directions).view(one.shape).to(queries.dtype))
    return tuple(found)
