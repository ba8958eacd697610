"""Says in words how a wrong tensor differs from the expected one, before any numbers.

It knows arithmetic and nothing of exercises. A sentence is said only when it is exactly true, up to
rounding, and when the values carry enough evidence: that one number is twice another says nothing,
that twenty different ones are says much. Where two explanations of the same kind fit, neither is
said. Silence is better than a false trail.
"""

from grader.differences.precision import PRECISION, computed_on, differing
from grader.differences.words import MOST_ELEMENTS, in_words

__all__ = ["MOST_ELEMENTS", "PRECISION", "computed_on", "differing", "in_words"]
