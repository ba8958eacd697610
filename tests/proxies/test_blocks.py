"""Adoption of blocks, through a real jail: parts find their weights, whatever the tree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.seats import Adopted, assert_whole
from tests.support.transformers import (
    BARE_BLOCK,
    FLAT_BLOCK,
    GPT_BLOCK,
    LETTERS_BLOCK,
    MAKE,
    PLAIN,
    Block,
    X,
    block,
)

BLOCKS = {
    "the reference's names": block(
        "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
        "self.attention = Named(d, heads)\nself.feed_forward = Mlp(d, hidden)",
        PLAIN.format(a="self.attention", f="self.feed_forward", n1="self.norm1", n2="self.norm2"),
    ),
    "aliases, the second norm made first": GPT_BLOCK,
    "norms whose names say nothing, the second made first": block(
        "self.a, self.b = Own(d), Own(d)\nself.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.b", n2="self.a"),
    ),
    "wrappers of a norm and what follows it": block(
        "self.steps = nn.ModuleList([PreNorm(d, PerHead(d, heads)), PreNorm(d, Mlp(d, hidden))])",
        "for step in self.steps:\n    x = x + step(x)\nreturn x",
    ),
    "all layers in the block itself": FLAT_BLOCK,
    "bare parameters": BARE_BLOCK,
    "vectors in a dict, of which the gains alone have a name": block(
        "self.h = heads\n"
        "ones, zeros, rand = torch.ones, torch.zeros, torch.rand\n"
        "self.w = nn.ParameterDict({'g1': ones(d), 's1': zeros(d), 'g2': ones(d), 's2': zeros(d),"
        " 'q': rand(d, d), 'k': rand(d, d), 'v': rand(d, d), 'o': rand(d, d), 'o_b': zeros(d),"
        " 'up': rand(hidden, d), 'up_b': zeros(hidden), 'down': rand(d, hidden),"
        " 'down_b': zeros(d)})",
        "w = self.w\n"
        "n = norm(x, w['g1'], w['s1'])\n"
        "seen = attend(*(F.linear(n, w[name]) for name in ('q', 'k', 'v')), self.h)\n"
        "x = x + F.linear(seen, w['o'], w['o_b'])\n"
        "n = norm(x, w['g2'], w['s2'])\n"
        "return x + F.linear(torch.tanh(F.linear(n, w['up'], w['up_b'])), w['down'], w['down_b'])",
    ),
    "a matrix of both gains, and one of both shifts": block(
        "self.gains = nn.Parameter(torch.ones(2, d))\n"
        "self.shifts = nn.Parameter(torch.zeros(2, d))\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, self.gains[0], self.shifts[0]))\n"
        "return x + self.mlp(norm(x, self.gains[1], self.shifts[1]))",
    ),
    "bare parameters, of which b2 is the bias of W2 and not the shift beside g2": block(
        "self.h = heads\n"
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        "self.Wq, self.Wk, self.Wv, self.Wo, self.bo = p(d, d), p(d, d), p(d, d), p(d, d), p(d)\n"
        "self.W1, self.b1, self.W2, self.b2 = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
        "self.g1, self.s1, self.g2, self.s2 = p(d), p(d), p(d), p(d)",
        "n = norm(x, self.g1, self.s1)\n"
        "x = x + attend(n @ self.Wq, n @ self.Wk, n @ self.Wv, self.h) @ self.Wo + self.bo\n"
        "n = norm(x, self.g2, self.s2)\n"
        "return x + torch.tanh(n @ self.W1 + self.b1) @ self.W2 + self.b2",
    ),
    "letters in the order of the alphabet, whatever they are names of": LETTERS_BLOCK,
    "a sequence with the norm inside": block(
        "self.attn = nn.Sequential(nn.LayerNorm(d), Fused(d, heads))\n"
        "self.ff = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, hidden), nn.Tanh(),"
        " nn.Linear(hidden, d))",
        "x = x + self.attn(x)\nreturn x + self.ff(x)",
    ),
    "gain and shift under names that say nothing": block(
        "self.a, self.b = nn.ParameterList([torch.ones(d), torch.zeros(d)]), Odd(d)\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, *self.a))\nreturn x + self.mlp(self.b(x))",
    )
    .replace(
        "self.a, self.b = nn.ParameterList([torch.ones(d), torch.zeros(d)])",
        "self.a, self.b = Odd(d)",
    )
    .replace("norm(x, *self.a)", "self.a(x)")
    + """
class Odd(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.first, self.second = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))
    def forward(self, x):
        return norm(x, self.second, self.first)
""",
}


@pytest.mark.parametrize("source", BLOCKS.values(), ids=BLOCKS)
def test_the_parts_of_a_block_find_their_weights_and_gradients(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Block, source, 8, 2, 12), X, gradients=MAKE)


def test_a_layer_as_large_as_a_whole_attention_is_one_layer(
    adopted: Callable[..., Adopted],
) -> None:
    assert_whole(adopted(Block, FLAT_BLOCK, 8, 2, 32), X)
