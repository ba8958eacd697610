# Tries: waits for a lock that it holds itself.
# Worked in: -
# Deserves: nothing
import threading


def causal_mask(num_tokens):
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
