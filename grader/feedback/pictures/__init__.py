"""Draws the expected matrix, the student's matrix and their difference, side by side.

`text` draws for a terminal, `svg` for a page.
"""
