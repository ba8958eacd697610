"""Grades in another system: whatever happens there, a grade that a person entered stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grader.grades.exported import Mark, Past, Push, Written

STUDENTS = ("ada", "bob")
POINTS = st.sampled_from([0.0, 1.333, 5.0, 7.5, 10.0])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grade"), st.sampled_from(STUDENTS), POINTS),
        st.tuples(st.just("person"), st.sampled_from(STUDENTS), POINTS),
        st.tuples(st.just("export"), st.booleans(), st.just(0.0)),
    ),
    max_size=25,
)


class World:
    """A gradebook, another system, and the marks in it that people entered."""

    def __init__(self) -> None:
        self.points = dict.fromkeys(STUDENTS, 3.0)
        self.there: dict[str, Mark] = dict.fromkeys(STUDENTS)
        self.persons: set[str] = set()
        self.memory: dict[str, Written] = {}
        self.views = 0

    def export(self, *, uploaded: bool) -> None:
        """Export twice from one view; the grades reach the system if they are uploaded."""
        self.views += 1
        first, second = self._push(), self._push()
        assert first == second
        for student, points in first.items():
            assert student not in self.persons, "a grade that a person entered was overwritten"
            if uploaded:
                self.there[student] = round(points, 2)

    def _push(self) -> Mapping[str, float]:
        push = Push(Past({"column": self.memory}), "column", f"view {self.views}")
        wrote = {
            student: points
            for student, points in self.points.items()
            if push.writes(student, points, self.there[student])
        }
        assert {*wrote, *push.same} | {one.student for one in push.changed} == {*STUDENTS}
        self.memory |= push.written
        return wrote


@given(STEPS)
def test_a_grade_that_a_person_entered_is_never_overwritten(
    steps: list[tuple[str, Any, float]],
) -> None:
    world = World()
    for what, who, points in steps:
        if what == "grade":
            world.points[who] = points
        elif what == "person":
            last = world.memory.get(who)
            kits = () if last is None else (last.points, last.before)
            if all(one is None or round(one, 2) != round(points, 2) for one in kits):
                world.persons.add(who)  # the same grade as one of the kit's is nobody's own
            else:
                world.persons.discard(who)
            world.there[who] = points
        else:
            world.export(uploaded=who)


def test_the_grade_before_a_file_that_nobody_imported_is_still_the_kits_own() -> None:
    first = Push(Past(), "column", "a")
    assert first.writes("ada", 5.0)
    second = Push(Past({"column": first.written}), "column", "b")
    assert second.writes("ada", 6.0, 5.0)
    third = Push(Past({"column": second.written}), "column", "c")
    assert third.writes("ada", 7.0, 5.0)
    assert not Push(Past({"column": third.written}), "column", "d").writes("ada", 8.0, 6.0)


def test_overwriting_is_for_one_column_and_makes_the_grade_the_kits_own() -> None:
    push = Push(Past(overwrite=("ada",)), "column", "a")
    assert push.writes("ada", 5.0, 7.0)
    assert not push.writes("bob", 5.0, 7.0)
    later = Push(Past({"column": push.written}), "column", "b")
    assert later.writes("ada", 6.0, 5.0)
    other = Push(Past({"column": push.written}), "another column", "b")
    assert not other.writes("ada", 6.0, 5.0)
