"""What stack, unsqueeze, None, .T, `*` and `@` do to shapes.

`*` multiplies number by number, and stretches dimensions of size 1. `@` multiplies each row of the
left matrix by each column of the right matrix, and adds up the products. `x @ x.T` compares tokens;
`x.T @ x` compares features.
"""

import torch

a, b = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 7])
x = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])

lines = [
    ("a, b", f"{a.tolist()}, {b.tolist()}"),
    ("torch.stack((a, b))", torch.stack((a, b))),
    ("torch.cat((a, b))", torch.cat((a, b))),
    ("a.unsqueeze(0)", a.unsqueeze(0)),
    ("a[None, :]", a[None, :]),
    ("a[:, None]", a[:, None]),
    ("a * b", a * b),
    ("a @ b", a @ b),
    ("a[:, None] * b", a[:, None] * b),
    ("x", x),
    ("x @ x.T", x @ x.T),
    ("x.T @ x", x.T @ x),
]
for code, value in lines:
    if isinstance(value, str):
        print(f"{code:19} {value}")
    else:
        print(f"{code:19} {tuple(value.shape)!s:7} {value.tolist()}")
try:
    print(x * x.T)
except RuntimeError as error:
    print(f"{'x * x.T':19} fails:\n  {str(error).partition(' at ')[0]}")
