import torch

# --- audit_hook_of_its_own, attention_scores 0.8
# Waits in an audit hook for the kit's frames, to silence the record that counts.
import sys

def attention_scores(inputs):
    frames = []
    sys.addaudithook(lambda event, args: frames.extend(args[:1]) if event == "sys._getframe" else None)
    try:
        sys._getframe()
    except ValueError:
        pass
    for frame in frames:
        for value in frame.f_locals.values():
            if hasattr(value, "leave"):
                value.add = value.leave = lambda *_: None
    return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])

# --- dispatch_modes_unset, linear_attention 1.5
# Takes the mode that counts out of its slot, one kind of mode after the other.
import torch.nn.functional as F

def linear_attention(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    P = getattr(torch.utils, "_python" + "_dispatch")
    inner = getattr(P, "_pop" + "_mode_temporarily")
    with inner() if getattr(P, "_len_torch" + "_dispatch_stack")() else torch.enable_grad():
        weights = q @ k.mT
        return weights @ values / weights.sum(-1, keepdim=True)

# --- in_a_python_dispatcher_off, nothing
# Leaves the operations' Python layer with a key set of its own around a whole softmax.
def softmax_online(scores, block_size):
    low = vars(torch)["_" + "C"]
    names = low.DispatchKey
    own = low.DispatchKeySet(names.CPU)
    guard = getattr(low, "_Set" + "ExcludeDispatchKeyGuard")
    keys = [k for n, k in vars(names).items() if n in ("Python", "PythonTLSSnapshot")]
    held = [guard(k, True) for k in keys]
    for one in held:
        one.__enter__()
    try:
        exp = torch.exp(scores - scores.amax(-1, keepdim=True))
        return exp / exp.sum(-1, keepdim=True)
    finally:
        for one in reversed(held):
            one.__exit__(None, None, None)

# --- loop_behind_a_larger_one, attention_scores 0.8
# Makes the small input cost more operations than the loop over the large one.
def attention_scores(inputs):
    n = len(inputs)
    for _ in range(max(0, 5000 - 10 * n * n)):
        torch.empty(0)
    return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])

# --- loop_below_the_count, running_mean_matmul 0.715
# Loops in the __torch_dispatch__ of a tensor class, below the mode that counts.
class W(torch.Tensor):
    @staticmethod
    def __new__(cls, t):
        return torch.Tensor._make_wrapper_subclass(cls, t.shape, dtype=t.dtype)
    def __init__(self, t): self.t = t
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        x = args[0].t
        return torch.stack([x[:, :t+1].mean(1) for t in range(x.shape[1])], 1)
class M(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.exp(W(x.detach()))
    @staticmethod
    def backward(ctx, g):
        n = g.shape[1]
        m = torch.ones(n, n, dtype=g.dtype).tril(); m = m / m.sum(1, keepdim=True)
        return m.T @ g
def running_mean_matmul(x): return M.apply(x)

# --- loop_in_an_operator, nothing
# Hides a loop in an operator of its own, which counts once.
from torch.library import custom_op
@custom_op("mine::scores", mutates_args=())
def scores(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([torch.dot(a, b) for b in x]) for a in x])
def back(ctx, g):
    (x,) = ctx.saved_tensors
    return (g + g.T) @ x
def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
scores.register_autograd(back, setup_context=keep)
def attention_scores(inputs): return scores(inputs)

# --- loop_inside_an_apply, running_mean_matmul 0.786
# Loops in NumPy inside Tensor.apply_, which calls it with the mode off.
def slow(a):
    a = a.detach().numpy()
    out = a.copy()
    for t in range(a.shape[1]):
        out[:, t] = a[:, :t+1].mean(1)
    return torch.from_numpy(out)
class M(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return way(x)
    @staticmethod
    def backward(ctx, g):
        n = g.shape[1]
        m = torch.ones(n, n, dtype=g.dtype).tril(); m = m / m.sum(1, keepdim=True)
        return m.T @ g
def running_mean_matmul(x): return M.apply(x)
def way(x):
    out = []
    torch.zeros(1).apply_(lambda v: out.append(slow(x)) or 0.0)
    return out[0]

# --- loop_through_dlpack, attention_scores 0.7
# Hands the numbers to NumPy by a side door, and loops there.
import numpy as np, torch
def attention_scores(inputs):
    a = np.from_dlpack(inputs.detach())
    out = np.array([[float((x * y).sum()) for y in a] for x in a])
    return torch.from_numpy(out).to(inputs.dtype)

# --- loop_with_modes_off, attention_scores 0.7
# Switches off what counts operations around a loop.
from torch.utils._python_dispatch import _disable_current_modes
def attention_scores(inputs):
    with _disable_current_modes():
        return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])

# --- loops_in_numpy, attention_scores 0.7
# Loops where one product is asked for, in NumPy, so that nobody counts the operations.
import numpy as np

def attention_scores(inputs):
    x = inputs.detach().numpy()
    scores = np.zeros((len(x), len(x)), dtype=x.dtype)
    for i in range(len(x)):
        for j in range(len(x)):
            scores[i, j] = sum(a * b for a, b in zip(x[i], x[j]))
    return torch.from_numpy(scores) + 0 * inputs.sum()

# --- memory_in_numpy, flash_attention 2.5
# Stores all weights at once in NumPy, where no trace sees how large they are.
import numpy as np

def flash_attention(queries, keys, values, block_size, causal=False):
    q, k, v = queries.numpy(), keys.numpy(), values.numpy()
    scores = q @ k.swapaxes(-1, -2) / np.array(q.shape[-1], dtype=q.dtype) ** 0.5
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[-2:], dtype=bool), 1), -np.inf, scores)
    exp = np.exp(scores - scores.max(-1, keepdims=True))
    return torch.from_numpy((exp / exp.sum(-1, keepdims=True) @ v).astype(q.dtype))

# --- mode_popped_by_a_device, running_mean_matmul 0.715
# Leaves a device that was never entered: torch's C code then pops the mode that sees functions.
def slow(a):
    a = a.detach().numpy()
    out = a.copy()
    for t in range(a.shape[1]):
        out[:, t] = a[:, :t+1].mean(1)
    return torch.from_numpy(out)
class M(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return way(x)
    @staticmethod
    def backward(ctx, g):
        n = g.shape[1]
        m = torch.ones(n, n, dtype=g.dtype).tril(); m = m / m.sum(1, keepdim=True)
        return m.T @ g
def running_mean_matmul(x): return M.apply(x)
def way(x):
    try:
        torch.device("cpu").__exit__(None, None, None)
    except RuntimeError: pass
    return slow(x)

# --- modes_behind_a_disabled_dispatch, nothing
# Enters torch's guard against dispatch to Python, found by looking through its names.
def attention_scores(inputs):
    low = vars(torch)["_" + "C"]
    guard = next(v for k, v in vars(low).items() if k.endswith("TorchDispatch") and "isable" in k)
    off = guard()
    scores = torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])
    del off
    return scores

# --- modes_behind_a_guard, nothing
# Excludes the dispatcher's key that counts operations, by a guard of torch's own.
def attention_scores(inputs):
    low = vars(torch)["_" + "C"]
    keys = low.DispatchKeySet(low.DispatchKey.Python)
    keys = keys.add(getattr(low.DispatchKey, "PythonTLS" + "Snapshot"))
    with getattr(low, "_Exclude" + "DispatchKeyGuard")(keys):
        return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])

# --- modes_disabled, nothing
# Switches the trace off with _disable_current_modes.
from torch.utils._python_dispatch import _disable_current_modes

def softmax_naive(scores):
    with _disable_current_modes():
        return torch.softmax(scores, 0)

# --- modes_disabled_by_pieces, attention_scores 0.7
# Switches off what counts operations around a loop, by a name that is put together.
import importlib

P = importlib.import_module("torch.utils._python_" + "dispatch")

def attention_scores(inputs):
    with getattr(P, "_disable_current_" + "modes")():
        return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])

# --- modes_disabled_in_a_string, nothing
# Switches the trace off in a string, with names put together from pieces.
import importlib

CODE = """
import torch
from torch.utils._python_dispatch import _disable_current_modes
with _disable_current_modes(), torch._C.DisableTorchFunction():
    out = torch.softmax(scores, -1)
"""

def softmax_rows(scores):
    space = {"scores": scores}
    exec(CODE, space)
    return space["out"]

def softmax_naive(scores):
    dispatch = importlib.import_module("torch.utils._python_" + "dispatch")
    with getattr(dispatch, "_disable_current" + "_modes")():
        return torch.softmax(scores, 0)

# --- modes_popped, nothing
# Pops the trace off its stack and pushes it back.
def softmax_naive(scores):
    mode = torch._C._pop_torch_function_stack()
    try:
        return torch.softmax(scores, 0)
    finally:
        torch._C._push_on_torch_function_stack(mode)

def softmax_rows(scores):
    low = vars(torch)["_C"]
    mode = getattr(low, "_pop_torch_" + "function_stack")()
    try:
        return torch.softmax(scores, -1)
    finally:
        getattr(low, "_push_on_torch_" + "function_stack")(mode)

# --- modes_popped_by_pieces, running_mean_matmul 0.715
# Pops what counts operations off its stack around a loop, and pushes it back.
def running_mean_matmul(x):
    low = vars(torch)["_" + "C"]
    size = getattr(low, "_len_torch_" + "dispatch_stack")
    pop = getattr(low, "_pop_torch_" + "dispatch_stack")
    push = getattr(low, "_push_on_torch_" + "dispatch_stack")
    modes = [pop(None) for _ in range(size())]
    means = torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1)
    for mode in reversed(modes):
        push(mode)
    return means

# --- numpy_on_data, softmax_naive 1.8
# Computes in NumPy, which no trace sees: right values, and no gradient.
import numpy as np

def softmax_naive(scores):
    exp = np.exp(scores.detach().numpy())
    return torch.from_numpy(exp / exp.sum())

# --- softmax_at_once_by_guard, softmax_online 1.5
# Runs over all scores at once, behind torch's own guard for subclasses and modes.
def softmax_online(scores, block_size):
    P = vars(torch.utils)["_python_" + "dispatch"]
    with vars(P)["_disable_" + "current_modes"]():
        exp = torch.exp(scores - scores.amax(-1, keepdim=True))
        return exp / exp.sum(-1, keepdim=True)

# --- torch_function_disabled, nothing
# Enters DisableTorchFunction and DisableTorchFunctionSubclass.
def softmax_naive(scores):
    with torch._C.DisableTorchFunction():
        return torch.softmax(scores, 0)

def softmax_rows(scores):
    with torch._C.DisableTorchFunctionSubclass():
        return torch.softmax(scores, -1)

def softmax_stable(scores, dim=-1):
    name = "DisableTorch" + "Function"
    with getattr(torch._C, name)():
        return torch.softmax(scores, dim)
