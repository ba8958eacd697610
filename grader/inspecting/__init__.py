"""A student's own code, looked at while it runs: shapes along the way, and a debugger.

In this process, on the student's own computer: nothing is isolated, and a grading never comes here.
"""
