# Tries: raises exceptions whose text is halves of surrogate pairs.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise ValueError("\ud83d \ude00 \udcff")


def softmax_naive(scores):
    raise type("Odd", (Exception,), {"__str__": lambda self: "\ud800" * 3000})
