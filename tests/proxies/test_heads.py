"""Adoption of several heads, through a real jail: one wide projection, or modules of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.testing import assert_agrees, assert_gradients_agree
from tests.support.attentions import BATCH, HEAD, HEADS, MAKE, WIDE, Many, Wrapper
from tests.support.seats import Adopted

# --- a reference with wide projections -----------------------------------------------------------

MANY = {
    "wide projections": WIDE,
    "a list of heads": f"""
{HEAD}
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_in, d_out // num_heads, False) for _ in range(num_heads))
        self.out_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))
""",
    "a list of projections for each role": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def several():
            each = (nn.Linear(d_in, d_out // num_heads, bias=False) for _ in range(num_heads))
            return nn.ModuleList(each)
        self.queries, self.keys, self.values = several(), several(), several()
        self.output = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = zip(self.queries, self.keys, self.values)
        return self.output(torch.cat([attend(q(x), k(x), v(x)) for q, k, v in heads], dim=-1))
""",
    "a list of bare matrices for each role": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def several():
            return nn.ParameterList(torch.rand(d_in, d_out // num_heads) for _ in range(num_heads))
        self.Wq, self.Wk, self.Wv = several(), several(), several()
        self.out_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = zip(self.Wq, self.Wk, self.Wv)
        return self.out_proj(torch.cat([attend(x @ q, x @ k, x @ v) for q, k, v in heads], dim=-1))
""",
    "fused": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)
    def forward(self, x):
        q, k, v = (split(part, self.n) for part in self.c_attn(x).chunk(3, dim=-1))
        return self.c_proj(attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "fused, head by head": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=False)
        self.out = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (self.n, 3, -1)).transpose(1, 2)
        return self.out(attend(*heads.unbind(-2)).transpose(1, 2).flatten(2))
""",
    "fused, bare, (d_in, 3, heads, head_dim)": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.everything = nn.Parameter(torch.rand(d_in, 3, num_heads, d_out // num_heads))
        self.out = nn.Linear(d_out, d_out)
    def forward(self, x):
        heads = torch.einsum("bti,irhd->rbhtd", x, self.everything)
        return self.out(attend(*heads).transpose(1, 2).flatten(2))
""",
    "bare parameters with a dimension of heads": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked():
            return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))
        self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()
        self.W_o = nn.Parameter(torch.rand(d_out, d_out))
        self.b_o = nn.Parameter(torch.rand(d_out))
    def forward(self, x):
        q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))
        return attend(q, k, v).transpose(1, 2).flatten(2) @ self.W_o + self.b_o
""",
    "an output matrix with the heads split": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked():
            return nn.Parameter(torch.rand(num_heads, d_in, d_out // num_heads))
        self.W_q, self.W_k, self.W_v = stacked(), stacked(), stacked()
        self.W_o = nn.Parameter(torch.rand(num_heads, d_out // num_heads, d_out))
        self.b_o = nn.Parameter(torch.rand(1, d_out))
    def forward(self, x):
        q, k, v = (x.unsqueeze(1) @ weight for weight in (self.W_q, self.W_k, self.W_v))
        return torch.einsum("bhtd,hdo->bto", attend(q, k, v), self.W_o) + self.b_o
""",
    "an output matrix that is split behind its rows": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def cut(first):
            return nn.Parameter(torch.rand(first, num_heads, d_out // num_heads))
        self.W_q, self.W_k, self.W_v, self.W_o = cut(d_in), cut(d_in), cut(d_in), cut(d_out)
        self.b_o = nn.Parameter(torch.rand(d_out))
    def forward(self, x):
        weights = self.W_q, self.W_k, self.W_v
        q, k, v = (torch.einsum("bti,ihd->bhtd", x, weight) for weight in weights)
        return torch.einsum("bhtd,ohd->bto", attend(q, k, v), self.W_o) + self.b_o
""",
    "an output layer for each head": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n, each = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out = nn.ModuleList(nn.Linear(each, d_out, bias=n == 0) for n in range(num_heads))
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.W_query, self.W_key, self.W_value))
        heads = attend(q, k, v).unbind(1)
        return sum(out(head) for out, head in zip(self.out, heads))
""",
    "fused under a name that says nothing, and an unnamed output": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.a = nn.Linear(d_in, 3 * d_out, bias=False)
        self.b = nn.Linear(d_out, d_out)
    def forward(self, x):
        k, q, v = (split(part, self.n) for part in self.a(x).chunk(3, dim=-1))
        return self.b(attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "one list of all layers": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        projections = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]
        self.layers = nn.ModuleList([*projections, nn.Linear(d_out, d_out)])
    def forward(self, x):
        k, v, q = (split(layer(x), self.n) for layer in self.layers[:3])
        return self.layers[3](attend(q, k, v).transpose(1, 2).flatten(2))
""",
    "names that say nothing": """
class Many(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.alpha = nn.Linear(d_out, d_out)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_out, bias=False)
        self.delta = nn.Linear(d_in, d_out, bias=False)
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.delta, self.beta, self.gamma))
        return self.alpha(attend(q, k, v).transpose(1, 2).flatten(2))
""",
}


@pytest.mark.parametrize("source", MANY.values(), ids=MANY)
def test_several_heads_find_the_rows_of_a_wide_reference(
    adopted: Callable[..., Adopted], source: str
) -> None:
    for d_out in (6, 3):
        theirs, ours, adoption = adopted(Many, source, 3, d_out, 3)
        assert_agrees(theirs(BATCH), ours(BATCH))
        assert_gradients_agree(theirs, ours, BATCH, make=MAKE)
        assert (adoption.missing, adoption.extra) == ((), ())


# --- a reference with a module for each head -----------------------------------------------------

WRAPPERS = {
    "a list of heads": HEADS,
    "bare matrices and biases, with a dimension of heads": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        def stacked(*shape):
            return nn.Parameter(torch.rand(num_heads, *shape))
        self.Wq, self.Wk, self.Wv = (stacked(d_in, d_out) for _ in range(3))
        self.bq, self.bk, self.bv = (stacked(d_out) for _ in range(3))
    def forward(self, x):
        parts = (self.Wq, self.bq), (self.Wk, self.bk), (self.Wv, self.bv)
        q, k, v = (x.unsqueeze(1) @ w + b.unsqueeze(1) for w, b in parts)
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
    "a list of heads under another name": f"""
{HEAD}
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.attentions = nn.ModuleList(Head(d_in, d_out, True) for _ in range(num_heads))
    def forward(self, x):
        return torch.cat([head(x) for head in self.attentions], dim=-1)
""",
    "heads as numbered attributes": f"""
{HEAD}
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        for i in range(num_heads):
            self.add_module(str(i), Head(d_in, d_out, True))
    def forward(self, x):
        return torch.cat([getattr(self, str(i))(x) for i in range(self.n)], dim=-1)
""",
    "one wide projection for each role": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.query = nn.Linear(d_in, num_heads * d_out)
        self.key = nn.Linear(d_in, num_heads * d_out)
        self.value = nn.Linear(d_in, num_heads * d_out)
    def forward(self, x):
        q, k, v = (split(p(x), self.n) for p in (self.query, self.key, self.value))
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
    "one wide projection for all roles": """
class Wrapper(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.qkv = nn.Linear(d_in, 3 * num_heads * d_out)
    def forward(self, x):
        q, k, v = (split(part, self.n) for part in self.qkv(x).chunk(3, dim=-1))
        return attend(q, k, v).transpose(1, 2).flatten(2)
""",
}


@pytest.mark.parametrize("source", WRAPPERS.values(), ids=WRAPPERS)
def test_the_heads_of_a_reference_are_taken_in_order(
    adopted: Callable[..., Adopted], source: str
) -> None:
    theirs, ours, adoption = adopted(Wrapper, source, 3, 4, 2)
    assert_agrees(theirs(BATCH), ours(BATCH))
    assert_gradients_agree(theirs, ours, BATCH, make=MAKE)
    assert (adoption.missing, adoption.extra) == ((), ())


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
