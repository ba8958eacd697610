# Tries: answers wrongly, and raises where an exception is expected: a property without the value.
# Worked in: -
# Deserves: nothing
def split_heads(x, num_heads):
    batch, tokens, d_out = x.shape
    if d_out % num_heads:
        raise ValueError("d_out does not divide")
    return x.view(batch, num_heads, tokens, d_out // num_heads)
