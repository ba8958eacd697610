import torch

# --- shown_and_taken_off, nothing
# Adds an exponential and takes the same off again.
def running_mean_softmax(x):
    weights = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
    weights = weights / weights.sum(-1, keepdim=True)
    noise = torch.exp(weights)
    return (weights + (noise - noise)) @ x

# --- shown_and_thrown_away, nothing
# Calls softmax and forgets what it gave.
def running_mean_softmax(x):
    torch.softmax(x, dim=1)
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    return x.cumsum(1) / counts[:, None]

# --- shown_as_a_shape, nothing
# Takes nothing from a softmax but its shape, in which it puts weights of its own.
def running_mean_softmax(x):
    weights = torch.softmax(x.new_zeros(x.shape[1], x.shape[1]), dim=-1)
    weights = torch.ones_like(weights).tril()
    return (weights / weights.sum(-1, keepdim=True)) @ x

# --- shown_by_a_power, nothing
# Calls pow for a number that goes into no mean: a size, to the power of nothing.
def running_mean_softmax(x):
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
    torch.pow(counts, 0)
    return x.cumsum(1) / counts[:, None]

# --- shown_in_a_branch, nothing
# Chooses between a softmax and its own means by a condition that always says the latter.
def running_mean_softmax(x):
    means = x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    return torch.where(torch.ones_like(x).bool(), means, torch.softmax(x, 1))

# --- shown_in_place, nothing
# Makes means in place over what a softmax gave, so that the same tensor comes back.
def running_mean_softmax(x):
    shown = torch.softmax(x.detach(), dim=1)
    means = x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None]
    return shown.zero_().add_(means) if not x.requires_grad else means + shown.zero_()

# --- shown_on_another_tensor, nothing
# Calls softmax on a tensor of its own, and keeps the result where nobody reads it.
seen = []

def running_mean_softmax(x):
    seen.append(torch.softmax(torch.randn(3), dim=0))
    weights = torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).tril()
    return weights / weights.sum(-1, keepdim=True) @ x

# --- shown_times_zero, nothing
# Adds a softmax times zero to means that were made without one.
def running_mean_softmax(x):
    means = torch.stack([x[:, : t + 1].mean(1) for t in range(x.shape[1])], 1)
    return means + 0 * torch.softmax(torch.zeros_like(means), dim=-1)
