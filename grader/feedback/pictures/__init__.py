"""Draws the expected matrix, the student's and their difference, side by side.

`text` draws for a terminal, `svg` for a page.
"""
