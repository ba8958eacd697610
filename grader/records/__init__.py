"""What light and heavy rooms share as plain data: grades, lines of a gradebook, faults, files.

It knows no course, loads no torch, and imports nothing else of the kit.
"""
