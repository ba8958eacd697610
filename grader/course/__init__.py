"""A course as its author wrote it: file, contracts, statements, inputs, references, tests as data.

It knows no submission and runs no student code.
"""
