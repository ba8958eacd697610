"""What the workers of a grading are forked from: a process that has torch and the engine loaded.

It knows no course, no seed and no submission, and torch has started no thread, which a fork would
lose.
Python's own fork server imports this and nothing else; see `grader.run.workers`.
"""

from __future__ import annotations

import gc
import tempfile

import torch

torch.set_num_threads(1)  # before any operation: one parallel region here would hang each fork

# What a worker needs before its first submission.
import grader.grading.desk  # noqa: E402
import grader.grading.ladder  # noqa: E402
import grader.grading.outcomes  # noqa: E402, F401

tempfile.tempdir = None  # torch has asked; a worker's environment may name another
gc.freeze()  # a look for garbage would copy in each fork what all share
