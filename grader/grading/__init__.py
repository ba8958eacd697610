"""Turns one submission into one grade: runs the tests, names mistakes, counts points.

Read the modules in the order in which they make a grade. An `order` says how to grade. `opening`
makes a `desk`: the tests, the references and the known mistakes, shared by all submissions. A sheet
(`sheet`, `rows`, `replays`) records how the tests end on known answers. `asking` finds the calls of
public checks to references; in a student's bundle, `recorded` replays them. `ladder` runs the tests
on one submission, and `play` runs a single case of a test. `diagnosis` names a known mistake,
`behaviour` describes how any other wrong answer behaves, and `bases` finds wrong exercises that an
answer uses. `ladder` counts the points.

The room knows the course, the proxies and the library of mistakes. It must not know where
submissions come from or where grades go.
"""
