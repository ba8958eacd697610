"""Trains a model made of a student's own answers, shows the training, and lets the student ask it.

A script of the course, ``afterwards/play/NAME.py``, makes a `Game`. The student's code runs in this
process, on their own computer.
"""

from grader.playing.game import Exam, Game, Recipe, Scene

__all__ = ["Exam", "Game", "Recipe", "Scene"]
