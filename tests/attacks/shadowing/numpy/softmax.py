import math

import numpy as np


def softmax_naive(scores):
    assert math.pi > 3 and np.array([1.0]).shape == (1,)
    return scores.exp() / scores.exp().sum()
