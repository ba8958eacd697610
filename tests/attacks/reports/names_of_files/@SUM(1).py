def softmax_naive(scores:
    return 1
