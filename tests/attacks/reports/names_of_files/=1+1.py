def causal_mask(num_tokens):
    return 1 / 0
