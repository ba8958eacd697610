# Tries: raises an exception of NULs, every control character, line and paragraph ends.
# Worked in: -
# Deserves: nothing
def causal_mask(num_tokens):
    raise ValueError("".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff\ufffe\uffff")
