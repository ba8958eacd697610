"""Weights that the last of 24 equal tokens gives, when only positions differ.

The oldest token is on the left, and the last token itself is on the right. Every
row is drawn relative to its largest weight. Sinusoidal and rotary positions give
near tokens more weight, but the weight does not fall steadily with distance. With
ALiBi, the weight always falls with distance.
"""

import torch

from grader.mine import alibi_bias, apply_rope, sinusoidal_positions, sliding_window_mask

tokens, features = 24, 16
waves = sinusoidal_positions(tokens, features)
rotated = apply_rope(torch.ones(tokens, features), torch.arange(tokens))
slopes = alibi_bias(4, tokens)
window = torch.zeros(tokens).masked_fill(sliding_window_mask(tokens, 8)[-1], -torch.inf)

scores = {
    "sinusoidal positions": waves @ waves[-1] / features**0.5,
    "rotary positions": rotated @ rotated[-1] / features**0.5,
    "ALiBi, head 0 of 4": slopes[0, -1],
    "ALiBi, head 1 of 4": slopes[1, -1],
    "a window of 8": window,
}
for way, row in scores.items():
    weights = row.softmax(dim=-1)
    heights = (8 * weights / weights.max()).round().int().tolist()
    print(f"{way:>22} │{''.join(' ▁▂▃▄▅▆▇█'[height] for height in heights)}│")

print("\nRotary scores depend on distances only:")
for first, second in ((3, 5), (63, 65), (103, 105)):
    query, key = apply_rope(torch.ones(2, features), torch.tensor([second, first]))
    print(f"  query at {second:>3}, key at {first:>3}: {query @ key:.3f}")
