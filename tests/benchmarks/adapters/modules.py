"""Adapters for exercises that ask for a module."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from tests.benchmarks.adapters.weights import (
    PROJECTIONS,
    Answer,
    Entries,
    normal,
    projections,
    settled,
    three_in_one,
    three_parts,
    unmasked,
)


def judge_causal(make: Answer) -> Entries:
    """torch-judge: causal_attention(Q, K, V), without layers: ours hand through one part each."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Any:
        _, tokens, d = q.shape
        module = settled(make, 3 * d, d, tokens, 0.0)
        with torch.no_grad():
            for part, weight in enumerate(projections(module, 3 * d)):
                weight.copy_(torch.eye(3 * d)[part * d : (part + 1) * d])
        return module(torch.cat([q, k, v], dim=-1))

    return {"causal_attention": attend}


def probe_judge_causal(entries: Entries, number: int) -> Any:
    """The sizes of its tests."""
    shape = ((2, 6, 16), (1, 8, 16), (1, 4, 8))[number % 3]
    return entries["causal_attention"](normal(*shape), normal(*shape), normal(*shape))


def judge_multi_head(make: Answer) -> Entries:
    """torch-judge: layers W_q, W_k, W_v, W_o; queries, keys and values apart, and no mask."""

    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.d, self.heads = d_model, num_heads
            self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_model, False) for _ in range(3))
            self.W_o = nn.Linear(d_model, d_model)

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Any:
            module = settled(make, 3 * self.d, self.d, k.shape[1], 0.0, self.heads)
            projections(module, 3 * self.d)
            given = {"out_proj.weight": self.W_o.weight, "out_proj.bias": self.W_o.bias}
            for part, layer in enumerate((self.W_q, self.W_k, self.W_v)):
                parts = [torch.zeros_like(layer.weight)] * 3
                parts[part] = layer.weight
                given[PROJECTIONS[part]] = torch.cat(parts, dim=1)
            held = dict(module.named_parameters(remove_duplicate=False))
            given = {name: value for name, value in given.items() if name in held}
            return unmasked(lambda x: functional_call(module, given, (x,)), q, k, v)

    return {"MultiHeadAttention": MultiHeadAttention}


def probe_judge_multi_head(entries: Entries, number: int) -> Any:
    """The same sequence three times, three of equal length, and more keys than queries."""
    batch, queries, keys, d, heads = ((2, 6, 6, 32, 4), (1, 4, 4, 16, 2), (1, 3, 7, 32, 4))[
        number % 3
    ]
    module = entries["MultiHeadAttention"](d_model=d, num_heads=heads)
    q, k, v = normal(batch, queries, d), normal(batch, keys, d), normal(batch, keys, d)
    return module.forward(q, q, q) if number % 3 == 0 else module.forward(q, k, v)


def leet_multi_head(make: Answer) -> Entries:
    """torchleet: layers that are made at each call; a mask is a lower triangle, or none."""

    def attend(
        q: Tensor, k: Tensor, v: Tensor, num_heads: int, d_model: int, mask: Tensor | None = None
    ) -> Any:
        module = three_in_one(make, d_model, k.shape[1], 0.0, num_heads)
        return three_parts(module, q, k, v, mask)

    return {"multi_head_attention": attend}


def probe_leet_multi_head(entries: Entries, number: int) -> Any:
    """One sequence three times; four heads, one or eight; with a mask and without."""
    x = normal(2, 7, 32)
    mask = torch.ones(7, 7).tril().bool() if number % 2 else None
    heads = (4, 1, 8)[number % 3]
    return entries["multi_head_attention"](x, x.clone(), x.clone(), heads, 32, mask=mask)


def judge_grouped(make: Answer) -> Entries:
    """torch-judge: layers W_q, W_k, W_v, W_o, and no mask: each token is asked as the last one."""

    class GroupQueryAttention(nn.Module):
        def __init__(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
            super().__init__()
            self.inner = settled(make, d_model, d_model, num_heads, num_kv_heads)
            projections(self.inner, d_model)
            self.W_q, self.W_k = self.inner.W_query, self.inner.W_key
            self.W_v, self.W_o = self.inner.W_value, self.inner.out_proj

        def forward(self, x: Tensor) -> Any:
            tokens = x.shape[1]
            turned = torch.stack([x.roll(-i - 1, dims=1) for i in range(tokens)], dim=1)
            out = self.inner(turned.flatten(0, 1))[:, -1]
            return out.reshape(-1, tokens, x.shape[-1])

    return {"GroupQueryAttention": GroupQueryAttention}


def probe_judge_grouped(entries: Entries, number: int) -> Any:
    """The three sizes of its tests."""
    sizes, shape = (((32, 8, 2), (2, 6, 32)), ((16, 4, 4), (1, 4, 16)), ((16, 4, 2), (1, 4, 16)))[
        number % 3
    ]
    d, heads, kv_heads = sizes
    module = entries["GroupQueryAttention"](d_model=d, num_heads=heads, num_kv_heads=kv_heads)
    return module.forward(normal(*shape))


def leet_grouped(make: Answer) -> Entries:
    """torchleet: layers that are made at each call; a mask is a lower triangle, or none."""

    def attend(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        num_query_heads: int,
        num_query_groups: int,
        d_model: int,
        mask: Tensor | None = None,
    ) -> Any:
        module = three_in_one(make, d_model, num_query_heads, num_query_groups)
        return three_parts(module, q, k, v, mask)

    return {"grouped_query_attention": attend}


def probe_leet_grouped(entries: Entries, number: int) -> Any:
    """One sequence, or other keys and values; one, two and four groups; with a mask and without."""
    q = normal(2, 6, 32)
    k, v = (normal(2, 6, 32), normal(2, 6, 32)) if number % 2 else (q.clone(), q.clone())
    mask = torch.ones(6, 6).tril().bool() if number // 2 % 2 else None
    groups = (1, 2, 4)[number % 3]
    return entries["grouped_query_attention"](
        q, k, v, num_query_heads=4, num_query_groups=groups, d_model=32, mask=mask
    )


def judge_cross(make: Answer) -> Entries:
    """torch-judge: one width for all; a judge that asks for a module is given one."""

    class MultiHeadCrossAttention(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.inner = settled(make, d_model, d_model, d_model, num_heads)

        def forward(self, x_q: Tensor, x_kv: Tensor) -> Any:
            return self.inner(x_q, x_kv)

    return {"MultiHeadCrossAttention": MultiHeadCrossAttention}


def probe_judge_cross(entries: Entries, number: int) -> Any:
    """The four sizes of its tests."""
    sizes = ((2, 6, 10, 64, 4), (1, 3, 20, 32, 2), (1, 4, 6, 32, 2))
    batch, queries, keys, d, heads = sizes[number % 3]
    module = entries["MultiHeadCrossAttention"](d_model=d, num_heads=heads)
    return module(normal(batch, queries, d), normal(batch, keys, d))


def judge_cache(make: Answer) -> Entries:
    """torch-judge: the same signature, one width for all; the cache is a tuple, and no list."""

    class KVCacheAttention(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.inner = settled(make, d_model, d_model, num_heads)

        def forward(self, x: Tensor, cache: Any = None) -> Any:
            out, kept = self.inner(x, cache)
            return out, tuple(kept) if isinstance(kept, list) else kept

    return {"KVCacheAttention": KVCacheAttention}


def probe_judge_cache(entries: Entries, number: int) -> Any:
    """A sequence at once, or its beginning and then one token after the other."""
    batch, tokens, d, heads, first = ((2, 8, 64, 4, 8), (1, 5, 32, 2, 4), (1, 6, 32, 2, 4))[
        number % 3
    ]
    module = entries["KVCacheAttention"](d_model=d, num_heads=heads)
    x = normal(batch, tokens, d)
    out, cache = module(x[:, :first])
    outs = [out]
    for at in range(first, tokens):
        out, cache = module(x[:, at : at + 1], cache=cache)
        outs.append(out)
    keys, values = cache
    return *outs, torch.zeros(keys.shape), torch.zeros(values.shape)  # what it keeps is its own


def leet_cache(make: Answer) -> Entries:
    """torchleet: the cache is an object, and brought by this adapter."""

    class KVCache:
        def __init__(self) -> None:
            self.pair: Any = None

        def update(self, keys: Tensor, values: Tensor) -> Any:
            if self.pair is not None:
                keys = torch.cat([self.pair[0], keys], dim=2)
                values = torch.cat([self.pair[1], values], dim=2)
            self.pair = keys, values
            return self.pair

        def reset(self) -> None:
            self.pair = None

    class CachedAttention(nn.Module):
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__()
            self.inner = settled(make, d_model, d_model, num_heads)

        def forward(self, x: Tensor, kv_cache: KVCache | None = None) -> Any:
            if kv_cache is None:
                return self.inner(x)[0]
            out, kv_cache.pair = self.inner(x, kv_cache.pair)
            return out

    return {"KVCache": KVCache, "CachedAttention": CachedAttention}


def probe_leet_cache(entries: Entries, number: int) -> Any:
    """A sequence at once, or one token after the other."""
    module = entries["CachedAttention"](64, 4)
    x = normal(2, 16, 64)
    if number % 2 == 0:
        return module(x, kv_cache=None)
    cache = entries["KVCache"]()
    return tuple(module(x[:, at : at + 1], kv_cache=cache) for at in range(16))
