"""attention-grader: exercises and an autograder for self-attention in PyTorch.

The engine knows no exercise by name. A course folder (``course.toml``, stubs, checks,
references, hidden graders) is handed to it at run time; see ``grader/README.md`` for the rooms.

In a notebook, ``grader.check("softmax_naive")`` checks what stands in its cells,
``grader.hint("softmax_naive")`` gives the next hint, and ``grader.heatmap(weights)`` shows a
matrix.
"""

# No import stands here, not of Python's own modules either: see `grader.__main__`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grader.student.notebook import check, hint, unsolved
    from grader.student.notebook_display import heatmap

__version__ = "0.1.0"
__all__ = ["check", "heatmap", "hint", "unsolved"]


def __getattr__(name: str) -> "Any":
    """What loads torch is loaded when it is first asked for."""
    if name in __all__:
        from grader.student import notebook, notebook_display

        return getattr(notebook_display if name == "heatmap" else notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    """What completion offers: also what is not loaded yet."""
    return sorted({*globals(), *__all__})
