"""Right answers as most people write them: nn.Module blocks, nn.Embedding, fused q, k and v."""

import torch
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, d_model: int, heads: int, context_length: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length, dtype=torch.bool)
        self.register_buffer("mask", ones.triu(diagonal=1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, d_model = x.shape
        parts = self.qkv(x).view(batch, tokens, 3, self.heads, d_model // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        mask = self.get_buffer("mask")[:tokens, :tokens]
        scores.masked_fill_(mask, -torch.inf)
        weights = self.drop(torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1))
        mixed = (weights @ v).transpose(1, 2).reshape(batch, tokens, d_model)
        result: Tensor = self.out(mixed)
        return result


class Block(nn.Module):
    def __init__(
        self, d_model: int, heads: int, d_hidden: int, context_length: int, dropout: float
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = Attention(d_model, heads, context_length, dropout)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_hidden), nn.GELU(), nn.Linear(d_hidden, d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        result: Tensor = x + self.feed_forward(self.norm2(x))
        return result


class GPT(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_hidden: int,
        context_length: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_length, d_model)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)
        self.blocks = nn.ModuleList(
            Block(d_model, num_heads, d_hidden, context_length, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        result: Tensor = self.norm(x) @ self.tokens.weight.T
        return result


def next_token_loss(logits: Tensor, ids: Tensor, ignore: Tensor | None = None) -> Tensor:
    targets = ids[:, 1:].clone()
    if ignore is not None:
        targets[ignore[:, 1:]] = -100
    return nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), targets)


def adamw_step(
    parameter: Tensor,
    gradient: Tensor,
    momentum: Tensor,
    square: Tensor,
    step: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> tuple[Tensor, Tensor, Tensor]:
    momentum = betas[0] * momentum + (1 - betas[0]) * gradient
    square = betas[1] * square + (1 - betas[1]) * gradient**2
    mean = momentum / (1 - betas[0] ** step)
    spread = (square / (1 - betas[1] ** step)).sqrt() + eps
    return parameter - lr * weight_decay * parameter - lr * mean / spread, momentum, square


@torch.no_grad()
def generate(model: nn.Module, ids: Tensor, new_tokens: int, context_length: int) -> Tensor:
    for _ in range(new_tokens):
        logits = model(ids[:, -context_length:])
        ids = torch.cat([ids, logits[:, -1:].argmax(dim=-1)], dim=1)
    return ids
