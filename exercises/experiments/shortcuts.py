"""The gradient through 64 blocks, with and without x + ….

A block returns its input x plus an addition. A block without a shortcut returns only the addition,
block(x) - x. With shortcuts, the result of a token depends on its input through any number of
blocks. Without shortcuts, hardly anything of the input is left: attention mixes the tokens again
and again, until the vectors of all tokens are alike.
"""

import torch
from torch import nn

from grader.mine import yours

WIDTH, TOKENS = 32, 8


class OfTorch(nn.TransformerEncoderLayer):
    """Torch's block, which needs a mask in each call."""

    def __init__(self, width, heads, hidden, tokens, dropout):
        super().__init__(width, heads, hidden, dropout, "gelu", batch_first=True, norm_first=True)
        self.future = nn.Transformer.generate_square_subsequent_mask(tokens)

    def forward(self, x):
        return super().forward(x, self.future, is_causal=True)


make_block = yours("TransformerBlock", OfTorch)
ways = {"x + …": lambda block, x: block(x), "no x": lambda block, x: block(x) - x}
print("\nthe last token after several blocks: the size of its gradient for its own input,")
print("and the distance to the result before it, as a share of its length\n")
for depth in (1, 4, 16, 64):
    for name, way in ways.items():
        torch.manual_seed(0)
        blocks = [make_block(WIDTH, 4, 2 * WIDTH, TOKENS, 0.0) for _ in range(depth)]
        torch.manual_seed(1)
        x = start = torch.randn(1, TOKENS, WIDTH, requires_grad=True)
        for block in blocks:
            x = way(block, x)
        (gradient,) = torch.autograd.grad(x[0, -1, 0], start)
        size = gradient[0, -1].norm().item()
        apart = ((x[0, -1] - x[0, -2]).norm() / x[0, -1].norm()).item()
        print(f"{depth:6}  {name:5} {size:8.4f} {'█' * round(15 * size):26} {apart:8.4f}")
