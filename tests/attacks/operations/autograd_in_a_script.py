# Tries: lets a script run the backward pass, inside torch's own interpreter.
# Worked in: -
# Deserves: nothing
import torch

SCRIPT = torch.jit.CompilationUnit("""
def gradients(q, k, v, upstream):
    scale = float(q.size(-1)) ** -0.5
    out = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale, -1), v)
    given: Optional[List[Optional[Tensor]]] = [upstream]
    return torch.autograd.grad([out], [q, k, v], given)
""")


def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in (queries, keys, values)]
        return tuple(SCRIPT.gradients(*leaves, grad_output.clone()))
