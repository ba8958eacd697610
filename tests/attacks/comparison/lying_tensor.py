# Tries: answers a Tensor subclass whose __torch_function__ says True to every comparison.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import torch


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("allclose", "equal", "isclose", "eq", "__eq__", "all", "le", "lt"):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})


def softmax_rows(scores):
    return torch.zeros_like(scores).as_subclass(Liar)
