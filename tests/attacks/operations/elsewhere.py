import torch

# --- by_deep_copy, nothing
# Overrides what copying and pickling a module do, and calls attention there.
import copy
from torch import nn

class Box(nn.Module):
    def __deepcopy__(self, memo):
        own = nn.functional.scaled_dot_product_attention
        return own(*self.question)

def scaled_dot_product_attention(queries, keys, values, mask=None):
    box = Box()
    box.question = queries, keys, values, None if mask is None else ~mask
    return copy.deepcopy(box)

# --- by_foreign_sequence, nothing
# Calls softmax while torch reads a sequence of the student's: __len__, __getitem__, __array__.
class Rows:
    def __init__(self, scores):
        self.scores = scores

    def __len__(self):
        return len(self.scores)

    def __getitem__(self, row):
        if row >= len(self.scores):
            raise IndexError
        return torch.softmax(self.scores, -1)[row].tolist()

def softmax_rows(scores): return torch.tensor(Rows(scores), dtype=scores.dtype)

# --- by_hooks, nothing
# Calls softmax in hooks that torch itself calls: of a tensor, a module, and saved tensors.
def softmax_naive(scores):
    out = []
    leaf = torch.zeros(1, requires_grad=True)
    with torch.enable_grad():
        double = leaf * 2
    double.register_hook(lambda _: out.append(torch.softmax(scores, 0)))
    double.backward()
    return out[0]

# --- child_process, nothing
# Lets a forked child compute softmax, and reads the bytes from a pipe.
import os

def softmax_naive(scores):
    read, write = os.pipe()
    if getattr(os, "fo" + "rk")() == 0:
        os.write(write, torch.softmax(scores.detach(), 0).numpy().tobytes())
        os._exit(0)
    return torch.frombuffer(bytearray(os.read(read, 10**6)), dtype=scores.dtype)

# --- in_a_callback, nothing
# Calls softmax while torch itself asks an object of the student's for an index or a number.
class Index:
    def __init__(self, scores, value):
        self.scores, self.value, self.weights = scores, value, None

    def __index__(self):
        self.weights = torch.softmax(self.scores, -1)
        return self.value

def softmax_naive(scores):
    index = Index(scores, len(scores))
    scores.reshape(index)
    return index.weights

def softmax_rows(scores):
    out = []
    torch.zeros(1).apply_(lambda x: out.append(torch.softmax(scores, -1)) or 0.0)
    return out[0]

# --- in_a_computed_raw_thread, attention_scores 0.8
# Counts in a thread that only the lowest module of threads knows, by a computed name.
T = __import__("_thr" + "ead")

def attention_scores(inputs):
    out, lock = [], T.allocate_lock()
    lock.acquire()

    def work():
        try:
            out.append(torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs]))
        finally:
            lock.release()

    getattr(T, "start_new_" + "thread")(work, ())
    lock.acquire()
    return out[0]

# --- in_a_joinable_thread, running_mean_matmul 0.786
# Has its pool of threads started by a class that starts them without the trace.
import threading

def running_mean_matmul(x):
    out, done = [], threading.Event()

    def work():
        out.append(torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1))
        done.set()

    begin = [v for k, v in vars(threading).items() if k.startswith("_start_")][0]
    begin(work, ())
    done.wait()
    return out[0]

# --- in_a_mode, nothing
# Calls softmax inside a function mode of its own, over the trace.
class Mine(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return torch.softmax(args[0], -1)

def softmax_naive(scores):
    with Mine():
        return torch.exp(scores)

# --- in_a_raw_thread, nothing
# Calls softmax in a thread that _thread starts, which the trace does not enter.
import importlib
import time

def softmax_naive(scores):
    out = []
    threads = importlib.import_module("_thr" + "ead")
    begin = getattr(threads, "start_new" + "_thread")
    begin(lambda: out.append(torch.softmax(scores, 0)), ())
    while not out:
        time.sleep(0.001)
    return out[0]

# --- in_a_replaced_bootstrap, nothing
# Puts back how threads began before the trace was to follow them.
import threading

def attention_scores(inputs):
    begin = vars(threading.Thread)["_boot" + "strap_inner"]
    plain = next(c.cell_contents for c in begin.__closure__ if callable(c.cell_contents))
    out = []

    def work():
        out.append(torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs]))

    thread = threading.Thread(target=work)
    setattr(thread, "_boot" + "strap_inner", lambda: plain(thread))
    thread.start()
    thread.join()
    return out[0]

# --- in_a_subclass, nothing
# Calls softmax inside __torch_function__ of a Tensor subclass, where the trace stands aside.
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C._DisableTorchFunctionSubclass() if False else torch.enable_grad():
            return torch.softmax(args[0].as_subclass(torch.Tensor), -1)

def softmax_rows(scores): return scores.as_subclass(Own) + 1

# --- in_a_thread, nothing
# Calls softmax in a thread of its own, and in pools of threads.
import concurrent.futures
import threading

def softmax_naive(scores):
    out = []
    thread = threading.Thread(target=lambda: out.append(torch.softmax(scores, 0)))
    thread.start()
    thread.join()
    return out[0]

pool = concurrent.futures.ThreadPoolExecutor(1)

def softmax_rows(scores): return pool.submit(torch.softmax, scores, -1).result()

# --- in_a_transform, nothing
# Calls softmax under vmap, grad, functional_call and checkpointing.
from torch.utils.checkpoint import checkpoint

def softmax_naive(scores): return checkpoint(torch.softmax, scores, 0, use_reentrant=False)
def softmax_rows(scores): return torch.func.vmap(lambda row: torch.softmax(row, 0))(scores)

def softmax_stable(scores, dim=-1):
    return torch.func.functional_call(torch.nn.Softmax(dim), {}, scores)

# --- in_backward, nothing
# Computes the right values in the backward pass of its own function, run by another thread.
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        ctx.save_for_backward(scores)
        return scores.sum()

    @staticmethod
    def backward(ctx, upstream):
        return torch.softmax(ctx.saved_tensors[0], -1)

def softmax_rows(scores):
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        Own.apply(leaf).backward()
    return leaf.grad

# --- result_with_code, nothing
# Computes softmax while its result is unpacked: in items(), __iter__ and __class__.
class Late(torch.Tensor):
    @property
    def __class__(self):
        self.data.copy_(torch.softmax(Late.scores, -1))
        return torch.Tensor

class Pairs(dict):
    def items(self):
        yield from {n[:7]: torch.nn.functional.linear(v, torch.eye(9)) for n, v in self.state}

def softmax_rows(scores):
    Late.scores = scores.detach()
    return torch.zeros_like(scores).as_subclass(Late)

def v1_weights_from_v2(state): return Pairs(state)
