"""Small changes of code: what a person could confuse, or leave out.

Two rooms use them: the audit makes mutants of references, and questions ask what would happen.
"""

from __future__ import annotations

import ast

NEIGHBOURS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPPOSITES: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv,
}  # fmt: skip
# Functions and methods whose call can be replaced by its input.
LINKS = frozenset({
    "abs", "amax", "clone", "contiguous", "detach", "exp", "expand", "flatten", "float", "log",
    "masked_fill", "max", "mean", "permute", "relu", "removesuffix", "repeat", "reshape", "softmax",
    "squeeze", "sqrt", "sum", "swapaxes", "t", "to", "transpose", "tril", "triu", "type_as",
    "unsqueeze", "view",
})  # fmt: skip
SIBLINGS = {
    "amax": ("amin", "sum"), "amin": ("amax",), "arange": ("ones", "zeros"), "argmax": ("argmin",),
    "cat": ("stack",), "dot": ("add",), "exp": ("exp2", "log"), "log": ("exp",),
    "log_softmax": ("softmax",), "masked_fill": ("masked_fill_",), "max": ("min",),
    "maximum": ("minimum",), "mean": ("sum",), "min": ("max",), "ModuleList": ("Sequential",),
    "new_ones": ("new_zeros",), "new_zeros": ("new_ones",), "ones": ("zeros", "eye"),
    "rand": ("zeros", "ones"), "randn": ("zeros", "rand"), "removesuffix": ("removeprefix",),
    "softmax": ("log_softmax",), "sqrt": ("square",), "stack": ("cat",), "sum": ("mean",),
    "tril": ("triu",), "triu": ("tril",), "zeros": ("ones",),
}  # fmt: skip
TRANSPOSES = frozenset({"T", "mT", "H", "mH"})
