import torch
import torch.nn.functional as F
from torch import nn

from exercises.inference import CachedAttention
from exercises.transformer_block import FeedForward, TransformerBlock


def embed_tokens(ids, token_table, position_table):
    where = torch.arange(ids.size(1), device=ids.device)
    return F.embedding(ids, token_table) + F.embedding(where, position_table)


def next_token_loss(logits, ids, ignore=None):
    targets = ids[:, 1:]
    if ignore is not None:
        targets = targets.masked_fill(ignore[:, 1:], -100)  # what cross_entropy leaves out
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets.flatten())


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = nn.Embedding(context_length, d_model)
        for table in (self.tok_emb, self.pos_emb):
            nn.init.normal_(table.weight, std=0.02)
        self.blocks = nn.Sequential(
            *(
                TransformerBlock(d_model, num_heads, d_hidden, context_length, dropout)
                for _ in range(num_layers)
            )
        )
        self.ln_f = nn.LayerNorm(d_model)

    def forward(self, ids):
        assert ids.size(1) <= self.pos_emb.num_embeddings, "the text is too long"
        x = embed_tokens(ids, self.tok_emb.weight, self.pos_emb.weight)
        return F.linear(self.ln_f(self.blocks(x)), self.tok_emb.weight)


def adamw_step(p, grad, m, v, step, lr, betas, eps, weight_decay):
    b1, b2 = betas
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad.square()
    update = (m / (1 - b1**step)) / ((v / (1 - b2**step)).sqrt() + eps)
    return p - lr * (update + weight_decay * p), m, v


@torch.no_grad()
def generate(model, idx, max_new_tokens, context_size):
    for _ in range(max_new_tokens):
        logits = model(idx[:, -context_size:])[:, -1]
        idx = torch.cat([idx, logits.argmax(dim=-1, keepdim=True)], dim=1)
    return idx


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


class CachedBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.mha = CachedAttention(d_model, d_model, num_heads)
        self.ff = FeedForward(d_model, d_hidden)

    def forward(self, x, cache):
        found, cache = self.mha(self.ln1(x), cache)
        x = x + found
        return x + self.ff(self.ln2(x)), cache


class CachedGPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = nn.Embedding(context_length, d_model)
        self.blocks = nn.ModuleList(
            CachedBlock(d_model, num_heads, d_hidden) for _ in range(num_layers)
        )
        self.ln_f = nn.LayerNorm(d_model)

    def forward(self, ids, cache=None):
        seen, parts = (0, [None] * len(self.blocks)) if cache is None else cache
        total = seen + ids.size(1)
        if total > self.pos_emb.num_embeddings:
            raise ValueError("the text is too long")
        x = embed_tokens(ids, self.tok_emb.weight, self.pos_emb.weight[seen:])
        new = []
        for block, part in zip(self.blocks, parts):
            x, part = block(x, part)
            new.append(part)
        return F.linear(self.ln_f(x), self.tok_emb.weight), (total, new)
