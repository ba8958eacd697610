import torch


def flash_attention(queries, keys, values, block_size, causal=False):
    # mistake 16: right, but nothing is tiled
    tokens, d = queries.shape[-2:]
    scores = queries @ keys.transpose(-2, -1) / d**0.5
    if causal:
        future = torch.triu(torch.ones(tokens, tokens), diagonal=1).bool()
        scores = scores.masked_fill(future, -torch.inf)
    return torch.softmax(scores, dim=-1) @ values


def attention_backward(queries, keys, values, grad_output):
    # mistake 17: leaves the work to autograd
    with torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in (queries, keys, values)]
        q, k, v = leaves
        out = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
        return torch.autograd.grad(out, leaves, grad_output)


def linear_attention(queries, keys, values):
    # mistake 18: the product of queries and keys comes first, and is quadratic in the tokens
    q, k = torch.nn.functional.elu(queries) + 1, torch.nn.functional.elu(keys) + 1
    weights = q @ k.transpose(-2, -1)
    return (weights / weights.sum(dim=-1, keepdim=True)) @ values
