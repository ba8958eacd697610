"""The names that an author of tests imports.

A test is an ordinary pytest function at module level. Its arguments are the kit's fixtures
(``student``, ``reference``, ``make``) and the parameters of its cases. A decorator gives the test's
rung (its subject, such as shape or value), its exercise and its points::

    @rung.value("softmax_rows", points=2)
    def test_softmax_rows_agrees_with_the_reference(student, reference, make):
        '''Every row agrees with the reference.'''
        scores = make.normal(2.0, queries=4, keys=6)
        assert_agrees(student.softmax_rows(scores), reference.softmax_rows(scores))

The docstring's first line is the title that a student sees. Tests under ``solutions/graders``
are hidden, tests under ``exercises/checks`` are public.
"""

from __future__ import annotations

from grader.course.collection import rung
from grader.course.references import Reference
from grader.course.tensors import Make
from grader.course.tolerances import (
    ALL_DIGITS,
    DIGITS,
    FLOAT64,
    GRADIENTS,
    LARGE_ROWS,
    LARGE_SCORES,
    PRINTED,
    REORDERED,
    ROUGHLY_GELU,
    UNMOVED,
)
from grader.proxies.calls import StudentRaised
from grader.proxies.remote import Student
from grader.testing.costs import (
    assert_grows_at_most,
    assert_maxima_do_not_run_ahead,
    assert_operations_do_not_grow,
    assert_reduces_at_most,
    assert_uses,
    assert_work_at_most,
)
from grader.testing.dropout import assert_drops_only_weights, assert_drops_weights
from grader.testing.gradients import assert_gradients_agree
from grader.testing.models import small_model, table_model
from grader.testing.properties import (
    assert_batch_rows_do_not_mix,
    assert_causal,
    assert_input_unchanged,
    assert_moves,
    assert_refuses,
    assert_rows_sum_to_one,
    assert_unmoved,
    first_tokens,
)
from grader.testing.values import (
    agree,
    assert_agrees,
    assert_agrees_to_float64,
    assert_curves_in_float64,
    assert_rises_in_float64,
    assert_that,
)
from grader.testing.weights import (
    adopt,
    adopt_identity_weights,
    assert_has_one_table,
    assert_learns_no_more,
    assert_learns_the_weights,
    assert_one_bias,
)
from grader.wire.models import TableModel

__all__ = [
    "ALL_DIGITS",
    "DIGITS",
    "FLOAT64",
    "GRADIENTS",
    "LARGE_ROWS",
    "LARGE_SCORES",
    "PRINTED",
    "REORDERED",
    "ROUGHLY_GELU",
    "UNMOVED",
    "Make",
    "Reference",
    "Student",
    "StudentRaised",
    "TableModel",
    "adopt",
    "adopt_identity_weights",
    "agree",
    "assert_agrees",
    "assert_agrees_to_float64",
    "assert_batch_rows_do_not_mix",
    "assert_causal",
    "assert_curves_in_float64",
    "assert_drops_only_weights",
    "assert_drops_weights",
    "assert_gradients_agree",
    "assert_grows_at_most",
    "assert_has_one_table",
    "assert_input_unchanged",
    "assert_learns_no_more",
    "assert_learns_the_weights",
    "assert_maxima_do_not_run_ahead",
    "assert_moves",
    "assert_one_bias",
    "assert_operations_do_not_grow",
    "assert_reduces_at_most",
    "assert_refuses",
    "assert_rises_in_float64",
    "assert_rows_sum_to_one",
    "assert_that",
    "assert_unmoved",
    "assert_uses",
    "assert_work_at_most",
    "first_tokens",
    "rung",
    "small_model",
    "table_model",
]  # fmt: skip
