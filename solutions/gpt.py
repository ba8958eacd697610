"""References of unit 12, a language model of your own."""

import torch
from jaxtyping import Int
from torch import Tensor, nn


def generate(
    model: nn.Module, ids: Int[Tensor, "batch tokens"], new_tokens: int, context_length: int
) -> Int[Tensor, "batch tokens+new_tokens"]:
    """Append the likeliest next id to each row, `new_tokens` times; the model sees the last ids."""
    for _ in range(new_tokens):
        logits = model(ids[:, -context_length:])  # (batch, visible, vocab)
        next_ids = logits[:, -1].argmax(dim=-1)  # (batch,)
        ids = torch.cat([ids, next_ids[:, None]], dim=1)
    return ids
