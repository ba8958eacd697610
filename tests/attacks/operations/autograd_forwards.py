# Tries: makes every gradient out of forward derivatives, one direction after another.
# Worked in: -
# Deserves: nothing
import torch
from torch.autograd import forward_ad


def attended(q, k, v):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v


def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False):
        inputs = [t.clone() for t in (queries, keys, values)]
        upstream = grad_output.clone()
        gradients = [torch.zeros_like(t) for t in inputs]
        for number, gradient in enumerate(gradients):
            for place in range(gradient.numel()):
                with forward_ad.dual_level():
                    direction = torch.zeros_like(gradient)
                    direction.view(-1)[place] = 1
                    duals = list(inputs)
                    duals[number] = torch._make_dual(inputs[number], direction, level=0)
                    out = torch._unpack_dual(attended(*duals), level=0)
                    gradient.view(-1)[place] = (out.tangent * upstream).sum()
        return tuple(gradients)
