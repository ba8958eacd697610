"""Hidden graders of unit 2."""

import copy

import pytest
from torch import nn

from grader.testing import assert_agrees, assert_input_unchanged, rung, small_model


def classifier(make, *more):
    return small_model(make, nn.Linear(3, 7), *more, nn.ReLU(), nn.Linear(7, 4))


def some_batches(make, count, size=5):
    return [(make.normal(batch=size, d=3), make.integers(0, 4, batch=size)) for _ in range(count)]


def train_both(student, reference, model, batches, rate):
    theirs, ours = model, copy.deepcopy(model)
    student.train(theirs, batches, rate)
    reference.train(ours, batches, rate)
    assert_agrees(theirs, ours)


# --- train ---------------------------------------------------------------------------------------


@rung.value("train", points=3, rules=("computes", "new", "returns"))
@pytest.mark.parametrize("count", [1, 4])
def test_train_takes_a_step_for_each_batch(student, reference, make, count):
    """The weights agree with the reference after one batch, and after several."""
    train_both(student, reference, classifier(make), some_batches(make, count), 0.2)


@rung.property("train", rules=("mode",))
def test_train_switches_to_training_mode(student, reference, make):
    """A model that comes in evaluation mode trains in training mode."""
    model = classifier(make, nn.BatchNorm1d(7)).eval()
    train_both(student, reference, model, some_batches(make, 2), 0.1)


# --- accuracy ------------------------------------------------------------------------------------


@rung.value("accuracy", points=3, rules=("computes", "returns"))
def test_accuracy_agrees_with_the_reference(student, reference, make):
    """The accuracy agrees with the reference."""
    model = classifier(make)
    inputs = make.normal(batch=40, d=3)
    targets = model(inputs).argmax(dim=1)
    targets[::3] = make.integers(0, 4, batch=14)
    theirs, ours = (
        student.accuracy(model, inputs, targets),
        reference.accuracy(model, inputs, targets),
    )
    assert_agrees(theirs, ours)


@rung.property("accuracy", rules=("mode",))
def test_accuracy_predicts_in_evaluation_mode(student, reference, make):
    """The predictions are those of evaluation mode."""
    model = classifier(make, nn.BatchNorm1d(7))
    ((inputs, targets),) = some_batches(make, 1, size=60)
    before = copy.deepcopy(model)
    assert_agrees(
        student.accuracy(model, inputs, targets), reference.accuracy(before, inputs, targets)
    )


@rung.property("accuracy", rules=("unchanged",))
def test_accuracy_leaves_the_model_alone(student, make):
    """A model in either mode keeps its weights and its mode."""
    ((inputs, targets),) = some_batches(make, 1)
    for model in (classifier(make), classifier(make).eval()):
        assert_input_unchanged(student.accuracy, model, inputs, targets)
