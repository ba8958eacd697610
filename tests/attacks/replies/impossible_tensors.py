# Tries: sends tensors whose shape, bytes and dtype disagree, or overflow what counts them.
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


TENSORS = [
    {"dtype": "bool", "shape": [2**32, 2**32], "data": b""},
    {"dtype": "bool", "shape": [-1, -4], "data": b"0000"},
    {"dtype": "bool", "shape": [2, 2], "data": b"0" * 4096},
    {"dtype": "bool", "shape": [0, 2**63 - 1, 2**63 - 1], "data": b""},
    {"dtype": "bool", "shape": [2**64 - 1, 0], "data": b""},
    {"dtype": "object", "shape": [1], "data": b"00000000"},
    {"dtype": "float32", "shape": [1] * 4000, "data": b"0000"},
    {"dtype": "float32", "shape": [2**31 - 1] * 3, "data": b"", "device": "meta"},
    {"dtype": "float32", "shape": [], "data": b"", "device": "cuda"},
    {"dtype": "float32", "shape": [2.0], "data": b"00000000"},
    {"dtype": "float32", "shape": "ab", "data": b"00000000"},
]


def answer(number):
    send(framed(returned({"type": "tensor", **TENSORS[number]})))


def running_mean_loop(x):
    answer(0)


def prefix_sum_matrix(length):
    answer(1)


def running_mean_matrix(length):
    answer(2)


def running_mean_matmul(x):
    answer(3)


def running_mean_softmax(x):
    answer(4)


def normalize_by_sum(scores):
    answer(5)


def softmax_naive(scores):
    answer(6)


def softmax_rows(scores):
    answer(7)


def softmax_stable(scores, dim=-1):
    answer(8)


def attention_scores(inputs):
    answer(9)


def attention_weights(inputs):
    answer(10)
