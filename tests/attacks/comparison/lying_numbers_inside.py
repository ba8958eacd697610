# Tries: answers a Tensor subclass whose numpy(), tolist(), item() and data_ptr() give other numbers.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import torch


class Liar(torch.Tensor):
    right = None

    def numpy(self, *args, **kwargs):
        return Liar.right.numpy()

    def __array__(self, *args, **kwargs):
        return Liar.right.numpy()

    def tolist(self):
        return Liar.right.tolist()

    detach = clone = contiguous = cpu = lambda self, *args, **kwargs: Liar.right


def causal_mask(num_tokens):
    Liar.right = torch.ones(num_tokens, num_tokens).triu(1).bool()
    return torch.zeros(num_tokens, num_tokens).bool().as_subclass(Liar)
