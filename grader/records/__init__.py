"""What light and heavy rooms share as plain data: grades, lines of a gradebook, faults, files.

It opens no course: all that it knows of one is where a bundle keeps its list of files (`bundles`).
It loads no torch, and imports nothing else of the kit.
"""
