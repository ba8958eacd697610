"""The same channels without a wall: a student's own worker, a notebook, our own definitions.

Nothing here isolates anything, so no grade that counts is made with it.
"""
