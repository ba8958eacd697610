# Tries: returns HTML and escapes as text and dictionary keys, which the feedback quotes.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    return "<script>alert(1)</script>\x1b[2J"


def softmax_naive(scores):
    return {"<img src=x onerror=alert(1)>": "\x1b[2J"}


def softmax_rows(scores):
    return float("nan")
