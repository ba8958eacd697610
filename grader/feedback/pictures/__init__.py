"""Small matrices beside each other: what was expected, what came, and where they differ.

`text` draws them for a terminal, `svg` for a page.
"""
