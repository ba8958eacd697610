# Tries: sends replies of another type, more outcomes than asked for, none at all, and two at once.
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


def running_mean_loop(x):
    send(framed({"type": "listing", "found": []}))


def prefix_sum_matrix(length):
    send(framed({"type": "outcomes", "outcomes": []}))


def running_mean_matrix(length):
    send(framed({"type": "outcomes", "outcomes": [{"type": "done"}] * 300_000}))


def running_mean_matmul(x):
    send(framed({"type": "refused", "why": "grader_error"}) * 2)


def softmax_naive(scores):
    send(framed({"type": "outcomes", "outcomes": [{"type": "done"}] * 2}))


def softmax_rows(scores):
    send(framed({"type": "gradients", "inputs": [], "parameters": {}}) + framed(b""))


def attention_weights(inputs):
    structure = {"type": "structure", "parameters": [], "buffers": [], "modules": []}
    structure["training"] = True
    send(framed({"type": "outcomes", "outcomes": [{"type": "done"}, structure]}))
