"""attention-grader: exercises and an autograder for self-attention in PyTorch.

The engine knows no exercise by name. It reads a course folder (``course.toml``, stubs, checks,
references, hidden tests) at run time. ``grader/README.md`` lists the engine's folders.

In a notebook, ``grader.check("softmax_naive")`` checks the answer in its cells,
``grader.hint("softmax_naive")`` gives the next hint, ``grader.ask("softmax_naive")`` asks questions
about a solved answer, and ``grader.heatmap(weights)`` shows a
matrix. ``grader.experiment("saturation")`` runs an experiment. ``grader.list()``,
``grader.pack()`` and ``grader.play("addition")`` do the same as the commands of these names.
"""

# For safety, this module imports nothing at the top, not even the standard library: the docstring
# of `grader.__main__` says why.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from grader.playing.notebook import play
    from grader.student.heatmap import heatmap
    from grader.student.notebook import ask, check, experiment, hint, pack
    from grader.student.notebook import list_ as list

__version__ = "0.2.0"
__all__ = ["ask", "check", "experiment", "heatmap", "hint", "list", "pack", "play"]


def __getattr__(name: str) -> "Any":
    """Import each function at its first use only, because the import loads torch."""
    if name == "play":
        from grader.playing.notebook import play

        return play
    if name in __all__:
        from grader.student import heatmap, notebook

        if name == "heatmap":
            return heatmap.heatmap
        return getattr(notebook, "list_" if name == "list" else name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _serve_a_notebook() -> None:
    """In a notebook, explain errors about missing names, and start the worker that runs answers."""
    try:
        shell = get_ipython()  # type: ignore[name-defined]
    except NameError:
        return
    from grader.student.cells import explain_errors

    explain_errors(shell)
    if getattr(shell, "kernel", None) is not None:
        from contextlib import suppress

        from grader.unsandboxed.worker import of_this_kernel

        with suppress(OSError):  # the first check tries again, and reports the error
            of_this_kernel()


_serve_a_notebook()


def __dir__() -> "Sequence[str]":
    """The names that an editor can complete, including functions that are not imported yet."""
    return sorted({*globals(), *__all__})
