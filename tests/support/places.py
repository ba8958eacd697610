"""Paths in the repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TINY = ROOT / "tests" / "tiny_course"  # a course of a few small exercises
REAL = ROOT / "exercises"
SAMPLES = ROOT / "tests" / "submissions"
