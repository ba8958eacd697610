import torch

# --- attention_whole, nothing
# Uses torch's own attention for every layer that is to be written.
import torch.nn.functional as F
from torch import nn

def scaled_dot_product_attention(queries, keys, values, mask=None):
    whole = vars(F)["scaled_dot_" + "product_attention"]
    return whole(queries, keys, values, None if mask is None else ~mask)

class CausalHead(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(d_in, head_size, False) for _ in range(3))
        self.scale = None if scaled else 1.0

    def forward(self, x):
        whole = torch.ops.aten.scaled_dot_product_attention
        return whole(self.query(x), self.key(x), self.value(x), is_causal=True, scale=self.scale)

# --- bound_at_module_level, nothing
# Binds the exercises' names to partials and lambdas, without any definition to look at.
import functools

softmax_naive = functools.partial(torch.softmax, dim=0)
softmax_rows = lambda scores: torch.nn.Softmax(-1)(scores)
softmax_stable = torch.nn.functional.softmax

# --- by_a_distribution, nothing
# Uses the softmax inside a transform of torch.distributions.
def softmax_naive(scores): return torch.distributions.SoftmaxTransform()(scores)
def softmax_rows(scores): return torch.distributions.SoftmaxTransform()(scores)
def softmax_stable(scores, dim=-1):
    t = torch.distributions.SoftmaxTransform()
    return t(scores.movedim(dim, -1)).movedim(-1, dim)

# --- by_alias, nothing
# Imports softmax under other names, from other modules, and through a helper file's star.
from torch import softmax as my_own
from torch.nn.functional import softmin as harmless

share = [my_own]

def softmax_naive(scores): return share[0](scores, 0)
def softmax_rows(scores): return harmless(-scores, -1)
def softmax_stable(scores, dim=-1): return torch.special.softmax(scores, dim)

# --- by_classes, nothing
# Uses the classes of torch.nn: Softmax, Softmax2d, LogSoftmax, MultiheadAttention.
from torch import nn

def softmax_naive(scores): return nn.Softmax(dim=0)(scores)
def softmax_rows(scores): return nn.Softmax2d()(scores.T[None, :, :, None])[0, :, :, 0].T
def softmax_stable(scores, dim=-1): return nn.LogSoftmax(dim)(scores).exp()

def scaled_dot_product_attention(queries, keys, values, mask=None):
    mask = None if mask is None else ~mask
    return nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)

# --- by_compiler_attention, nothing
# Uses the attention that torch keeps for its compiler.
import importlib, math, torch
def scaled_dot_product_attention(queries, keys, values, mask=None):
    fa = importlib.import_module("torch._higher_order_ops.flex_attention")
    from torch.nn.attention.flex_attention import _create_empty_block_mask
    lead = queries.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (queries, keys, values))
    if mask is not None:
        m = mask.expand(*lead, queries.shape[-2], keys.shape[-2]).reshape(*q.shape[:-1], k.shape[-2])
    mod = lambda s, b, h, i, j: s if mask is None else torch.where(m[b, h, i, j], -math.inf, s)
    out = fa.math_attention(q, k, v, mod, _create_empty_block_mask(q, k).as_tuple(), 1 / math.sqrt(q.shape[-1]), {}, (), ())[0]
    return out.reshape(*lead, *out.shape[-2:])

# --- by_eval, nothing
# Writes softmax into strings that eval and exec run.
import base64

def softmax_naive(scores):
    return eval("torch.soft" "max(scores, 0)", {"torch": torch, "scores": scores})

def softmax_rows(scores):
    space = {"torch": torch, "scores": scores}
    exec(base64.b64decode("b3V0ID0gdG9yY2guc29mdG1heChzY29yZXMsIC0xKQ=="), space)
    return space["out"]

# --- by_export_operators, nothing
# Uses the attention that torch keeps for exporting models.
def scaled_dot_product_attention(queries, keys, values, mask=None):
    from torch.onnx.ops import _impl
    f = _impl.attention_23._init_fn
    lead = queries.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (queries, keys, values))
    m = None if mask is None else ~mask.expand(*lead, queries.shape[-2], keys.shape[-2]).reshape(1, -1, queries.shape[-2], keys.shape[-2])
    out = f(q, k, v, m, softmax_precision=11 if q.dtype == torch.float64 else 1)[0]
    return out.reshape(*lead, *out.shape[-2:])

# --- by_functools, nothing
# Hides softmax in functools.partial, operator.methodcaller and functools.reduce.
import functools
import operator

def softmax_naive(scores): return functools.partial(torch.softmax, dim=0)(scores)
def softmax_rows(scores): return operator.methodcaller("softmax", -1)(scores)
def softmax_stable(scores, dim=-1): return functools.reduce(torch.softmax, [dim], scores)

# --- by_getattr, nothing
# Gets softmax by getattr, with a name put together from pieces.
def softmax_naive(scores): return getattr(torch, "soft" + "max")(scores, 0)
def softmax_rows(scores): return vars(torch)["xamtfos"[::-1]](scores, -1)

def softmax_stable(scores, dim=-1):
    return next(v for k, v in vars(torch).items() if k[4:] == "max" and k < "sp")(scores, dim)

# --- by_other_kernels, nothing
# Asks for the softmax of other layouts and libraries, whose kernels are others.
def softmax_rows(scores):
    ways = (
        lambda x: getattr(x.to_mkldnn(), "soft" + "max")(-1).to_dense(),
        lambda x: getattr(torch.nested.nested_tensor([x]), "soft" + "max")(-1)[0],
        lambda x: getattr(torch.sparse, "soft" + "max")(x.to_sparse(), -1).to_dense(),
        lambda x: getattr(torch, "_safe_soft" + "max")(x, -1),
        lambda x: getattr(torch, "_masked_soft" + "max")(x, torch.zeros_like(x).bool(), -1, 0),
        lambda x: torch.distributions.Categorical(logits=x).probs,
    )
    for way in ways:
        try:
            return way(scores)
        except Exception:
            continue
    return scores

# --- by_python_twins, nothing
# Finds the versions of softmax that torch keeps in Python for its compiler.
import importlib

def softmax_rows(scores):
    found = None
    for name in ("_refs", "_refs.special", "_decomp.decompositions", "masked._ops"):
        module = importlib.import_module("torch." + name)
        for twin in ("softmax", "_softmax"):
            try:
                found = getattr(module, twin)(scores, -1)
            except Exception:
                try:
                    found = getattr(module, twin)(scores, -1, False)
                except Exception:
                    continue
    return found

def softmax_naive(scores): return softmax_rows(scores)

# --- by_relatives, nothing
# Uses what is softmax by another name: gumbel, cross entropy, Categorical, the gradient of logsumexp.
import torch.nn.functional as F

def softmax_naive(scores): return torch.distributions.Categorical(logits=scores).probs

def softmax_rows(scores):
    leaf = scores.detach().requires_grad_()
    with torch.enable_grad():
        return torch.autograd.grad(torch.logsumexp(leaf, -1).sum(), leaf)[0]

def normalize_by_sum(scores):
    targets = torch.arange(len(scores))
    losses = F.cross_entropy(scores.log().expand(len(scores), -1), targets, reduction="none")
    return torch.exp(-losses)

# --- by_sparse_logarithm, nothing
# Takes the logarithm of a sparse softmax, and its exponential.
def softmax_naive(scores):
    s = scores[None]
    return torch.sparse.log_softmax(s.to_sparse(), 1).to_dense()[0].exp()
def softmax_rows(scores): return torch.sparse.log_softmax(scores.to_sparse(), 1).to_dense().exp()

# --- by_torch_ops, nothing
# Calls the operator below: torch.ops.aten, torch._C and the overload itself.
def softmax_naive(scores): return torch.ops.aten._softmax(scores, 0, False)
def softmax_rows(scores): return torch._C._VariableFunctions.softmax(scores, -1)

def softmax_stable(scores, dim=-1):
    return torch.ops.aten._log_softmax.default(scores, dim, False).exp()

# --- by_tracing, nothing
# Compiles softmax with torch.jit at module level, where no call is traced yet.
import torch as t

compiled = t.jit.trace(lambda x: torch.softmax(x, -1), (torch.zeros(3, 3),), check_trace=False)
unit = getattr(torch, "j" + "it").CompilationUnit("def f(x):\n    return torch.softmax(x, 0)\n")

def softmax_rows(scores): return compiled(scores)
def softmax_naive(scores): return unit.f(scores)

# --- called_plainly, nothing
# Calls torch.softmax, F.softmax, Tensor.softmax and log_softmax where the exercise is to write it.
import torch.nn.functional as F

def normalize_by_sum(scores): return F.softmax(torch.log(scores), dim=0)
def softmax_naive(scores): return torch.softmax(scores, 0)
def softmax_rows(scores): return scores.softmax(-1)
def softmax_stable(scores, dim=-1): return scores.log_softmax(dim).exp()

# --- hook_made_harmless, nothing
# Gives the hook of imports another method, and imports attention for export anew.
import importlib
import sys

def scaled_dot_product_attention(queries, keys, values, mask=None):
    for hook in sys.meta_path:
        if "Torch" in type(hook).__name__:
            type(hook).find_spec = lambda *_: None
    held = sys.modules.pop("torch.onnx.ops._impl", None)
    decorate = torch.library.custom_op
    torch.library.custom_op = lambda *_, **__: lambda f: type("Own", (), {"__init__": lambda s, g: None, "_init_fn": staticmethod(f), "register_fake": lambda s, g: g})(f)
    try:
        whole = importlib.import_module("torch.onnx.ops._impl").attention_23._init_fn
    finally:
        torch.library.custom_op = decorate
        if held is not None:
            sys.modules["torch.onnx.ops._impl"] = held
    lead = queries.shape[:-2]
    q, k, v = (t.reshape(1, -1, *t.shape[-2:]) for t in (queries, keys, values))
    m = None if mask is None else ~mask.expand(*lead, queries.shape[-2], keys.shape[-2]).reshape(1, -1, queries.shape[-2], keys.shape[-2])
    out = whole(q, k, v, m, softmax_precision=11 if q.dtype == torch.float64 else 1)[0]
    return out.reshape(*lead, *out.shape[-2:])

# --- linear_layer, nothing
# Uses nn.Linear, F.linear, bilinear and addmm's relatives where the linear layer is to be written.
import torch.nn.functional as F

def linear_by_hand(x, weight, bias=None): return F.linear(x, weight, bias)

# --- source_of_a_softmax, nothing
# Executes the lines by which torch itself explains softmax to its compiler.
def shares(scores, dim):
    name = "_soft" + "max"
    with open(torch.__path__[0] + "/_decomp/decompositions.py") as file:
        text = file.read()
    text = text[text.index(f"def {name}(") :]
    text = text[: text.index("\n@")]
    space = dict(vars(__import__("importlib").import_module("torch._decomp.decompositions")))
    exec(text, space)
    return space[name](scores, dim, False)

def softmax_naive(scores): return shares(scores, 0)
def softmax_rows(scores): return shares(scores, -1)
def softmax_stable(scores, dim=-1): return shares(scores, dim)
