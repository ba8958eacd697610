"""attention-grader: exercises and an autograder for self-attention in PyTorch.

The engine knows no exercise by name. A course folder (``course.toml``, stubs, checks,
references, hidden graders) is handed to it at run time; see ``grader/README.md`` for the rooms.
"""

__version__ = "0.1.0"
