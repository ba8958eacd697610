"""Known answers of unit 2."""

import torch
from torch import nn

from grader.mistakes import accepted, mistake

# --- train ---------------------------------------------------------------------------------------

mistake(
    "train", "uphill", "The weights go up the gradient",
    hint="In which direction does the loss fall?",
    change={"sub_": "add_"},
)  # fmt: skip
mistake(
    "train", "no-rate", "The learning rate is left out",
    hint="What does the argument rate do?",
    change={"rate * gradient": "gradient"},
)  # fmt: skip
mistake(
    "train", "summed", "The loss is the sum over the batch",
    hint="What does reduction say?",
    change={"targets)": 'targets, reduction="sum")'},
)  # fmt: skip
mistake(
    "train", "first-batch", "Only the first batch is used",
    hint="How far is the return indented?",
    change={"(rate * gradient)": "(rate * gradient)\n        return None"},
)  # fmt: skip
mistake(
    "train", "a-copy", "A copy of the model is trained",
    hint="Does the caller see the model that you train?",
    change={"    model.train()": "    import copy\n    model = copy.deepcopy(model).train()"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "train", "evaluation-mode", "The model trains in the mode in which it comes",
    hint="What does BatchNorm do in evaluation mode?",
    change={"model.train()": "pass"},
    breaks=("mode",),
)  # fmt: skip


@mistake(
    "train", "accumulates", "Gradients of earlier batches are added",
    hint="What does backward do to a gradient that is already there?", breaks=("new",),
)  # fmt: skip
def accumulates(model, batches, rate):
    model.train()
    for inputs, targets in batches:
        nn.functional.cross_entropy(model(inputs), targets).backward()
        for weight in model.parameters():
            weight.data -= rate * weight.grad


@accepted("train", "optimizer", "Torch's optimizer, and the model is returned")
def optimizer(model, batches, rate):
    steps = torch.optim.SGD(model.parameters(), lr=rate)
    model.train()
    for inputs, targets in batches:
        steps.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        steps.step()
    return model


@accepted("train", "by-hand", "Gradients are put away by hand")
def by_hand(model, batches, rate):
    model.train(True)
    for inputs, targets in list(batches):
        model.zero_grad()
        logits = model(inputs)
        loss = -logits.log_softmax(-1)[range(len(targets)), targets].mean()
        loss.backward()
        for weight in model.parameters():
            weight.data = weight.data - rate * weight.grad


# --- accuracy ------------------------------------------------------------------------------------

mistake(
    "accuracy", "counted", "The right rows are counted",
    hint="What is the accuracy of a batch twice as large?",
    change={"mean()": "sum()"},
)  # fmt: skip
mistake(
    "accuracy", "for-each-row", "Each row has a result of its own",
    hint="What is the accuracy of the whole batch?",
    change={".float().mean()": ".float()"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "accuracy", "errors", "The wrong rows are counted",
    hint="What is the accuracy of a perfect model?",
    change={"==": "!="},
)  # fmt: skip
mistake(
    "accuracy", "least", "The smallest logit is the prediction",
    hint="Which class is the likeliest?",
    change={"argmax": "argmin"},
)  # fmt: skip
mistake(
    "accuracy", "training-mode", "The model predicts in the mode in which it comes",
    hint="What does BatchNorm do in training mode?",
    change={"model.eval()": "pass"},
    breaks=("mode",),
)  # fmt: skip
mistake(
    "accuracy", "left-in-evaluation", "The model is left in evaluation mode",
    hint="In which mode does the caller find the model?",
    change={"model.train(before)": "pass"},
    breaks=("unchanged",),
)  # fmt: skip
mistake(
    "accuracy", "left-in-training", "The model is left in training mode",
    hint="In which mode did the model come?",
    change={"model.train(before)": "model.train()"},
    breaks=("unchanged",),
)  # fmt: skip


@accepted("accuracy", "by-max", "The indices of the largest logits")
def by_max(model, inputs, targets):
    mode = model.training
    logits = model.eval()(inputs).detach()
    model.train(mode)
    return logits.max(dim=-1).indices.eq(targets).sum() / targets.numel()
