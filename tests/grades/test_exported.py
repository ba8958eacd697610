"""Grades in another system: whatever happens there, a grade that a person entered stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grader.grades.exported import BEGUN, DONE, Mark, Past, Push, Written

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
            if last is None or round(last.points, 2) != round(points, 2):
                world.persons.add(who)  # the same grade as the kit's is nobody's own
            else:
                world.persons.discard(who)
            world.there[who] = points
        else:
            world.export(uploaded=who)


def writes(known: Written, there: float, view: str) -> bool:
    return Push(Past({"column": {"ada": known}}), "column", view).writes("ada", 7.0, there)


def test_a_grade_that_may_not_have_arrived_leaves_the_one_before_it_the_kits_own() -> None:
    assert writes(Written(6.0, "a file", before=5.0), 5.0, BEGUN)
    assert writes(Written(6.0, BEGUN, before=5.0), 5.0, BEGUN)
    assert writes(Written(6.0, BEGUN, before=5.0), 6.0, "a file")
    assert not writes(Written(6.0, BEGUN, before=5.0), 5.5, BEGUN)
    assert not writes(Written(6.0, DONE), 5.0, BEGUN), "a person put the old grade back"


def test_overwriting_is_for_one_column_and_makes_the_grade_the_kits_own() -> None:
    push = Push(Past(overwrite=("ada",)), "column", "a")
    assert push.writes("ada", 5.0, 7.0)
    assert not push.writes("bob", 5.0, 7.0)
    later = Push(Past({"column": push.written}), "column", "b")
    assert later.writes("ada", 6.0, 5.0)
    other = Push(Past({"column": push.written}), "another column", "b")
    assert not other.writes("ada", 6.0, 5.0)
