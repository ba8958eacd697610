"""The student's side of the wall, and the wire across it.

Trusted modules here: ``session`` (one submission's processes), ``jails`` (starts the warm process,
and talks to what it forks), ``remote`` (the proxies that a test sees) and ``local`` (definitions of
our own behind the same proxies). Modules that run in the student's process: ``warm``, ``lockdown``,
``syscalls``, ``forbidding``, ``guest``, ``loader``, ``source``, ``definitions``, ``trace`` and
``preload``. Both sides share ``wire`` and ``payload``, and nothing else.

Without a wall, for a student's own checks: ``worker`` is the trusted end of ``work``, a process for
one submission after another, with ``frames`` between them and ``restoring`` to tidy up; ``here``
answers from definitions of a notebook.
"""
