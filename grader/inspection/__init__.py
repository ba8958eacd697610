"""Shows a student's code while it runs: shapes line by line, a debugger, one graded test again.

This room runs tests as a grading does, in this process or in a jail, and awards no points.

`cases` runs the tests of an exercise and describes each case. `tracing` follows the student's
lines, `debugger` stops at a line, `explanation` runs one graded test again in a jail, and `screen`
prints the results.
"""
