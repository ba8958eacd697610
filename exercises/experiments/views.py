"""How view, transpose and contiguous treat the same memory.

A stride is the number of steps in memory to the next entry of a dimension. `view` regroups entries,
and `transpose` swaps strides; neither moves a number. After a transpose, there may be no strides
for the new shape, and then `view` raises an error. `contiguous` first copies the numbers into the
new order. `reshape` makes such a copy only if it must.
"""

import torch

numbers = torch.arange(1, 13)
grid = numbers.view(3, 4)
turned = grid.transpose(0, 1)
shown = {
    "numbers": numbers,
    "grid = numbers.view(3, 4)": grid,
    "numbers.view(2, -1, 3)": numbers.view(2, -1, 3),
    "grid.view(4, 3)": grid.view(4, 3),
    "turned = grid.transpose(0, 1)": turned,
    "turned.contiguous()": turned.contiguous(),
}
print(f"{'':30}{'shape':11}{'stride':11}numbers in order")
for name, value in shown.items():
    flat = " ".join(map(str, value.flatten().tolist()))
    print(f"{name:30}{tuple(value.shape)!s:11}{value.stride()!s:11}{flat}")

try:
    turned.view(12)
except RuntimeError as error:
    print(f"\nturned.view(12) raises:\n  {str(error).partition(' (')[0]}")
print(f"turned.contiguous().view(12) is {turned.contiguous().view(12).tolist()}")
grid[0, 1] = 99
print(f"after grid[0, 1] = 99: numbers[1] is {numbers[1]}, and turned[1, 0] is {turned[1, 0]}")
