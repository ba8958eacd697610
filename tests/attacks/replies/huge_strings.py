# Tries: sends strings of megabytes wherever a reply may hold one.
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


LONG = "x" * (3 * 2**20)


def causal_mask(num_tokens):
    send(framed(returned({"type": "odd", "what": LONG})))


def softmax_naive(scores):
    place = {"file": LONG, "line": 1, "text": ""}
    raised = {"type": "raised", "kind": "ValueError", "text": "", "place": place}
    send(framed({"type": "outcomes", "outcomes": [{"type": "done"}, raised]}))


def softmax_rows(scores):
    raised = {"type": "raised", "kind": LONG, "text": ""}
    send(framed({"type": "outcomes", "outcomes": [{"type": "done"}, raised]}))


def softmax_stable(scores, dim=-1):
    value = returned({"type": "tensor", "dtype": LONG, "shape": [], "data": b""})
    send(framed(value))
