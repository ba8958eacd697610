"""Fixtures of the student's desk."""

from tests.support.shells import one_shell, shell

__all__ = ["one_shell", "shell"]
