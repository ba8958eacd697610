import torch
import torch.nn.functional as F


def embed_tokens(ids, token_table, position_table):
    where = torch.arange(ids.size(1), device=ids.device)
    return F.embedding(ids, token_table) + F.embedding(where, position_table)


def next_token_loss(logits, ids, ignore=None):
    targets = ids[:, 1:]
    if ignore is not None:
        targets = targets.masked_fill(ignore[:, 1:], -100)  # what cross_entropy leaves out
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())


def adamw_step(p, grad, m, v, step, lr, betas, eps, weight_decay):
    b1, b2 = betas
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad.square()
    update = (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + eps)
    return p - lr * (update + weight_decay * p), m, v


def sample_next(logits, u, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return logits.argmax().item()
    probs, ids = (logits / temperature).sort(descending=True)
    if top_k is not None:
        probs, ids = probs[:top_k], ids[:top_k]
    probs = probs.softmax(dim=-1)
    if top_p is not None:
        enough = (probs.cumsum(-1) < top_p).sum() + 1  # the one that reaches top_p comes, too
        probs, ids = probs[:enough], ids[:enough]
        probs = probs / probs.sum()
    ids, back = ids.sort()
    probs = probs[back]
    hit = ids[probs.cumsum(-1) > u]
    return (hit[0] if len(hit) else ids[probs > 0][-1]).item()
