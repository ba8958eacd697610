"""A student's code at work, to look at: shapes along the way, a debugger, `explain`.

It runs tests as a grading does, in this process or in a jail, and never gives a point.

`cases` runs the tests of an exercise and describes what happened in each case; `tracing` follows
the student's lines meanwhile, `debugger` stops in one, `explanation` runs one test of a grading
again in a jail, and `screen` prints what they found.
"""
