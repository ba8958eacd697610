# Tries: raises exceptions whose classes are called like HTML, an escape, and a megabyte.
# Worked in: -
# Deserves: nothing
NAMES = ["<script>alert(1)</script>", "\x1b[31mpassed\x1b[0m", "A" * 10**6, "a\nb\rc", "=1+1"]


def causal_mask(num_tokens):
    raise type(NAMES[num_tokens % 5], (Exception,), {})("")


def softmax_naive(scores):
    raise type(NAMES[0], (Exception,), {"__str__": lambda self: NAMES[1]})


def softmax_rows(scores):
    return type(NAMES[1] * 100, (), {})()
