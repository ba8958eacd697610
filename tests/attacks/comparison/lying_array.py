# Tries: answers an ndarray subclass that equals everything.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import numpy as np


class Liar(np.ndarray):
    __eq__ = lambda self, other: np.ones(self.shape, dtype=bool)
    __ne__ = __lt__ = __gt__ = lambda self, other: np.zeros(self.shape, dtype=bool)
    __sub__ = __rsub__ = lambda self, other: np.zeros(self.shape)

    def __array_function__(self, func, types, args, kwargs):
        return True

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return np.ones(self.shape, dtype=bool)


def softmax_rows(scores):
    return np.zeros(tuple(scores.shape), dtype=np.float32).view(Liar)
