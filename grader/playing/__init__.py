"""Trains a model made of a student's own answers; then the student can ask the model questions.

A script of the course, ``afterwards/play/NAME.py``, makes a `Game`. The student's code runs in this
process, on the student's own computer.
"""

from grader.playing.game import Exam, Game, Recipe, Scene

__all__ = ["Exam", "Game", "Recipe", "Scene"]
