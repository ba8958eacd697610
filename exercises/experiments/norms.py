"""Features after 16 layers, with a norm and without one.

Every layer is a random matrix that makes features a little smaller, or a little larger. After
sixteen such layers, features are too small to matter, or hundreds of times too large. With a norm
in front of each layer, the changes do not multiply: features are as large after sixteen layers as
after one.
"""

import torch
from torch.nn import functional

from grader.mine import yours

WIDTH, LAYERS = 100, 16
layer_norm = yours("layer_norm", lambda x, *of: functional.layer_norm(x, x.shape[-1:], *of))
rms_norm = yours("rms_norm", lambda x, gain: functional.rms_norm(x, x.shape[-1:], gain))
gain, shift = torch.ones(WIDTH), torch.zeros(WIDTH)
norms = {
    "no norm": lambda x: x,
    "layer_norm": lambda x: layer_norm(x, gain, shift),
    "rms_norm": lambda x: rms_norm(x, gain),
}

print("\ntypical size of a feature after so many layers")
print(f"{'':24}" + "".join(f"{layers:>9}" for layers in (1, 4, 8, LAYERS)))
for factor in (0.7, 1.5):
    torch.manual_seed(0)
    start = torch.randn(20, WIDTH)
    matrices = torch.randn(LAYERS, WIDTH, WIDTH) * factor / WIDTH**0.5
    for name, norm in norms.items():
        x, sizes = start, []
        for layer, matrix in enumerate(matrices, 1):
            x = norm(x) @ matrix
            if layer in (1, 4, 8, LAYERS):
                sizes.append(x.square().mean().sqrt().item())
        shown = "".join(f"{size:9.3f}" for size in sizes)
        print(f"times {factor}, {name:13} {shown}")
