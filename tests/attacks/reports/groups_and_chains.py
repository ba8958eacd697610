# Tries: raises a group of groups of exceptions, and a chain of ten thousand causes.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    error = ValueError("first")
    for _ in range(10_000):
        following = ValueError("next")
        following.__cause__ = error
        error = following
    raise error


def softmax_naive(scores):
    error = ValueError("first")
    for _ in range(5_000):
        error = ExceptionGroup("<b>", [error])
    raise error
