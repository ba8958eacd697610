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


def prefixed(made: str, own: str, other: str, mlp: str = "self.mlp(n)") -> str:
    """A block in one class; `own` and `other` give q, k, v and the output layer of an attention."""
    q, k, v, o = own.split("; ")
    q2, k2, v2, o2 = other.split("; ")
    return block(
        "self.heads = heads\n"
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        f"{made}\n"
        "self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(d) for _ in range(3))",
        f"n, (c,) = self.ln1(x), more\nm = attend({q}, {k}, {v}, self.heads)\nx = x + {o}\n"
        f"n = self.ln2(x)\nm = attend({q2}, {k2}, {v2}, self.heads, False)\nx = x + {o2}\n"
        f"n = self.ln3(x)\nreturn x + {mlp}",
        "Pair",
    )


FUSED = "{0}(n)[..., :8]; {0}(n)[..., 8:16]; {0}(n)[..., 16:]; {1}(m)"
HALF_FUSED = "{0}(n); {1}(c)[..., :8]; {1}(c)[..., 8:]; {2}(m)"
BARE = "F.linear(n, {0}); F.linear({4}, {1}); F.linear({4}, {2}); F.linear(m, {3}, {5})"
PREFIXES = {
    "fused layers with a prefix for each attention": prefixed(
        "self.sa_qkv, self.sa_out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)\n"
        "self.ca_q, self.ca_kv = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)\n"
        "self.ca_out, self.mlp = nn.Linear(d, d), Mlp(d, hidden)",
        FUSED.format("self.sa_qkv", "self.sa_out"),
        HALF_FUSED.format("self.ca_q", "self.ca_kv", "self.ca_out"),
    ),
    "fused layers, of which those of one attention have a prefix": prefixed(
        "self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)\n"
        "self.c_q, self.c_kv = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)\n"
        "self.c_out, self.mlp = nn.Linear(d, d), Mlp(d, hidden)",
        FUSED.format("self.qkv", "self.out"),
        HALF_FUSED.format("self.c_q", "self.c_kv", "self.c_out"),
    ),
    "fused layers with a suffix": prefixed(
        "self.qkv_dec, self.out_dec = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)\n"
        "self.q_enc, self.kv_enc = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)\n"
        "self.out_enc, self.mlp = nn.Linear(d, d), Mlp(d, hidden)",
        FUSED.format("self.qkv_dec", "self.out_dec"),
        HALF_FUSED.format("self.q_enc", "self.kv_enc", "self.out_enc"),
    ),
    "bare (out, in) matrices with prefixes": prefixed(
        "self.s_Wq, self.s_Wk, self.s_Wv, self.s_Wo, self.s_bo = *(p(d, d) for _ in 'qkvo'), p(d)\n"
        "self.c_Wq, self.c_Wk, self.c_Wv, self.c_Wo, self.c_bo = *(p(d, d) for _ in 'qkvo'), p(d)\n"
        "self.mlp = Mlp(d, hidden)",
        BARE.format("self.s_Wq", "self.s_Wk", "self.s_Wv", "self.s_Wo", "n", "self.s_bo"),
        BARE.format("self.c_Wq", "self.c_Wk", "self.c_Wv", "self.c_Wo", "c", "self.c_bo"),
    ),
    "bare (out, in) matrices, of which those of one attention have a suffix": prefixed(
        "self.Wq, self.Wk, self.Wv, self.Wo, self.bo = *(p(d, d) for _ in 'qkvo'), p(d)\n"
        "self.Wq_x, self.Wk_x, self.Wv_x, self.Wo_x, self.bo_x = *(p(d, d) for _ in 'qkvo'), p(d)\n"
        "self.W1, self.b1, self.W2, self.b2 = p(hidden, d), p(hidden), p(d, hidden), p(d)",
        BARE.format("self.Wq", "self.Wk", "self.Wv", "self.Wo", "n", "self.bo"),
        BARE.format("self.Wq_x", "self.Wk_x", "self.Wv_x", "self.Wo_x", "c", "self.bo_x"),
        "F.linear(torch.tanh(F.linear(n, self.W1, self.b1)), self.W2, self.b2)",
    ),
    "a prefix that is the letter of a bias, too": prefixed(
        "self.a_qkv, self.a_out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)\n"
        "self.b_q, self.b_kv = nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False)\n"
        "self.b_out = nn.Linear(d, d)\n"
        "self.W1, self.b1, self.W2, self.b2 = p(hidden, d), p(hidden), p(d, hidden), p(d)",
        FUSED.format("self.a_qkv", "self.a_out"),
        HALF_FUSED.format("self.b_q", "self.b_kv", "self.b_out"),
        "F.linear(torch.tanh(F.linear(n, self.W1, self.b1)), self.W2, self.b2)",
    ),
    "a name for the second attention, which was made first": prefixed(
        "self.cross_q, self.cross_kv, self.cross_out ="
        " nn.Linear(d, d, bias=False), nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d)\n"
        "self.my_qkv, self.my_out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)\n"
        "self.mlp = Mlp(d, hidden)",
        FUSED.format("self.my_qkv", "self.my_out"),
        HALF_FUSED.format("self.cross_q", "self.cross_kv", "self.cross_out"),
    ),
}


@pytest.mark.parametrize("source", (PAIRS | PREFIXES).values(), ids=PAIRS | PREFIXES)
def test_two_attentions_of_one_block_are_told_apart(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Pair, source, 8, 2, 12), X, CONTEXT, gradients=MAKE)
