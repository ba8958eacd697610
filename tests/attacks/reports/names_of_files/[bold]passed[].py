def softmax_rows(scores):
    return 1 / 0
