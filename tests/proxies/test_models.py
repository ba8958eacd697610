"""Adoption of models, through a real jail: layers, tables, and what else is around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from grader.course.tensors import Make
from grader.proxies.slots import Unadoptable
from grader.testing import (
    REORDERED,
    adopt,
    adopt_identity_weights,
    assert_agrees,
    assert_gradients_agree,
    assert_has_one_table,
)
from tests.support.attentions import module
from tests.support.seats import Adopted, OpenSeat, assert_whole
from tests.support.transformers import (
    ALIASES,
    BARE_BLOCK,
    COMMON,
    FLAT_BLOCK,
    GPT_BLOCK,
    IDS,
    LETTERS_BLOCK,
    MAKE,
    PLAIN,
    Model,
    block,
)


def model(made: str, used: str) -> str:
    return module("Model", "vocab, d, heads, layers, hidden", made, used, "ids")


AROUND = "self.tok_emb, self.pos_emb = nn.Embedding(vocab, d), nn.Embedding(9, d)\n"
ONE_TABLE = "self.both, self.vocab = nn.Embedding(vocab + 9, d), vocab\n"
ENTER = "x = self.tok_emb(ids) + self.pos_emb.weight[: ids.shape[1]]\n"
# One parameter of each kind for all layers, and what they do: norms stand in one or two more.
STACKED = (
    AROUND + "self.heads, self.layers = heads, layers\n"
    "p = lambda *shape: nn.Parameter(torch.rand(*shape))\n"
    "self.qkv, self.o, self.ob = p(layers, 3, d, d), p(layers, d, d), p(layers, d)\n"
    "self.fc, self.fb = p(layers, d, hidden), p(layers, hidden)\n"
    "self.out, self.out_b = p(layers, hidden, d), p(layers, d)\n"
)

# The same in lists, whose parameters are of one layer each.
IN_LISTS = (
    AROUND + "self.heads, self.layers = heads, layers\n"
    "each = nn.ParameterList\n"
    "many = lambda *shape: each(torch.rand(*shape) for _ in range(layers))\n"
    "self.qkv, self.o, self.ob = many(3, d, d), many(d, d), many(d)\n"
    "self.fc, self.fb = many(d, hidden), many(hidden)\n"
    "self.out, self.out_b = many(hidden, d), many(d)\n"
)


def steps(norm: str) -> str:
    """What these layers do, with norms that are written so."""
    return (
        ENTER + "for n in range(self.layers):\n"
        f"    y = {norm.format('2 * n')}\n"
        "    y = attend(*(y @ one for one in self.qkv[n]), self.heads)\n"
        "    x = x + y @ self.o[n] + self.ob[n]\n"
        f"    y = torch.tanh({norm.format('2 * n + 1')} @ self.fc[n] + self.fb[n])\n"
        "    x = x + y @ self.out[n] + self.out_b[n]\n"
        f"return {norm.format('-1')} @ self.tok_emb.weight.T"
    )


LISTED = "self.h = nn.ModuleList(Block(d, heads, hidden) for _ in range(layers))\n"
EACH = "for one in self.h:\n    x = one(x)\n"

LAYERS = {
    "a last norm that is a list, as long as two layers": model(
        AROUND + LISTED + "self.ln_f = nn.ParameterList([torch.ones(d), torch.zeros(d)])",
        ENTER + EACH + "return norm(x, *self.ln_f) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK,
    "a last norm that is a matrix, as high as two layers": model(
        AROUND + LISTED + "self.ln_f = nn.Parameter(torch.ones(2, d))",
        ENTER + EACH + "return norm(x, *self.ln_f) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK,
    "embeddings, and a list of blocks": model(
        AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)",
        ENTER + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK,
    "blocks under names of their own": model(
        AROUND + "for n in range(layers):\n"
        "    setattr(self, f'block{n}', Block(d, heads, hidden))\n"
        "self.layers, self.last = layers, Own(d)",
        ENTER + "for n in range(self.layers):\n    x = getattr(self, f'block{n}')(x)\n"
        "return self.last(x) @ self.tok_emb.weight.T",
    )
    + FLAT_BLOCK,
    "a list of each kind of part": model(
        AROUND + "many = lambda make: nn.ModuleList(make() for _ in range(layers))\n"
        "self.norms_a, self.norms_b = (many(lambda: nn.LayerNorm(d)) for _ in range(2))\n"
        "self.attns, self.mlps = many(lambda: PerHead(d, heads)), many(lambda: Mlp(d, hidden))\n"
        "self.final = nn.LayerNorm(d)",
        ENTER + "for a, b, one, two in zip(self.norms_a, self.norms_b, self.attns, self.mlps):\n"
        "    x = x + one(a(x))\n    x = x + two(b(x))\n"
        "return self.final(x) @ self.tok_emb.weight.T",
    ),
    "lists of gains and shifts, in a list whose name is one of both": model(
        AROUND + "self.bs = nn.ModuleList(Block(d, heads, hidden) for _ in range(layers))\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for b in self.bs:\n    x = b(x)\nreturn self.ln_f(x) @ self.tok_emb.weight.T",
    )
    + block(
        "self.gains = nn.ParameterList([torch.ones(d), torch.ones(d)])\n"
        "self.shifts = nn.ParameterList([torch.zeros(d), torch.zeros(d)])\n"
        "self.attn, self.mlp = Fused(d, heads), Mlp(d, hidden)",
        "x = x + self.attn(norm(x, self.gains[0], self.shifts[0]))\n"
        "return x + self.mlp(norm(x, self.gains[1], self.shifts[1]))",
    ),
    "a list of each layer, in twos and threes that are alike": model(
        AROUND + "self.heads = heads\n"
        "many = lambda make: nn.ModuleList(make() for _ in range(layers))\n"
        "self.q, self.k, self.v = (many(lambda: nn.Linear(d, d, bias=False)) for _ in range(3))\n"
        "self.o, self.ups = many(lambda: nn.Linear(d, d)), many(lambda: nn.Linear(d, hidden))\n"
        "self.downs = many(lambda: nn.Linear(hidden, d))\n"
        "self.ln1, self.ln2 = (many(lambda: nn.LayerNorm(d)) for _ in range(2))\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for n in range(len(self.q)):\n"
        "    y = self.ln1[n](x)\n"
        "    y = attend(self.q[n](y), self.k[n](y), self.v[n](y), self.heads)\n"
        "    x = x + self.o[n](y)\n"
        "    x = x + self.downs[n](torch.tanh(self.ups[n](self.ln2[n](x))))\n"
        "return self.ln_f(x) @ self.tok_emb.weight.T",
    ),
    "layers in names with a number, such as l0_q": model(
        AROUND + "self.heads, self.layers = heads, layers\n"
        "for n in range(layers):\n"
        "    for name, shape in {\n"
        "        'q': (d, d), 'k': (d, d), 'v': (d, d), 'o_w': (d, d), 'o_b': (d,),\n"
        "        'up_w': (d, hidden), 'up_b': (hidden,), 'down_w': (hidden, d), 'down_b': (d,),\n"
        "        'ln1_g': (d,), 'ln1_b': (d,), 'ln2_g': (d,), 'ln2_b': (d,),\n"
        "    }.items():\n"
        "        self.register_parameter(f'l{n}_{name}', nn.Parameter(torch.rand(shape)))\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for n in range(self.layers):\n"
        "    of = lambda name: getattr(self, f'l{n}_{name}')\n"
        "    y = norm(x, of('ln1_g'), of('ln1_b'))\n"
        "    y = attend(y @ of('q'), y @ of('k'), y @ of('v'), self.heads)\n"
        "    x = x + y @ of('o_w') + of('o_b')\n"
        "    y = torch.tanh(norm(x, of('ln2_g'), of('ln2_b')) @ of('up_w') + of('up_b'))\n"
        "    x = x + y @ of('down_w') + of('down_b')\n"
        "return self.ln_f(x) @ self.tok_emb.weight.T",
    ),
    "one parameter of each kind for all layers": model(
        AROUND + "self.heads, self.layers = heads, layers\n"
        "p = lambda *shape: nn.Parameter(torch.rand(layers, *shape))\n"
        "self.ln1_g, self.ln1_b, self.ln2_g, self.ln2_b = p(d), p(d), p(d), p(d)\n"
        "self.qkv, self.proj, self.proj_b = p(d, 3 * d), p(d, d), p(d)\n"
        "self.fc, self.fc_b, self.out, self.out_b = p(d, hidden), p(hidden), p(hidden, d), p(d)\n"
        "self.ln_f = nn.LayerNorm(d)",
        ENTER + "for n in range(self.layers):\n"
        "    y = norm(x, self.ln1_g[n], self.ln1_b[n]) @ self.qkv[n]\n"
        "    x = x + attend(*y.chunk(3, -1), self.heads) @ self.proj[n] + self.proj_b[n]\n"
        "    y = norm(x, self.ln2_g[n], self.ln2_b[n]) @ self.fc[n] + self.fc_b[n]\n"
        "    x = x + torch.tanh(y) @ self.out[n] + self.out_b[n]\n"
        "return self.ln_f(x) @ self.tok_emb.weight.T",
    ),
    "one parameter of each kind, and the gains of all norms in one, their shifts in another": model(
        STACKED + "self.gains, self.shifts = p(2 * layers + 1, d), p(2 * layers + 1, d)",
        steps("norm(x, self.gains[{0}], self.shifts[{0}])"),
    ),
    "one parameter of each kind, and one of gains and shifts for all norms": model(
        STACKED + "self.norms = p(2 * layers + 1, 2, d)", steps("norm(x, *self.norms[{0}])")
    ),
    "lists of each kind of weight, and of the gains and the shifts of all norms": model(
        IN_LISTS + "self.gains = each(torch.ones(d) for _ in range(2 * layers + 1))\n"
        "self.shifts = each(torch.zeros(d) for _ in range(2 * layers + 1))",
        steps("norm(x, self.gains[{0}], self.shifts[{0}])"),
    ),
    "lists of each kind of weight, and one of all that norms have, in pairs": model(
        IN_LISTS + "self.norms = each(torch.rand(d) for _ in range(4 * layers + 2))",
        steps("norm(x, *self.norms[2 * ({0}) :][:2])"),
    ),
    "lists of each kind of weight, with the last norm by itself": model(
        IN_LISTS + "self.gains = each(torch.ones(d) for _ in range(2 * layers))\n"
        "self.shifts = each(torch.zeros(d) for _ in range(2 * layers))\n"
        "self.last_gain, self.last_shift = each([torch.ones(d), torch.zeros(d)])",
        steps(
            "norm(x, *([*self.gains, self.last_gain][{0}], [*self.shifts, self.last_shift][{0}]))"
        ),
    ),
    "letters in every block, and a last norm whose shift is made first": model(
        AROUND + LISTED + "self.u = nn.Parameter(torch.zeros(d))\n"
        "self.t = nn.Parameter(torch.ones(d))",
        ENTER + EACH + "return norm(x, self.t, self.u) @ self.tok_emb.weight.T",
    )
    + LETTERS_BLOCK,
    "a last norm of a_2 and b_2, which are no two layers": model(
        AROUND + LISTED + "self.norm = Last(d)",
        ENTER + EACH + "return self.norm(x) @ self.tok_emb.weight.T",
    )
    + GPT_BLOCK
    + """
class Last(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a_2, self.b_2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
    def forward(self, x):
        return norm(x, self.a_2, self.b_2)
""",
    "all parts of all layers in the model, by number": model(
        AROUND + "self.heads, self.layers = heads, layers\n"
        "for n in range(layers):\n"
        "    for name in ('q', 'k', 'v'):\n"
        "        setattr(self, f'{name}_{n}', nn.Linear(d, d, bias=False))\n"
        "    setattr(self, f'o_{n}', nn.Linear(d, d))\n"
        "    setattr(self, f'up_{n}', nn.Linear(d, hidden))\n"
        "    setattr(self, f'down_{n}', nn.Linear(hidden, d))\n"
        "    setattr(self, f'before_{n}', nn.LayerNorm(d))\n"
        "    setattr(self, f'between_{n}', nn.LayerNorm(d))\n"
        "self.last = nn.LayerNorm(d)",
        ENTER + "for n in range(self.layers):\n"
        "    of = lambda name: getattr(self, f'{name}_{n}')\n"
        "    y = of('before')(x)\n"
        "    x = x + of('o')(attend(of('q')(y), of('k')(y), of('v')(y), self.heads))\n"
        "    x = x + of('down')(torch.tanh(of('up')(of('between')(x))))\n"
        "return self.last(x) @ self.tok_emb.weight.T",
    ),
}
TABLES = {
    "a head that shares its table": model(
        AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)\n"
        "self.head = nn.Linear(d, vocab, bias=False)\nself.head.weight = self.tok_emb.weight",
        ENTER + EACH + "return self.head(self.ln_f(x))",
    )
    + GPT_BLOCK,
    "tables as (d, vocab), blocks and norm in one sequence": model(
        "self.a, self.b = nn.Parameter(torch.rand(d, vocab)), nn.Parameter(torch.rand(d, 9))\n"
        "self.body = nn.Sequential(*(Block(d, heads, hidden) for _ in range(layers)),"
        " nn.LayerNorm(d))",
        "x = (self.a[:, ids].permute(1, 2, 0) + self.b[:, : ids.shape[1]].T)\n"
        "return self.body(x) @ self.a",
    )
    + BARE_BLOCK,
    "one table, of tokens and then of positions": model(
        ONE_TABLE + LISTED + "self.ln_f = nn.LayerNorm(d)",
        "x = self.both(ids) + self.both.weight[self.vocab :][: ids.shape[1]]\n"
        + EACH
        + "return self.ln_f(x) @ self.both.weight[: self.vocab].T",
    )
    + GPT_BLOCK,
    "one table, of positions and then of tokens": model(
        ONE_TABLE + LISTED + "self.ln_f = nn.LayerNorm(d)",
        "x = self.both(ids + 9) + self.both.weight[: ids.shape[1]]\n"
        + EACH
        + "return self.ln_f(x) @ self.both.weight[9:].T",
    )
    + GPT_BLOCK,
    "one table as (d, vocab + positions)": model(
        "self.both = nn.Parameter(torch.rand(d, vocab + 9))\nself.vocab = vocab\n"
        + LISTED
        + "self.ln_f = nn.LayerNorm(d)",
        "tokens, positions = self.both.T.tensor_split([self.vocab])\n"
        "x = tokens[ids] + positions[: ids.shape[1]]\n" + EACH + "return self.ln_f(x) @ tokens.T",
    )
    + GPT_BLOCK,
    "a table that was a layer first": model(
        "self.head = nn.Linear(d, vocab, bias=False)\n"
        + AROUND
        + "self.tok_emb.weight = self.head.weight\n"
        + LISTED
        + "self.ln_f = nn.LayerNorm(d)",
        ENTER + EACH + "return self.head(self.ln_f(x))",
    )
    + GPT_BLOCK,
}
MODELS = LAYERS | TABLES


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("source", LAYERS.values(), ids=LAYERS)
def test_the_layers_of_a_model_find_their_weights_and_gradients(
    adopted: Callable[..., Adopted], source: str, layers: int
) -> None:
    assert_whole(adopted(Model, source, 13, 8, 2, layers, 12), IDS, gradients=MAKE)


TURNS = (
    model(
        AROUND + "more = []\n"
        "for _ in range(layers):\n"
        "    more += [Added(d, Fused(d, heads)), Added(d, Mlp(d, hidden))]\n"
        "self.body = nn.Sequential(*more, nn.LayerNorm(d))",
        ENTER + "return self.body(x) @ self.tok_emb.weight.T",
    )
    + """
class Added(nn.Module):
    def __init__(self, d, part):
        super().__init__()
        self.norm, self.part = nn.LayerNorm(d), part
    def forward(self, x):
        return x + self.part(self.norm(x))
"""
)


@pytest.mark.parametrize("layers", [2, 3])
def test_attentions_and_layers_may_take_turns_in_one_list(
    adopted: Callable[..., Adopted], layers: int
) -> None:
    assert_whole(adopted(Model, TURNS, 13, 8, 2, layers, 12), IDS, gradients=MAKE)


@pytest.mark.parametrize("source", TABLES.values(), ids=TABLES)
def test_the_tables_of_a_model_find_their_weights_and_gradients(
    adopted: Callable[..., Adopted], source: str
) -> None:
    assert_whole(adopted(Model, source, 13, 8, 2, 2, 12), IDS, gradients=MAKE)


def test_a_layer_as_large_as_an_attention_is_none(adopted: Callable[..., Adopted]) -> None:
    source = MODELS["all parts of all layers in the model, by number"]
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 32)  # 4 · 8 · 8 = 8 · 32
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))


ODD_BLOCK = (
    block(
        "self.a, self.b = Own(d), Own(d)\nself.attn, self.mlp = Turns(d, heads), Mlp(d, hidden)",
        PLAIN.format(a="self.attn", f="self.mlp", n1="self.b", n2="self.a"),
    )
    + """
class Turns(Fused):
    def forward(self, x):
        parts = self.c_attn(x).unflatten(-1, (self.heads, 3, -1))
        v, k, q = (parts[..., n, :].flatten(-2) for n in range(3))
        return self.c_proj(attend(q, k, v, self.heads))
"""
)


@pytest.mark.parametrize("example", [False, True], ids=["", "after an example"])
def test_a_large_model_is_adopted_as_a_small_one_of_its_class_was(
    open_seat: OpenSeat, example: bool
) -> None:
    source = (
        COMMON
        + ODD_BLOCK
        + model(
            AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)",
            ENTER + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
    )
    seat = open_seat(source, Model, parameters=ALIASES)
    student, reference = seat.student(), seat.reference(Make("nesting", "Model", "large"))
    small, large = (13, 8, 2, 3, 12), (13, 128, 4, 2, 512)
    if example:  # with identity matrices, every order of queries, keys and values agrees
        adopt_identity_weights(student.Model(*small), reference.Model(*small))
    for sizes in (small, large):
        theirs, ours = student.Model(*sizes), reference.Model(*sizes)
        with torch.no_grad():
            for weight in ours.parameters():
                weight *= 0.3  # where sums are long, rounding is soon as large as they are
        adopt(theirs, ours)
        assert_agrees(theirs(IDS), ours(IDS), within=REORDERED)


def test_a_model_that_is_only_nearly_right_is_adopted_as_a_right_one_of_its_class_was(
    open_seat: OpenSeat,
) -> None:
    source = MODELS["one table, of positions and then of tokens"].replace(
        "return self.ln_f(x) @", "return (1 + (x.shape[-1] > 8) / 500) * self.ln_f(x) @"
    )
    seat = open_seat(COMMON + source, Model, parameters=ALIASES)
    student, reference = seat.student(), seat.reference(Make("nesting", "Model", "nearly"))
    for sizes in ((13, 8, 2, 3, 12), (13, 16, 2, 3, 12)):
        adoption = adopt(student.Model(*sizes), reference.Model(*sizes))
        first = {slot.role: slot.start for slot in adoption.slots if slot.path == "both.weight"}
        assert first == {"position_table": 0, "token_table": 9}


def test_a_model_that_is_given_ids_answers_in_the_precision_of_its_weights(
    adopted: Callable[..., Adopted],
) -> None:
    theirs, _, _ = adopted(Model, MODELS["embeddings, and a list of blocks"], 13, 8, 2, 3, 12)
    assert theirs(IDS).dtype == torch.float32
    assert theirs.double()(IDS).dtype == torch.float64


def test_an_output_table_of_its_own_gets_the_weights_of_the_table_that_it_should_be(
    adopted: Callable[..., Adopted],
) -> None:
    source = MODELS["a head that shares its table"].replace(
        "self.head.weight = self.tok_emb.weight", "pass"
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    tables = {slot.path for slot in adoption.slots if slot.role == "token_table"}
    assert tables == {"tok_emb.weight", "head.weight"}


def test_an_output_table_that_lies_the_other_way_round_gets_them_too(
    adopted: Callable[..., Adopted],
) -> None:
    source = (
        model(
            AROUND + LISTED + "self.ln_f = nn.LayerNorm(d)\n"
            "self.unembed = nn.Parameter(torch.rand(d, vocab))",
            ENTER + EACH + "return self.ln_f(x) @ self.unembed",
        )
        + GPT_BLOCK
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=r"tok_emb\.weight and unembed are two tables"):
        assert_has_one_table(theirs, "token_table", 13)


@pytest.mark.parametrize("name", ["head", "wte"])
def test_an_output_table_beside_one_table_of_tokens_and_positions_gets_them_too(
    adopted: Callable[..., Adopted], name: str
) -> None:
    source = MODELS["one table, of tokens and then of positions"]
    untied = source.replace(
        "nn.LayerNorm(d)",
        f"nn.LayerNorm(d)\n        self.{name} = nn.Linear(d, vocab, bias=False)",
        1,
    ).replace("self.ln_f(x) @ self.both.weight[: self.vocab].T", f"self.{name}(self.ln_f(x))")
    theirs, ours, adoption = adopted(Model, untied, 13, 8, 2, 3, 12)
    assert (adoption.missing, adoption.extra) == ((), ())
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=rf"both\.weight and {name}\.weight are two tables"):
        assert_has_one_table(theirs, "token_table", 13)


@pytest.mark.parametrize("first", ["tokens", "positions"])
def test_one_table_of_tokens_and_positions_is_one(
    adopted: Callable[..., Adopted], first: str
) -> None:
    source = next(source for name, source in MODELS.items() if f"one table, of {first}" in name)
    theirs, _, _ = adopted(Model, source, 13, 8, 2, 3, 12)
    assert_has_one_table(theirs, "token_table", 13)


def test_a_second_table_that_changes_nothing_is_nobodys_to_judge(
    adopted: Callable[..., Adopted],
) -> None:
    source = MODELS["embeddings, and a list of blocks"].replace(
        "self.ln_f = nn", "self.unused = nn.Linear(d, vocab, bias=False)\n        self.ln_f = nn"
    )
    theirs, _, _ = adopted(Model, source, 13, 8, 2, 3, 12)
    assert_has_one_table(theirs, "token_table", 13)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("first", ["the unused one", "the table"])
def test_the_table_learns_whatever_else_is_made_of_its_size_and_never_used(
    adopted: Callable[..., Adopted], first: str, bias: bool
) -> None:
    source = MODELS["embeddings, and a list of blocks"]
    before = "self.tok_emb" if first == "the unused one" else "self.ln_f = nn"
    unused = f"self.head = nn.Linear(d, vocab, bias={bias})\n        {before}"
    theirs, ours, _ = adopted(Model, source.replace(before, unused, 1), 13, 8, 2, 3, 12)
    assert_has_one_table(theirs, "token_table", 13)
    assert_gradients_agree(theirs, ours, IDS, make=MAKE)


def test_a_second_table_that_counts_and_never_learns_is_missed(
    adopted: Callable[..., Adopted],
) -> None:
    source = MODELS["embeddings, and a list of blocks"].replace(
        "self.ln_f = nn", "self.head = nn.Linear(d, vocab, bias=False)\n        self.ln_f = nn"
    )
    detached = source.replace("@ self.tok_emb.weight.T", "@ self.head.weight.detach().T")
    assert detached != source
    theirs, ours, _ = adopted(Model, detached, 13, 8, 2, 3, 12)
    with pytest.raises(AssertionError, match="no gradient reaches token_table"):
        assert_gradients_agree(theirs, ours, IDS, make=MAKE)


def test_a_second_table_that_gets_the_values_of_the_first_in_every_call_is_one_too_many(
    adopted: Callable[..., Adopted],
) -> None:
    source = model(
        AROUND + LISTED + "self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)",
        "with torch.no_grad():\n    self.head.weight.copy_(self.tok_emb.weight)\n"
        + ENTER
        + EACH
        + "return self.head(self.ln_f(x))",
    )
    theirs, ours, _ = adopted(Model, source + GPT_BLOCK, 13, 8, 2, 3, 12)
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match="two tables"):
        assert_has_one_table(theirs, "token_table", 13)


def test_a_bias_at_the_output_is_not_the_tables(adopted: Callable[..., Adopted]) -> None:
    source = MODELS["a head that shares its table"].replace(
        "nn.Linear(d, vocab, bias=False)", "nn.Linear(d, vocab)"
    )
    theirs, ours, adoption = adopted(Model, source, 13, 8, 2, 3, 12)
    assert adoption.extra == ("head.bias",)
    assert_agrees(theirs(IDS), ours(IDS))
    with pytest.raises(AssertionError, match=r"head\.bias has a number for each row"):
        assert_has_one_table(theirs, "token_table", 13)


# --- wrong answers -------------------------------------------------------------------------------


def test_a_model_with_one_block_for_all_layers_is_told_how_many_are_asked_for(
    adopted: Callable[..., Adopted],
) -> None:
    source = (
        model(
            AROUND + "self.h, self.layers = Block(d, heads, hidden), layers\n"
            "self.ln_f = nn.LayerNorm(d)",
            ENTER + "for _ in range(self.layers):\n    x = self.h(x)\n"
            "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
        + GPT_BLOCK
    )
    with pytest.raises(Unadoptable, match="should have 3 layers"):
        adopted(Model, source, 13, 8, 2, 3, 12)


def test_a_table_that_is_missing_is_named(adopted: Callable[..., Adopted]) -> None:
    source = (
        model(
            LISTED + "self.tok_emb, self.ln_f = nn.Embedding(vocab, d), nn.LayerNorm(d)",
            "x = self.tok_emb(ids)\n" + EACH + "return self.ln_f(x) @ self.tok_emb.weight.T",
        )
        + GPT_BLOCK
    )
    with pytest.raises(Unadoptable, match="position_table"):
        adopted(Model, source, 13, 8, 2, 3, 12)
