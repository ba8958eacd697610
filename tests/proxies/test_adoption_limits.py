"""What adoption does not do: mend a mistake, find a place that is not there, search without end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch

from grader.proxies.matching import candidates
from grader.proxies.slots import Unadoptable, WantedRoles
from grader.testing import assert_agrees
from grader.wire import ParameterInfo
from tests.support.attentions import BATCH, HEADS, TOKENS, Single, Wrapper, linears, single
from tests.support.seats import Adopted

# --- names are final -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("W_query", "W_key", "W_value"),
        ("q_proj", "k_proj", "v_proj"),
        ("to_q", "to_k", "to_v"),
    ],
    ids=" ".join,
)
def test_weights_used_under_each_others_names_give_wrong_values(
    adopted: Callable[..., Adopted], names: tuple[str, str, str]
) -> None:
    query, key, value = names
    source = single(
        linears(*names), f"return attend(self.{value}(x), self.{key}(x), self.{query}(x))"
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    assert torch.equal(theirs.values()[f"{query}.weight"], ours.W_query.weight)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(TOKENS), ours(TOKENS))


def test_names_are_final_in_a_list_of_heads_too(adopted: Callable[..., Adopted]) -> None:
    source = HEADS.replace(
        "attend(self.query(x), self.key(x), self.value(x))",
        "attend(self.value(x), self.key(x), self.query(x))",
    )
    theirs, ours, _ = adopted(Wrapper, source, 3, 4, 2)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(BATCH), ours(BATCH))


def test_a_mistake_is_not_adopted_away(adopted: Callable[..., Adopted]) -> None:
    source = single(
        linears("alpha", "beta", "gamma"),
        "q, k, v = self.alpha(x), self.beta(x), self.gamma(x)\n"
        "return torch.softmax(q @ k.T, dim=-1) @ v",
    )
    theirs, ours, _ = adopted(Single, source, 3, 4)
    with pytest.raises(AssertionError, match="differ"):
        assert_agrees(theirs(TOKENS), ours(TOKENS))


# --- modules that have no place for the weights --------------------------------------------------


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            single("self.d = d_out", "return x.sum(-1, keepdim=True).expand(-1, self.d)"),
            "no floating-point parameters",
        ),
        (
            single(
                "self.w = [nn.Linear(d_in, d_out, bias=False) for _ in range(3)]",
                "return attend(*(w(x) for w in self.w))",
            ),
            "no floating-point parameters",
        ),
        (
            single(
                "self.Wq, self.Wk, self.Wv = (torch.rand(d_in, d_out) for _ in range(3))",
                "return attend(x @ self.Wq, x @ self.Wk, x @ self.Wv)",
            ),
            "nn.Parameter or nn.Linear",
        ),
        (
            single(linears("q"), "return attend(self.q(x), self.q(x), self.q(x))"),
            "found for W_key, W_value: q.weight is W_query, and the module has nothing else",
        ),
        (
            single(
                linears("alpha", "beta"),
                "return attend(self.alpha(x), self.alpha(x), self.beta(x))",
            ),
            "alpha.weight (4, 3), beta.weight (4, 3)",
        ),
        (
            single(
                "self.q, self.k, self.v = (nn.Linear(d_in, 5, bias=False) for _ in range(3))",
                "return attend(self.q(x), self.k(x), self.v(x))[:, :4]",
            ),
            "q.weight has shape (5, 3)",
        ),
        (
            single(
                "self.qkv = nn.ModuleList([nn.Linear(d_in, d_out, bias=False)] * 3)",
                "return attend(*(layer(x) for layer in self.qkv))",
            ),
            "qkv.0.weight has room for one of W_query, W_key, W_value: is it the same layer",
        ),
        (
            single(
                f"{linears('query', 'key')}\nself.extra = nn.Linear(5, 7)",
                "return attend(self.query(x), self.key(x), self.key(x))",
            ),
            "no parameters were found for W_value: query.weight is W_query, key.weight is W_key, "
            "and the module has extra.weight (7, 5), extra.bias (7,). Make each weight",
        ),
    ],
    ids=[
        "none",
        "in a list",
        "plain tensors",
        "one for three",
        "two for three",
        "other sizes",
        "one layer three times",
        "one lacking",
    ],
)
def test_a_module_without_a_place_for_a_weight_is_told_what_it_has(
    adopted: Callable[..., Adopted], source: str, told: str
) -> None:
    with pytest.raises(Unadoptable) as caught:
        adopted(Single, source, 3, 4)
    assert told in str(caught.value)
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("form", ["utils", "utils.parametrizations"])
def test_layers_under_weight_norm_are_named(adopted: Callable[..., Adopted], form: str) -> None:
    source = single(
        linears("q", "k", "v") + f"\nself.q = torch.nn.{form}.weight_norm(self.q)",
        "return attend(self.q(x), self.k(x), self.v(x))",
    )
    with pytest.raises(Unadoptable, match="weight_norm computes the weight of q from"):
        adopted(Single, source, 3, 4)


# --- how long a search may take ------------------------------------------------------------------


def test_a_search_among_many_biases_without_a_name_ends_soon(
    adopted: Callable[..., Adopted],
) -> None:
    source = single(
        linears("q", "k", "v")
        + "\nself.more = nn.ParameterList(torch.zeros(5) for _ in range(60))",
        "return attend(self.q(x), self.k(x), self.v(x)) + 0 * sum(m.sum() for m in self.more)",
    )
    theirs, _, adoption = adopted(Single, source, 3, 4, True)
    assert len(adoption.missing) == 3
    assert len(adoption.extra) == len(theirs.parameters()) - 3


@contextmanager
def at_most_calls(most: int) -> Iterator[None]:
    """Fail at one call too many inside: a count of calls is the same everywhere, a time is not."""
    calls = 0

    def counted(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > most:
            sys.setprofile(None)
            pytest.fail(f"the search takes more than {most:,} calls")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("shape", [(6, 6), (12, 6), (12, 4), (6, 4), (16, 6)])
def test_a_search_among_many_weights_without_a_name_ends_soon(shape: tuple[int, int]) -> None:
    """Five roles of which no weight fits all: 95,000 ways to share them out among eight weights."""
    roles = (
        ("W_query", (6, 6)),
        ("W_down", (4, 6)),
        ("W_up_key", (6, 4)),
        ("W_up_value", (6, 4)),
        ("out_proj", (6, 6)),
    )
    unnamed = tuple(ParameterInfo(f"{letter}x", shape, "float32", "Own") for letter in "abcdefgh")
    with at_most_calls(3 * 10**6), pytest.raises(Unadoptable):
        candidates(WantedRoles(roles, unnamed, (2,)), ())


@pytest.mark.parametrize("lacking", ["gate", "down"], ids=["like others", "like none"])
def test_a_search_for_the_one_matrix_that_a_block_lacks_ends_soon(lacking: str) -> None:
    """Six of seven roles are found by name: not all orders of seven roles need to be tried."""
    square = ("W_query", "W_key", "W_value", "out_proj")
    shapes = dict.fromkeys(square, (6, 6)) | {"up": (8, 6), "gate": (8, 6), "down": (6, 8)}
    held = tuple(
        ParameterInfo(f"{role}.weight", shape, "float32", "Linear")
        for role, shape in shapes.items()
        if role != lacking
    )
    told = f"no parameters were found for {lacking}: "
    with at_most_calls(10**5), pytest.raises(Unadoptable, match=told):
        candidates(WantedRoles(tuple(shapes.items()), held, (2,)), ())
