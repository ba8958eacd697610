"""Two heads with weights made by hand, the ranks of forms, and the sizes of caches.

The first picture has rows of queries and columns of keys. In head 0, a closing bracket
searches for opening brackets. In head 1, a letter searches for the same letter. A token
without a match gives all tokens so far the same weight. The bars are the singular values of
a form: as many as its rank are not 0. At the end, the past tokens are shuffled: in which
layers does the output change?
"""

import math

import torch

from grader.mine import (
    CachedAttention,
    LatentCachedAttention,
    RotaryAttention,
    absorb_keys,
    bilinear_form,
    head_weights,
)

letters = "abc()"
text = "a(b)a(bc)"
tokens = torch.stack([torch.eye(5)[letters.index(letter)] for letter in text])[None]
W_query, W_key = torch.zeros(5, 6), torch.zeros(5, 6)
W_query[letters.index(")"), 0] = W_key[letters.index("("), 0] = 3.0
W_query[:3, 3:] = W_key[:3, 3:] = 3.0 * torch.eye(3)

heads = head_weights(tokens, W_query, W_key, 2)[0]
print(f"\n    head 0{' ' * 14}head 1\n    {text}{' ' * 11}{text}")
for i, letter in enumerate(text):
    rows = ["".join(" ░▒▓█"[math.ceil(4 * float(w) - 0.1)] for w in head[i]) for head in heads]
    print(f"  {letter} {rows[0]}        {letter}  {rows[1]}")

print("\ntokens of 16 features: the strength of each way to compare them, strongest first")
torch.manual_seed(0)
W_query, W_key, W_up_key = torch.randn(16, 8), torch.randn(16, 8), torch.randn(6, 8)
forms = {
    "two matrices of 16 x 2": bilinear_form(W_query[:, :2], W_key[:, :2]),
    "two matrices of 16 x 8": bilinear_form(W_query, W_key),
    "head 0 of 4 in the same": absorb_keys(W_query, W_key, 4)[0],
    "keys from a latent of 6": absorb_keys(W_query, W_up_key, 1)[0],
}
for name, form in forms.items():
    ways = torch.linalg.svdvals(form)
    bars = "".join(" ▁▂▃▄▅▆▇█"[round(8 * float(way / ways[0]))] for way in ways)
    print(f"{name:>25} │{bars:<16}│ {int((ways > 1e-4).sum())} of 16")

print("\nnumbers in a cache of 32 tokens; how far shuffling moves the last output")
layers = (
    ("keys and values", CachedAttention(64, 64, 8)),
    ("rotated keys, values", RotaryAttention(64, 64, 8)),
    ("latents of 16", LatentCachedAttention(64, 64, 8, 16)),
)
past, last = torch.randn(1, 31, 64), torch.randn(1, 1, 64)
for name, layer in layers:
    outs = []
    for order in (torch.arange(31), torch.randperm(31)):
        cache = layer(past[:, order])[1]
        out, cache = layer(last, cache)
        outs.append(out)
    kept = sum(part.numel() for part in cache)
    moved = float((outs[1] - outs[0]).abs().max().detach())
    print(f"{name:>25}  {'█' * (kept // 256):<16} {kept:>5}   {moved:.4f}")
