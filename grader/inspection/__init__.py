"""Views of a student's code while it runs: shapes line by line, a debugger, `explain`.

This room runs tests as a grading does, in this process or in a jail, and never gives a point.

`cases` runs the tests of an exercise and describes each case. `tracing` follows the student's
lines, `debugger` stops at one of them, `explanation` runs one graded test again in a jail, and
`screen` prints the results.
"""
