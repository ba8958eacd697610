"""A model made of a student's own answers learns something: a screen, a page, questions to ask it.

What is played is a script of the course, ``afterwards/play/NAME.py``, which makes a `Game`. The
student's code runs in this process, at their own desk.
"""

from grader.playing.game import Exam, Game, Recipe, Scene

__all__ = ["Exam", "Game", "Recipe", "Scene"]
