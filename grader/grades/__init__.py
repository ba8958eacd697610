"""The gradebook: grades, corrections, comparisons of two gradings, pseudonyms.

This room stores and compares the results of tests, and runs no tests itself.
"""
