"""`grader new exercise` writes what follows from a reference, and never overwrites an edit."""

from __future__ import annotations

import doctest
import shutil
import sys
from collections.abc import Callable, Mapping
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from grader.author.courses import write_course
from grader.author.scaffold.annotations import annotated
from grader.author.scaffold.draft import Outcome, write_exercise
from grader.author.scaffold.edges import find_edges
from grader.author.scaffold.facts import facts_of
from grader.author.scaffold.inputs import find_inputs
from grader.author.scaffold.kinds import Among, Booleans, Integers, Uniform
from grader.author.scaffold.source import read_source
from grader.author.scaffold.trial import Trial
from grader.author.scaffold.words import lines_of
from grader.course.course import Course, load_course
from grader.course.references import open_oracle
from grader.course.statements import statement
from grader.records.faults import CallError
from grader.records.files import files_in
from grader.sandbox.jails import Warm
from tests.conftest import Grader, sharing

# A function whose annotations name the dimensions, one with plain annotations, a module, a function
# of NumPy, and a function of a dataclass.
REFERENCES = '''
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from jaxtyping import Bool, Float, Int
from torch import Tensor

HALF = 0.5


def half(x):
    return HALF * x


def halfway(
    a: Float[Tensor, "rows columns"], b: Float[Tensor, "columns"]
) -> Float[Tensor, "rows columns"]:
    """The middle between each row of a matrix and a vector."""
    return half(a) + half(b)


def shrink(x: torch.Tensor, by: float = 0.5, dim=-1):
    """Subtract a part of the largest number.

    Parameters
    ----------
    x : Tensor
        Any scores at all
    """
    largest = x.amax(dim=dim, keepdim=True)
    return x - by * largest  # the largest keeps the other part


class Gate(nn.Module):
    """One linear map, weighed by another."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.value = nn.Linear(d_in, d_out)
        self.gate = nn.Linear(d_in, d_out)

    def forward(self, x):
        return self.value(x) * torch.sigmoid(self.gate(x))


def at_places(x, ids):
    return x.gather(1, ids[:, None]).squeeze(1)


def pairs(a, b, k: int):
    return (a[:, None] @ b[:, :, None]).repeat(1, k, 2)


def documented(x, mask):
    """Add up.

    Args:
        x: (batch, d_model), any numbers.
        mask: a bool tensor of shape (batch, d_model).
    """
    return (x * mask).sum(dim=-1)


def marked(ids, classes: int):
    return ids[:, None] == torch.arange(classes)


def best(x, k: int):
    return x.sort(dim=-1, descending=True).values[:, :k].sum(dim=-1)


def surprise(p):
    return -(p * p.log()).sum(dim=-1)


def spread(x):
    """Subtract the mean of each column, and say the means."""
    mean = x.mean(axis=0)
    return x - mean, mean


@dataclass(frozen=True)
class Mean:
    """A mean of rows, and their number."""

    value: Float[Tensor, "columns"]
    count: int = 1


def grown(mean: Mean, x: Float[Tensor, "rows columns"]) -> Mean:
    """Add rows to a mean."""
    total = mean.value * mean.count + x.sum(dim=0)
    count = mean.count + len(x)
    return Mean(total / count, count)


def named(x, names):
    return {name: float(row.sum()) for name, row in zip(names, x, strict=True)}


def measured(x: np.ndarray):
    """Give the length of each row.

    Parameters
    ----------
    x : ndarray of shape (vectors, d)
    """
    return np.sqrt((x**2).sum(axis=1))


def centred(x: Float[Tensor, "rows columns"]):
    return x - x.mean(dim=-1, keepdim=True)


def halves(x: Float[np.ndarray, "items"], parts: int):
    return [x[n * (len(x) // parts):(n + 1) * (len(x) // parts)] for n in range(parts)]


def all_along(x: Bool[Tensor, "rows columns"]):
    return x.all(dim=-1)


def changes(x):
    return x[1:][x[1:] != x[:-1]]


def places(keep: Bool[Tensor, "rows"]) -> Int[Tensor, "_count 1"]:
    return keep.nonzero()


def above(size: int) -> Int[Tensor, "2 count"]:
    return torch.ones(size, size).triu().nonzero().T


def dead_zone(x: Float[Tensor, "rows columns"], limit: float = 0.25):
    return torch.where(x.abs() > limit, x, torch.zeros_like(x))


def first_largest(x: Float[np.ndarray, "rows columns"]):
    return np.array([list(row).index(max(row)) for row in x])


def without_nan(x: Float[Tensor, "rows columns"], value: float = 0.5):
    return torch.where(x.isnan(), torch.full_like(x, value), x)


def endless(x: Float[Tensor, "rows columns"]):
    return x.isinf() & (x > 0)


def unsaid(x):
    return x
'''
EXAMPLES = {
    "halfway": "",
    "shrink": "shrink(torch.randn(3, 5))",
    "Gate": "Gate(5, 3)(torch.randn(2, 5))",
    "spread": "spread(np.array([[1.5, -1.5], [0.5, 2.0], [4.0, 1.0]]))",
    "grown": "grown(Mean(torch.tensor([-2.0, 1.5, 3.0]), 4), torch.ones(2, 3))",
}


class Made(NamedTuple):
    """A course with an exercise of each kind, the outcomes, and the file of the references."""

    course: Course
    outcomes: Mapping[str, Outcome]
    answers: Path


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "answers.py"
    path.write_text(REFERENCES, "utf-8")
    return path


@pytest.fixture(scope="module")
def made(warm: Warm, answers: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("new") / "course"
    write_course(folder)
    outcomes = {}
    with sharing(warm):
        for name, example in EXAMPLES.items():
            course = load_course(folder / "exercises")
            outcomes[name] = write_exercise(course, name, "middles", answers, example)
    return Made(load_course(folder / "exercises"), outcomes, answers)


def joined(text: str) -> str:
    """A text in one line, and a signature without its line breaks."""
    return " ".join(text.split()).replace("( ", "(").replace(", )", ",)")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_generated_tests_are_in_order_and_kill_most_mutants(made: Made, name: str) -> None:
    findings = made.outcomes[name].findings
    wrong = [f for f in findings if not f.well and f.kind != "mutant"]
    left = ("left for a person", "the tests have met no second right answer")
    assert [f for f in wrong if not any(text in f.text for text in left)] == []
    mutants = [f for f in findings if f.kind == "mutant"]
    assert sum(f.well for f in mutants) >= 0.8 * len(mutants) > 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_person_is_told_what_is_left_to_write(made: Made, name: str) -> None:
    shown = "\n".join(lines_of(name, made.outcomes[name]))
    assert "/grader-" not in shown  # the copies that were audited are gone
    assert "3 hints" in shown
    for part in ("the unit's title", "the formula", "Why", "Rules", "Source"):
        assert part in shown


def test_the_annotations_that_a_reference_lacks_come_from_the_example(made: Made) -> None:
    text = made.course.reference_file("middles").read_text("utf-8")
    matrix = 'Float[Tensor, "rows columns"]'
    assert f"x: {matrix}, by: float = 0.5, dim: int = -1,) -> {matrix}:" in joined(text)
    assert (
        'def forward(self, x: Float[Tensor, "rows d_in"]) -> Float[Tensor, "rows d_out"]:' in text
    )
    assert "return x - by * largest  # the largest keeps the other part" in text


def test_the_helpers_of_a_reference_come_with_it(made: Made) -> None:
    text = made.course.reference_file("middles").read_text("utf-8")
    assert text.count("HALF = 0.5") == text.count("def half(x):") == 1


def test_a_statement_says_the_shapes_and_the_rules_that_hold(made: Made) -> None:
    shrink, gate = statement(made.course, "shrink"), statement(made.course, "Gate")
    assert shrink.computes.startswith("Subtract a part of the largest number.")
    assert shrink.entries("Takes")["x"] == "(rows, columns), any scores at all."
    assert {"dtype", "unchanged", "gradients"} <= {*shrink.rules}
    assert [*gate.entries("Made with")] == ["d_in", "d_out"]
    assert gate.parts["Returns"].strip() == "(rows, d_out): the result."


def test_a_module_has_a_rule_on_its_weights_that_a_missing_bias_breaks(made: Made) -> None:
    names = "value.weight, value.bias, gate.weight and gate.bias"
    assert names in statement(made.course, "Gate").rules["weights"]
    wrong = {f.name: f for f in made.outcomes["Gate"].findings if f.kind == "mistake"}
    assert wrong["Gate/bias-missing"].named
    assert wrong["Gate/learns-more"].named


def test_arrays_are_drawn_in_float64_and_get_no_test_of_gradients(made: Made) -> None:
    checks = (made.course.folder / "checks" / "test_middles.py").read_text("utf-8")
    assert "x = make.normal(2.0, rows=5, columns=4, dtype=torch.float64).numpy()" in checks
    hidden = (made.course.solutions / "graders" / "test_middles.py").read_text("utf-8")
    for test in ("has_the_right_shape", "agrees_with_the_reference", "changes_no_argument"):
        assert f"def test_spread_{test}(" in hidden
    assert "test_spread_has_the_right_gradients" not in hidden
    assert "import numpy as np" in made.course.folder.joinpath("middles.py").read_text("utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_statement_is_what_the_reference_prints(made: Made, name: str) -> None:
    reference = open_oracle(made.course).definitions[name]
    names = {"np": np, "torch": torch, **vars(sys.modules[reference.__module__])}
    text = statement(made.course, name).text
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_class_of_a_dataclass_is_in_the_stubs_and_tests_make_it(made: Made) -> None:
    unit = made.course.unit_of["grown"]
    stubs = made.course.stub_file(unit).read_text("utf-8")
    assert "@dataclass(frozen=True)\nclass Mean:" in stubs
    assert "mean: Mean with `value` (columns) and `count` int, any numbers." in joined(stubs)
    checks = (made.course.folder / "checks" / f"test_{unit}.py").read_text("utf-8")
    assert "mean = reference.Mean(value=make.normal(2.0, columns=" in checks


def test_running_again_changes_no_byte_and_says_so(
    made: Made, grader: Grader, tmp_path: Path
) -> None:
    folder = shutil.copytree(made.course.folder.parent, tmp_path / "course")
    stub = folder / "exercises" / "middles.py"
    stub.write_text(stub.read_text("utf-8").replace("Why: TODO: say", "Why: people say"), "utf-8")
    before = {path: (folder / path).read_bytes() for path in files_in(folder)}
    again = ("new", "exercise", "shrink", "--unit", "middles", "--from", made.answers)
    ran = grader(*again, "--course", folder)
    assert ran.code == 0, ran.err
    assert {path: (folder / path).read_bytes() for path in files_in(folder)} == before
    assert "written:" not in ran.out
    assert "left as it was" in ran.out


def test_only_what_is_missing_is_added(made: Made, warm: Warm, tmp_path: Path) -> None:
    folder = shutil.copytree(made.course.folder.parent, tmp_path / "course")
    checks = folder / "exercises" / "checks" / "test_middles.py"
    checks.write_text('"""Mine."""\n', "utf-8")
    with sharing(warm):
        course = load_course(folder / "exercises")
        outcome = write_exercise(course, "halfway", "middles", None)
    assert [*outcome.written] == [checks]
    assert checks.read_text("utf-8").startswith('"""Mine."""\n')
    assert "def test_halfway_keeps_the_shape" in checks.read_text("utf-8")


# --- what a reference says, and what an example adds ----------------------------------------------


@pytest.mark.parametrize(
    ("name", "example", "signature"),
    [
        (
            "at_places",
            "at_places(torch.randn(3, 5), torch.tensor([4, 0, 1]))",
            'at_places(x: Float[Tensor, "rows columns"], ids: Int[Tensor, "rows"]) '
            '-> Float[Tensor, "rows"]:',
        ),
        (
            "pairs",
            "pairs(torch.randn(3, 5), torch.randn(3, 5), 2)",
            'a: Float[Tensor, "rows columns"], b: Float[Tensor, "rows columns"], k: int',
        ),
        (
            "pairs",
            "pairs(torch.randn(3, 5), torch.randn(3, 5), 2)",
            '-> Float[Tensor, "rows k 2"]:',
        ),
        (
            "spread",
            "spread(np.ones((3, 2)))",
            'x: Float[np.ndarray, "rows columns"]) '
            '-> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, "columns"]]:',
        ),
        ("named", 'named(np.ones((2, 3)), ["a", "b"])', "names: list[str]) -> dict[str, float]:"),
        (
            "measured",
            "",
            'x: Float[np.ndarray, "vectors d"]) -> Float[np.ndarray, "vectors"]:',
        ),
        ("changes", "changes(np.array([1, 1, 2, 0]))", "-> np.ndarray:"),
        (
            "documented",
            "",
            'x: Float[Tensor, "batch d_model"], mask: Bool[Tensor, "batch d_model"]',
        ),
    ],
)
def test_dimensions_are_named_by_equal_sizes_or_by_the_docstring(
    answers: Path, name: str, example: str, signature: str
) -> None:
    source, *_ = annotated(read_source(answers, name), example)
    assert signature in joined(source.text).replace(",)", ")")


def inputs(answers: Path, name: str, example: str) -> Trial:
    """The inputs that are found for a reference."""
    _, definition, contract, given = annotated(read_source(answers, name), example)
    return find_inputs(name, definition, contract, given)


def test_a_size_bounds_integers_though_the_reference_tolerates_larger_ones(answers: Path) -> None:
    trial = inputs(answers, "marked", "marked(torch.tensor([1, 3, 0]), 5)")
    assert trial.kinds["marked", "ids"] == (Integers(0, "classes"),)


def test_sizes_stay_above_an_int_that_counts_elements(answers: Path) -> None:
    trial = inputs(answers, "best", "best(torch.randn(3, 7), 2)")
    sizes = [size for case in trial.cases for size in case.sizes.values()]
    assert max(trial.domains["best", "k"]) <= min(sizes)
    assert facts_of(trial).ones == ("rows",)


def test_a_size_is_not_one_if_nothing_is_left_of_the_result(answers: Path) -> None:
    assert facts_of(inputs(answers, "centred", "")).ones == ("rows",)


def test_a_size_that_depends_on_values_is_not_chosen(answers: Path) -> None:
    trial = inputs(answers, "places", "")
    assert [[*case.sizes] for case in trial.cases] == [["rows"]] * len(trial.cases)


def test_booleans_are_those_for_which_results_differ(answers: Path) -> None:
    assert inputs(answers, "all_along", "").kinds["all_along", "x"] == (Booleans(share=0.9),)


def test_parts_have_equal_sizes(answers: Path) -> None:
    trial = inputs(answers, "halves", "halves(np.arange(6.0), 2)")
    assert all(case.sizes["items"] % case.sizes["parts"] == 0 for case in trial.cases)


def test_numbers_are_those_for_which_no_result_is_nan(answers: Path) -> None:
    trial = inputs(answers, "surprise", "surprise(torch.randn(3, 5).softmax(dim=-1))")
    assert trial.kinds["surprise", "p"] == (Uniform(0.05, 0.95),)


# --- numbers at edges -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def edged(warm: Warm, answers: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("edges") / "course"
    write_course(folder)
    outcomes = {}
    with sharing(warm):
        for name in ("dead_zone", "endless"):
            course = load_course(folder / "exercises")
            outcomes[name] = write_exercise(course, name, "zones", answers)
    return Made(load_course(folder / "exercises"), outcomes, answers)


def test_a_mutant_that_differs_at_a_limit_alone_gets_a_test(edged: Made) -> None:
    assert all(f.well for f in edged.outcomes["dead_zone"].findings if f.kind == "mutant")
    hidden = (edged.course.solutions / "graders" / "test_zones.py").read_text("utf-8")
    assert "torch.tensor([-0.25, 0.0, 0.25, 1.0]), make.integers(0, 4, rows=" in joined(hidden)


def test_the_statement_shows_what_the_result_is_at_a_limit(edged: Made) -> None:
    names = {"torch": torch, "dead_zone": open_oracle(edged.course).definitions["dead_zone"]}
    text = statement(edged.course, "dead_zone").parts["Example"]
    test = doctest.DocTestParser().get_doctest(text, names, "dead_zone", None, None)
    assert "0.25" in test.examples[1].source
    assert doctest.DocTestRunner(verbose=False).run(test) == (0, 2)


def test_the_mutant_that_waits_proves_the_test_of_edges(
    edged: Made, grader: Grader, tmp_path: Path
) -> None:
    folder = shutil.copytree(edged.course.folder.parent, tmp_path / "course")
    mistakes = folder / "solutions" / "mistakes" / "zones.py"
    before, mark, waiting = mistakes.read_text("utf-8").partition('# mistake(\n#     "dead_zone"')
    assert "fail the test of edges, and no other hidden test" in before
    mistakes.write_text(before + (mark + waiting).replace("# ", "", 4), "utf-8")
    ran = grader("audit", "dead_zone", "--course", folder)
    assert "keeps its points" not in ran.out
    assert "rule dead_zone" not in ran.out, ran.out


def at_limit(x: Tensor, limit: float = 0.25) -> Tensor:
    return x * (x.abs() >= limit)


def right(x: Tensor, limit: float = 0.25) -> Tensor:
    return torch.where((x > limit) | (x < -limit), x, 0.0)


def last_largest(x: Any) -> Any:
    return x.shape[1] - 1 - x[:, ::-1].argmax(axis=1)


def without_half(x: Tensor, value: float = 1.0) -> Tensor:
    return x.nan_to_num(value)


def test_without_such_a_mutant_no_text_speaks_of_edges(made: Made) -> None:
    texts = made.course.folder / "middles.py", made.course.solutions / "graders/test_middles.py"
    assert not any("edge" in path.read_text("utf-8") for path in texts)


@pytest.mark.parametrize(
    ("call", "wrong", "values"),
    [
        ("dead_zone(torch.randn(2, 5))", at_limit, (-0.25, 0.0, 0.25, 1.0)),
        ("dead_zone(torch.rand(2, 5))", at_limit, (0.05, 0.25, 0.95)),
        ("dead_zone(torch.randn(2, 5))", right, None),
        ("first_largest(-np.ones((2, 5)))", last_largest, (0.0, 1.0)),
        ("without_nan(torch.randn(2, 5))", without_half, (-0.5, 0.0, 0.5, 1.0, nan)),
    ],
)
def test_edges_are_the_fewest_numbers_at_which_a_wrong_answer_differs(
    answers: Path, call: str, wrong: Callable[..., Any], values: tuple[float, ...] | None
) -> None:
    name = call.partition("(")[0]
    found = find_edges(inputs(answers, name, call), [wrong])
    kinds = None if found is None else found[0].kinds[name, "x"]
    assert kinds == (None if values is None else (Among(values),))


def test_infinity_and_nan_are_drawn_if_results_are_else_all_equal(edged: Made) -> None:
    stated = statement(edged.course, "endless")
    assert "any numbers, also -inf, inf and nan." in stated.entries("Takes")["x"]
    mutants = {f.name: f for f in edged.outcomes["endless"].findings if f.kind == "mutant"}
    assert mutants["endless/L2:x > 0->x < 0"].well
    assert not any(f.differs for f in mutants.values() if not f.well)  # they compute the same


@pytest.mark.parametrize(
    ("name", "example", "why"),
    [
        ("unsaid", "", 'show it with --example "unsaid(torch.randn(2, 5), …)"'),
        ("missing", "", "does not define missing; it defines half, halfway"),
        ("unsaid", "unsaid(", "is no Python"),
        ("unsaid", "half(torch.ones(2))", "is no call of unsaid: write unsaid(…)"),
        ("unsaid", "unsaid(torch.ones(2), 3)", "fails: TypeError: too many positional arguments"),
        ("Gate", "Gate(5, 3)", "write Gate(…)(…)"),
        (
            "above",
            "above(3)",
            "answers.py: above: the result: no argument has the size 'count'; if it depends on "
            "values, write _count",
        ),
    ],
)
def test_too_little_is_refused_with_what_to_do(
    answers: Path, name: str, example: str, why: str
) -> None:
    with pytest.raises(CallError) as refused:
        annotated(read_source(answers, name), example)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("unit_rows", "--unit", "other"), "unit_rows is an exercise of the unit vectors"),
        (("new", "--unit", "unit_rows"), "unit_rows is an exercise: give the unit another name"),
        (("no-name", "--unit", "vectors"), "NAME 'no-name' is no name of Python"),
        (("gone", "--unit", "vectors"), "does not define gone; it defines unit_rows"),
        (("gone", "--unit", "new"), "name the file of your reference with --from FILE"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(
    cold_grader: Grader, tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    write_course(tmp_path / "course")
    ran = cold_grader("new", "exercise", *options, "--course", tmp_path / "course")
    assert (ran.code, why in ran.err) == (2, True), ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_an_exercise_that_takes_a_model_is_written_by_hand(
    cold_grader: Grader, tmp_path: Path
) -> None:
    write_course(tmp_path / "course")
    text = "from torch import nn\n\n\ndef freeze(model: nn.Module) -> None: ...\n"
    (tmp_path / "freeze.py").write_text(text, "utf-8")
    options = ("--unit", "models", "--from", tmp_path / "freeze.py")
    ran = cold_grader("new", "exercise", "freeze", *options, "--course", tmp_path / "course")
    assert ran.code == 2
    assert "freeze takes model, a model or batches, for which nothing can be derived" in ran.err
