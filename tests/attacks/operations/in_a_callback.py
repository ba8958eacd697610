# Tries: calls softmax while torch itself asks an object of the student's for an index or a number.
# Worked in: -
# Deserves: nothing
import torch


class Index:
    def __init__(self, scores, value):
        self.scores, self.value, self.weights = scores, value, None

    def __index__(self):
        self.weights = torch.softmax(self.scores, -1)
        return self.value


def softmax_naive(scores):
    index = Index(scores, len(scores))
    scores.reshape(index)
    return index.weights


def softmax_rows(scores):
    out = []
    torch.zeros(1).apply_(lambda x: out.append(torch.softmax(scores, -1)) or 0.0)
    return out[0]
