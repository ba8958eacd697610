"""Train the weights that hidden tests grade a GPT with: ``make trained``.

Tests do not train. Here the reference learns once to add two numbers below 100, and its weights
are kept in ``solutions/trained``. Tests give them to a student's model, and ask it for sums that
were not in the training data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from grader.course.course import load_course
from grader.course.references import open_oracle

ROOT = Path(__file__).parents[2]
FILE = ROOT / "solutions" / "trained" / "addition.safetensors"
VOCABULARY = "0123456789+="
# vocab_size, d_model, num_heads, num_layers, d_hidden, context_length, dropout
SIZES = (len(VOCABULARY), 64, 4, 2, 256, 9, 0.0)
PROMPT = 6  # tokens of ``07+05=``; the answer's digits follow, ones first
STEPS, WARM_UP, BATCH, RATE, DECAY = 1200, 50, 128, 2e-3, 0.01
# Inputs of a GELU are this much smaller than usual, and its outputs are scaled up as much. There
# its exact form and its tanh form agree: with either, a wrong answer gives the logits of the known
# mistake, and gets its name.
QUIET = 0.02
HELD_OUT = 1000  # of 10,000 pairs
ENOUGH = 0.999  # of held-out sums, with weights of sixteen bits


def main() -> None:
    """Train, and write the file; fail where too many sums are wrong."""
    known, held_out = pairs()
    with reproducibly():
        model = open_oracle(load_course(ROOT / "exercises")).definitions["GPT"](*SIZES)
        train(model, known)
    halves = {path: value.half() for path, value in model.state_dict().items() if _learned(value)}
    model.load_state_dict({path: half.float() for path, half in halves.items()}, strict=False)
    right = share_of_right_sums(model, held_out)
    print(f"{right:.1%} of {len(held_out)} sums are right")
    if right < ENOUGH:
        raise SystemExit(f"{ENOUGH:.1%} should be: nothing is written")
    FILE.parent.mkdir(exist_ok=True)
    save_file({**halves, "held_out": held_out.to(torch.uint8)}, FILE)
    print(f"{FILE.relative_to(ROOT)}: {FILE.stat().st_size:,} bytes")


@contextmanager
def reproducibly(seed: int = 2026) -> Iterator[None]:
    """Use one thread: the order of sums, and the result, is then the same each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def pairs() -> tuple[Tensor, Tensor]:
    """The ids of every line, ``07+05=210``: the training set and the held-out set."""
    lines = [f"{a:02}+{b:02}={f'{a + b:03}'[::-1]}" for a in range(100) for b in range(100)]
    ids = torch.tensor([[VOCABULARY.index(character) for character in line] for line in lines])
    # 7919 has no factor in common with 10,000: each remainder comes once, in no plain order.
    is_held_out = torch.arange(len(lines)) * 7919 % len(lines) < HELD_OUT
    return ids[~is_held_out], ids[is_held_out]


def train(model: nn.Module, known: Tensor) -> None:
    """Train by AdamW, with a warm-up and a decay to 0. Only the answer counts in the loss."""
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            parameter.mul_(_loudness(path))
    groups = [
        {"params": [parameter], "lr": RATE * _loudness(path)}
        for path, parameter in model.named_parameters()
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / WARM_UP, (STEPS - step) / (STEPS - WARM_UP))
    )
    for step in range(STEPS):
        batch = known[torch.randint(len(known), (BATCH,))]
        answer = model(batch[:, :-1])[:, PROMPT - 1 :]
        loss = cross_entropy(answer.flatten(0, 1), batch[:, PROMPT:].flatten())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)


def _loudness(path: str) -> float:
    """The factor by which a parameter and its steps are larger than usual."""
    if ".feed_forward.up." in path:
        return QUIET
    return 1 / QUIET if path.endswith(".feed_forward.down.weight") else 1.0


def share_of_right_sums(model: nn.Module, lines: Tensor) -> float:
    """How many answers the model writes correctly, digit by digit."""
    written = lines[:, :PROMPT]
    with torch.no_grad():
        while written.shape[1] < lines.shape[1]:
            digit = model(written)[:, -1].argmax(dim=-1)
            written = torch.cat([written, digit[:, None]], dim=1)
    return (written == lines).all(dim=1).float().mean().item()


def _learned(value: Tensor) -> bool:
    return value.is_floating_point()


if __name__ == "__main__":
    main()
