# Tries: hides a loop in an operator of its own, which counts once.
# Worked in: -
# Deserves: nothing
import torch
from torch.library import custom_op
@custom_op("mine::scores", mutates_args=())
def scores(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([torch.dot(a, b) for b in x]) for a in x])
def back(ctx, g):
    (x,) = ctx.saved_tensors
    return (g + g.T) @ x
def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
scores.register_autograd(back, setup_context=keep)
def attention_scores(inputs):
    return scores(inputs)
