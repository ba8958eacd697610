"""Proof of a course, for its authors: known answers and mechanical mutants, on its tests.

It knows the course whole, solutions and all, and so stands in nothing that a student gets to run on
solutions. It gives no grade to anyone.
"""
