def causal_mask(num_tokens):
    return 2 / 0
