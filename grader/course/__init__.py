"""What is asked: course file, contracts, statements, seeded inputs, references, tests as data.

It knows what an author wrote, and no submission. Nothing here runs a student's code.
"""
