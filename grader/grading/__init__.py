"""Turns one submission into one grade: runs the tests, names mistakes, counts points.

The story of a grade, in the order in which to read it: `order` says how to grade; `opening` opens a
`desk` for it; `ladder` takes one submission through its tests; `play` plays a case of a test;
`diagnosis` names a mistake; `ladder` counts the points.

The room knows the course, the proxies and the library of mistakes. It must not know where
submissions come from, nor where grades go.
"""
