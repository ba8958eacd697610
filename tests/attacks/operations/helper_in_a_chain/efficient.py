import torch.nn.functional as F
from outer import run


def linear_attention(queries, keys, values):
    def work():
        q, k = F.elu(queries) + 1, F.elu(keys) + 1
        weights = q @ k.mT
        return weights @ values / weights.sum(-1, keepdim=True)

    return run(work)
