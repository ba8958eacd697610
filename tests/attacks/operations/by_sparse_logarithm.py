# Tries: takes the logarithm of a sparse softmax, and its exponential.
# Worked in: -
# Deserves: nothing
import torch
def softmax_naive(scores):
    s = scores[None]
    return torch.sparse.log_softmax(s.to_sparse(), 1).to_dense()[0].exp()
def softmax_rows(scores):
    return torch.sparse.log_softmax(scores.to_sparse(), 1).to_dense().exp()
