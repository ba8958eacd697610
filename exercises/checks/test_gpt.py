"""Public checks of unit 12, a language model of your own."""

import pytest
import torch

from grader.course.collection import rung
from grader.testing import TableModel, assert_agrees, assert_input_unchanged, table_model

# --- generate ------------------------------------------------------------------------------------


@rung.shape("generate")
@pytest.mark.parametrize(("batch", "tokens"), [(2, 3), (1, 1)])
def test_generate_returns_the_prompt_and_the_new_ids(student, make, batch, tokens):
    """Each row is as long as the prompt and the new ids together."""
    model = table_model(make, vocab=11, context_length=8)
    student.generate(model, make.integers(0, 11, batch=batch, tokens=tokens), 4, 8)


def adds_up(context_length):
    """The model of the example: the likeliest next id is the sum of all that it sees, modulo 10."""
    return TableModel(torch.eye(10), torch.arange(10).repeat(context_length, 1))


@rung.value("generate")
def test_generate_begins_as_in_the_example(student):
    """A model that adds up what it sees continues 1 and 2 with 3 and 6."""
    written = student.generate(adds_up(4), torch.tensor([[1, 2]]), 2, 4)
    assert_agrees(written, torch.tensor([[1, 2, 3, 6]]), what="the ids of the example")


@rung.value("generate")
def test_generate_writes_what_the_model_finds_likeliest(student, reference, make):
    """Each row goes on with its own likeliest ids."""
    model = table_model(make, vocab=11, context_length=9)
    ids = make.integers(0, 11, batch=3, tokens=4)
    assert_agrees(student.generate(model, ids, 5, 9), reference.generate(model, ids, 5, 9))


@rung.property("generate", rules=("context",))
def test_generate_goes_on_as_in_the_example(student):
    """If it sees three ids, it goes on with 1 and 0."""
    written = student.generate(adds_up(3), torch.tensor([[1, 2]]), 4, 3)
    assert_agrees(written, torch.tensor([[1, 2, 3, 6, 1, 0]]), what="the ids of the example")


@rung.property("generate", rules=("context",))
@pytest.mark.parametrize("tokens", [7, 2])
def test_generate_shows_the_model_the_last_ids(student, reference, make, tokens):
    """Beyond the context length, the model sees the last ids and no others."""
    model = table_model(make, vocab=11, context_length=5)
    ids = make.integers(0, 11, batch=3, tokens=tokens)
    assert_agrees(student.generate(model, ids, 6, 5), reference.generate(model, ids, 6, 5))


@rung.property("generate", rules=("zero",))
def test_generate_may_write_nothing(student, make):
    """Without new ids, the prompt comes back."""
    ids = make.integers(0, 11, batch=2, tokens=3)
    model = table_model(make, vocab=11, context_length=5)
    assert_agrees(student.generate(model, ids, 0, 5), ids)


@rung.property("generate", rules=("unchanged",))
def test_generate_leaves_the_prompt_alone(student, make):
    """The ids and the model that were passed in stay as they were."""
    model = table_model(make, vocab=11, context_length=4)
    assert_input_unchanged(student.generate, model, make.integers(0, 11, batch=2, tokens=4), 1, 4)
