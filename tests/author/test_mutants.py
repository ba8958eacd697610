"""Mechanical mutants: what each operator makes, and what none of them may touch."""

from __future__ import annotations

import ast
import difflib
import textwrap
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.author.mutants import OPERATORS, Mutant, Operator, mutants_of
from grader.course.course import load_course
from tests.support.places import REAL

COURSE = load_course(REAL)
TEXTS = {
    unit.name: (COURSE.solutions / f"{unit.name}.py").read_text("utf-8") for unit in COURSE.units
}


def mutants(body: str, arguments: str = "x") -> list[Mutant]:
    """The mutants of a function ``f`` with this body."""
    lines = textwrap.dedent(body).strip()
    return mutants_of(f"def f({arguments}):\n{textwrap.indent(lines, '    ')}\n", "f")


def bodies(body: str, arguments: str = "x") -> set[str]:
    """What the body becomes, statements in one line each."""
    return {
        "; ".join(line.strip() for line in mutant.definition.splitlines()[1:])
        for mutant in mutants(body, arguments)
    }


def methods(body: str) -> set[str]:
    """The mutants of a class that starts like an attention, with ``forward(self, x)``: its body."""
    text = f"""
    class Layer(nn.Module):
        def __init__(self, d_in, d_out, bias=None):
            super().__init__()
            self.W_query = nn.Linear(d_in, d_out, bias=bias)
            self.W_key = nn.Linear(d_in, d_out, bias=bias)
        def forward(self, x):
            {body}
    """
    found = [mutant.definition for mutant in mutants_of(textwrap.dedent(text), "Layer")]
    return {definition.rpartition("forward(self, x):\n")[2].strip() for definition in found}


# --- each operator -------------------------------------------------------------------------------

MADE: list[tuple[str, ...]] = [  # a body, what becomes of it, and the arguments if it matters
    # a number
    ("return x.softmax(dim=-1)", "return x.softmax(dim=0)"),
    ("return x.softmax(dim=-1)", "return x.softmax(dim=-2)"),
    ("return x.softmax(dim=-1)", "return x.softmax(dim=1)"),
    ("return torch.triu(x, diagonal=1)", "return torch.triu(x, diagonal=0)"),
    ("return x / 8 ** 0.5", "return x / 8 ** 1.0"),
    ("return x / 8 ** 0.5", "return x / 8 ** 0.25"),
    ("return x / 8 ** 0.5", "return x / 8 ** (-0.5)"),
    ("return x + 0.0", "return x + 1.0"),
    ("return x.masked_fill(m, -torch.inf)", "return x.masked_fill(m, torch.inf)"),
    ("return x.masked_fill(m, -torch.inf)", "return x.masked_fill(m, 0.0)"),
    ("return x.masked_fill(m, float('-inf'))", "return x.masked_fill(m, torch.inf)"),
    # a flag
    ("return x.sum(0, keepdim=True)", "return x.sum(0, keepdim=False)"),
    ("return nn.Linear(x, 8, bias=b)", "return nn.Linear(x, 8, bias=not b)"),
    # comparisons and logic
    ("return x < y", "return x <= y"),
    ("return x < y", "return x > y"),
    ("return x == y", "return x != y"),
    ("return x is None", "return x is not None"),
    ("return x and y", "return x or y"),
    ("return not x", "return x"),
    ("return ~x", "return x"),
    ("if x: return 5\nreturn 6", "if not x:; return 5; return 6"),
    # arithmetic
    ("return x + y", "return x - y"),
    ("return x * y", "return x / y"),
    ("return x / y", "return y / x"),
    ("return x / y", "return x"),
    ("return x - y", "return y - x"),
    ("return x @ y", "return y @ x"),
    ("return x % y", "return x // y"),
    ("return x ** 2", "return x"),
    # a link of a chain
    ("return x.contiguous().view(y)", "return x.view(y)"),
    ("return x.transpose(1, 2)", "return x"),
    ("return x @ x.T", "return x @ x"),
    ("return torch.exp(x) / y", "return x / y"),
    ("return self.dropout(x)", "return x"),
    ("self.w = nn.Parameter(x)", "self.w = x"),
    ("self.heads = nn.ModuleList(f(i) for i in x)", "self.heads = [f(i) for i in x]"),
    # what stands beside it
    ("return torch.tril(x)", "return torch.triu(x)"),
    ("return x.sum(0)", "return x.mean(0)"),
    ("return torch.cat(x)", "return torch.stack(x)"),
    ("return torch.ones(x)", "return torch.zeros(x)"),
    # arguments
    ("return g(x, y)", "return g(y, x)"),
    ("return x.permute(0, 2, 1)", "return x.permute(2, 0, 1)"),
    ("return x.reshape(a, b, c)", "return x.reshape(a, c, b)"),
    ("return torch.cat(x, dim=5)", "return torch.cat(x)"),
    ("return Head(a, b, c, d)", "return Head(a, b, c)"),
    # masks and buffers
    ("return x.masked_fill(m, 0.0)", "return x.masked_fill(~m, 0.0)"),
    ("self.register_buffer('mask', x)", "self.mask = x"),
    # names
    ("return a @ c", "return a @ d", "a: Keys, b: int, c: Values, d: Values"),
    ("q = x @ a\nk = x @ b\nreturn q + k", "q = x @ a; k = x @ b; return k + k", "x, a, b"),
    # tuples
    ("a, b = x.shape\nreturn a", "b, a = x.shape; return a"),
    ("return a, b", "return (b, a)"),
    # slices
    ("return x[:, :n]", "return x[:, :n - 1]"),
    ("return x[:, :n]", "return x[:, :]"),
    ("return x[:, :n]", "return x[:, n:]"),
    ("return x[:, :n]", "return x"),
    ("return x[n]", "return x[n + 1]"),
    ("return x[:n + 1]", "return x[:n + 2]"),
    # loops
    ("for i in range(x):\n    g(i)", "for i in range(x - 1):; g(i)"),
    ("for i in range(x):\n    g(i)", "for i in range(1, x):; g(i)"),
    ("return [g(y) for y in x]", "return [g(y) for y in x[1:]]"),
    ("return [g(y) for y in x]", "return [g(y) for y in reversed(x)]"),
    # statements
    ("x = g(x)\nreturn x", "return x"),
    ("a.append(x)\nreturn a", "return a"),
    ("if g(x): raise E\nreturn x", "return x"),
    ("if x is None: x = 5\nreturn x", "x = 5; return x"),
    ("y = g(x)\nreturn y + 5", "y = g(x); return y; return y + 5"),
    ("for y in x:\n    g(y)\nreturn x", "for y in x:; g(y); return x; return x"),
]  # fmt: skip


@pytest.mark.parametrize("case", MADE, ids=[" => ".join(case[:2]) for case in MADE])
def test_an_operator_makes_this_of_that(case: tuple[str, ...]) -> None:
    body, made, *arguments = case
    assert made in bodies(body, *arguments)


def test_attributes_that_are_made_alike_stand_in_for_one_another() -> None:
    assert {"return self.W_key(x)", "return x"} <= methods("return self.W_query(x)")


def test_a_name_is_not_used_before_it_is_there() -> None:
    assert not any(body.startswith("q = k") for body in bodies("q = g(x)\nk = h(x)\nreturn q"))


def test_unpacking_may_be_of_any_form() -> None:
    assert bodies("self.a, b, *c = x\nreturn b") == {
        "b, self.a, *c = x; return b",
        "self.a, *c, b = x; return b",
    }
    assert mutants_of("class A:\n    n = 5\n    a, b = n, 6\n", "A")


# --- what stays ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "return None",
        "return 'text of 1 and True'",
        "raise ValueError(f'{x + 1} is not {2 * x:.3f}')",
        "y: Float[Tensor, 'a 1'] = x\nreturn y",
        "super().__init__()\nreturn x",
        "y = g(x)\nreturn h(y)",
    ],
)
def test_nothing_is_made_of_these(body: str) -> None:
    early = {"y = g(x); return y; return h(y)"}
    assert bodies(body) <= early


DECORATED = '''
@cache(size=1)
def f(x: Float[Tensor, "a 1"] | None = None, y: Literal[2] = 2) -> tuple[int, Literal[3]]:
    """The value of 1 + 1."""

    def inner(z: Literal[4]) -> None:
        """The value of 2 + 2."""
        return z + x

    return inner(y)
'''


def test_annotations_decorators_and_docstrings_stay_out_of_it() -> None:
    (definition,) = ast.parse(DECORATED).body
    found = mutants_of(DECORATED, "f")
    assert [mutant.id for mutant in found] == [
        "f/L2:2->1",
        "f/L2:2->3",
        "f/L2:2->-2",
        "f/L5:z + x->z - x",
        "f/L5:z + x->z",
    ]
    for mutant in found:
        head = mutant.definition.splitlines()
        assert head[0] == "@cache(size=1)"
        assert "    def inner(z: Literal[4]) -> None:" in head
        assert "value of" not in mutant.definition
        assert _annotations(ast.parse(mutant.definition)) == _annotations(definition)


def test_a_default_is_changed() -> None:
    made = [mutant.id for mutant in mutants("return x.sum()", "x, flag=True")]
    assert "f/L1:True->False" in made


# --- ids and descriptions ------------------------------------------------------------------------


def test_an_id_tells_the_place_and_the_change() -> None:
    (mutant,) = [m for m in mutants("return torch.triu(x, diagonal=1)") if m.id.endswith("=0")]
    assert mutant.id == "f/L2:diagonal=1->diagonal=0"
    assert mutant.description == (
        "line 2: `return torch.triu(x, diagonal=1)` becomes `return torch.triu(x, diagonal=0)`"
    )
    assert mutant.definition == "def f(x):\n    return torch.triu(x, diagonal=0)"


def test_statements_are_told_in_one_line() -> None:
    told = {
        mutant.id: mutant.description
        for mutant in mutants("if g(x):\n    raise E('no')\nx = h(x)\nreturn x + 5")
    }
    assert told["f/L2:without if g(x):"] == "lines 2 to 3: `if g(x): raise E('no')` is left out"
    assert told["f/L4:without x = h(x)"] == "line 4: `x = h(x)` is left out"
    assert told["f/L4:x = h(x)->then return x"] == "after line 4: `return x` is added"
    kept = mutants("if x:\n    x = 5\nreturn x")
    assert {m.id: m.description for m in kept}["f/L2:always if x:"] == (
        "lines 2 to 3: `if x: x = 5` becomes `x = 5`"
    )


def test_the_same_change_twice_on_a_line_is_numbered() -> None:
    ids = [mutant.id for mutant in mutants("return g(x, 5) + g(x, 5)")]
    assert {"f/L2:5->6", "f/L2:5->6#2"} <= set(ids)


def test_ids_do_not_hang_on_comments_wrapping_docstrings_or_neighbours() -> None:
    plain = "def f(x):\n    y = x.sum(dim=1)\n    return y / 2.0\n"
    dressed = '''
def g(x):
    return x + 1

def f(
    x,
):
    """Add up, and halve.

    With more to say.
    """
    # what now?
    y = x.sum(
        dim=1,
    )

    return y / 2.0  # half
'''
    ours, theirs = mutants_of(plain, "f"), mutants_of(dressed, "f")
    assert {mutant.line for mutant in ours} == {2, 3}
    assert [replace(m, line={2: 13, 3: 17}[m.line]) for m in ours] == theirs


def test_the_last_definition_of_a_name_counts() -> None:
    text = "def f(x):\n    return x + y\n\n\ndef f(x):\n    return x * y\n"
    assert {mutant.id for mutant in mutants_of(text, "f")} == {"f/L2:x * y->x / y", "f/L2:x * y->x"}


def test_a_name_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="g is not defined"):
        mutants_of("def f(): pass", "g")


# --- the course's own references -----------------------------------------------------------------


@pytest.mark.parametrize("exercise", COURSE.exercises)
def test_a_reference_has_mutants_that_compile_and_differ(exercise: str) -> None:
    text = TEXTS[COURSE.unit_of[exercise]]
    found = mutants_of(text, exercise)
    assert found
    assert found == mutants_of(text, exercise)
    assert len({mutant.id for mutant in found}) == len(found)
    assert len({mutant.definition for mutant in found}) == len(found)
    original = ast.unparse(_bare(text, exercise))
    for mutant in found:
        assert mutant.id.startswith(f"{exercise}/L")
        assert "\n" not in mutant.id + mutant.description
        assert mutant.definition != original
        compile(mutant.definition, mutant.id, "exec")
        assert _annotations(ast.parse(mutant.definition)) == _annotations(_bare(text, exercise))
        assert_one_place(original, mutant)


def _bare(text: str, name: str) -> ast.AST:
    (node,) = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
    ]
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(part):
            del part.body[0]
    return node


def _annotations(tree: ast.AST) -> list[str]:
    return [
        ast.unparse(part)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if part is not None
    ]


def assert_one_place(original: str, mutant: Mutant) -> None:
    """Lines that differ lie together."""
    old, new = original.splitlines(), mutant.definition.splitlines()
    # A guard that is gone moves what it guarded to the left.
    if ":always" in mutant.id:
        old, new = ([line.strip() for line in lines] for lines in (old, new))
    parts = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    assert sum(part[0] != "equal" for part in parts) == 1, mutant


def test_the_course_has_many_but_not_too_many() -> None:
    count = sum(len(mutants_of(TEXTS[unit], name)) for name, unit in COURSE.unit_of.items())
    assert 1200 <= count <= 3000


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.__name__)
def test_an_operator_is_needed(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something of the table above is made by no other."""
    assert operator.__doc__
    without = tuple(other for other in OPERATORS if other is not operator)
    monkeypatch.setattr("grader.author.mutants.OPERATORS", without)
    assert any(made not in bodies(body, *rest) for body, made, *rest in MADE)


# --- functions of any kind -----------------------------------------------------------------------

atoms = st.sampled_from(["x", "y", "2", "-1", "0.5", "True", "-torch.inf", "x.T", "n"])
operators = st.sampled_from(["+", "-", "*", "/", "@", "//", "%", "**", "<", "==", "and", "or"])
calls = st.sampled_from(
    ["torch.exp({})", "{}.transpose(-2, -1)", "g({}, y)", "{}.sum(dim=1, keepdim=True)", "-({})",
     "not ({})", "x[:, :({})]", "{}.reshape(n, 3)", "(x, {})"]
)  # fmt: skip
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({}) {} ({})".format, inner, operators, inner),
        st.builds(lambda call, part: call.format(f"({part})"), calls, inner),
    ),
    max_leaves=5,
)
statements = st.one_of(
    st.builds("{} = {}".format, st.sampled_from(["x", "z", "a, b"]), expressions),
    st.builds("rows.append({})".format, expressions),
    st.builds("if {}:\n        x = {}".format, expressions, expressions),
    st.builds("for z in range(n):\n        rows.append({})".format, expressions),
)


@given(st.lists(statements, max_size=4), expressions)
@settings(max_examples=80, deadline=None)
def test_a_mutant_of_any_function_differs_in_one_place(body: list[str], result: str) -> None:
    lines = [*body, f"return {result}"]
    text = "def f(x, y, n=3):\n" + "".join(f"    {line}\n" for line in lines)
    original = ast.unparse(ast.parse(text))
    found = mutants_of(text, "f")
    assert found == mutants_of(original, "f")
    assert len({mutant.id for mutant in found}) == len(found)
    for mutant in found:
        assert mutant.definition != original
        compile(mutant.definition, mutant.id, "exec")
        assert_one_place(original, mutant)
