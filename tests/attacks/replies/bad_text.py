# Tries: sends text that is no UTF-8, half surrogates, and NUL in names.
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


def causal_mask(num_tokens):
    good = framed(returned({"type": "odd", "what": "ABCDEFGH"}))
    send(good.replace(b"ABCDEFGH", b"\xed\xa0\x80\xff\xfe\xc0\x80\x00"))


def softmax_naive(scores):
    raise ValueError("\ud800 \udfff \x00")


def softmax_rows(scores):
    return "\udc80" * 100


def attention_weights(inputs):
    return {"\ud800": inputs, "\x00": inputs}
