"""A course as its author wrote it: its file, statements, contracts, inputs, references and tests.

This room knows no submission and runs no student code.
"""
