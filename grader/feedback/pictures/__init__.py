"""Small matrices beside each other: what was expected, what came, and where they differ.

`data` takes them from tensors, `text` draws them for a terminal.
"""
