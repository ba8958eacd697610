"""Versions of torch with which the kit was tried, by `make audit-torch`.

Forbidden functions and limits rest on torch's own code, so another version may give other marks.
"""

from __future__ import annotations

# docs/operations/torch.md says what was run with each, and what differed.
TRIED = ("2.9.1", "2.13.0", "2.14.1", "2.15.0")


def is_untried(version: str) -> bool:
    """Whether the kit was never tried with this version; the build (``+cpu``) does not matter."""
    return version.partition("+")[0] not in TRIED
