import torch


def scaled_dot_product_attention(queries, keys, values, mask=None):
    lead, d, own = queries.shape[:-2], queries.shape[-1], values.shape[-1]
    wide, tokens = max(d, own), (queries.shape[-2], keys.shape[-2])
    q, k, v = (
        torch.nn.functional.pad(t, (0, wide - t.shape[-1])).reshape(-1, t.shape[-2], wide)
        for t in (queries * (wide / d) ** 0.5, keys, values)
    )
    hides = None if mask is None else mask.expand(*lead, *tokens).reshape(-1, *tokens)
    whole = KIND(wide, 1, bias=False, batch_first=True, dtype=q.dtype)
    for layer in (whole.linear_Q, whole.linear_K, whole.linear_V, whole.out_proj):
        layer.weight = torch.nn.Parameter(torch.eye(wide, dtype=q.dtype))
    return whole(q, k, v, attn_mask=hides)[0][..., :own].reshape(*lead, tokens[0], own)

# --- by_quantizable_attention, nothing
# Uses the attention that torch keeps for quantising, which was loaded with torch.
import importlib

KIND = importlib.import_module("torch.ao.nn.quantizable").MultiheadAttention

# --- code_of_a_cache, nothing
# Unmarshals the compiled copy of a module of torch, and runs that.
import importlib.util
import marshal

def fetched():
    source, space = torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py", {}
    try:
        with open(importlib.util.cache_from_source(source), "rb") as file:
            code = marshal.loads(file.read()[16:])
    except OSError:
        with open(source, "rb") as file:
            code = compile(file.read(), "own", "exec")
    exec(code, space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- code_of_a_loader, nothing
# Asks the loader of a module of torch for its code, and runs it again.
import importlib.util

def fetched():
    spec = importlib.util.find_spec("torch.ao.nn.quantizable.modules.activation")
    space = {}
    exec(spec.loader.get_code(spec.name), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- hook_taken_off_the_list, nothing
# Takes the hook of imports off its list, and imports a part of torch that holds attention.
import importlib
import sys

def fetched():
    sys.meta_path[:] = [hook for hook in sys.meta_path if "Torch" not in type(hook).__name__]
    for name in [n for n in sys.modules if n.startswith("torch.ao.nn.quantizable")]:
        del sys.modules[name]
    return importlib.import_module("torch.ao.nn.quantizable").MultiheadAttention

KIND = fetched()

# --- module_by_a_loader, nothing
# Loads torch's attention a second time, under a name that nobody refuses.
import importlib.machinery

LOADER = importlib.machinery.SourceFileLoader("mine", torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py")
KIND = getattr(LOADER.load_module(), "Multihead" + "Attention")

# --- module_by_a_spec, nothing
# Makes a module from the file of torch's attention, as a plug-in is loaded.
import importlib.util

def fetched():
    spec = importlib.util.spec_from_file_location("mine", torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)["Multihead" + "Attention"]

KIND = fetched()

# --- module_by_runpy, nothing
# Runs the file of torch's attention as a script, and takes what is left.
import runpy

KIND = runpy.run_path(torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py")["Multihead" + "Attention"]

# --- module_on_a_path, nothing
# Puts the folder of torch's attention on the path, and imports it under a short name.
import sys

def fetched():
    sys.path.insert(0, torch.__path__[0] + "/ao/nn/quantizable/modules")
    return getattr(__import__("activation"), "Multihead" + "Attention")

KIND = fetched()

# --- module_reloaded, nothing
# Has a module that holds attention executed again by its own loader.
import sys

def fetched():
    held = sys.modules["torch.ao.nn.quantizable.modules." + "activation"]
    held.__spec__.loader.exec_module(held)
    return getattr(held, "Multihead" + "Attention")

KIND = fetched()

# --- source_read_by_descriptor, nothing
# Reads torch's source by a descriptor of the system, a piece at a time.
import os

def fetched():
    space = {}
    held = os.open(torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py", os.O_RDONLY)
    try:
        exec(os.pread(held, 10**6, 0), space)
    finally:
        os.close(held)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_inspect, nothing
# Asks inspect for the source of a class that is attention, and executes it.
import inspect
import sys
import warnings

def fetched():
    held = vars(sys.modules["torch.ao.nn." + "quantizable"])["Multihead" + "Attention"]
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "Tensor": torch.Tensor, "warnings": warnings}
    exec(inspect.getsource(held), space)
    return space[held.__name__]

KIND = fetched()

# --- source_read_by_linecache, nothing
# Takes the lines of torch's attention from where tracebacks find them.
import linecache

def fetched():
    space = {}
    exec("".join(linecache.getlines(torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py")), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_numpy, nothing
# Has NumPy read the bytes of torch's source, and executes them anew.
import numpy as np

FILE = torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py"

def fetched():
    space = {}
    exec(np.fromfile(FILE, dtype=np.uint8).tobytes().decode(), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_open, nothing
# Reads the source of an attention of torch's, and executes it anew.
def fetched():
    space = {}
    with open(torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py") as file:
        exec(compile(file.read(), "own", "exec"), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_pathlib, nothing
# Reads one class's lines by pathlib, and executes them among torch's own names.
import ast
import pathlib
import warnings

def fetched():
    name = "Multihead" + "Attention"
    tree = ast.parse(pathlib.Path(torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py").read_bytes())
    tree.body = [n for n in tree.body if getattr(n, "name", "") == name]
    space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "Tensor": torch.Tensor, "warnings": warnings}
    exec(compile(tree, "own", "exec"), space)
    return space[name]

KIND = fetched()

# --- source_read_by_pkgutil, nothing
# Asks pkgutil for a file of torch as data, and executes it.
import pkgutil

def fetched():
    space = {}
    exec(pkgutil.get_data("torch", "ao/nn/quantizable/modules/activation.py"), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_resources, nothing
# Asks importlib for a resource of torch's package, and executes it.
import importlib.resources

def fetched():
    space, package = {}, importlib.resources.files("torch.ao")
    exec(package.joinpath("nn", "quantizable", "modules", "activation.py").read_text(), space)
    return space["Multihead" + "Attention"]

KIND = fetched()

# --- source_read_by_storage, nothing
# Has torch itself map the file of its source, and executes its bytes.
import os

FILE = torch.__path__[0] + "/ao/nn/quantizable/modules/activation.py"

def fetched():
    space = {}
    exec(bytes(torch.UntypedStorage.from_file(FILE, False, os.path.getsize(FILE))).decode(), space)
    return space["Multihead" + "Attention"]

KIND = fetched()
