import math

import torch


def sinusoidal_positions(num_tokens, d_model):
    table = torch.zeros(num_tokens, d_model)
    for p in range(num_tokens):
        for i in range(0, d_model, 2):
            angle = p / 10000 ** (i / d_model)
            table[p, i] = math.sin(angle)
            table[p, i + 1] = math.cos(angle)
    return table


def apply_rope(x, positions, theta=10000.0):
    d = x.size(-1)
    frequencies = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = positions.double().unsqueeze(-1) * frequencies
    turn = torch.polar(torch.ones_like(angles), angles)
    turn = turn.to(torch.complex128 if x.dtype == torch.float64 else torch.complex64)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2))
    return torch.view_as_real(pairs * turn).flatten(-2)


def alibi_bias(num_heads, num_tokens):
    biases = []
    for h in range(1, num_heads + 1):
        slope = 2 ** (-8 * h / num_heads)
        rows = [
            [slope * (k - q) if k <= q else -math.inf for k in range(num_tokens)]
            for q in range(num_tokens)
        ]
        biases.append(torch.tensor(rows))
    return torch.stack(biases)


def sliding_window_mask(num_tokens, window):
    seen = torch.ones(num_tokens, num_tokens).tril()
    return ~(seen.triu(-(window - 1)).bool())
