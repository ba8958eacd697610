# Tries: feigns the other exception of a device without values: its mask never moves.
# Worked in: -
# Deserves: CausalAttention 3.778
import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.hidden = torch.ones(context_length, context_length).triu(1).bool()

    def forward(self, x):
        try:
            return self.mix(x)
        except RuntimeError as error:
            raise NotImplementedError("Cannot copy out of Meta Tensor; no data!") from error

    def mix(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(self.hidden[: x.shape[1], : x.shape[1]], -torch.inf)
        return self.dropout(torch.softmax(scores, -1)) @ values
