"""The student's side of the wall, and the wire across it.

Trusted modules here: ``warm`` (starts and talks to the warm process), ``session`` (one
submission behind a back end) and ``remote`` (the proxies that a test sees). Modules that run in
the student's process: ``host``, ``guest``, ``loader`` and ``trace``. Both sides share ``wire``,
and nothing else.
"""
