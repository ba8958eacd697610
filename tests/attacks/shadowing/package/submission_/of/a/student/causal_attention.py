def merge_heads(heads):
    return heads
