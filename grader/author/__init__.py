"""Proof of a course, for its authors: known answers and mechanical mutants, on its tests."""
