"""Known answers of unit 1."""

import torch

from grader.mistakes import accepted, common_mistakes, mistake

# --- cross_entropy -------------------------------------------------------------------------------

mistake(
    "cross_entropy", "summed", "The losses of the rows are summed",
    hint="Should a larger batch have a larger loss?",
    change={"mean()": "sum()"},
)  # fmt: skip
mistake(
    "cross_entropy", "sign", "The loss has the opposite sign",
    hint="Is a loss ever negative?",
    change={"totals - chosen": "chosen - totals"},
)  # fmt: skip
mistake(
    "cross_entropy", "over-the-batch", "The total runs over the batch",
    hint="Which axis are the classes?",
    change={"torch.logsumexp(logits, dim=1)": "torch.logsumexp(logits, dim=0).mean()"},
)  # fmt: skip
mistake(
    "cross_entropy", "no-total", "The logits are taken for logarithms of probabilities",
    hint="Do the exponentials of the logits sum to one?",
    change={"totals - chosen": "-chosen"},
)  # fmt: skip
mistake(
    "cross_entropy", "overflow", "exp overflows for large logits",
    hint="What is exp(300) in float32?",
    change={"torch.logsumexp(logits, dim=1)": "logits.exp().sum(dim=1).log()"},
    breaks=("large",),
)  # fmt: skip
mistake(
    "cross_entropy", "float32", "The loss is computed in float32",
    hint="What does .float() do to float64?",
    change={"return (": "dtype = logits.dtype\n    return (", "mean()": "float().mean().to(dtype)"},
    breaks=("dtype",),
)  # fmt: skip
mistake(
    "cross_entropy", "in-place", "The logits are changed in place",
    hint="Which operations end with an underscore?",
    change={
        "torch.logsumexp(logits, dim=1)":
            "torch.logsumexp(logits.sub_(logits.detach().amax(dim=1, keepdim=True)), dim=1)"
    },
    breaks=("unchanged",),
)  # fmt: skip
mistake(
    "cross_entropy", "no-gradient", "No gradient reaches the logits",
    hint="What does detach do?",
    change={"return (totals": "return (totals.detach()"},
    breaks=("gradients",),
)  # fmt: skip
mistake(
    "cross_entropy", "for-each-row", "Each row has a loss of its own",
    hint="What is the loss of the whole batch?",
    change={".mean()": ""},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "cross_entropy", "by-torch", "Torch's own loss does the work",
    hint="Which functions are off limits?",
    change={"(totals - chosen).mean()": "torch.nn.functional.cross_entropy(logits, targets)"},
    breaks=("forbidden",),
)  # fmt: skip


@accepted("cross_entropy", "shifted", "The largest logit is subtracted first")
def shifted(logits, targets):
    logits = logits - logits.amax(dim=-1, keepdim=True)
    log_probabilities = logits - logits.exp().sum(dim=-1, keepdim=True).log()
    return -log_probabilities.gather(1, targets[:, None]).mean()


# --- clip_gradients ------------------------------------------------------------------------------

mistake(
    "clip_gradients", "each-alone", "Each tensor is shortened by its own length",
    hint="Is the direction of all gradients together still the same?",
    change={"gradient * scale": "gradient * torch.clamp(largest / gradient.norm(), max=1)"},
)  # fmt: skip
mistake(
    "clip_gradients", "no-root", "The length lacks the square root",
    hint="How long is the vector (3, 4)?",
    change={".sum().sqrt()": ".sum()"},
)  # fmt: skip
mistake(
    "clip_gradients", "by-value", "Each number is limited by itself",
    hint="Is the direction still the same?",
    change={"gradient * scale": "gradient.clamp(-largest, largest)"},
)  # fmt: skip
mistake(
    "clip_gradients", "lengthens", "Short gradients are made longer",
    hint="What is largest / length for a short gradient?",
    change={"torch.clamp(largest / length, max=1.0)": "largest / length"},
    breaks=("short",),
)  # fmt: skip
mistake(
    "clip_gradients", "float32", "The length is computed in float32",
    hint="What does .float() do to float64?",
    change={"squares.sum()": "squares.float().sum()"},
    breaks=("dtype",),
)  # fmt: skip
mistake(
    "clip_gradients", "in-place", "The gradients are changed in place",
    hint="What does mul_ do to its tensor?",
    change={"gradient * scale": "gradient.mul_(scale)"},
    breaks=("unchanged",),
)  # fmt: skip
mistake(
    "clip_gradients", "one-vector", "Each tensor becomes a vector",
    hint="Which shapes do the weights have?",
    change={"return [gradient * scale for": "return [gradient.flatten() * scale for"},
    breaks=("returns",),
)  # fmt: skip


@accepted("clip_gradients", "by-norm", "The norm of the norms")
def by_norm(gradients, largest):
    length = torch.stack([gradient.norm() for gradient in gradients]).norm()
    return [g * (largest / length) if length > largest else g.clone() for g in gradients]


# --- schedule ------------------------------------------------------------------------------------

mistake(
    "schedule", "from-zero", "The first rate is zero",
    hint="What is the rate of step 0?",
    change={"(step + 1) / warmup": "step / warmup"},
)  # fmt: skip
mistake(
    "schedule", "whole-cosine", "The cosine begins at step 0",
    hint="At which step should the angle be 0?",
    change={"(step - warmup) / (steps - warmup)": "step / steps"},
)  # fmt: skip
mistake(
    "schedule", "not-halved", "The cosine's sum is not halved",
    hint="What is 1 + cos(0)?",
    change={"(1 + torch.cos(angle)) / 2": "1 + torch.cos(angle)"},
)  # fmt: skip
mistake(
    "schedule", "linear", "The rate falls in a straight line",
    hint="Which curve starts flat and ends flat?",
    change={"(1 + torch.cos(angle)) / 2": "1 - angle / math.pi"},
)  # fmt: skip
mistake(
    "schedule", "no-peak", "The peak is left out",
    hint="What is the largest of your rates?",
    change={"peak * torch": "torch"},
)  # fmt: skip
mistake(
    "schedule", "one-more", "There is a rate more than there are steps",
    hint="How many numbers does arange give?",
    change={"torch.arange(steps)": "torch.arange(steps + 1)"},
    breaks=("returns",),
)  # fmt: skip


@accepted("schedule", "step-by-step", "A loop over the steps")
def step_by_step(steps, warmup, peak):
    rates = []
    for step in range(steps):
        if step < warmup:
            rates.append(peak * (step + 1) / warmup)
        else:
            part = torch.tensor(torch.pi * (step - warmup) / (steps - warmup))
            rates.append(peak * 0.5 * (1 + float(part.cos())))
    return torch.tensor(rates)


# --- momentum_step --------------------------------------------------------------------------------


common_mistakes(
    "momentum_step",
    "nothing-returned",
)  # fmt: skip
mistake(
    "momentum_step", "uphill", "The weight moves up the average",
    hint="In which direction does the loss fall?",
    change={"weight - rate": "weight + rate"},
)  # fmt: skip
mistake(
    "momentum_step", "old-average", "The weight moves against the old average",
    hint="Which comes first: the new average, or the step?",
    change={"rate * average": "rate * state.average"},
)  # fmt: skip
mistake(
    "momentum_step", "sum", "The gradient counts whole, as in torch.optim.SGD",
    hint="How much of the new average is the gradient?",
    change={"(1 - keep) * gradient": "gradient"},
)  # fmt: skip
mistake(
    "momentum_step", "same-steps", "The number of steps stays the same",
    hint="How many steps has the weight taken now?",
    change={"state.steps + 1": "state.steps"}, breaks=("returns",),
)  # fmt: skip
mistake(
    "momentum_step", "in-place", "The average of the argument is changed",
    hint="What does mul_ do to the tensor on which it is called?",
    change={
        "keep * state.average + (1 - keep) * gradient":
            "state.average.mul_(keep).add_((1 - keep) * gradient)",
    }, breaks=("unchanged",),
)  # fmt: skip


@accepted("momentum_step", "replace", "dataclasses.replace and lerp")
def by_replace(state, gradient, rate, keep=0.9):
    from dataclasses import replace

    average = torch.lerp(gradient, state.average, keep)
    return replace(
        state, weight=state.weight - rate * average, average=average, steps=state.steps + 1
    )
