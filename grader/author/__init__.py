"""Proof of a course, for its authors: known answers and mechanical mutants, on its tests.

And a made-up class to practise on. It knows the course whole, solutions included, so no bundle for
students holds it. It gives no grade to anyone.
"""
