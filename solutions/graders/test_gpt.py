"""Hidden graders of unit 12, a language model of your own."""

import pytest

from grader.course.collection import rung
from grader.testing import assert_agrees, assert_input_unchanged, table_model

# --- generate ------------------------------------------------------------------------------------


@rung.shape("generate")
@pytest.mark.parametrize(("batch", "tokens", "new_tokens"), [(3, 5, 2), (1, 1, 1), (2, 1, 4)])
def test_generate_returns_as_many_ids_as_asked_for(student, make, batch, tokens, new_tokens):
    """The result is int64, and holds the prompt and the new ids."""
    model = table_model(make, vocab=13, context_length=9)
    student.generate(model, make.integers(0, 13, batch=batch, tokens=tokens), new_tokens, 9)


@rung.value("generate", points=3)
@pytest.mark.parametrize(("batch", "tokens", "new_tokens"), [(2, 3, 6), (4, 1, 7), (3, 7, 2)])
def test_generate_agrees_with_the_reference(student, reference, make, batch, tokens, new_tokens):
    """Each row goes on with the likeliest ids after all ids before them."""
    model = table_model(make, vocab=13, context_length=9)
    ids = make.integers(0, 13, batch=batch, tokens=tokens)
    ours = reference.generate(model, ids, new_tokens, 9)
    assert_agrees(student.generate(model, ids, new_tokens, 9), ours)


# tokens, new_tokens, context_length: the text is too long from the start, or grows out of it
BEYOND = [(10, 1, 4), (7, 3, 1), (5, 8, 4), (2, 9, 6)]


@rung.property("generate", points=2, rules=("context",))
@pytest.mark.parametrize(("tokens", "new_tokens", "context_length"), BEYOND)
def test_generate_moves_the_window_along(
    student, reference, make, tokens, new_tokens, context_length
):
    """Of a text beyond the context length the model sees the end, and all of it is returned."""
    model = table_model(make, vocab=13, context_length=context_length)
    ids = make.integers(0, 13, batch=3, tokens=tokens)
    ours = reference.generate(model, ids, new_tokens, context_length)
    assert_agrees(student.generate(model, ids, new_tokens, context_length), ours)


@rung.property("generate", points=0.5, rules=("zero",))
def test_generate_writes_nothing_if_asked_for_nothing(student, make):
    """Without new ids, the prompt comes back."""
    model = table_model(make, vocab=13, context_length=6)
    ids = make.integers(0, 13, batch=3, tokens=5)
    assert_agrees(student.generate(model, ids, 0, 6), ids)


@rung.property("generate", points=0.5, rules=("unchanged",))
def test_generate_leaves_the_prompt_and_the_model_alone(student, make):
    """The ids and the weights of the model stay as they were."""
    model = table_model(make, vocab=13, context_length=5)
    assert_input_unchanged(student.generate, model, make.integers(0, 13, batch=2, tokens=5), 1, 5)
