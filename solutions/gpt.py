"""References of unit 12, gpt: what stands around the blocks of a language model."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from .inference import CachedAttention
from .transformer_block import FeedForward, TransformerBlock


def embed_tokens(
    ids: Int[Tensor, "batch tokens"],
    token_table: Float[Tensor, "vocab d"],
    position_table: Float[Tensor, "context d"],
) -> Float[Tensor, "batch tokens d"]:
    """A vector for each token: its id's row of one table plus its position's row of another.

    Radford et al. 2018, section 3.1. Vaswani et al. 2017 (section 3.4) multiply the tokens' rows
    by √d; GPT does not.
    """
    _batch, tokens = ids.shape

    token_vectors = token_table[ids]  # (batch, tokens, d)
    position_vectors = position_table[:tokens]  # (tokens, d), the same for every batch row
    return token_vectors + position_vectors


def next_token_loss(
    logits: Float[Tensor, "batch tokens vocab"],
    ids: Int[Tensor, "batch tokens"],
    ignore: Bool[Tensor, "batch tokens"] | None = None,
) -> Float[Tensor, ""]:
    """The mean of -log p(next id) over all targets that count.

    `ignore[b, t]` is True where `ids[b, t]` is no target. Radford et al. 2018, section 3.1.
    """
    predictions, targets = logits[:, :-1], ids[:, 1:]  # the last guess has no target

    log_probs = torch.log_softmax(predictions, dim=-1)  # (batch, tokens - 1, vocab)
    losses = -log_probs.gather(-1, targets[..., None])[..., 0]  # (batch, tokens - 1)

    if ignore is not None:
        losses = losses[~ignore[:, 1:]]  # (targets that count,)
    return losses.mean()


def new_table(rows: int, d_model: int) -> nn.Parameter:
    """A table to be learned, of small numbers.

    One that makes the logits, too, would else be sure of itself before it has learned anything.
    """
    return nn.Parameter(torch.randn(rows, d_model) * 0.02)


class GPT(nn.Module):
    """Score every token of the vocabulary as the next one: (batch, tokens) ids to (…, vocab_size).

    Radford et al. 2019, section 2.3; the output shares its weights with the token table: Press and
    Wolf 2017, section 3.
    """

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
        self.token_table = new_table(vocab_size, d_model)
        self.position_table = new_table(context_length, d_model)
        self.blocks = nn.ModuleList(
            TransformerBlock(d_model, num_heads, d_hidden, context_length, dropout)
            for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(d_model)

    def forward(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens vocab_size"]:
        """Look up tokens and positions, pass all blocks, and compare with every token."""
        _batch, tokens = ids.shape
        context_length = self.position_table.shape[0]
        if tokens > context_length:
            raise ValueError(f"{tokens} tokens, and positions for {context_length}")

        x = embed_tokens(ids, self.token_table, self.position_table)
        for block in self.blocks:
            x = block(x)  # (batch, tokens, d_model)
        return self.final_norm(x) @ self.token_table.T  # (batch, tokens, vocab_size)


def adamw_step(
    parameter: Float[Tensor, " ..."],
    gradient: Float[Tensor, " ..."],
    momentum: Float[Tensor, " ..."],
    square: Float[Tensor, " ..."],
    step: int,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
) -> tuple[Float[Tensor, " ..."], Float[Tensor, " ..."], Float[Tensor, " ..."]]:
    """New parameter, momentum and square after step number `step`, which counts from 1.

    torch's form of Loshchilov and Hutter 2019, Algorithm 2: the decay is multiplied by lr.
    """
    beta1, beta2 = betas

    new_momentum = beta1 * momentum + (1 - beta1) * gradient
    new_square = beta2 * square + (1 - beta2) * gradient**2

    # Both means started at 0: for this step alone, make up for it.
    corrected_momentum = new_momentum / (1 - beta1**step)
    corrected_square = new_square / (1 - beta2**step)

    decay = lr * weight_decay * parameter
    move = lr * corrected_momentum / (corrected_square.sqrt() + eps)
    return parameter - decay - move, new_momentum, new_square


def generate(
    model: nn.Module, ids: Int[Tensor, "batch tokens"], new_tokens: int, context_length: int
) -> Int[Tensor, "batch tokens+new_tokens"]:
    """Append the likeliest next id to each row, `new_tokens` times; the model sees the last ids."""
    for _ in range(new_tokens):
        logits = model(ids[:, -context_length:])  # (batch, visible, vocab)
        next_ids = logits[:, -1].argmax(dim=-1)  # (batch,)
        ids = torch.cat([ids, next_ids[:, None]], dim=1)
    return ids


def sample_next(
    logits: Float[Tensor, " vocab"],
    u: float,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> int:
    """The id that u in [0, 1) hits, after temperature, top_k and top_p, in this order.

    Holtzman et al. 2020, section 3.1 (top_p), 3.2 (top_k) and 3.3 (temperature).
    """
    if temperature == 0:
        return int(logits.argmax())
    logits = logits / temperature

    if top_k is not None and top_k < len(logits):
        left_out = logits.argsort(descending=True)[top_k:]
        logits = logits.index_fill(0, left_out, -torch.inf)
    probs = torch.softmax(logits, dim=-1)  # (vocab,)

    if top_p is not None:
        largest, order = probs.sort(descending=True)
        sum_before = largest.cumsum(dim=-1) - largest  # of all ids that are more probable
        probs = probs.index_fill(0, order[sum_before >= top_p], 0.0)
        probs = probs / probs.sum()

    hit = torch.nonzero(probs.cumsum(dim=-1) > u)
    if len(hit) == 0:  # rounding: the sum of all is a little below 1
        return int(torch.nonzero(probs)[-1])
    return int(hit[0])


class CachedBlock(nn.Module):
    """A `TransformerBlock` whose attention goes on from a cache, and drops nothing."""

    def __init__(self, d_model: int, num_heads: int, d_hidden: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = CachedAttention(d_model, d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_hidden)

    def forward(self, x: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        """The new tokens' vectors, and the cache of all tokens so far."""
        attended, cache = self.attention(self.norm1(x), cache)
        h = x + attended
        return h + self.feed_forward(self.norm2(h)), cache


class CachedGPT(nn.Module):
    """A GPT for new tokens, whose past comes as a cache: keys and values of every block.

    Shazeer 2019, section 2.4, in every block.
    """

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
        del dropout  # nothing is dropped while a model writes
        self.token_table = new_table(vocab_size, d_model)
        self.position_table = new_table(context_length, d_model)
        self.blocks = nn.ModuleList(
            CachedBlock(d_model, num_heads, d_hidden) for _ in range(num_layers)
        )
        self.final_norm = nn.LayerNorm(d_model)

    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: Any = None
    ) -> tuple[Float[Tensor, "batch tokens vocab_size"], Any]:
        """Go on at the position after the cache, and hand every block its own part of it."""
        _batch, tokens = ids.shape
        past = [None] * len(self.blocks) if cache is None else cache
        seen = 0 if cache is None else cache[0][0].shape[2]  # keys: (batch, num_heads, seen, …)
        context_length = self.position_table.shape[0]
        if seen + tokens > context_length:
            raise ValueError(f"{seen} + {tokens} tokens, and positions for {context_length}")

        x = embed_tokens(ids, self.token_table, self.position_table[seen:])
        new_cache = []
        for block, of_block in zip(self.blocks, past, strict=True):
            x, grown = block(x, of_block)  # (batch, tokens, d_model); (keys, values)
            new_cache.append(grown)
        return self.final_norm(x) @ self.token_table.T, new_cache
