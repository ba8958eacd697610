"""Your GELU as a curve, a deep stack with and without your norms, and the effect of a gate.

Each of the 24 layers of the stack adds its result to every token, as a block does. In the
picture of the stack, a bar that is one unit longer means numbers about twice as large.
"""

import math

import torch

from grader.mine import FeedForward, SwiGLU, gelu, layer_norm, rms_norm

print("\nthe GELU, to the left of 0 and to the right")
for number in (-3.0, -2.0, -0.75, 0.0, 0.75, 1.5):
    out = gelu(torch.tensor(number)).item()
    bar = "█" * abs(round(20 * out))
    print(f"{number:>6}  {bar if out < 0 else '':>4}|{bar if out > 0 else ''} {out:.4f}")

torch.manual_seed(0)
d, depth = 64, 24
layers = [FeedForward(d, 4 * d) for _ in range(depth)]
for layer in layers:
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.1)
gain, shift, start = torch.ones(d), torch.zeros(d), torch.randn(1, 10, d)
norms = {
    "without a norm": lambda x: x,
    "layer_norm first": lambda x: layer_norm(x, gain, shift),
    "rms_norm first": lambda x: rms_norm(x, gain),
}

print("\nthe typical size of a token's numbers after so many layers")
with torch.no_grad():
    for name, norm in norms.items():
        x = start
        for number, layer in enumerate(layers, 1):
            x = x + layer(norm(x))
            if number in (1, 8, 16, 24):
                size = x.square().mean().sqrt().item()
                print(f"{name:>16}, {number:>2}  {'█' * round(math.log2(1 + size))} {size:,.1f}")

print("\ntwice the input gives how many times the output? (both have about as many weights)")
feed_forward, gated = FeedForward(64, 256), SwiGLU(64, 171)
for times in (1, 4, 16, 64):
    for name, layer in (("FeedForward", feed_forward), ("SwiGLU", gated)):
        with torch.no_grad():
            one, two = (layer(k * start).norm().item() for k in (times, 2 * times))
        print(f"inputs around {times:>2}, {name:>11}  {'█' * round(8 * two / one)} {two / one:.2f}")
