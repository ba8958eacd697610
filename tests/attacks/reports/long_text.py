# Tries: raises an exception with ten million characters, and one with a million lines.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise ValueError("x" * 10**7)


def softmax_naive(scores):
    raise ValueError("\n" * 10**6)
