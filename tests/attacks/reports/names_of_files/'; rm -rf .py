def softmax_stable(scores, dim=-1):
    return 1 / 0
