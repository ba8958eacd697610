import torch


def sinusoidal_positions(num_tokens, d_model):
    # mistake 11: sines first, then cosines, instead of in turns
    positions = torch.arange(num_tokens)[:, None]
    angles = positions / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def apply_rope(x, positions, theta=10000.0):
    # mistake 12: pairs one half with the other, as other libraries do
    half = x.shape[-1] // 2
    angles = positions[:, None] * theta ** (-torch.arange(half) / half)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x0, x1 = x[..., :half], x[..., half:]
    return torch.cat([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)


def sliding_window_mask(num_tokens, window):
    # mistake 13: a token sees `window` tokens before it, and itself
    ones = torch.ones(num_tokens, num_tokens)
    return (ones.triu(1) + ones.tril(-window - 1)).bool()
