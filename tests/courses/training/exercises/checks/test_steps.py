"""Public checks of unit 1."""

import pytest
import torch

from grader.testing import assert_agrees, assert_input_unchanged, rung


def two_layers(make):
    return [make.normal(rows=3, columns=4), make.normal(rows=5)]


@rung.shape("cross_entropy")
def test_cross_entropy_is_a_single_number(student, make):
    """The loss of a whole batch is one number."""
    student.cross_entropy(make.normal(batch=4, classes=3), make.integers(0, 3, batch=4))


@rung.value("cross_entropy")
def test_cross_entropy_of_the_example(student):
    """Two equal logits have a loss of log 2."""
    loss = student.cross_entropy(torch.tensor([[3.0, 3.0]]), torch.tensor([1]))
    assert_agrees(loss, torch.tensor(0.693147))


@rung.value("cross_entropy")
def test_cross_entropy_of_a_batch(student, reference, make):
    """A batch has the mean loss of its rows."""
    given = make.normal(3.0, batch=5, classes=4), make.integers(0, 4, batch=5)
    assert_agrees(student.cross_entropy(*given), reference.cross_entropy(*given))


@rung.value("clip_gradients", rules=("computes", "returns"))
def test_clip_gradients_of_the_example(student):
    """A length of 5 becomes a length of 1."""
    theirs = student.clip_gradients([torch.tensor([3.0]), torch.tensor([[4.0]])], 1.0)
    assert_agrees(theirs, [torch.tensor([0.6]), torch.tensor([[0.8]])])


@rung.value("clip_gradients", rules=("computes", "returns"))
def test_clip_gradients_of_two_layers(student, reference, make):
    """All tensors are shortened by the same factor."""
    gradients = two_layers(make)
    assert_agrees(student.clip_gradients(gradients, 1.5), reference.clip_gradients(gradients, 1.5))


@rung.property("clip_gradients", rules=("unchanged",))
def test_clip_gradients_makes_new_tensors(student, make):
    """The gradients that came in stay as they were."""
    assert_input_unchanged(student.clip_gradients, two_layers(make), 0.5)


@rung.shape("schedule")
def test_schedule_has_a_rate_for_each_step(student):
    """There are as many rates as steps."""
    student.schedule(7, 3, 0.1)


@rung.value("schedule")
def test_schedule_of_the_example(student):
    """Two steps go up, and four go down."""
    expected = torch.tensor([0.5, 1.0, 1.0, 0.853553, 0.5, 0.146447])
    assert_agrees(student.schedule(6, 2, 1.0), expected)


# --- momentum_step -------------------------------------------------------------------------------


@rung.shape("momentum_step")
@pytest.mark.parametrize(("features", "rate", "keep"), [(6, 0.1, 0.9), (1, 0.1, 0.9)])
def test_momentum_step_keeps_the_shape(student, reference, make, features, rate, keep):
    """The result has the right shape and dtype."""
    state = reference.Momentum(
        weight=make.normal(2.0, features=features),
        average=make.uniform(0.05, 0.95, features=features),
        steps=3,
    )
    gradient = make.normal(2.0, features=features)
    student.momentum_step(state, gradient, rate, keep)


@rung.value("momentum_step")
def test_momentum_step_gives_the_example(student, reference):
    """The example of the statement comes out as printed."""
    state = reference.Momentum(
        weight=torch.tensor([1.0, -2.0]), average=torch.tensor([0.0, 4.0]), steps=3
    )
    gradient = torch.tensor([2.0, -2.0])
    assert_agrees(
        student.momentum_step(state, gradient, 0.5, 0.5),
        reference.Momentum(
            weight=torch.tensor([0.5, -2.5]), average=torch.tensor([1.0, 1.0]), steps=4
        ),
    )


@rung.value("momentum_step")
def test_momentum_step_gives_the_right_values(student, reference, make):
    """The result for another input agrees with the reference."""
    state = reference.Momentum(
        weight=make.normal(2.0, features=6), average=make.uniform(0.05, 0.95, features=6), steps=3
    )
    gradient = make.normal(2.0, features=6)
    assert_agrees(
        student.momentum_step(state, gradient, 0.1), reference.momentum_step(state, gradient, 0.1)
    )
