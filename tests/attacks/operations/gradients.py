import torch

# --- autograd_by_functions, nothing
# Has gradients made by torch.func, through a name that is put together from parts.
def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False):
        copies = [t.clone() for t in (queries, keys, values, grad_output)]
        _, pull = getattr(torch.func, "v" + "jp")(attended, *copies[:3])
        return pull(copies[3])

# --- autograd_by_operators, nothing
# Takes the hard part, the derivative of softmax, from the operator that autograd calls.
def attention_backward(queries, keys, values, grad_output):
    scale = queries.shape[-1] ** -0.5
    weights = torch.softmax(queries @ keys.mT * scale, dim=-1)
    grad_weights = grad_output @ values.mT
    operator = getattr(torch.ops.aten, "_softmax_backward_data")
    grad_scores = operator(grad_weights, weights, -1, weights.dtype) * scale
    return grad_scores @ keys, grad_scores.mT @ queries, weights.mT @ grad_output

# --- autograd_by_a_masked_kernel, nothing
# Takes the derivative of softmax from the operator for padded sentences, with nothing padded.
def attention_backward(queries, keys, values, grad_output):
    scale = queries.shape[-1] ** -0.5
    weights = torch.softmax(queries @ keys.mT * scale, dim=-1)
    nothing = torch.zeros_like(weights, dtype=torch.bool)
    back = torch.ops.aten._masked_softmax_backward
    grad_scores = back(grad_output @ values.mT, weights, nothing, weights.dim() - 1) * scale
    return grad_scores @ keys, grad_scores.mT @ queries, weights.mT @ grad_output

# --- autograd_by_the_engine, nothing
# Leaves the inference mode, and asks the engine of autograd itself for the gradients.
def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in (queries, keys, values)]
        out = attended(*leaves)
        engine = torch.autograd.Variable._execution_engine
        return engine.run_backward((out,), (grad_output.clone(),), False, False, tuple(leaves), False, False)

# --- autograd_forwards, nothing
# Makes every gradient out of forward derivatives, one direction after another.
from torch.autograd import forward_ad

def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False):
        inputs = [t.clone() for t in (queries, keys, values)]
        upstream = grad_output.clone()
        gradients = [torch.zeros_like(t) for t in inputs]
        for number, gradient in enumerate(gradients):
            for place in range(gradient.numel()):
                with forward_ad.dual_level():
                    direction = torch.zeros_like(gradient)
                    direction.view(-1)[place] = 1
                    duals = list(inputs)
                    duals[number] = torch._make_dual(inputs[number], direction, level=0)
                    out = torch._unpack_dual(attended(*duals), level=0)
                    gradient.view(-1)[place] = (out.tangent * upstream).sum()
        return tuple(gradients)

# --- autograd_in_a_script, nothing
# Lets a script run the backward pass, inside torch's own interpreter.
SCRIPT = torch.jit.CompilationUnit("""
def gradients(q, k, v, upstream):
    scale = float(q.size(-1)) ** -0.5
    out = torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * scale, -1), v)
    given: Optional[List[Optional[Tensor]]] = [upstream]
    return torch.autograd.grad([out], [q, k, v], given)
""")

def attention_backward(queries, keys, values, grad_output):
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [t.clone().requires_grad_() for t in (queries, keys, values)]
        return tuple(SCRIPT.gradients(*leaves, grad_output.clone()))

# --- autograd_in_a_thread, nothing
# Records a graph in a thread of its own, where no inference mode was ever entered.
import threading

def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    found = []

    def work():
        leaves = [t.clone().requires_grad_() for t in (queries, keys, values)]
        run = torch._C._ImperativeEngine().run_backward
        out = attended(*leaves)
        found.extend(run((out,), (grad_output.clone(),), False, False, tuple(leaves), False, False))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return tuple(found)

# --- by_static_runtime_backwards, nothing
# Asks the static runtime for the derivative of softmax, whose operator is gone.
TEXT = """graph(%g : Tensor, %y : Tensor, %dim : int, %type : int):
  %x : Tensor = aten::_softmax_backward_data(%g, %y, %dim, %type)
  return (%x)"""

def attention_backward(queries, keys, values, grad_output):
    low = vars(torch)["_" + "C"]
    whole = vars(low)["_jit_" + "to_static_module"](vars(low)["parse_" + "ir"](TEXT))
    scale = queries.shape[-1] ** -0.5
    weights = torch.softmax(queries @ keys.mT * scale, dim=-1)
    kind = 7 if weights.dtype == torch.float64 else 6
    grad_scores = whole(grad_output @ values.mT, weights, -1, kind) * scale
    return grad_scores @ keys, grad_scores.mT @ queries, weights.mT @ grad_output

# --- differences_all_at_once, attention_backward 4.167
# Makes all finite differences in one batch, so that no loop over tokens is counted.
def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    inputs, found = [t.double() for t in (queries, keys, values)], []
    for number, one in enumerate(inputs):
        step = 1e-5
        moves, ends = torch.eye(one.numel(), dtype=one.dtype).view(-1, *one.shape) * step, []
        for moved in (one + moves, one - moves):
            all_three = [moved if n == number else t for n, t in enumerate(inputs)]
            ends.append((attended(*all_three) * grad_output).sum((-1, -2, -3)))
        found.append(((ends[0] - ends[1]) / (2 * step)).view(one.shape).to(queries.dtype))
    return tuple(found)

# --- differences_in_complex_numbers, attention_backward 4.167
# Steps along the imaginary axis, where differences are exact to the last digit.
def attended(q, k, v):
    exp = torch.exp(q @ k.mT / q.shape[-1] ** 0.5)
    return exp / exp.sum(-1, keepdim=True) @ v

def attention_backward(queries, keys, values, grad_output):
    inputs = [t.to(torch.complex128) for t in (queries, keys, values)]
    found = []
    for number, one in enumerate(inputs):
        steps = torch.eye(one.numel(), dtype=one.dtype).view(-1, *one.shape) * 1e-30j
        moved = list(inputs)
        moved[number] = one + steps
        slopes = (attended(*moved).imag * grad_output).sum((-1, -2, -3)) / 1e-30
        found.append(slopes.view(one.shape).to(queries.dtype))
    return tuple(found)

# --- differences_mapped, attention_backward 3.611
# Makes finite differences along every direction at once, by a map over directions.
def attended(q, k, v): return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

def attention_backward(queries, keys, values, grad_output):
    inputs, step, found = [t.double() for t in (queries, keys, values)], 1e-5, []
    for number, one in enumerate(inputs):

        def slope(direction):
            ahead, behind = list(inputs), list(inputs)
            ahead[number], behind[number] = one + step * direction, one - step * direction
            return ((attended(*ahead) - attended(*behind)) * grad_output).sum() / (2 * step)

        directions = torch.eye(one.numel(), dtype=one.dtype).view(-1, *one.shape)
        found.append(torch.vmap(slope)(directions).view(one.shape).to(queries.dtype))
    return tuple(found)
