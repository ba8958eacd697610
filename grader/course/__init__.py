"""A course as its author wrote it: its statements, contracts, inputs, references and tests.

This room knows no submission and runs no student code.
"""
