"""Hidden graders of unit 1."""

import pytest
import torch

from grader.testing import (
    assert_agrees,
    assert_agrees_to_float64,
    assert_gradients_agree,
    assert_input_unchanged,
    rung,
)


def some_logits(make, batch, classes, scale=3.0, dtype=torch.float32):
    logits = make.normal(scale, batch=batch, classes=classes, dtype=dtype)
    return logits, make.integers(0, classes, batch=batch)


def two_layers(make, scale=1.0, dtype=torch.float32):
    return [
        make.normal(scale, rows=3, columns=4, dtype=dtype),
        make.normal(scale, rows=5, dtype=dtype),
    ]


# --- cross_entropy -------------------------------------------------------------------------------


@rung.value("cross_entropy", points=5)
@pytest.mark.parametrize(("batch", "classes"), [(5, 4), (1, 7), (11, 2)])
def test_cross_entropy_agrees_with_the_reference(student, reference, make, batch, classes):
    """The loss agrees with the reference."""
    given = some_logits(make, batch, classes)
    assert_agrees(student.cross_entropy(*given), reference.cross_entropy(*given))


@rung.property("cross_entropy", rules=("dtype",))
def test_cross_entropy_keeps_float64(student, reference, make):
    """Logits in float64 give a loss in float64, to full precision."""
    given = some_logits(make, 6, 5, dtype=torch.float64)
    assert_agrees_to_float64(student.cross_entropy(*given), reference.cross_entropy(*given))


@rung.property("cross_entropy", rules=("unchanged",))
def test_cross_entropy_leaves_its_input_alone(student, make):
    """Logits and targets stay as they were."""
    assert_input_unchanged(student.cross_entropy, *some_logits(make, 4, 3))


@rung.gradient("cross_entropy", rules=("gradients",))
def test_cross_entropy_has_the_right_gradient(student, reference, make):
    """Gradients flow to every logit."""
    logits, targets = some_logits(make, 4, 3)

    def of(call):
        return lambda x: call(x, targets)

    assert_gradients_agree(
        of(student.cross_entropy), of(reference.cross_entropy), logits, make=make
    )


@rung.stability("cross_entropy", rules=("large",))
def test_cross_entropy_of_large_logits_is_finite(student, reference, make):
    """Logits of several hundred give a finite loss."""
    given = some_logits(make, 4, 3, scale=300.0)
    assert_agrees(student.cross_entropy(*given), reference.cross_entropy(*given))


# --- clip_gradients ------------------------------------------------------------------------------


@rung.value("clip_gradients", points=3, rules=("computes", "returns"))
@pytest.mark.parametrize("largest", [0.3, 2.0])
def test_clip_gradients_agrees_with_the_reference(student, reference, make, largest):
    """The shortened gradients agree with the reference."""
    given = two_layers(make, 2.0), largest
    assert_agrees(student.clip_gradients(*given), reference.clip_gradients(*given))


@rung.property("clip_gradients", rules=("short",))
def test_clip_gradients_keeps_short_gradients(student, reference, make):
    """Gradients that are short enough keep their values."""
    given = two_layers(make, 0.1), 4.0
    assert_agrees(student.clip_gradients(*given), reference.clip_gradients(*given))


@rung.property("clip_gradients", rules=("dtype",))
def test_clip_gradients_keeps_float64(student, reference, make):
    """Gradients in float64 stay in float64, to full precision."""
    given = two_layers(make, dtype=torch.float64), 0.7
    assert_agrees_to_float64(student.clip_gradients(*given), reference.clip_gradients(*given))


@rung.property("clip_gradients", rules=("unchanged",))
def test_clip_gradients_leaves_its_input_alone(student, make):
    """The tensors that came in stay as they were."""
    assert_input_unchanged(student.clip_gradients, two_layers(make), 0.5)


# --- schedule ------------------------------------------------------------------------------------


@rung.value("schedule", points=3)
@pytest.mark.parametrize(("steps", "warmup", "peak"), [(11, 3, 0.3), (20, 1, 2.0), (7, 6, 0.01)])
def test_schedule_agrees_with_the_reference(student, reference, steps, warmup, peak):
    """The rates agree with the reference."""
    assert_agrees(student.schedule(steps, warmup, peak), reference.schedule(steps, warmup, peak))


# --- momentum_step --------------------------------------------------------------------------------


@rung.shape("momentum_step")
@pytest.mark.parametrize(("features", "rate", "keep"), [(5, 0.1, 1.8), (1, 0.1, 1.8)])
def test_momentum_step_has_the_right_shape(student, reference, make, features, rate, keep):
    """The result has the right shape and dtype."""
    state = reference.Momentum(
        weight=make.normal(2.0, features=features),
        average=make.uniform(0.05, 0.95, features=features),
        steps=3,
    )
    gradient = make.normal(2.0, features=features)
    student.momentum_step(state, gradient, rate, keep)


@rung.value("momentum_step", points=6)
@pytest.mark.parametrize(
    ("features", "rate", "keep"), [(5, 0.1, 1.8), (2, 0.2, 0.45), (4, 0.05, 0.9)]
)
def test_momentum_step_agrees_with_the_reference(student, reference, make, features, rate, keep):
    """The result agrees with the reference."""
    state = reference.Momentum(
        weight=make.normal(2.0, features=features),
        average=make.uniform(0.05, 0.95, features=features),
        steps=3,
    )
    gradient = make.normal(2.0, features=features)
    assert_agrees(
        student.momentum_step(state, gradient, rate, keep),
        reference.momentum_step(state, gradient, rate, keep),
    )
    # The optional arguments have the right defaults.
    assert_agrees(
        student.momentum_step(state, gradient, rate), reference.momentum_step(state, gradient, rate)
    )


@rung.property("momentum_step", rules=("unchanged",))
def test_momentum_step_changes_no_argument(student, reference, make):
    """The arguments stay as they were."""
    state = reference.Momentum(
        weight=make.normal(2.0, features=4), average=make.normal(2.0, features=4), steps=3
    )
    assert_input_unchanged(student.momentum_step, state, make.normal(2.0, features=4), 0.1)
