"""A student sees what the checks pass in, what becomes of it line by line, and what comes out."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from grader.course.course import Course, load_course
from grader.inspection.cases import CallTrace, CaseTrace
from grader.inspection.screen import show_cases
from grader.inspection.tracing import show
from grader.records.faults import CallError
from tests.support.places import REAL, TINY

Show = Callable[..., list[CaseTrace]]


@pytest.fixture
def shown(tiny: Course, tmp_path: Path) -> Show:
    """Show an exercise of the tiny course, with this text as the answer."""

    def cases(name: str, text: str, **files: str) -> list[CaseTrace]:
        (tmp_path / "basics.py").write_text(textwrap.dedent(text), "utf-8")
        for stem, more in files.items():
            (tmp_path / f"{stem}.py").write_text(textwrap.dedent(more), "utf-8")
        return list(show(tiny, name, tmp_path))

    return cases


def lines(shown: list[CaseTrace], width: int = 80) -> str:
    out = io.StringIO()
    show_cases(shown, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def steps(call: CallTrace) -> list[str]:
    """Each line that ran, and what it bound."""
    told = []
    for step in call.steps:
        bound = "; ".join(f"{value.name} {value.what}" for value in step.bound)
        told.append(f"{'  ' * step.depth}{step.text} | {bound} | {step.times}")
    return told


# --- what is told --------------------------------------------------------------------------------


def test_inputs_shapes_along_the_way_result_prints_and_ending(shown: Show) -> None:
    shape, value = shown(
        "center",
        """
        def center(x):
            print("hello")
            mean = x.sum()
            return x - mean
        """,
    )
    assert (shape.rung, shape.status, value.rung, value.status) == (
        "shape",
        "passed",
        "value",
        "failed",
    )
    (call,) = value.calls
    (given,), (result,) = call.inputs, call.result
    assert (given.name, given.what, given.values) == ("x", "(3,) float32", "tensor([1., 2., 6.])")
    assert (result.what, result.values) == ("(3,) float32", "tensor([-8., -7., -3.])")
    assert steps(call) == [
        'print("hello") |  | 1',
        "mean = x.sum() | mean () float32 | 1",
        "return x - mean | → (3,) float32 | 1",
    ]
    assert [(step.file, step.line) for step in call.steps] == [("basics.py", n) for n in (3, 4, 5)]
    assert call.prints == "hello\n"
    assert "expected" in value.message
    assert "hello" not in value.message


def test_a_module_is_shown_as_it_is_made_and_called(shown: Show) -> None:
    first, _ = shown(
        "Projection",
        """
        from torch import nn
        class Projection(nn.Module):
            def __init__(self, d_in, d_out, bias=False):
                super().__init__()
                self.proj = nn.Linear(d_in, d_out, bias=bias)
                self.size = d_in, d_out
            def forward(self, x):
                rows, _ = x.shape
                return self.proj(x)
        """,
    )
    made, called = first.calls
    assert [(v.name, v.what) for v in made.inputs] == [("d_in", "3"), ("d_out", "4")]
    assert steps(made)[1:] == [
        "self.proj = nn.Linear(d_in, d_out, bias=bias) | self.proj Linear weight (4, 3) | 1",
        "self.size = d_in, d_out | self.size (3, 4) | 1",
    ]
    assert [(v.name, v.what) for v in made.result] == [("proj.weight", "(4, 3) float32")]
    assert called.name == "Projection"
    assert steps(called) == [
        "rows, _ = x.shape | rows 2; _ 3 | 1",
        "return self.proj(x) | → (2, 4) float32 | 1",
    ]


def test_a_line_of_a_loop_is_told_once_with_how_often_it_ran(shown: Show) -> None:
    (shape,) = shown(
        "center",
        """
        def center(x):
            total = 0
            for n in range(len(x)):
                total = total + x[n]
            return [element for element in x]
        """,
    )
    assert steps(shape.calls[0]) == [
        "total = 0 | total 0 | 1",
        "for n in range(len(x)): | n 0 | 1",
        "total = total + x[n] | total () float32 | 4",
        f"return [element for element in x] | → [{', '.join(['() float32'] * 4)}] | 1",
    ]


def test_a_helper_is_shown_below_the_line_that_calls_it(shown: Show) -> None:
    _, value = shown(
        "center",
        """
        from helpers import mean_of
        def center(x):
            m = mean_of(
                x,
            )
            return x - m
        """,
        helpers="""
        def mean_of(values):
            return values.mean()
        """,
    )
    assert value.status == "passed"
    assert steps(value.calls[0]) == [
        "m = mean_of( x, ) | m () float32 | 1",
        "  def mean_of(values): | values (3,) float32 | 1",
        "  return values.mean() | → () float32 | 1",
        "return x - m | → (3,) float32 | 1",
    ]


def test_what_changes_in_place_is_told(shown: Show) -> None:
    _, value = shown(
        "center",
        """
        def center(x):
            y = x.clone()
            y -= y.mean()
            y[0] = -2
            return y
        """,
    )
    assert [told.split(" | ")[1] for told in steps(value.calls[0])] == [
        "y (3,) float32",
        "y (3,) float32",
        "y (3,) float32",
        "→ (3,) float32",
    ]


def test_an_exception_is_told_at_its_line(shown: Show) -> None:
    (shape,) = shown(
        "center",
        """
        def center(x):
            y = x.reshape(3, 3)
            return y
        """,
    )
    (call,) = shape.calls
    assert shape.status == "error"
    assert "basics.py line 3 raised RuntimeError" in shape.message
    assert call.raised.startswith("RuntimeError: shape '[3, 3]' is invalid")
    assert steps(call) == ["y = x.reshape(3, 3) |  | 1"]
    assert not call.result


def test_a_case_has_its_name_and_the_first_that_fails_is_the_last(shown: Show) -> None:
    cases = shown("staircase", "import torch\ndef staircase(size):\n    return torch.ones(size)\n")
    assert [(case.case, case.status) for case in cases] == [("1", "failed")]
    assert cases[0].calls[0].inputs[0].what == "1"


def test_what_goes_back_and_a_call_among_many_are_told(tmp_path: Path) -> None:
    shutil.copytree(TINY, tmp_path / "tiny")
    course = load_course(tmp_path / "tiny" / "exercises")
    shutil.copy(course.solutions / "basics.py", course.folder)
    with course.check_files()[0].open("a") as checks:
        checks.write(
            textwrap.dedent(
                """
                @rung.gradient("center")
                def test_center_lets_gradients_through(student):
                    \"""Gradients come back.\"""
                    x = torch.tensor([1.0, 2.0, 6.0], requires_grad=True)
                    student.center.each([(x,)] * 10)[0][0].backward()
                """
            )
        )
    *_, last = show(course, "center")
    assert (last.rung, last.status, last.calls_left_out) == ("gradient", "passed", 3)
    (gradient,) = last.calls[-1].result
    assert (last.calls[-1].name, gradient.name) == ("backward", "gradient of x")
    assert gradient.values == "tensor([ 0.6667, -0.3333, -0.3333])"
    assert "… 3 more calls" in lines([last])


def test_large_tensors_are_told_by_how_they_begin_and_their_range(shown: Show) -> None:
    made = "import torch\ndef staircase(size):\n    return torch.arange(37) / 4\n"
    (result,) = shown("staircase", made)[0].calls[0].result
    assert result.what == "(37,) float32"
    assert result.values == "0, 0.25, 0.5, 0.75, …  from 0 to 9"


def test_a_nest_is_told_with_the_shapes_inside(shown: Show) -> None:
    made = "import torch\ndef staircase(size, x=torch.ones(37)):\n    return x, (x, [x, (x,)])\n"
    (result,) = shown("staircase", made)[0].calls[0].result
    assert result.what == "((37,) float32, ((37,) float32, list))"


def test_many_lines_are_cut(shown: Show) -> None:
    body = "\n".join(f"    y{n} = x" for n in range(100))
    _, value = shown("center", f"def center(x):\n{body}\n    return x - x.mean()\n")
    assert len(value.calls[0].steps) == 60
    assert value.calls[0].steps_left_out == 41
    assert "… 41 more lines" in lines([value])


# --- what stands before the tests, and after -----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "status", "told"),
    [
        ("x = 1\n", "missing", "no definition"),
        ("def center(x):\n    raise NotImplementedError\n", "missing", "still the stub"),
        ("def center(x)\n    return x\n", "error", "not valid Python"),
        ("def center(x, y):\n    return x\n", "failed", "the statement lists"),
    ],
)
def test_without_anything_to_call_the_reason_is_told(
    shown: Show, text: str, status: str, told: str
) -> None:
    (only,) = shown("center", text)
    assert only.status == status
    assert told in only.message
    assert not only.calls


def test_a_forbidden_operation_is_told_at_the_end(shown: Show) -> None:
    *_, last = shown("weigh", "def weigh(scores):\n    return scores.softmax(-1)\n")
    assert last.status == "failed"
    assert "basics.py line 2 uses softmax" in last.message


def test_a_right_answer_passes_each_case(tiny: Course) -> None:
    for name, unit in tiny.unit_of.items():
        cases = list(show(tiny, name, TINY / "solutions" / f"{unit}.py"))
        assert {case.status for case in cases} == {"passed"}


def test_ctrl_c_ends_it_with_the_line_that_was_running(shown: Show) -> None:
    (only,) = shown(
        "center",
        """
        def center(x):
            while True:
                raise KeyboardInterrupt
        """,
    )
    assert only.status == "error"
    assert "line 4" in only.message


def test_a_unit_is_no_exercise(tiny: Course, tmp_path: Path) -> None:
    with pytest.raises(CallError, match="basics is a unit"):
        next(show(tiny, "basics"))
    with pytest.raises(CallError, match="did you mean center"):
        next(show(tiny, "centre"))
    with pytest.raises(CallError, match=r"no \.py file"):
        next(show(tiny, "center", tmp_path))


# --- what is left as it was ----------------------------------------------------------------------


def test_nothing_of_the_student_stays_behind(shown: Show) -> None:
    before = list(sys.meta_path), set(sys.modules), sys.stdout, sys.gettrace()
    shown("center", "from helpers import f\ndef center(x):\n    return f(x)\n", helpers="f = abs\n")
    after = set(sys.modules)
    assert sys.meta_path == before[0]
    assert not {name for name in after - before[1] if "helpers" in name or "submission" in name}
    assert (sys.stdout, sys.gettrace()) == before[2:]


def test_objects_of_the_student_are_not_asked_for_anything(shown: Show) -> None:
    _, value = shown(
        "center",
        """
        import torch
        class Meta(type):
            @property
            def __name__(cls):
                raise RuntimeError("asked for its name")
        class Odd(metaclass=Meta):
            def asked(self, *_):
                raise RuntimeError("asked")
            __repr__ = __str__ = __eq__ = __len__ = __iter__ = __getattr__ = asked
            __class__ = property(asked)
        class Mine(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                raise RuntimeError("asked as a tensor")
        def center(x):
            odd = Odd()
            mine = [odd, 10 ** 5000]
            own = torch.Tensor._make_subclass(Mine, x)
            return x - x.mean()
        """,
    )
    assert value.status == "passed", value.message
    assert [told.split(" | ")[1] for told in steps(value.calls[0])] == [
        "odd Odd",
        "mine [Odd, int]",
        "own (3,) float32",
        "→ (3,) float32",
    ]


# --- as text -------------------------------------------------------------------------------------


def test_the_lines_fit_and_mean_nothing_to_a_terminal(shown: Show) -> None:
    cases = shown(
        "center",
        """
        def center(x):
            print("[red]\\x1b[2Jboo\\tafter")
            return x - x.mean()  # [bold]
        """,
    )
    text = lines(cases)
    assert "[red]�[2Jboo" in text
    assert "\x1b" not in text
    assert "return x - x.mean()  # [bold]" in text
    assert "(3,) float32  tensor([1., 2., 6.])" in text
    assert text.count("✓ passed") == 2


def test_an_answer_to_the_real_course_is_followed(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(
        textwrap.dedent(
            """
            import torch
            def softmax_rows(scores):
                exps = torch.exp(scores)
                sums = exps.sum(dim=0)
                return exps / sums
            """
        )
    )
    course = load_course(REAL)
    text = lines(list(show(course, "softmax_rows", tmp_path)), width=100)
    assert "5 sums = exps.sum(dim=0)    sums (3,) float32" in text
    assert "✗" in text
    assert "expected" in text  # the picture


@pytest.mark.parametrize("name", ["causal_mask", "CausalAttention"])
def test_references_of_the_real_course_pass_while_they_are_followed(name: str) -> None:
    course = load_course(REAL)
    answers = course.solutions / f"{course.unit_of[name]}.py"
    cases = list(show(course, name, answers))
    assert {case.status for case in cases} == {"passed"}
    assert all(call.steps for case in cases for call in case.calls if call.name != "backward")


def test_a_check_with_a_memory_limit_of_its_own_is_shown_like_others(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TINY, tmp_path / "course")) / "exercises"
    with (folder / "checks" / "test_basics.py").open("a", encoding="utf-8") as checks:
        checks.write(LIMITED)
    (tmp_path / "basics.py").write_text("def center(x):\n    return x - x.mean()\n", "utf-8")
    shown = list(show(load_course(folder), "center", tmp_path))
    assert [one.status for one in shown] == ["passed"] * 3
    assert [call.name for call in shown[-1].calls] == ["center"]


LIMITED = '''

@rung.efficiency("center", memory_mb=64)
def test_center_in_little_memory(student, make):
    """Little memory is enough."""
    student.center(make.normal(tokens=4))
'''
