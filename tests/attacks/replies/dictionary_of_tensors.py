# Tries: answers a large dictionary where a tensor is expected, to be printed in full.
# Worked in: -
# Deserves: nothing
import torch
def softmax_naive(scores):
    return {str(i): torch.rand(1000).half() for i in range(1900)}
