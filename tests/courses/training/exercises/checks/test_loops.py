"""Public checks of unit 2."""

import copy

import torch
from torch import nn

from grader.testing import assert_agrees, assert_input_unchanged, rung, small_model


def classifier(make):
    return small_model(make, nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def some_batches(make, count):
    return [(make.normal(batch=5, d=4), make.integers(0, 3, batch=5)) for _ in range(count)]


@rung.value("train", rules=("computes", "returns"))
def test_train_takes_one_step(student, reference, make):
    """One batch makes one step."""
    theirs, batches = classifier(make), some_batches(make, 1)
    ours = copy.deepcopy(theirs)
    student.train(theirs, batches, 0.5)
    reference.train(ours, batches, 0.5)
    assert_agrees(theirs, ours)


@rung.value("train", rules=("computes", "new", "returns"))
def test_train_takes_a_step_for_each_batch(student, reference, make):
    """Three batches make three steps, each from its own gradient."""
    theirs, batches = classifier(make), some_batches(make, 3)
    ours = copy.deepcopy(theirs)
    student.train(theirs, batches, 0.5)
    reference.train(ours, batches, 0.5)
    assert_agrees(theirs, ours)


@rung.value("accuracy", rules=("computes", "returns"))
def test_accuracy_of_the_example(student):
    """One of two rows is right."""
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    nn.init.eye_(model[0].weight)
    inputs = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert_agrees(student.accuracy(model, inputs, torch.tensor([1, 1])), torch.tensor(0.5))


@rung.property("accuracy", rules=("unchanged",))
def test_accuracy_leaves_the_model_alone(student, make):
    """The weights and the mode stay as they were."""
    inputs, targets = some_batches(make, 1)[0]
    assert_input_unchanged(student.accuracy, classifier(make), inputs, targets)
