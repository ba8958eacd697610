"""A complete statement for an exercise of the tiny course."""

from __future__ import annotations

from grader.course.course import Course

WEIGH = '''\
    """Turn each row of scores into weights.

        weights[i, j] = exp(scores[i, j]) / Σₖ exp(scores[i, k])

    A second paragraph.

    Why: each query shares out
    its own attention.

    Takes:
        scores: (queries, keys), any finite
            numbers.

    Returns:
        (queries, keys): the weights.

    Rules:
        large: Scores may be
            as large as ±1000.
        unchanged: `scores` stays as it was.

    Example: one row.

    >>> weigh(torch.zeros(1, 2))
    tensor([[0.5000, 0.5000]])

    Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762.
    """
'''


def state_weigh(course: Course, docstring: str = WEIGH) -> Course:
    """Write this docstring into the stub of `weigh`, and return the course."""
    path = course.stub_file("basics")
    text = path.read_text("utf-8")
    plain = '    """Turn each row into weights that sum to one, without torch\'s softmax."""\n'
    assert plain in text
    path.write_text(text.replace(plain, docstring), "utf-8")
    return course
