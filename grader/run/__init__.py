"""Many submissions: into a gradebook, here, in other processes or on other machines, with progress.

It knows who is graded when, and what is left to do. How one is graded, it must not know.
"""
