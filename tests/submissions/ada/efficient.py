import torch
import torch.nn.functional as F


def online_step(maximum, total, block):
    top = torch.maximum(maximum, block.amax(-1))
    total = total * (maximum - top).exp() + (block - top.unsqueeze(-1)).exp().sum(-1)
    return top, total


def softmax_online(scores, block_size):
    top = torch.full_like(scores[..., 0], -torch.inf)
    total = torch.zeros_like(top)
    for block in scores.split(block_size, dim=-1):
        top, total = online_step(top, total, block)
    return (scores - top.unsqueeze(-1)).exp() / total.unsqueeze(-1)


def merge_states(first, second):
    top = torch.maximum(first[0], second[0])
    finite = torch.where(top.isinf(), torch.zeros_like(top), top)  # two empty ones: no NaN
    shrink = [(state[0] - finite).exp() for state in (first, second)]
    total = sum(s * state[1] for s, state in zip(shrink, (first, second)))
    mixed = sum(s[..., None] * state[2] for s, state in zip(shrink, (first, second)))
    return top, total, mixed


def flash_attention(queries, keys, values, block_size, causal=False):
    tokens, d = queries.shape[-2:]
    out = torch.empty_like(queries)
    for start in range(0, tokens, block_size):
        q = queries[..., start : start + block_size, :] / d**0.5
        rows = torch.arange(start, start + q.size(-2), device=q.device)
        top = torch.full_like(q[..., 0], -torch.inf)
        state = top, torch.zeros_like(top), torch.zeros_like(q)
        for at in range(0, tokens, block_size):
            if causal and at > rows[-1]:
                break
            k, v = keys[..., at : at + block_size, :], values[..., at : at + block_size, :]
            s = q @ k.mT
            if causal:
                columns = torch.arange(at, at + k.size(-2), device=q.device)
                s = s.masked_fill(columns > rows[:, None], -torch.inf)
            top = s.amax(-1)
            p = (s - torch.where(top.isinf(), torch.zeros_like(top), top)[..., None]).exp()
            state = merge_states(state, (top, p.sum(-1), p @ v))
        _top, total, mixed = state
        out[..., start : start + block_size, :] = mixed / total[..., None]
    return out


def softmax_backward(weights, grad_weights):
    return weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))


def attention_backward(queries, keys, values, grad_output):
    scale = queries.shape[-1] ** -0.5
    p = (queries @ keys.mT * scale).softmax(-1)
    dv = p.mT @ grad_output
    dp = grad_output @ values.mT
    ds = softmax_backward(p, dp) * scale
    return ds @ keys, ds.mT @ queries, dv


def linear_attention(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    mixed = torch.einsum("btk,btv->bkv", k, values)
    normaliser = (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True)
    return torch.einsum("btk,bkv->btv", q, mixed) / normaliser
