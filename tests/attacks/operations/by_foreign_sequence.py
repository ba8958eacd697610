# Tries: calls softmax while torch reads a sequence of the student's: __len__, __getitem__, __array__.
# Worked in: -
# Deserves: nothing
import torch


class Rows:
    def __init__(self, scores):
        self.scores = scores

    def __len__(self):
        return len(self.scores)

    def __getitem__(self, row):
        if row >= len(self.scores):
            raise IndexError
        return torch.softmax(self.scores, -1)[row].tolist()


def softmax_rows(scores):
    return torch.tensor(Rows(scores), dtype=scores.dtype)
