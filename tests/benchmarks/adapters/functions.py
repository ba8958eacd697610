"""Adapters for exercises that ask for a function."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tests.benchmarks.adapters.weights import Answer, Entries, attention, normal


def judge_softmax(softmax_stable: Answer) -> Entries:
    """torch-judge: my_softmax(x, dim)."""
    return {"my_softmax": softmax_stable}


def probe_judge_softmax(entries: Entries, number: int) -> Any:
    """Rows, a table, and scores about a thousand."""
    x = (normal(3), normal(4, 8), normal(3) + 1000)[number % 3]
    return entries["my_softmax"](x, dim=-1)


def leet_softmax(softmax_stable: Answer) -> Entries:
    """torchleet: softmax(x, dim=-1)."""
    return {"softmax": softmax_stable}


def probe_leet_softmax(entries: Entries, number: int) -> Any:
    """One to three dimensions, another `dim`, and scores about plus and minus a thousand."""
    if number % 5 == 4:
        return entries["softmax"](normal(4, 6), dim=0)
    large = normal(2, 3) + torch.tensor([[1000.0], [-1000.0]])
    x = (normal(5), normal(4, 8), normal(2, 3, 7), large)[number % 5]
    return entries["softmax"](x)


def judge_attention(scaled_dot_product_attention: Answer) -> Entries:
    """torch-judge: three tensors of three dimensions, and no mask."""
    return {"scaled_dot_product_attention": scaled_dot_product_attention}


def probe_judge_attention(entries: Entries, number: int) -> Any:
    """As many keys as queries, or more; values of another width."""
    keys, d, d_v = ((4, 8, 8), (5, 16, 32))[number % 2]
    queries, batch = ((4, 2), (3, 1))[number % 2]
    given = normal(batch, queries, d), normal(batch, keys, d), normal(batch, keys, d_v)
    return entries["scaled_dot_product_attention"](*given)


def leet_attention(scaled_dot_product_attention: Answer) -> Entries:
    """torchleet: four dimensions; a mask is True where a query may look, and one for all heads."""

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Any:
        if mask is None:
            return scaled_dot_product_attention(q, k, v)
        hidden = (~mask).expand(*q.shape[:-1], k.shape[-2])
        return scaled_dot_product_attention(q, k, v, hidden)

    return {"scaled_dot_product_attention": attend}


def probe_leet_attention(entries: Entries, number: int) -> Any:
    """Plain, with large scores, and under a lower triangle."""
    attend = entries["scaled_dot_product_attention"]
    if number % 3 == 1:
        return attend(normal(1, 1, 4, 64) * 3, normal(1, 1, 4, 64) * 3, normal(1, 1, 4, 64))
    q, k, v = (normal(2, 4, 6, 16) for _ in range(3))
    return attend(q, k, v, mask=torch.ones(6, 6).tril().bool()) if number % 3 else attend(q, k, v)


def judge_rope(apply_rope: Answer) -> Entries:
    """torch-judge: queries and keys together, positions from 0."""

    def rotate(q: Tensor, k: Tensor) -> tuple[Any, Any]:
        return apply_rope(q, torch.arange(q.shape[1])), apply_rope(k, torch.arange(k.shape[1]))

    return {"apply_rope": rotate}


def probe_judge_rope(entries: Entries, number: int) -> Any:
    """The four sizes of its tests."""
    shape = ((2, 8, 64), (1, 16, 32), (1, 8, 16), (1, 4, 8))[number % 4]
    return entries["apply_rope"](normal(*shape), normal(*shape))


def both_sides(sliding_window_mask: Answer, tokens: int, size: int) -> Any:
    """|i - j| <= size is True; ours is True where it hides, looks back, and counts the token."""
    backwards = ~sliding_window_mask(tokens, size + 1)
    return backwards | backwards.T


def judge_window(sliding_window_mask: Answer) -> Entries:
    """torch-judge: attention in a symmetric window."""

    def attend(q: Tensor, k: Tensor, v: Tensor, window_size: int) -> Tensor:
        return attention(q, k, v, both_sides(sliding_window_mask, q.shape[1], window_size))

    return {"sliding_window_attention": attend}


def probe_judge_window(entries: Entries, number: int) -> Any:
    """No window, narrow ones, and one as wide as the sequence."""
    batch, tokens, d, size = ((2, 8, 16, 2), (1, 4, 8, 0), (2, 6, 8, 6), (1, 10, 8, 1))[number % 4]
    q, k, v = (normal(batch, tokens, d) for _ in range(3))
    return entries["sliding_window_attention"](q, k, v, window_size=size)


def leet_window(sliding_window_mask: Answer) -> Entries:
    """torchleet: the symmetric mask, and attention with it and without."""

    def mask(seq_len: int, window_size: int) -> Any:
        return both_sides(sliding_window_mask, seq_len, window_size)

    def attend(q: Tensor, k: Tensor, v: Tensor, window_size: int) -> Tensor:
        return attention(q, k, v, mask(q.shape[1], window_size))

    return {
        "create_sliding_window_mask": mask,
        "full_attention": attention,
        "sliding_window_attention": attend,
    }


def probe_leet_window(entries: Entries, number: int) -> Any:
    """The five windows of its tests: the mask, and the attention."""
    q, k, v = (normal(2, 12, 16) for _ in range(3))
    size = (0, 1, 2, 3, 12)[number % 5]
    return (
        entries["create_sliding_window_mask"](12, size),
        entries["sliding_window_attention"](q, k, v, window_size=size),
    )


def judge_linear(linear_attention: Answer) -> Entries:
    """torch-judge: the same signature."""
    return {"linear_attention": linear_attention}


def probe_judge_linear(entries: Entries, number: int) -> Any:
    """The small sizes of its tests."""
    shape, d_v = (((2, 8, 16), 32), ((2, 16, 8), 8), ((1, 4, 8), 8))[number % 3]
    return entries["linear_attention"](normal(*shape), normal(*shape), normal(*shape[:2], d_v))


def leet_sinusoidal(sinusoidal_positions: Answer) -> Entries:
    """torchleet: a module that holds the table as a buffer."""

    class Embedding(nn.Module):
        pe: Tensor

        def __init__(self, max_len: int, d_model: int) -> None:
            super().__init__()
            self.register_buffer("pe", sinusoidal_positions(max_len, d_model))

        def forward(self, x: Tensor) -> Tensor:
            return self.pe[: x.shape[1]]

    return {"SinusoidalPositionalEmbedding": Embedding}


def probe_leet_sinusoidal(entries: Entries, number: int) -> Any:
    """The single size of its tests, with or without a batch axis."""
    return entries["SinusoidalPositionalEmbedding"](32, 64).pe.squeeze()


def judge_flash(flash_attention: Answer) -> Entries:
    """torch-judge: three dimensions, no heads."""

    def flash(q: Tensor, k: Tensor, v: Tensor, block_size: int) -> Any:
        return flash_attention(q[:, None], k[:, None], v[:, None], block_size)[:, 0]

    return {"flash_attention": flash}


def probe_judge_flash(entries: Entries, number: int) -> Any:
    """Blocks that fit the sequence, and those that do not."""
    sizes = ((2, 16, 8, 4), (1, 7, 4, 3), (1, 12, 8, 4), (1, 12, 8, 6), (1, 8, 4, 4))
    *shape, block = sizes[number % 5]
    return entries["flash_attention"](normal(*shape), normal(*shape), normal(*shape), block)


def leet_flash(flash_attention: Answer) -> Entries:
    """torchleet: no heads, fewer queries than keys (filled up here), the result alone."""

    def flash(
        q: Tensor, k: Tensor, v: Tensor, block_size_q: int = 16, block_size_k: int = 16
    ) -> Any:
        more = torch.zeros(q.shape[0], k.shape[1] - q.shape[1], q.shape[2])
        filled = torch.cat([q, more], dim=1)
        found = flash_attention(filled[:, None], k[:, None], v[:, None], block_size_k)
        return found[:, 0, : q.shape[1]]

    return {"flash_attention_pytorch": flash}


def probe_leet_flash(entries: Entries, number: int) -> Any:
    """Two blocks, and scores thirty times as large on either side."""
    scale = (1, 30)[number % 2]
    q, k, v = normal(2, 40, 16) * scale, normal(2, 48, 16) * scale, normal(2, 48, 16)
    return entries["flash_attention_pytorch"](q, k, v, block_size_k=(16, 48)[number // 2 % 2])
