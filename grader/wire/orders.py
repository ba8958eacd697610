"""What the grader tells the warm process, and is told by it, over a socket of their own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

KIT = Path(__file__).parents[1]
SIDES = ("guest", "sandbox", "wire")
# What tells the libraries below torch to use less of the processor. They read it when they are
# first used, in a jail or before; the trusted side reads the same.
PROCESSOR = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "ONEDNN_MAX_CPU_ISA")


class Ready(msgspec.Struct, frozen=True):
    """Torch is loaded: the layers of each jail, and which copy of this package runs."""

    missing: dict[str, str]  # layers that no jail has, and why
    readable: list[str]  # folders that a jail may read
    fingerprint: str


def fingerprint() -> str:
    """A hash of the source on both sides of the wall: two ends must be of one version."""
    digest = hashlib.blake2b(digest_size=8)
    for side in SIDES:
        for path in sorted((KIT / side).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Fork(msgspec.Struct, frozen=True, tag="fork"):
    """Fork a jail under these limits; its socket comes along as a descriptor."""

    cpu_seconds: int
    memory_mb: int


class Reap(msgspec.Struct, frozen=True, tag="reap"):
    """Wait for a child that has ended or been killed."""

    pid: int


class Ended(msgspec.Struct, frozen=True):
    """How a child ended."""

    signal: int
    code: int
    cpu_seconds: float
    peak_mb: float


Command = Fork | Reap
