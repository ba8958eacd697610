# Tries: calls softmax in a thread of its own, and in pools of threads.
# Worked in: -
# Deserves: nothing
import concurrent.futures
import threading

import torch


def softmax_naive(scores):
    out = []
    thread = threading.Thread(target=lambda: out.append(torch.softmax(scores, 0)))
    thread.start()
    thread.join()
    return out[0]


pool = concurrent.futures.ThreadPoolExecutor(1)


def softmax_rows(scores):
    return pool.submit(torch.softmax, scores, -1).result()
