# Tries: uses the attention that torch keeps for its compiler.
# Worked in: -
# Deserves: nothing
import importlib, math, torch
def scaled_dot_product_attention(queries, keys, values, mask=None):
    fa = importlib.import_module("torch._higher_order_ops.flex_attention")
    from torch.nn.attention.flex_attention import _create_empty_block_mask
    lead = queries.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (queries, keys, values))
    if mask is not None:
        m = mask.expand(*lead, queries.shape[-2], keys.shape[-2]).reshape(*q.shape[:-1], k.shape[-2])
    mod = lambda s, b, h, i, j: s if mask is None else torch.where(m[b, h, i, j], -math.inf, s)
    out = fa.math_attention(q, k, v, mod, _create_empty_block_mask(q, k).as_tuple(), 1 / math.sqrt(q.shape[-1]), {}, (), ())[0]
    return out.reshape(*lead, *out.shape[-2:])
