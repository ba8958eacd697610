"""Adoption of several heads, through a real jail: one wide projection, or modules of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.testing import assert_agrees
from tests.support.attentions import BATCH, HEAD, HEADS, MAKE, WIDE, Many, Wrapper, many
from tests.support.seats import Adopted, assert_whole

# --- a reference with wide projections -----------------------------------------------------------

MANY = {
    "wide projections": WIDE,
    "a list of heads": HEAD
    + many(
        "each = d_out // num_heads\n"
        "self.heads = nn.ModuleList(Head(d_in, each, False) for _ in range(num_heads))\n"
        "self.out_proj = nn.Linear(d_out, d_out)",
        "return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))",
    ),
    "a list of projections for each role": many(
        "def several():\n"
        "    each = (nn.Linear(d_in, d_out // num_heads, bias=False) for _ in range(num_heads))\n"
        "    return nn.ModuleList(each)\n"
        "self.queries, self.keys, self.values = several(), several(), several()\n"
        "self.output = nn.Linear(d_out, d_out)",
        "heads = zip(self.queries, self.keys, self.values)\n"
        "return self.output(torch.cat([attend(q(x), k(x), v(x)) for q, k, v in heads], dim=-1))",
    ),
    "a list of bare matrices for each role": many(
        "each = d_out // num_heads\n"
        "def several():\n"
        "    return nn.ParameterList(torch.rand(d_in, each) for _ in range(num_heads))\n"
        "self.Wq, self.Wk, self.Wv = several(), several(), several()\n"
        "self.out_proj = nn.Linear(d_out, d_out)",
        "heads = (attend(x @ q, x @ k, x @ v) for q, k, v in zip(self.Wq, self.Wk, self.Wv))\n"
        "return self.out_proj(torch.cat([*heads], dim=-1))",
    ),
    "fused": many(
        "self.n = num_heads\n"
        "self.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)\n"
        "self.c_proj = nn.Linear(d_out, d_out)",
        "q, k, v = (split(part, self.n) for part in self.c_attn(x).chunk(3, dim=-1))\n"
        "return self.c_proj(attend(q, k, v).transpose(1, 2).flatten(2))",
    ),
    "fused, head by head": many(
        "self.n = num_heads\n"
        "self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)\n"
        "self.out = nn.Linear(d_out, d_out)",
        "heads = self.qkv(x).unflatten(-1, (self.n, 3, -1)).transpose(1, 2)\n"
        "return self.out(attend(*heads.unbind(-2)).transpose(1, 2).flatten(2))",
    ),
    "fused, bare, (d_in, 3, heads, head_dim)": many(
        "self.everything = nn.Parameter(torch.rand(d_in, 3, num_heads, d_out // num_heads))\n"
        "self.out = nn.Linear(d_out, d_out)",
        'heads = torch.einsum("bti,irhd->rbhtd", x, self.everything)\n'
        "return self.out(attend(*heads).transpose(1, 2).flatten(2))",
    ),
    "bare parameters with a dimension of heads": many(
        "def stacked():\n"
        "    return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))\n"
        "self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()\n"
        "self.W_o = nn.Parameter(torch.rand(d_out, d_out))\n"
        "self.b_o = nn.Parameter(torch.rand(d_out))",
        "q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))\n"
        "return attend(q, k, v).transpose(1, 2).flatten(2) @ self.W_o + self.b_o",
    ),
    "an output matrix with the heads split": many(
        "def stacked():\n"
        "    return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))\n"
        "self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()\n"
        "self.W_o = nn.Parameter(torch.rand(num_heads, d_out // num_heads, d_out))\n"
        "self.b_o = nn.Parameter(torch.rand(1, d_out))",
        "q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))\n"
        'return torch.einsum("bhtd,hdo->bto", attend(q, k, v), self.W_o) + self.b_o',
    ),
    "an output matrix that is split behind its rows": many(
        "def cut(first):\n"
        "    return nn.Parameter(torch.rand(first, num_heads, d_out // num_heads))\n"
        "self.W_q, self.W_k, self.W_v, self.W_o = cut(d_in), cut(d_in), cut(d_in), cut(d_out)\n"
        "self.b_o = nn.Parameter(torch.rand(d_out))",
        "weights = self.W_q, self.W_k, self.W_v\n"
        'q, k, v = (torch.einsum("bti,ihd->bhtd", x, weight) for weight in weights)\n'
        'return torch.einsum("bhtd,ohd->bto", attend(q, k, v), self.W_o) + self.b_o',
    ),
    "an output layer for each head": many(
        "self.n, each = num_heads, d_out // num_heads\n"
        "self.W_query = nn.Linear(d_in, d_out, bias=False)\n"
        "self.W_key = nn.Linear(d_in, d_out, bias=False)\n"
        "self.W_value = nn.Linear(d_in, d_out, bias=False)\n"
        "self.out = nn.ModuleList(nn.Linear(each, d_out, bias=n == 0) for n in range(num_heads))",
        "q, k, v = (split(p(x), self.n) for p in (self.W_query, self.W_key, self.W_value))\n"
        "heads = attend(q, k, v).unbind(1)\n"
        "return sum(out(head) for out, head in zip(self.out, heads))",
    ),
    "fused under a name that says nothing, and an unnamed output": many(
        "self.n = num_heads\n"
        "self.a = nn.Linear(d_in, 3 * d_out, bias=False)\n"
        "self.b = nn.Linear(d_out, d_out)",
        "k, q, v = (split(part, self.n) for part in self.a(x).chunk(3, dim=-1))\n"
        "return self.b(attend(q, k, v).transpose(1, 2).flatten(2))",
    ),
    "one list of all layers": many(
        "self.n = num_heads\n"
        "projections = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]\n"
        "self.layers = nn.ModuleList([*projections, nn.Linear(d_out, d_out)])",
        "k, v, q = (split(layer(x), self.n) for layer in self.layers[:3])\n"
        "return self.layers[3](attend(q, k, v).transpose(1, 2).flatten(2))",
    ),
    "names that say nothing": many(
        "self.n = num_heads\n"
        "self.alpha = nn.Linear(d_out, d_out)\n"
        "self.beta = nn.Linear(d_in, d_out, bias=False)\n"
        "self.gamma = nn.Linear(d_in, d_out, bias=False)\n"
        "self.delta = nn.Linear(d_in, d_out, bias=False)",
        "q, k, v = (split(p(x), self.n) for p in (self.delta, self.beta, self.gamma))\n"
        "return self.alpha(attend(q, k, v).transpose(1, 2).flatten(2))",
    ),
}


@pytest.mark.parametrize("source", MANY.values(), ids=MANY)
def test_several_heads_find_the_rows_of_a_wide_reference(
    adopted: Callable[..., Adopted], source: str
) -> None:
    for d_out in (6, 3):
        assert_whole(adopted(Many, source, 3, d_out, 3), BATCH, gradients=MAKE)


# --- a reference with a module for each head -----------------------------------------------------

WRAPPERS = {
    "a list of heads": HEADS,
    "bare matrices and biases, with a dimension of heads": many(
        "def stacked(*shape):\n"
        "    return nn.Parameter(torch.rand(num_heads, *shape))\n"
        "self.Wq, self.Wk, self.Wv = (stacked(d_in, d_out) for _ in range(3))\n"
        "self.bq, self.bk, self.bv = (stacked(d_out) for _ in range(3))",
        "parts = (self.Wq, self.bq), (self.Wk, self.bk), (self.Wv, self.bv)\n"
        "q, k, v = (x.unsqueeze(1) @ w + b.unsqueeze(1) for w, b in parts)\n"
        "return attend(q, k, v).transpose(1, 2).flatten(2)",
        "Wrapper",
    ),
    "a list of heads under another name": HEAD
    + many(
        "self.attentions = nn.ModuleList(Head(d_in, d_out, True) for _ in range(num_heads))",
        "return torch.cat([head(x) for head in self.attentions], dim=-1)",
        "Wrapper",
    ),
    "heads as numbered attributes": HEAD
    + many(
        "self.n = num_heads\n"
        "for i in range(num_heads):\n"
        "    self.add_module(str(i), Head(d_in, d_out, True))",
        "return torch.cat([getattr(self, str(i))(x) for i in range(self.n)], dim=-1)",
        "Wrapper",
    ),
    "one wide projection for each role": many(
        "self.n = num_heads\n"
        "self.query = nn.Linear(d_in, num_heads * d_out)\n"
        "self.key = nn.Linear(d_in, num_heads * d_out)\n"
        "self.value = nn.Linear(d_in, num_heads * d_out)",
        "q, k, v = (split(p(x), self.n) for p in (self.query, self.key, self.value))\n"
        "return attend(q, k, v).transpose(1, 2).flatten(2)",
        "Wrapper",
    ),
    "one wide projection for all roles": many(
        "self.n = num_heads\nself.qkv = nn.Linear(d_in, 3 * num_heads * d_out)",
        "q, k, v = (split(part, self.n) for part in self.qkv(x).chunk(3, dim=-1))\n"
        "return attend(q, k, v).transpose(1, 2).flatten(2)",
        "Wrapper",
    ),
}


@pytest.mark.parametrize("source", WRAPPERS.values(), ids=WRAPPERS)
def test_the_heads_of_a_reference_are_taken_in_order(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Wrapper, source, 3, 4, 2), BATCH, gradients=MAKE)


def test_eleven_heads_are_taken_by_number_and_not_by_the_alphabet(
    adopted: Callable[..., Adopted],
) -> None:
    backwards = "for i in reversed(range(num_heads)):"
    source = WRAPPERS["heads as numbered attributes"].replace(
        "for i in range(num_heads):\n", f"{backwards}\n"
    )
    assert backwards in source
    theirs, ours, _ = adopted(Wrapper, source, 3, 2, 11)
    assert_agrees(theirs(BATCH), ours(BATCH))
