# Tries: sends a frame one byte at a time, always just before it would be too late.
# Worked in: -
# Deserves: softmax_naive 2
import os
import stat

import msgspec
import torch


def send(frame):
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                while frame:
                    frame = frame[os.write(descriptor, frame) :]
        except OSError:
            continue


def framed(message):
    body = message if isinstance(message, bytes) else msgspec.msgpack.encode(message)
    return len(body).to_bytes(8, "little") + body


def returned(value, before=1):
    done = [{"type": "done"}] * before
    return {"type": "outcomes", "outcomes": [*done, {"type": "returned", "value": value}]}


import time


def causal_mask(num_tokens):
    send((2**20).to_bytes(8, "little"))
    while True:
        send(b"x")
        time.sleep(0.01)


def softmax_naive(scores):
    return torch.exp(scores) / torch.exp(scores).sum()
