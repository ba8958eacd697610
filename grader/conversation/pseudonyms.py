"""Names for those who shall not be named: the same in every list of one gradebook."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

DIGITS = 6  # of a pseudonym; twice as many for two students that would share one


def pseudonyms(students: Iterable[str], salt: str) -> dict[str, str]:
    """Each student's pseudonym, ``student-7f3a2c``: nobody who lacks the salt can tell whose."""
    digests = {
        student: hashlib.blake2b(
            student.encode("utf-8", "surrogatepass"), key=salt.encode(), digest_size=16
        ).hexdigest()
        for student in students
    }
    taken = Counter(digest[:DIGITS] for digest in digests.values())
    return {
        student: f"student-{digest[: DIGITS if taken[digest[:DIGITS]] == 1 else 2 * DIGITS]}"
        for student, digest in digests.items()
    }
