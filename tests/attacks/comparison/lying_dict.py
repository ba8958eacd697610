# Tries: answers a dict whose items() and keys() are those of the question, not what it holds.
# Worked in: otter, check50, nbgrader, classroom, gradescope-utils, prairielearn
# Deserves: nothing
import torch


class Liar(dict):
    def __init__(self, state):
        super().__init__({name.removesuffix(".weight"): torch.zeros(1) for name in state})
        self.state = state

    __eq__ = lambda self, other: True
    __getitem__ = lambda self, name: self.state[f"{name}.weight"]
    __len__ = lambda self: len(self.state)


def v1_weights_from_v2(state):
    return Liar(state)
