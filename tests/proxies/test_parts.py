"""Adoption of a block with two attentions, through a real jail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.seats import Adopted, assert_whole
from tests.support.transformers import CONTEXT, MAKE, Pair, X, block

PAIRS = {
    "aliases": block(
        "self.cross_attn, self.self_attn = Named(d, heads), Named(d, heads)\n"
        "self.ff = Mlp(d, hidden)\n"
        "self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d) for _ in range(3))",
        "x = x + self.self_attn(self.ln1(x))\nx = x + self.cross_attn(self.ln2(x), *more)\n"
        "return x + self.ff(self.ln3(x))",
        "Pair",
    ),
    "names that say nothing, in another order": block(
        "self.second, self.first, self.third = Named(d, heads), Named(d, heads), Mlp(d, hidden)\n"
        "self.c, self.b, self.a = (nn.LayerNorm(d) for _ in range(3))",
        "x = x + self.first(self.a(x))\nx = x + self.second(self.b(x), *more)\n"
        "return x + self.third(self.c(x))",
        "Pair",
    ),
    "all layers in the block itself": block(
        "self.heads = heads\n"
        "for name in ('q', 'k', 'v', 'cross_q', 'cross_k', 'cross_v'):\n"
        "    setattr(self, name, nn.Linear(d, d, bias=False))\n"
        "self.o, self.cross_o = nn.Linear(d, d), nn.Linear(d, d)\n"
        "self.fc1, self.fc2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
        "self.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))",
        "y = self.n[0](x)\n"
        "x = x + self.o(attend(self.q(y), self.k(y), self.v(y), self.heads))\n"
        "y, (c,) = self.n[1](x), more\n"
        "y = attend(self.cross_q(y), self.cross_k(c), self.cross_v(c), self.heads, False)\n"
        "x = x + self.cross_o(y)\n"
        "return x + self.fc2(torch.tanh(self.fc1(self.n[2](x))))",
        "Pair",
    ),
    "all layers in the block itself, told apart by numbers": block(
        "self.heads = heads\n"
        "for name in ('q1', 'k1', 'v1', 'q2', 'k2', 'v2'):\n"
        "    setattr(self, name, nn.Linear(d, d, bias=False))\n"
        "self.o1, self.o2 = nn.Linear(d, d), nn.Linear(d, d)\n"
        "self.fc1, self.fc2 = nn.Linear(d, hidden), nn.Linear(hidden, d)\n"
        "self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d) for _ in range(3))",
        "y = self.ln1(x)\n"
        "x = x + self.o1(attend(self.q1(y), self.k1(y), self.v1(y), self.heads))\n"
        "y, (c,) = self.ln2(x), more\n"
        "x = x + self.o2(attend(self.q2(y), self.k2(c), self.v2(c), self.heads, False))\n"
        "return x + self.fc2(torch.tanh(self.fc1(self.ln3(x))))",
        "Pair",
    ),
    "all layers in dicts, told apart by a letter": block(
        "self.heads = heads\n"
        "sizes = {'c': (hidden, d), 'down': (d, hidden)}\n"
        "names = [one + name for one in 'ab' for name in ('q', 'k', 'v', '_out')]\n"
        "self.w, self.v = nn.ParameterDict(), nn.ParameterDict()\n"
        "for name in (*names, *sizes):\n"
        "    self.w[name] = nn.Parameter(torch.rand(sizes.get(name, (d, d))))\n"
        "for name in ('m0', 'm1', 'm2', 'n0', 'n1', 'n2', 'a_out', 'b_out', 'c', 'down'):\n"
        "    self.v[name] = nn.Parameter(torch.ones(hidden if name == 'c' else d))",
        "w, v, (context,) = self.w, self.v, more\n"
        "def attention(a, x, seen, causal):\n"
        "    q, k, u = (F.linear(y, w[a + n]) for y, n in zip((x, seen, seen), 'qkv'))\n"
        "    y = attend(q, k, u, self.heads, causal)\n"
        "    return F.linear(y, w[a + '_out'], v[a + '_out'])\n"
        "normed = lambda x, i: F.layer_norm(x, x.shape[-1:], v['m' + i], v['n' + i])\n"
        "y = normed(x, '0')\n"
        "x = x + attention('a', y, y, True)\n"
        "x = x + attention('b', normed(x, '1'), context, False)\n"
        "y = torch.tanh(F.linear(normed(x, '2'), w['c'], v['c']))\n"
        "return x + F.linear(y, w['down'], v['down'])",
        "Pair",
    ),
    "lists without a name, the last layer first": block(
        "self.heads = heads\n"
        "self.b, self.a = Back(d), Back(d)\n"
        "self.c = nn.Sequential(nn.Linear(d, hidden), nn.Tanh(), nn.Linear(hidden, d))\n"
        "self.l, self.m, self.n = (nn.LayerNorm(d) for _ in range(3))",
        "y = self.m(x)\nx = x + self.a(y, y, self.heads, True)\n"
        "x = x + self.b(self.n(x), *more, self.heads, False)\nreturn x + self.c(self.l(x))",
        "Pair",
    )
    + """
class Back(nn.Module):
    def __init__(self, d):
        super().__init__()
        linears = [nn.Linear(d, d), *(nn.Linear(d, d, bias=False) for _ in range(3))]
        self.m = nn.ModuleList(linears)
    def forward(self, x, context, heads, causal):
        out, v, k, q = self.m
        return out(attend(q(x), k(context), v(context), heads, causal))
""",
}


@pytest.mark.parametrize("source", PAIRS.values(), ids=PAIRS)
def test_two_attentions_of_one_block_are_told_apart(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Pair, source, 8, 2, 12), X, CONTEXT, gradients=MAKE)
