"""Right answers of someone who trusts no layer: bare parameters, one-hot tables, softmax by hand.

Each head is a pass of a loop, and what is hidden is added as -inf.
"""

from typing import Any

import torch
from torch import Tensor, nn


def softmax(scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


def normal(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = torch.sqrt((centred**2).mean(dim=-1, keepdim=True) + 1e-5)
    return centred / spread * gain + shift


class GPT(nn.Module):
    def __init__(
        self, vocab: int, d: int, heads: int, layers: int, hidden: int, context: int, p: float
    ) -> None:
        super().__init__()
        self.sizes = vocab, heads, layers, context, p
        self.table = nn.Parameter(torch.randn(vocab, d) * 0.02)
        self.places = nn.Parameter(torch.randn(context, d) * 0.02)

        def many(*shape: int, std: float = d**-0.5) -> nn.ParameterList:
            return nn.ParameterList(torch.randn(*shape) * std for _ in range(layers))

        self.wq, self.wk, self.wv, self.wo = (many(d, d) for _ in range(4))
        self.up, self.down = many(d, hidden), many(hidden, d, std=hidden**-0.5)
        self.up_bias, self.down_bias, self.wo_bias = (many(n, std=0.0) for n in (hidden, d, d))
        self.gains = nn.ParameterList(torch.ones(d) for _ in range(2 * layers + 1))
        self.shifts = nn.ParameterList(torch.zeros(d) for _ in range(2 * layers + 1))

    def mix(self, x: Tensor, n: int) -> Tensor:
        _, heads, _, _, p = self.sizes
        tokens = x.shape[1]
        hidden = torch.full((tokens, tokens), float("-inf")).triu(1)
        queries, keys, values = (x @ w[n] for w in (self.wq, self.wk, self.wv))
        size = x.shape[2] // heads
        outputs = []
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = queries[..., part] * size**-0.5 @ keys[..., part].mT
            weights = softmax(scores + hidden)
            weights = nn.functional.dropout(weights, p, self.training)
            outputs.append(weights @ values[..., part])
        mixed: Tensor = torch.cat(outputs, dim=-1) @ self.wo[n] + self.wo_bias[n]
        return mixed

    def forward(self, ids: Tensor) -> Tensor:
        vocab, _, layers, context, _ = self.sizes
        if ids.shape[1] > context:
            raise ValueError("too long")
        one_hot = torch.nn.functional.one_hot(ids, vocab).to(self.table.dtype)
        x = one_hot @ self.table + self.places[: ids.shape[1]]
        for n in range(layers):
            x = x + self.mix(normal(x, self.gains[2 * n], self.shifts[2 * n]), n)
            inner = normal(x, self.gains[2 * n + 1], self.shifts[2 * n + 1]) @ self.up[n]
            inner = inner + self.up_bias[n]
            inner = inner * 0.5 * (1 + torch.erf(inner / 2**0.5))
            x = x + inner @ self.down[n] + self.down_bias[n]
        result: Tensor = normal(x, self.gains[-1], self.shifts[-1]) @ self.table.T
        return result


def next_token_loss(logits: Tensor, ids: Tensor, ignore: Tensor | None = None) -> Tensor:
    logits, targets = logits[:, :-1], ids[:, 1:]
    surprise = logits.logsumexp(-1) - logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if ignore is None:
        return surprise.mean()
    counts = (~ignore[:, 1:]).to(surprise.dtype)
    return (surprise * counts).sum() / counts.sum()


def adamw_step(
    p: Tensor,
    g: Tensor,
    m: Tensor,
    v: Tensor,
    step: int,
    lr: float,
    betas: Any,
    eps: float,
    wd: float,
) -> Any:
    m = m.lerp(g, 1 - betas[0])
    v = v.lerp(g * g, 1 - betas[1])
    update = (m / (1 - betas[0] ** step)) / ((v / (1 - betas[1] ** step)).sqrt() + eps)
    return p * (1 - lr * wd) - lr * update, m, v


def generate(model: Any, ids: Tensor, new_tokens: int, context_length: int) -> Tensor:
    out = ids
    with torch.inference_mode():
        for _ in range(new_tokens):
            seen = out[:, max(0, out.shape[1] - context_length) :]
            best = model(seen)[:, -1].topk(1).indices
            out = torch.hstack((out, best))
    return out
