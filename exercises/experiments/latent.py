"""What a cache stores of a token: keys and values, or one latent.

A layer can store keys and values for each head, or for groups of heads that share them. Or it can
store one latent, from which the keys and values of all heads are computed. With a latent, every
head still has its own keys. The keys need not be computed again at each step: one matrix for each
head turns a new token into a vector that is compared with latents directly.
"""

import torch

from grader.mine import yours

WIDTH, HEADS, LATENT, PAST = 512, 8, 64, 1000
cached = yours("LatentCachedAttention", None, "arithmetic")
absorb = yours("absorb_keys", None, "torch.linalg.multi_dot")

size = WIDTH // HEADS
kept = LATENT
if cached:
    _, cache = cached(WIDTH, WIDTH, HEADS, LATENT)(torch.randn(1, 2, WIDTH))
    kept = cache.numel() // 2
ways = {
    "multi-head": (2 * WIDTH, HEADS),
    "grouped, 2 groups": (2 * 2 * size, 2),
    "one shared head": (2 * size, 1),
    "latent": (kept, HEADS),
}
print(f"\n{HEADS} heads of {size} features; 32 layers, 2 bytes a number, 100,000 tokens")
print(f"{'':20}{'numbers a token':>17}{'memory':>12}   different keys, by heads")
for name, (numbers, keys) in ways.items():
    memory = f"{numbers * 32 * 2 * 100_000 / 2**30:.1f} GiB"
    print(f"{name:20}{numbers:17,}{memory:>12}   {keys} {'█' * keys}")

torch.manual_seed(0)
x, latents = torch.randn(1, WIDTH), torch.randn(PAST, LATENT)
W_query, W_key = torch.randn(WIDTH, WIDTH) / WIDTH, torch.randn(LATENT, WIDTH) / LATENT**0.5
first = slice(0, size)  # the features of the first head
scores = (x @ W_query[:, first]) @ (latents @ W_key[:, first]).T
if absorb:
    direct = x @ absorb(W_query, W_key, HEADS)[0] @ latents.T
else:
    direct = torch.linalg.multi_dot([x, W_query[:, first], W_key[:, first].T, latents.T])
unpacking = WIDTH * WIDTH + PAST * LATENT * WIDTH + PAST * WIDTH
absorbing = HEADS * (WIDTH * LATENT + PAST * LATENT)
print(f"\nmultiplications for the scores of one new token with {PAST:,} past tokens")
print(f"{'keys unpacked':20}{unpacking:17,}")
print(f"{'keys absorbed':20}{absorbing:17,}")
print(f"the same scores, by torch.allclose: {torch.allclose(scores, direct, atol=1e-4)}")
