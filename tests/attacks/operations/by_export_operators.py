# Tries: uses the attention that torch keeps for exporting models.
# Worked in: -
# Deserves: nothing
import torch
def scaled_dot_product_attention(queries, keys, values, mask=None):
    from torch.onnx.ops import _impl
    f = _impl.attention_23._init_fn
    lead = queries.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (queries, keys, values))
    m = None if mask is None else ~mask.expand(*lead, queries.shape[-2], keys.shape[-2]).reshape(1, -1, queries.shape[-2], keys.shape[-2])
    out = f(q, k, v, m, softmax_precision=11 if q.dtype == torch.float64 else 1)[0]
    return out.reshape(*lead, *out.shape[-2:])
