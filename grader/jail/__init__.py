"""The student's side of the wall, and the wire across it.

Trusted modules here: ``session`` (starts the warm process, and talks to its jails), ``remote`` (the
proxies that a test sees) and ``local`` (definitions of our own behind the same proxies). Modules
that run in the student's process: ``warm``, ``lockdown``, ``syscalls``, ``forbidding``, ``guest``,
``loader``, ``source``, ``definitions`` and ``trace``. Both sides share ``wire``, and nothing else.
"""
