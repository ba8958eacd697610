"""Adoption of norms, through a real jail: around an attention, and in a block."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.testing import assert_agrees
from tests.support.attentions import TOKENS, Normed, linears, module, single
from tests.support.seats import Adopted, assert_whole
from tests.support.transformers import MAKE, PLAIN, Block, Gains, Shifted, X, block

# --- around an attention -------------------------------------------------------------------------

NORMS = {
    "torch's": ("nn.LayerNorm(d_in)", "nn.LayerNorm(d_out)"),
    "own": ("Own(d_in)", "Own(d_out)"),
}


@pytest.mark.parametrize("norms", NORMS.values(), ids=NORMS.keys())
def test_norms_are_adopted_with_what_they_multiply_by_and_add(
    adopted: Callable[..., Adopted], norms: tuple[str, str]
) -> None:
    first, second = norms
    source = single(
        f"self.n1, self.n2 = {first}, {second}\n" + linears("q", "k", "v"),
        "x = self.n1(x)\nreturn self.n2(attend(self.q(x), self.k(x), self.v(x)))",
    ).replace("Single", "Normed") + (
        "\n\nclass Own(nn.Module):\n"
        "    def __init__(self, d):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(d))\n"
        "        self.shift = nn.Parameter(torch.zeros(d))\n"
        "    def forward(self, x):\n"
        "        apart = x - x.mean(-1, keepdim=True)\n"
        "        spread = (apart.square().mean(-1, keepdim=True) + 1e-5).sqrt()\n"
        "        return self.scale * apart / spread + self.shift\n"
    )
    assert_whole(adopted(Normed, source, 3, 4), TOKENS, gradients=MAKE)


# --- in a block: norms that only multiply, and wrong ones ----------------------------------------

GAINS = {
    "gains in the block": block(
        "self.gain1, self.gain2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(F.rms_norm(x, x.shape[-1:], self.gain1, 1e-6))\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gain2, 1e-6))",
        "Gains",
    ),
    "gains with axes of one, of which one lies across": block(
        "self.gain1 = nn.Parameter(torch.ones(1, 1, d))\n"
        "self.gain2 = nn.Parameter(torch.ones(d, 1))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(self.gain1 * F.rms_norm(x, x.shape[-1:], eps=1e-6))\n"
        "return x + self.ff(self.gain2[:, 0] * F.rms_norm(x, x.shape[-1:], eps=1e-6))",
        "Gains",
    ),
    "gains in a list": block(
        "self.gains = nn.ParameterList(torch.ones(d) for _ in range(2))\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(F.rms_norm(x, x.shape[-1:], self.gains[0], 1e-6))\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gains[1], 1e-6))",
        "Gains",
    ),
    "gains beside a bias with a name of its own": block(
        "self.heads, self.bo = heads, nn.Parameter(torch.zeros(d))\n"
        "self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))\n"
        "self.ff = Mlp(d, hidden)\n"
        "self.attn_norm = nn.Parameter(torch.ones(d))\n"
        "self.ffn_norm = nn.Parameter(torch.ones(d))",
        "y = F.rms_norm(x, x.shape[-1:], self.attn_norm, 1e-6)\n"
        "x = x + self.o(attend(self.q(y), self.k(y), self.v(y), self.heads)) + self.bo\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.ffn_norm, 1e-6))",
        "Gains",
    ),
    "torch's norms": block(
        "self.a, self.b = nn.RMSNorm(d, eps=1e-6), nn.RMSNorm(d, eps=1e-6)\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(self.a(x))\nreturn x + self.ff(self.b(x))",
        "Gains",
    ),
    "letters in two dicts, of which o, u and l are matrices in one and biases in the other": block(
        "self.heads = heads\n"
        "sizes = {'u': (hidden, d), 'l': (d, hidden)}\n"
        "self.w = nn.ParameterDict({n: torch.rand(sizes.get(n, (d, d))) for n in 'qkvoul'})\n"
        "self.v = nn.ParameterDict({n: torch.ones(hidden if n == 'u' else d) for n in 'mnoul'})",
        "w, v = self.w, self.v\n"
        "y = F.rms_norm(x, x.shape[-1:], v['m'], 1e-6)\n"
        "y = attend(*(F.linear(y, w[name]) for name in 'qkv'), self.heads)\n"
        "x = x + F.linear(y, w['o'], v['o'])\n"
        "y = F.linear(F.rms_norm(x, x.shape[-1:], v['n'], 1e-6), w['u'], v['u'])\n"
        "return x + F.linear(torch.tanh(y), w['l'], v['l'])",
        "Gains",
    ),
    "one dict of all weights, whose names say nothing of the norms": block(
        "self.heads, sizes = heads, {'n1': (d,), 'n2': (d,), 'bo': (d,), 'bd': (d,)}\n"
        "sizes |= {'up': (d, hidden), 'bu': (hidden,), 'down': (hidden, d)}\n"
        "names = ('wq', 'wk', 'wv', 'wo', *sizes)\n"
        "self.p = nn.ParameterDict({n: torch.rand(sizes.get(n, (d, d))) for n in names})",
        "p = self.p\n"
        "y = F.rms_norm(x, x.shape[-1:], p['n1'], 1e-6)\n"
        "x = x + attend(y @ p['wq'], y @ p['wk'], y @ p['wv'], self.heads) @ p['wo'] + p['bo']\n"
        "y = F.rms_norm(x, x.shape[-1:], p['n2'], 1e-6)\n"
        "return x + torch.tanh(y @ p['up'] + p['bu']) @ p['down'] + p['bd']",
        "Gains",
    ),
    "a matrix of both gains beside a bias that is as wide": block(
        "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
        "self.qkv, self.o, self.ob = p(3, heads, d, d // heads), p(heads, d // heads, d), p(d)\n"
        "self.gains, self.ff = p(2, d), Mlp(d, hidden)",
        "y = F.rms_norm(x, x.shape[-1:], self.gains[0], 1e-6)\n"
        "q, k, v = torch.einsum('btd,chde->cbthe', y, self.qkv).flatten(-2)\n"
        "y = attend(q, k, v, self.o.shape[0])\n"
        "x = x + y @ self.o.flatten(0, 1) + self.ob\n"
        "return x + self.ff(F.rms_norm(x, x.shape[-1:], self.gains[1], 1e-6))",
        "Gains",
    ),
}


@pytest.mark.parametrize("source", GAINS.values(), ids=GAINS)
def test_norms_without_a_shift_are_adopted(adopted: Callable[..., Adopted], source: str) -> None:
    assert_whole(adopted(Gains, source, 8, 2, 12), X, gradients=MAKE)


def pairs(made: str, first: str, second: str) -> str:
    """A block with two norms that are not modules: each is given by its gain and its shift."""
    return block(
        f"ones, zeros = lambda: torch.ones(d), lambda: torch.zeros(d)\n{made}\n"
        "self.attn, self.ff = Named(d, heads), Mlp(d, hidden)",
        f"x = x + self.attn(norm(x, {first}))\nreturn x + self.ff(norm(x, {second}))",
    )


PAIRS = {
    "a list for each norm": pairs(
        "self.norm1 = nn.ParameterList([ones(), zeros()])\n"
        "self.norm2 = nn.ParameterList([ones(), zeros()])",
        "*self.norm1",
        "*self.norm2",
    ),
    "a list for each norm, its shift first": pairs(
        "self.n1, self.n2 = (nn.ParameterList([zeros(), ones()]) for _ in range(2))",
        "self.n1[1], self.n1[0]",
        "self.n2[1], self.n2[0]",
    ),
    "a list for each norm, of which one is called b": pairs(
        "self.a, self.b = (nn.ParameterList([ones(), zeros()]) for _ in range(2))",
        "*self.a",
        "*self.b",
    ),
    "lists in a list": pairs(
        "self.norms = nn.ModuleList(nn.ParameterList([ones(), zeros()]) for _ in range(2))",
        "*self.norms[0]",
        "*self.norms[1]",
    ),
    "a dict for each norm": pairs(
        "made = lambda: nn.ParameterDict({'a': ones(), 'b': zeros()})\n"
        "self.norm1, self.norm2 = made(), made()",
        "self.norm1['a'], self.norm1['b']",
        "self.norm2['a'], self.norm2['b']",
    ),
    "vectors of the block itself, whose names say nothing": pairs(
        "self.c, self.e = nn.Parameter(ones()), nn.Parameter(zeros())\n"
        "self.m, self.n = nn.Parameter(ones()), nn.Parameter(zeros())",
        "self.c, self.e",
        "self.m, self.n",
    ),
    "vectors of the block itself, whose names say nothing, gains first": pairs(
        "self.c, self.e = nn.Parameter(ones()), nn.Parameter(ones())\n"
        "self.m, self.n = nn.Parameter(zeros()), nn.Parameter(zeros())",
        "self.c, self.m",
        "self.e, self.n",
    ),
    "one list, norm by norm": pairs(
        "self.norms = nn.ParameterList([ones(), zeros(), ones(), zeros()])",
        "self.norms[0], self.norms[1]",
        "self.norms[2], self.norms[3]",
    ),
    "one list, both gains first": pairs(
        "self.norms = nn.ParameterList([ones(), ones(), zeros(), zeros()])",
        "self.norms[0], self.norms[2]",
        "self.norms[1], self.norms[3]",
    ),
    "a matrix for each norm": pairs(
        "self.norm1, self.norm2 = (nn.Parameter(torch.stack([ones(), zeros()])) for _ in range(2))",
        "*self.norm1",
        "*self.norm2",
    ),
    "a matrix for each norm, its shift first": pairs(
        "self.ln1, self.ln2 = (nn.Parameter(torch.stack([zeros(), ones()])) for _ in range(2))",
        "self.ln1[1], self.ln1[0]",
        "self.ln2[1], self.ln2[0]",
    ),
    "one matrix, norm by norm": pairs(
        "self.norms = nn.Parameter(torch.stack([ones(), zeros(), ones(), zeros()]))",
        "*self.norms[:2]",
        "*self.norms[2:]",
    ),
    "one tensor, both gains first": pairs(
        "self.norms = nn.Parameter(torch.ones(2, 2, d))",
        "*self.norms[:, 0]",
        "*self.norms[:, 1]",
    ),
    "a list of matrices": pairs(
        "self.norms = nn.ParameterList(torch.ones(2, d) for _ in range(2))",
        "*self.norms[0]",
        "*self.norms[1]",
    ),
    "a vector for each norm, its shift behind its gain": pairs(
        "self.norm1, self.norm2 = (nn.Parameter(torch.cat([ones(), zeros()])) for _ in range(2))",
        "*self.norm1.chunk(2)",
        "*self.norm2.chunk(2)",
    ),
    "modules that hold a matrix": pairs(
        "self.n1, self.n2 = Pair(d), Pair(d)", "*self.n1.p", "*self.n2.p"
    )
    + """
class Pair(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.p = nn.Parameter(torch.ones(2, d))
""",
}


@pytest.mark.parametrize("source", PAIRS.values(), ids=PAIRS)
def test_a_gain_and_its_shift_are_adopted_wherever_they_are(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Block, source, 8, 2, 12), X, gradients=MAKE)


def test_norms_under_each_others_names_stay_wrong(adopted: Callable[..., Adopted]) -> None:
    source = block(
        "self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)\n"
        "self.attention = Named(d, heads)\nself.feed_forward = Mlp(d, hidden)",
        PLAIN.format(a="self.attention", f="self.feed_forward", n1="self.norm2", n2="self.norm1"),
    )
    theirs, ours, _ = adopted(Block, source, 8, 2, 12)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(X), ours(X))


def test_a_norm_that_is_missing_is_reported(adopted: Callable[..., Adopted]) -> None:
    source = block(
        "self.ln1 = nn.LayerNorm(d)\nself.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.ln1", n2="self.ln1"),
    )
    theirs, ours, adoption = adopted(Block, source, 8, 2, 12)
    assert adoption.missing == ("norm2", "norm2.bias")
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(X), ours(X))


# --- a norm that is the whole answer -------------------------------------------------------------

ALONE = {
    names: module(
        "Shifted",
        "d",
        f"self.{gain}, self.{shift} = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))",
        f"return norm(x, self.{gain}, self.{shift})",
        "x",
    )
    for names in ("gain shift", "weight bias", "gamma beta", "a_2 b_2")
    for gain, shift in [names.split()]
} | {"torch's": module("Shifted", "d", "self.norm = nn.LayerNorm(d)", "return self.norm(x)", "x")}


@pytest.mark.parametrize("source", ALONE.values(), ids=ALONE)
def test_a_norm_with_a_shift_of_its_own_is_adopted(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Shifted, source, 8), X, gradients=MAKE)


def test_a_shift_that_is_missing_is_zero(adopted: Callable[..., Adopted]) -> None:
    source = module(
        "Shifted",
        "d",
        "self.gain = nn.Parameter(torch.ones(d))",
        "return norm(x, self.gain, 0)",
        "x",
    )
    theirs, ours, adoption = adopted(Shifted, source, 8)
    assert adoption.missing == ("gain.bias",)
    assert_agrees(theirs(X), ours(X))
